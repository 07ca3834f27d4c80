/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_SIGGUARD_H
#define VB_RUN_SIGGUARD_H

/*
 * The SIGSEGV and SIGBUS handler that makes guards (base/guard.h) work in an application.
 *
 * A fault outside a guard, and a signal that somebody sent, go to whoever had the signal before
 * us, as if we were not there: with the same siginfo and context, the mask and flags they asked
 * for, and the default action ends in the same core dump. A handler that the application installs
 * later replaces ours; then a fault inside a guard is the application's, like any other.
 */

/* Once per process; later calls, also in a forked child, do nothing. Any thread. */
void vb_sigguard_install(void);

#endif
