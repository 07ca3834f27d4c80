/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_SIGNALS_H
#define VB_RUN_SIGNALS_H

/*
 * The application's threads shall get its signals, so ours block them: they are started between
 * these two calls. Signals of faults stay open: the thread that causes one gets it, a guard needs
 * them, and a blocked fault kills.
 */

#include <signal.h>
#include <stddef.h>

static inline void vb_signals_defer(sigset_t *before)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT };
	sigset_t blocked;

	sigfillset(&blocked);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(&blocked, faults[i]);
	pthread_sigmask(SIG_BLOCK, &blocked, before);
}

static inline void vb_signals_restore(const sigset_t *before)
{
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

#endif
