/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * How long to look before going to sleep, in pauses: some microseconds, which is what the longest
 * holders take. Longer would be lost wherever the holder waits for this very processor. From one
 * look to the next the pauses double, since each look costs the holder the cache line.
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
	 * Said anew after each sleep, since whoever woke us took it back, and others may sleep
	 * still: we get the lock with the word set, and wake the next one when we drop it.
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
	/* Taken back first, so that the droppers until somebody is awake stay out of the kernel. */
	atomic_store_explicit(&lock->asleep, 0, memory_order_relaxed);
	atomic_store_explicit(&lock->taken, 0, memory_order_release);
	/* Only an address from here on: if the memory is gone, nobody sleeps there. */
	syscall(SYS_futex, &lock->taken, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
