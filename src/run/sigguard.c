/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/sigguard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/check.h"
#include "base/guard.h"

static const int signals[] = { SIGSEGV, SIGBUS };

/* What was installed before us, in the order of `signals`. */
static struct sigaction before[VB_ARRAY_LEN(signals)];

static struct sigaction *before_of(int signum)
{
	return &before[signum == SIGBUS];
}

/* From the kernel, about what this very thread did; anything else was sent by somebody. */
static bool is_fault(const siginfo_t *info)
{
	return info->si_code > 0;
}

static void take_default(int signum, siginfo_t *info)
{
	struct sigaction action = { .sa_handler = SIG_DFL };

	sigaction(signum, &action, NULL);
	/* The faulting instruction runs again and dies there; a sent signal must come anew. */
	if (!is_fault(info))
		syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), signum, info);
}

/* Calls the former handler under the conditions that it asked the kernel for. */
static void call_handler(const struct sigaction *old, int signum, siginfo_t *info, void *context)
{
	sigset_t mask = old->sa_mask, saved;

	if (!(old->sa_flags & SA_NODEFER))
		sigaddset(&mask, signum);
	pthread_sigmask(SIG_BLOCK, &mask, &saved);
	if (old->sa_flags & SA_SIGINFO)
		old->sa_sigaction(signum, info, context);
	else
		old->sa_handler(signum);
	pthread_sigmask(SIG_SETMASK, &saved, NULL);
}

/*
 * Does not come back if this thread is inside a guard. Who jumps does not return, so nobody gives
 * back the mask that the kernel has put aside, or that somebody has widened who calls us: that of
 * ThreadSanitizer blocks everything.
 */
static void leave_guard(const ucontext_t *interrupted)
{
	if (!vb_guard_current)
		return;
	pthread_sigmask(SIG_SETMASK, &interrupted->uc_sigmask, NULL);
	vb_guard_fault();
}

#if defined(__x86_64__)
#define PC(context) ((context)->uc_mcontext.gregs[REG_RIP])
#elif defined(__aarch64__)
#define PC(context) ((context)->uc_mcontext.pc)
#endif

/* True if this thread was at a small copy, which ends when the handler returns. */
static bool end_copy(ucontext_t *interrupted)
{
#ifdef PC
	uintptr_t end = vb_guard_resume((uintptr_t)PC(interrupted));

	if (end)
		PC(interrupted) = end;
	return end;
#else
	return false;
#endif
}

static void on_signal(int signum, siginfo_t *info, void *context)
{
	struct sigaction *slot = before_of(signum), old = *slot;
	int saved_errno = errno;

	if (is_fault(info)) {
		if (end_copy(context))
			return;
		leave_guard(context);
	}
	if (!(old.sa_flags & SA_SIGINFO) && old.sa_handler == SIG_IGN && !is_fault(info))
		return;
	/* The kernel does not let a fault be ignored either. */
	if (!(old.sa_flags & SA_SIGINFO) &&
	    (old.sa_handler == SIG_DFL || old.sa_handler == SIG_IGN)) {
		take_default(signum, info);
	} else {
		if (old.sa_flags & SA_RESETHAND)
			*slot = (struct sigaction){ .sa_handler = SIG_DFL };
		call_handler(&old, signum, info, context);
	}
	errno = saved_errno;
}

static void install(void)
{
	struct sigaction action = {
		.sa_sigaction = on_signal,
		/* A guard leaves by longjmp: nobody would unblock the signal again. */
		.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK,
	};

	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < VB_ARRAY_LEN(signals); i++) {
		/* Ours may run before the second call returns: it must find the old one. */
		sigaction(signals[i], NULL, &before[i]);
		sigaction(signals[i], &action, NULL);
	}
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

void vb_sigguard_install(void)
{
	pthread_once(&once, install);
}
