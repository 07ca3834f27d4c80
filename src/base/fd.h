/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BASE_FD_H
#define VB_BASE_FD_H

/*
 * Descriptors that a forked child finds in our memory and closes.
 *
 * Another thread may fork at any moment, and the child has the memory as it was then. If the memory
 * had the number of a closed file, that number may be one of the application's files by then, and
 * the child would close that: a pipe, its standard input. So the number is erased before the file
 * is closed. In the opposite case the child has one file more than it knows of, until exec (all are
 * close-on-exec).
 */

#include <unistd.h>

#define VB_FD_NONE (-1)

/* Closes *fd unless it is VB_FD_NONE, and sets it to VB_FD_NONE. One thread at a time. */
static inline void vb_fd_close(int *fd)
{
	/* Atomic to fix the order: a fork sees stores in program order. */
	int old = __atomic_exchange_n(fd, VB_FD_NONE, __ATOMIC_SEQ_CST);

	if (old >= 0)
		close(old);
}

#endif
