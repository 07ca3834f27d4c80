/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BASE_LOCK_ORDER_H
#define VB_BASE_LOCK_ORDER_H

/*
 * Checks the order of lock_rank.def. In a build with -Dlock_order=true each thread has a list of
 * the locks that it holds, and a breach ends the process with a message on stderr that names the
 * lock and all that are held. In other builds these functions are empty.
 *
 * Only lock.h calls these, except vb_lock_order_wait(): any thread, before it waits.
 */

#ifdef VB_LOCK_ORDER

/* If this thread holds the lock, as a forked child may, this also drops it. */
void vb_lock_order_init(vb_lock *lock, enum vb_lock_rank rank);

/* Before taking the lock, so that a breach is reported instead of a deadlock. */
void vb_lock_order_take(vb_lock *lock);

/* After a try that took the lock. Returns true. */
bool vb_lock_order_tried(vb_lock *lock);

void vb_lock_order_drop(vb_lock *lock);

/* This thread may sleep, or wait for another thread or process; `what` names the place. */
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
