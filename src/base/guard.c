/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/guard.h"

#include <string.h>

__thread struct vb_guard *volatile vb_guard_current __attribute__((tls_model("initial-exec")));

bool vb_guard_copy(void *dst, const void *src, size_t bytes)
{
	struct vb_guard guard;

	if (!vb_guard_enter(&guard))
		return false;
	memcpy(dst, src, bytes);
	vb_guard_leave();
	return true;
}

void vb_guard_fault(void)
{
	struct vb_guard *guard = vb_guard_current;

	if (guard)
		longjmp(guard->back, 1);
}
