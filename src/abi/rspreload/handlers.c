/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/rspreload/handlers.h"

#include <errno.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "abi/rspreload/calls.h"
#include "base/check.h"

/* Of a thread's own faults: they cannot wait. */
static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};

/* The application's, each with whatever function it had last. */
static struct sigaction asked[NSIG];

__thread struct vb_held vb_held __attribute__((tls_model("initial-exec")));

static void faults_leave(sigset_t *mask)
{
	for (unsigned i = 0; i < VB_ARRAY_LEN(faults); i++)
		sigdelset(mask, faults[i]);
}

/* In the midst of a call: the signal is sent again, and waits with all others for its end. */
static void wait_for_end(int sig, siginfo_t *info, ucontext_t *interrupted)
{
	int saved = errno;

	syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), sig, info);
	vb_held.mask = interrupted->uc_sigmask;
	vb_held.has_come = true;
	sigfillset(&interrupted->uc_sigmask);
	faults_leave(&interrupted->uc_sigmask);
	errno = saved;
}

void vb_handlers_run(void)
{
	int saved = errno;

	vb_held.has_come = false;
	pthread_sigmask(SIG_SETMASK, &vb_held.mask, NULL);
	errno = saved;
}

/* A function that takes but the signal leaves the rest alone. */
static void handle(int sig, siginfo_t *info, void *context)
{
	if (vb_held.depth) {
		wait_for_end(sig, info, context);
		return;
	}
	if (asked[sig].sa_flags & SA_RESTART)
		vb_held.ran_restarting = true;
	else
		vb_held.ran_ending = true;
	__atomic_load_n(&asked[sig].sa_sigaction, __ATOMIC_RELAXED)(sig, info, context);
}

/* Some handlers are to run once, or within themselves: sent again, they would not. */
static bool may_wait(int sig, const struct sigaction *action)
{
	sigset_t waiting;

	sigfillset(&waiting);
	faults_leave(&waiting);
	return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN &&
	       !(action->sa_flags & (SA_RESETHAND | SA_NODEFER)) && sig > 0 && sig < NSIG &&
	       sigismember(&waiting, sig) == 1;
}

int sigaction(int sig, const struct sigaction *action, struct sigaction *old)
{
	struct sigaction own, before, known = {0};
	int rc;

	if (sig > 0 && sig < NSIG)
		known = asked[sig];
	if (action && may_wait(sig, action)) {
		own = *action;
		own.sa_sigaction = handle;
		own.sa_flags |= SA_SIGINFO;
		asked[sig] = *action;
		action = &own;
	}
	rc = vb_real()->sigaction(sig, action, &before);
	if (!rc && old)
		*old = before.sa_sigaction == handle ? known : before;
	return rc;
}

/* As with BSD, which is what the C library has. */
sighandler_t (signal)(int sig, sighandler_t handler)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;

	sigemptyset(&action.sa_mask);
	return sigaction(sig, &action, &old) ? SIG_ERR : old.sa_handler;
}
