/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BASE_LOCK_H
#define VB_BASE_LOCK_H

/*
 * The one kind of lock. Held for the time of a post or a packet, never across a wait of any other
 * kind. Nearly always nobody else wants it, so that is what it is made for: taking it is one
 * exchange, dropping it a load and a store. Whoever finds it taken looks again for a while, and
 * then sleeps in the kernel (lock.c).
 *
 * The dropper looks for sleepers before it drops: after that, the lock's memory may be gone with
 * the object that the next owner destroyed. So a sleeper that comes just in between is not woken.
 * It would take a fence per drop to prevent that; instead no sleep is longer than
 * VB_LOCK_SLEEP_NS, after which the sleeper looks for itself.
 *
 * It is not fair and not recursive, and lives within one process.
 *
 * Each lock has a rank, a row of lock_rank.def, which is the one place where their order stands. A
 * build with -Dlock_order=true holds every thread to it (lock_order.h); in any other the rank is
 * nowhere, and costs nothing.
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
	_Atomic uint32_t taken;  /* 0 or 1; what sleepers wait on */
	_Atomic uint32_t asleep; /* somebody sleeps, or is about to */
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

/* For the functions below: what to do when somebody is in the way, or waits. */
void vb_lock_wait(vb_lock *lock);
void vb_lock_drop_wake(vb_lock *lock);

static inline void vb_lock_init(vb_lock *lock, enum vb_lock_rank rank)
{
	atomic_init(&lock->taken, 0);
	atomic_init(&lock->asleep, 0);
	vb_lock_order_init(lock, rank);
}

/* The lock has another rank from now on, since other things may be done under it. */
static inline void vb_lock_rank_set(vb_lock *lock, enum vb_lock_rank rank)
{
#ifdef VB_LOCK_ORDER
	lock->rank = rank;
#endif
}

/* Nothing to give back: a lock is only its memory. Nobody may have it or want it. */
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
