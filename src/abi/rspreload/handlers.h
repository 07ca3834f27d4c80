/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_RSPRELOAD_HANDLERS_H
#define VB_ABI_RSPRELOAD_HANDLERS_H

/*
 * To a signal a call of rsockets' is as one of the kernel's: it ends with EINTR or goes on to its
 * end, and then the handler runs. So a handler may leave by siglongjmp(3), or make calls of its
 * own, and finds no lock taken. Each thread has its own.
 */

#include <signal.h>
#include <stdbool.h>

struct vb_held {
	volatile unsigned depth; /* of calls */
	/* A signal has come. It waits in the kernel, and nothing interrupts this thread now. */
	volatile bool has_come;
	sigset_t mask; /* the thread's, until then */
	/* Handlers that have run: with SA_RESTART, and without. Whoever asks says false before. */
	volatile bool ran_restarting, ran_ending;
};

extern __thread struct vb_held vb_held __attribute__((tls_model("initial-exec")));

/* Lets in what has come. Handlers may not return from it. */
void vb_handlers_run(void);

static inline void vb_handlers_hold(void)
{
	vb_held.depth++;
}

static inline void vb_handlers_release(void)
{
	unsigned left = vb_held.depth - 1;

	vb_held.depth = left;
	if (__builtin_expect(!left && vb_held.has_come, 0))
		vb_handlers_run();
}

#endif
