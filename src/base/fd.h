/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BASE_FD_H
#define VB_BASE_FD_H

/*
 * Descriptors that the child of a fork finds in our memory and closes.
 *
 * Another thread may fork at any moment, and a child has what the memory said just then. If it
 * said a number whose file is closed already, that number may be a file of the application's by
 * now, and the child would take it away from itself: a pipe, its standard input. So a number is
 * forgotten before its file is closed. The other way round, a child may find a number less than
 * there are files: it has one file more, until it executes something (all are close-on-exec).
 */

#include <unistd.h>

#define VB_FD_NONE (-1)

/* Close *fd if it is one, and let it be VB_FD_NONE. Not for two threads at once. */
static inline void vb_fd_close(int *fd)
{
	/* Not atomic for its own sake: a fork sees stores in the order that the program has. */
	int old = __atomic_exchange_n(fd, VB_FD_NONE, __ATOMIC_SEQ_CST);

	if (old >= 0)
		close(old);
}

#endif
