/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BASE_LOCK_H
#define VB_BASE_LOCK_H

/*
 * The one kind of lock: a mutex which enters the kernel only when it must wait. Held for the time
 * of a post or a packet, never across a wait of any other kind.
 */

#include <pthread.h>
#include <stdbool.h>

typedef pthread_mutex_t vb_lock;

#define VB_LOCK_INIT PTHREAD_MUTEX_INITIALIZER

static inline void vb_lock_init(vb_lock *lock)
{
	pthread_mutex_init(lock, NULL);
}

static inline void vb_lock_fini(vb_lock *lock)
{
	pthread_mutex_destroy(lock);
}

static inline void vb_lock_take(vb_lock *lock)
{
	pthread_mutex_lock(lock);
}

static inline bool vb_lock_try(vb_lock *lock)
{
	return pthread_mutex_trylock(lock) == 0;
}

static inline void vb_lock_drop(vb_lock *lock)
{
	pthread_mutex_unlock(lock);
}

#endif
