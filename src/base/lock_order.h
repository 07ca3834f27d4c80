/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BASE_LOCK_ORDER_H
#define VB_BASE_LOCK_ORDER_H

/*
 * Is the order of lock_rank.def kept? In a build with -Dlock_order=true each thread has a list of
 * the locks that it holds, and a breach ends the process with a message on stderr that names the
 * lock and all that are held. In any other build these functions are empty.
 *
 * Only lock.h calls these, but for vb_lock_order_wait(): any thread, before it waits.
 */

#ifdef VB_LOCK_ORDER

/* A thread that initializes a lock that it holds, as the child of a fork does, drops it. */
void vb_lock_order_init(vb_lock *lock, enum vb_lock_rank rank);

/* Before the lock is taken, so that a breach is told and does not end in a deadlock. */
void vb_lock_order_take(vb_lock *lock);

/* After a try that took the lock. Returns true. */
bool vb_lock_order_tried(vb_lock *lock);

void vb_lock_order_drop(vb_lock *lock);

/* This thread may sleep, or wait for another thread or process, in `what`. */
void vb_lock_order_wait(const char *what);

#else

static inline void vb_lock_order_init(vb_lock *lock, enum vb_lock_rank rank)
{
}

static inline void vb_lock_order_take(vb_lock *lock)
{
}

static inline bool vb_lock_order_tried(vb_lock *lock)
{
	return true;
}

static inline void vb_lock_order_drop(vb_lock *lock)
{
}

static inline void vb_lock_order_wait(const char *what)
{
}

#endif

#endif
