/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_SIGGUARD_H
#define VB_RUN_SIGGUARD_H

/*
 * The SIGSEGV and SIGBUS handler that makes guards (base/guard.h) work in an application.
 *
 * A fault outside a guard, and a signal that a process sent, go to the handler installed before
 * ours as if ours did not exist: with the same siginfo and context, on the stack, mask and flags
 * that it asked for. The default action ends in the same core dump. A handler that the application
 * installs later replaces ours; then a fault inside a guard is the application's, like any other.
 *
 * For a fault inside a guard at a page that is mapped but forbidden (SEGV_ACCERR), as programs that
 * track writes have them, the handler before ours is asked: if it opens the page, the access
 * continues. Otherwise the guard is left through the kernel: our handler returns to the guard's
 * exit, so mask, signal stack and flags are as they were.
 */

/* Once per process; later calls, also in a forked child, do nothing. Any thread. */
void vb_sigguard_install(void);

#endif
