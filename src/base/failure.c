/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/failure.h"

#include <string.h>

#include "base/check.h"

static __thread struct vb_failure last;

static int note(int error, const char *text, bool explained)
{
	size_t n = vb_min_u64(strlen(text), sizeof(last.text) - 1);

	last.error = error;
	last.explained = explained;
	memmove(last.text, text, n);
	last.text[n] = 0;
	return error;
}

int vb_failed(int error, const char *what)
{
	return note(error, what, false);
}

int vb_failed_because(int error, const char *why)
{
	return note(error, why, true);
}

int vb_failed_as(const struct vb_failure *failure)
{
	last = *failure;
	return last.error;
}

const struct vb_failure *vb_failure_of(int error)
{
	return error && last.error == error ? &last : NULL;
}
