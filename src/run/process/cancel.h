/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_CANCEL_H
#define VB_RUN_CANCEL_H

/*
 * Verbs are not cancellation points, but the system calls in them are. An application may cancel a
 * thread that polls or posts, which would then end with our locks held. So cancellation is deferred
 * around every system call made under a lock.
 */

#include <pthread.h>

/* Returns the state for vb_cancel_restore(). */
static inline int vb_cancel_defer(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void vb_cancel_restore(int before)
{
	int unused;

	pthread_setcancelstate(before, &unused);
}

#endif
