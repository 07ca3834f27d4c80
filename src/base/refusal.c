/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/refusal.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_bool told;

static __thread int error_kept; /* what `kept.why` is about; 0: nothing */
static __thread struct vb_refusal kept;

void vb_refusals_want(bool wanted)
{
	atomic_store(&told, wanted);
}

bool vb_refusals_are_wanted(void)
{
	return atomic_load_explicit(&told, memory_order_relaxed);
}

int vb_refuse(int error, const char *format, ...)
{
	va_list args;

	if (!error || !vb_refusals_are_wanted())
		return error;
	va_start(args, format);
	vsnprintf(kept.why, sizeof(kept.why), format, args);
	va_end(args);
	error_kept = error;
	return error;
}

void vb_refusal_about(const char *format, ...)
{
	va_list args;

	if (!vb_refusals_are_wanted())
		return;
	va_start(args, format);
	vsnprintf(kept.about, sizeof(kept.about), format, args);
	va_end(args);
}

void vb_refusal_take(int error, struct vb_refusal *refusal)
{
	if (error_kept != error)
		kept.why[0] = 0;
	*refusal = kept;
	kept.why[0] = kept.about[0] = 0;
	error_kept = 0;
}
