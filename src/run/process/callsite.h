/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_CALLSITE_H
#define VB_RUN_CALLSITE_H

/*
 * Where in the application a call of ours was made: "server.c:123 in main", by the debug
 * information of the program if elfutils' libdw.so.1 is there, else "main+0x1f in /usr/bin/prog",
 * else "0x1234 in /usr/bin/prog". Slow; for reports only.
 */

#include <stddef.h>

#include "base/lent.h"

enum { VB_CALLSITE_BYTES = 160 };

/*
 * Composes where the innermost caller outside of our libraries is. "" if that cannot be found. Any
 * thread, not from a signal handler; keeps errno. Returns text.
 */
const char *vb_callsite(char text[VB_CALLSITE_BYTES]);

/* The same for an address in the application. */
const char *vb_callsite_of(char text[VB_CALLSITE_BYTES], const void *address);

/* The address of that caller; NULL if it cannot be found. */
VB_LENT const void *vb_caller(void);

/*
 * The same for a call that returns to `address`: that address, unless it is in one of our
 * libraries, or in a verb of a header that the compiler did not inline. Looks at each address once,
 * and so is fast enough for posting.
 */
const void *vb_caller_by(const void *address);

/* In a forked child: another thread of the parent may have been at it. */
void vb_callsite_forget(void);

#endif
