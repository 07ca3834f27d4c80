/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/check/pages.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "abi/check/objects.h"
#include "base/check.h"
#include "base/guard.h"
#include "run/process/callsite.h"

enum { PAGE_BYTES = 4096, CLOSED_MAX = 4096 };

/* Pages that are closed. The handler reads them without the lock. */
static struct closed {
	_Atomic(uintptr_t) from, to; /* from 0: free */
	struct vb_check_request *request;
	const void *site; /* where it was posted */
	uint32_t qpn;
	_Atomic(uintptr_t) touched_by; /* the instruction; 0: nobody's */
} closed[CLOSED_MAX];

static struct sigaction before;

static uintptr_t pc_of(const void *context)
{
#if defined(__x86_64__)
	return (uintptr_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	return ((const ucontext_t *)context)->uc_mcontext.pc;
#else
	return 1;
#endif
}

/* Is this thread in the NIC's copying? */
static bool is_nic(const siginfo_t *info, const void *context)
{
	struct vb_memory_fault fault = { .pc = pc_of(context), .at = (uintptr_t)info->si_addr };
	bool write;

#if defined(__x86_64__)
	const ucontext_t *at = context;

	fault.sp = (uintptr_t)at->uc_mcontext.gregs[REG_RSP];
	fault.to = (uintptr_t)at->uc_mcontext.gregs[REG_RDI];
#elif defined(__aarch64__)
	const ucontext_t *at = context;

	fault.sp = at->uc_mcontext.sp;
	fault.to = at->uc_mcontext.regs[0];
#endif
	return vb_guard_find(&fault, &write) != VB_GUARDED_NOT;
}

static bool opened(const siginfo_t *info, const void *context)
{
	uintptr_t at = (uintptr_t)info->si_addr;

	for (unsigned i = 0; i < CLOSED_MAX; i++) {
		struct closed *c = &closed[i];
		uintptr_t from = atomic_load(&c->from), to = atomic_load(&c->to);

		if (!from || at < from || at >= to)
			continue;
		if (!is_nic(info, context))
			atomic_store(&c->touched_by, pc_of(context));
		return mprotect((void *)from, to - from, PROT_READ | PROT_WRITE) == 0;
	}
	return false;
}

static void on_fault(int signum, siginfo_t *info, void *context)
{
	int saved = errno;

	if (info->si_code == SEGV_ACCERR && opened(info, context)) {
		errno = saved;
		return;
	}
	if (before.sa_flags & SA_SIGINFO)
		before.sa_sigaction(signum, info, context);
	else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
		before.sa_handler(signum);
	else
		sigaction(signum, &before, NULL);
	errno = saved;
}

void vb_check_pages_begin(void)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	sigemptyset(&action.sa_mask);
	sigaction(SIGSEGV, &action, &before);
}

void vb_check_pages_close(struct vb_check_request *request, const struct vb_check_piece *piece)
{
	uintptr_t at = (uintptr_t)piece->at;
	uintptr_t from = (at + PAGE_BYTES - 1) & ~(uintptr_t)(PAGE_BYTES - 1);
	uintptr_t to = (at + piece->bytes) & ~(uintptr_t)(PAGE_BYTES - 1);
	unsigned i = 0;

	while (i < CLOSED_MAX && atomic_load(&closed[i].from))
		i++;
	if (!at || piece->paged || from >= to || i == CLOSED_MAX)
		return;
	closed[i].request = request;
	closed[i].site = request->site;
	atomic_store(&closed[i].touched_by, 0);
	atomic_store(&closed[i].to, to);
	atomic_store(&closed[i].from, from);
	request->pages_closed = true;
	if (mprotect((void *)from, to - from, PROT_NONE))
		atomic_store(&closed[i].from, 0);
}

static void say(struct closed *c)
{
	uintptr_t by = atomic_exchange(&c->touched_by, 0);
	char site[VB_CALLSITE_BYTES];

	if (by)
		vb_flaw_say(VB_FLAW_RECV_TOUCHED, (const void *)(by + 1),
			    "a page of the buffer of a receive in flight (wr_id 0x%llx) is touched "
			    "here; it was posted at %s",
			    (unsigned long long)c->request->wr_id, vb_callsite_of(site, c->site));
}

void vb_check_pages_open(struct vb_check_request *request)
{
	for (unsigned i = 0; i < CLOSED_MAX; i++) {
		struct closed *c = &closed[i];
		uintptr_t from = atomic_load(&c->from), to = atomic_load(&c->to);

		if (!from || c->request != request)
			continue;
		say(c);
		mprotect((void *)from, to - from, PROT_READ | PROT_WRITE);
		atomic_store(&c->from, 0);
	}
}

void vb_check_pages_say(void)
{
	for (unsigned i = 0; vb_checker.pages && i < CLOSED_MAX; i++)
		if (atomic_load(&closed[i].from))
			say(&closed[i]);
}
