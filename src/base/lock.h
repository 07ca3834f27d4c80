/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BASE_LOCK_H
#define VB_BASE_LOCK_H

/*
 * The only kind of lock. Held as long as a post or a packet takes, never across any other wait. It
 * is optimized for the usual case without contention: taking it is one exchange, dropping it a load
 * and a store. A thread that finds it taken spins for a while, and then sleeps in the kernel
 * (lock.c).
 *
 * Dropping looks for sleepers before it releases: afterwards the lock's memory may be gone, because
 * the next owner destroyed the object. So a thread that goes to sleep just in between is not woken.
 * Preventing that would take a fence per drop; instead no sleep is longer than VB_LOCK_SLEEP_NS.
 *
 * It is neither fair nor recursive, and works within one process.
 *
 * Each lock has a rank, a row of lock_rank.def, the only place that states their order. A build
 * with -Dlock_order=true checks it at run time (lock_order.h); in other builds the rank is not
 * stored and costs nothing.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define VB_LOCK_SLEEP_NS 200000

enum vb_lock_rank {
	VB_RANK_NONE,
#define VB_LOCK_RANK(name, rules, guards) VB_RANK_##name,
#include "base/lock_rank.def"
#undef VB_LOCK_RANK
	VB_RANKS,
};

typedef struct {
	_Atomic uint32_t taken;  /* 0 or 1; sleepers wait on it */
	_Atomic uint32_t asleep; /* a thread sleeps, or is about to */
#ifdef VB_LOCK_ORDER
	enum vb_lock_rank rank;
#endif
} vb_lock;

#ifdef VB_LOCK_ORDER
#define VB_LOCK_INIT(rank) { 0, 0, rank }
#else
#define VB_LOCK_INIT(rank) { 0, 0 }
#endif

#include "base/lock_order.h"

/* For the functions below: the slow paths, with contention. */
void vb_lock_wait(vb_lock *lock);
void vb_lock_drop_wake(vb_lock *lock);

static inline void vb_lock_init(vb_lock *lock, enum vb_lock_rank rank)
{
	atomic_init(&lock->taken, 0);
	atomic_init(&lock->asleep, 0);
	vb_lock_order_init(lock, rank);
}

/* Gives the lock another rank. */
static inline void vb_lock_rank_set(vb_lock *lock, enum vb_lock_rank rank)
{
#ifdef VB_LOCK_ORDER
	lock->rank = rank;
#endif
}

/* A lock owns only its memory. No thread may have it or want it. */
static inline void vb_lock_fini(vb_lock *lock)
{
}

static inline bool vb_lock_try(vb_lock *lock)
{
	return !atomic_load_explicit(&lock->taken, memory_order_relaxed) &&
	       !atomic_exchange_explicit(&lock->taken, 1, memory_order_acquire) &&
	       vb_lock_order_tried(lock);
}

static inline void vb_lock_take(vb_lock *lock)
{
	vb_lock_order_take(lock);
	if (__builtin_expect(
		    atomic_exchange_explicit(&lock->taken, 1, memory_order_acquire) != 0, 0))
		vb_lock_wait(lock);
}

static inline void vb_lock_drop(vb_lock *lock)
{
	vb_lock_order_drop(lock);
	if (__builtin_expect(atomic_load_explicit(&lock->asleep, memory_order_relaxed) != 0, 0))
		vb_lock_drop_wake(lock);
	else
		atomic_store_explicit(&lock->taken, 0, memory_order_release);
}

#endif
