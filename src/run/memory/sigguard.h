/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_SIGGUARD_H
#define VB_RUN_SIGGUARD_H

/*
 * The SIGSEGV and SIGBUS handler that makes guards (base/guard.h) work in an application.
 *
 * A fault that is not a guard's own, and a signal that somebody sent, go to whoever had the signal
 * before us, as if we were not there: with the same siginfo and context, on the stack, under the
 * mask and the flags they asked for, and the default action ends in the same core dump. A handler
 * that the application installs later replaces ours; then a fault inside a guard is the
 * application's, like any other.
 *
 * Of a guard's own faults, the handler before us is asked about pages that are there but forbidden
 * (SEGV_ACCERR), as write tracking has them: if it opens the page, the access goes on. Otherwise
 * the guard is left, by way of the kernel: the handler returns to where the guard goes on, so that
 * mask, signal stack and flags are as they were.
 */

/* Once per process; later calls, also in a forked child, do nothing. Any thread. */
void vb_sigguard_install(void);

#endif
