/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * How long to spin before sleeping, in pauses: some microseconds, as long as the longest holders
 * take. More would be wasted if the holder waits for this CPU. The pauses double from one look to
 * the next, since each look takes the cache line from the holder.
 */
enum { PAUSES_MAX = 64 };

static inline void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
	__asm__ volatile("yield" ::: "memory");
#else
	__asm__ volatile("" ::: "memory");
#endif
}

static void sleep_while_taken(vb_lock *lock)
{
	const struct timespec limit = { .tv_nsec = VB_LOCK_SLEEP_NS };

	syscall(SYS_futex, &lock->taken, FUTEX_WAIT_PRIVATE, 1, &limit, NULL, 0);
}

void vb_lock_wait(vb_lock *lock)
{
	for (unsigned pauses = 1; pauses <= PAUSES_MAX; pauses *= 2) {
		for (unsigned i = 0; i < pauses; i++)
			pause_briefly();
		if (!atomic_load_explicit(&lock->taken, memory_order_relaxed) &&
		    !atomic_exchange_explicit(&lock->taken, 1, memory_order_acquire))
			return;
	}
	/*
	 * Set again after each sleep, since the thread that woke us cleared it and others may still
	 * sleep: so we get the lock with the word set, and wake the next one when we drop it.
	 */
	for (;;) {
		atomic_store_explicit(&lock->asleep, 1, memory_order_relaxed);
		if (!atomic_exchange_explicit(&lock->taken, 1, memory_order_acquire))
			return;
		sleep_while_taken(lock);
	}
}

void vb_lock_drop_wake(vb_lock *lock)
{
	/* Cleared first: until the woken thread runs, other droppers need no system call. */
	atomic_store_explicit(&lock->asleep, 0, memory_order_relaxed);
	atomic_store_explicit(&lock->taken, 0, memory_order_release);
	/* From here on only its address is used: if the memory is gone, no thread sleeps there. */
	syscall(SYS_futex, &lock->taken, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
