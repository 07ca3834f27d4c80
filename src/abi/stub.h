/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/*
 * Entry points that exist so that programs load. When called they fail with "not supported", never
 * silently succeed. How they report that depends on what they return, so there is one macro per
 * way. Arguments are ignored and so not declared; files with these macros must not include the
 * header with the real prototypes.
 */

#include <errno.h>
#include <stddef.h>

/* clang-format off */

/* Returns an errno value. */
#define VB_STUB_INT(name) \
	int name(void); \
	int name(void) { return EOPNOTSUPP; }

/* Returns a negative errno value; a positive one would be a count. */
#define VB_STUB_NEGATIVE(name) \
	int name(void); \
	int name(void) { return -EOPNOTSUPP; }

/* Returns -1 and sets errno. Of type long, so that ssize_t, off_t and int callers all read -1. */
#define VB_STUB_MINUS_ONE(name, error) \
	long name(void); \
	long name(void) { errno = (error); return -1; }

/* Returns NULL and sets errno. */
#define VB_STUB_POINTER(name, error) \
	void *name(void); \
	void *name(void) { errno = (error); return NULL; }

/* Returns 0, which is the true answer here: false, none, no port. */
#define VB_STUB_ZERO(name) \
	int name(void); \
	int name(void) { return 0; }

/* Returns nothing and does nothing. */
#define VB_STUB_VOID(name) \
	void name(void); \
	void name(void) { }

/* clang-format on */
