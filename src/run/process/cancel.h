/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_CANCEL_H
#define VB_RUN_CANCEL_H

/*
 * Verbs are no cancellation points, but the system calls behind ours are, and an application may
 * cancel a thread that polls or posts: it would die with our locks held. So cancellation is put
 * off around every system call that is made under a lock.
 */

#include <pthread.h>

/* Returns what vb_cancel_restore() wants. */
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
