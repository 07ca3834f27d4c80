/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/memory/sigguard.h"

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
#include "run/memory/memtouch.h"

/* How often a handler is asked about one fault: it may allow reading first, then writing. */
enum { ASKED_MAX = 4 };

static const int signals[] = { SIGSEGV, SIGBUS };

/* The handlers installed before ours, in the order of `signals`. */
static struct sigaction before[VB_ARRAY_LEN(signals)];

static struct sigaction *before_of(int signum)
{
	return &before[signum == SIGBUS];
}

/* Did this thread cause it by an access? Otherwise a process sent the signal. */
static bool is_fault(int signum, const siginfo_t *info)
{
	return info->si_code > 0 && !(signum == SIGBUS && info->si_code == BUS_MCEERR_AO);
}

/* --- the thread's registers, and where it continues --- */

#if defined(__x86_64__)
#define REG(context, reg) ((uintptr_t)(context)->uc_mcontext.gregs[reg])

static struct vb_memory_fault fault_of(const siginfo_t *info, const ucontext_t *at)
{
	return (struct vb_memory_fault){ .pc = REG(at, REG_RIP), .sp = REG(at, REG_RSP),
				  .to = REG(at, REG_RDI), .at = (uintptr_t)info->si_addr };
}

static void go_on_at(ucontext_t *interrupted, enum vb_guarded guarded)
{
	greg_t *reg = interrupted->uc_mcontext.gregs;

	reg[REG_RIP] = (greg_t)vb_guard_resume(guarded);
	if (guarded == VB_GUARDED_SMALL)
		return;
	/* The stack as after a call, and the direction flag clear. */
	reg[REG_RSP] = (reg[REG_RSP] & ~15LL) - 8;
	reg[REG_EFL] &= ~0x400LL;
}
#elif defined(__aarch64__)
static struct vb_memory_fault fault_of(const siginfo_t *info, const ucontext_t *at)
{
	return (struct vb_memory_fault){ .pc = at->uc_mcontext.pc, .sp = at->uc_mcontext.sp,
				  .to = at->uc_mcontext.regs[0], .at = (uintptr_t)info->si_addr };
}

static void go_on_at(ucontext_t *interrupted, enum vb_guarded guarded)
{
	interrupted->uc_mcontext.pc = vb_guard_resume(guarded);
}
#else
static struct vb_memory_fault fault_of(const siginfo_t *info, const ucontext_t *at)
{
	return (struct vb_memory_fault){ .at = (uintptr_t)info->si_addr };
}

/* A handler that jumps does not return, so it restores the signal mask itself. */
static void go_on_at(ucontext_t *interrupted, enum vb_guarded guarded)
{
	pthread_sigmask(SIG_SETMASK, &interrupted->uc_sigmask, NULL);
	vb_guard_fault();
}
#endif

/* --- the handler before ours --- */

static bool is_function(const struct sigaction *action)
{
	return (action->sa_flags & SA_SIGINFO) ||
	       (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

/* Its flags and mask are in effect already (install). */
static void call_before(int signum, siginfo_t *info, void *context)
{
	struct sigaction *slot = before_of(signum), old = *slot;

	if (old.sa_flags & SA_RESETHAND)
		*slot = (struct sigaction){ .sa_handler = SIG_DFL };
	if (old.sa_flags & SA_SIGINFO)
		old.sa_sigaction(signum, info, context);
	else
		old.sa_handler(signum);
}

static void take_default(int signum, siginfo_t *info)
{
	struct sigaction action = { .sa_handler = SIG_DFL };

	sigaction(signum, &action, NULL);
	/*
	 * The faulting instruction runs again and ends the process. A sent signal must be sent
	 * again.
	 */
	if (!is_fault(signum, info))
		syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), signum, info);
}

static void pass_on(int signum, siginfo_t *info, void *context)
{
	const struct sigaction *old = before_of(signum);

	if (is_function(old))
		call_before(signum, info, context);
	/* The kernel does not let a fault be ignored either. */
	else if (old->sa_handler == SIG_DFL || is_fault(signum, info))
		take_default(signum, info);
}

/* --- our own --- */

/*
 * Programs that track writes forbid access to pages: their handler opens the page and returns. An
 * RDMA device would not have been affected at all. So the handler before ours is asked before the
 * access fails, as if the program itself had copied; it may end the process. For an address with no
 * mapping it is not asked: a handler that reports such a fault as a crash would end a program that
 * only has to see a protection error.
 */
static bool is_opened(int signum, siginfo_t *info, ucontext_t *interrupted, bool write)
{
	uintptr_t pc = fault_of(info, interrupted).pc;

	if (signum != SIGSEGV || info->si_code != SEGV_ACCERR)
		return false;
	for (unsigned i = 0; i < ASKED_MAX && is_function(before_of(signum)); i++) {
		call_before(signum, info, interrupted);
		/* The handler may also have sent the thread elsewhere. */
		if (vb_memtouch(info->si_addr, write) ||
		    fault_of(info, interrupted).pc != pc)
			return true;
	}
	return false;
}

static void on_signal(int signum, siginfo_t *info, void *context)
{
	enum vb_guarded guarded = VB_GUARDED_NOT;
	int saved_errno = errno;
	bool write;

	if (is_fault(signum, info)) {
		struct vb_memory_fault fault = fault_of(info, context);

		guarded = vb_guard_find(&fault, &write);
	}
	if (guarded == VB_GUARDED_NOT)
		pass_on(signum, info, context);
	else if (!is_opened(signum, info, context, write))
		go_on_at(context, guarded);
	errno = saved_errno;
}

/*
 * Our handler takes over mask and flags of the one before, which then runs as the kernel would have
 * called it. Without one, ours runs on the alternate stack if there is one.
 */
static void install(void)
{
	const int ours = SA_SIGINFO | SA_ONSTACK, not_ours = SA_RESETHAND | SA_NOCLDSTOP;

	for (size_t i = 0; i < VB_ARRAY_LEN(signals); i++) {
		struct sigaction action;

		/* Ours may run before the second call returns and needs the old one by then. */
		sigaction(signals[i], NULL, &before[i]);
		action = before[i];
		if (is_function(&before[i])) {
			action.sa_flags = (action.sa_flags & ~not_ours) | SA_SIGINFO;
		} else {
			sigemptyset(&action.sa_mask);
			action.sa_flags = ours;
		}
		action.sa_sigaction = on_signal;
		sigaction(signals[i], &action, NULL);
	}
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

void vb_sigguard_install(void)
{
	pthread_once(&once, install);
}
