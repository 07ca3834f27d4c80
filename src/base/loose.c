/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/loose.h"

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Together 200 ms and some more; a ring is set up in much less, and a process copied. */
enum { PAUSES_MAX = 2000, PAUSE_NS = 100000 };

/* Threads with loose descriptors; above them, forks. */
enum { FORK = 1 << 16, THREADS = FORK - 1, FORKS = ~THREADS };
static _Atomic uint32_t busy;

static __thread unsigned depth __attribute__((tls_model("initial-exec")));

/* Joins when there are no more of those others than own, or after too many pauses. */
static void join(uint32_t by, uint32_t others, uint32_t own)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	uint32_t now = atomic_load(&busy);
	unsigned left = PAUSES_MAX;

	do {
		for (; (now & others) > own && left; left--) {
			syscall(SYS_futex, &busy, FUTEX_WAIT_PRIVATE, now, &pause, NULL, 0);
			now = atomic_load(&busy);
		}
	} while (!atomic_compare_exchange_weak(&busy, &now, now + by));
}

void vb_loose_begin(void)
{
	if (depth++ == 0)
		join(1, (uint32_t)FORKS, 0);
}

void vb_loose_end(void)
{
	if (--depth == 0)
		atomic_fetch_sub(&busy, 1);
}

void vb_loose_await(void)
{
	join(FORK, THREADS, depth ? 1 : 0);
}

void vb_loose_resume(void)
{
	atomic_fetch_sub(&busy, FORK);
}

void vb_loose_forget(void)
{
	atomic_store(&busy, depth ? 1 : 0);
}
