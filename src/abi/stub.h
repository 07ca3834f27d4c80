/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/*
 * Entry points that exist so that programs load, and say "not supported" when they are called:
 * never a silent success. How a function says so depends on what it returns, so there is one macro
 * per way. Arguments are not looked at, hence not declared; the files that use these macros must
 * not include the header that declares the real prototypes.
 */

#include <errno.h>
#include <stddef.h>

/* clang-format off */

/* Returns an errno value. */
#define VB_STUB_INT(name) \
	int name(void); \
	int name(void) { return EOPNOTSUPP; }

/* Returns a negative errno value, because a positive one would be a count. */
#define VB_STUB_NEGATIVE(name) \
	int name(void); \
	int name(void) { return -EOPNOTSUPP; }

/* Returns -1 and sets errno; long, so that ssize_t, off_t and int callers all read -1. */
#define VB_STUB_MINUS_ONE(name, error) \
	long name(void); \
	long name(void) { errno = (error); return -1; }

/* Returns NULL and sets errno. */
#define VB_STUB_POINTER(name, error) \
	void *name(void); \
	void *name(void) { errno = (error); return NULL; }

/* Returns 0, where 0 is the honest answer: false, none, no port. */
#define VB_STUB_ZERO(name) \
	int name(void); \
	int name(void) { return 0; }

/* Cannot fail, so it does nothing. */
#define VB_STUB_VOID(name) \
	void name(void); \
	void name(void) { }

/* clang-format on */
