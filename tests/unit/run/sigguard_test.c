/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a signal does is tried in children, each with a fresh process's dispositions: the handler
 * is installed once per process.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/guard.h"
#include "group.h"
#include "run/memory/sigguard.h"

/* Linux 4.7; libc has no name for it. */
#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1U << 31)
#endif

/* Exit codes of children. */
enum { FINE = 42, WRONG = 43 };

static volatile char *hole;

/* Run in a child; its wait status. */
static int status_of(void (*body)(void))
{
	struct rlimit no_core = { 0, 0 };
	int status;
	pid_t pid;

	hole = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid = fork();
	if (pid == 0) {
		setrlimit(RLIMIT_CORE, &no_core);
		signal(SIGSEGV, SIG_DFL);
		signal(SIGBUS, SIG_DFL);
		alarm(20);
		body();
		_exit(FINE);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	munmap((void *)hole, 4096);
	return status;
}

static bool is_fine(int status)
{
	return WIFEXITED(status) && WEXITSTATUS(status) == FINE;
}

static bool died_of(int status, int signum)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == signum;
}

/* --- inside a guard --- */

/* Of all kinds: what the pieces of a small copy are, and a large one. */
static const size_t sizes[] = { 1, 2, 3, 4, 8, 15, 16, 17, 64, 256, 257, 4096 };

static void copy_from_hole_twice(void)
{
	static char octets[4096];

	vb_sigguard_install();
	/* Twice: the signal must not stay blocked after the first. */
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		if (vb_guard_copy(octets, (void *)hole, sizes[i]) ||
		    vb_guard_copy((void *)hole, octets, sizes[i]) ||
		    vb_guard_copy(octets, NULL, sizes[i]) || vb_guard_copy(NULL, octets, sizes[i]))
			_exit(WRONG);
	}
	if (!vb_guard_copy(octets, "x", 2) || octets[0] != 'x')
		_exit(WRONG);
}

TEST(a_fault_in_a_guard_is_told)
{
	assert_true(is_fine(status_of(copy_from_hole_twice)));
}

/* The last octet alone lies in the hole; those before it may or may not be there. */
static void copy_into_edge(void)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static char octets[4096];

	munmap(page + 4096, 4096);
	vb_sigguard_install();
	errno = 77;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		char *edge = page + 4096 - sizes[i];

		if (!vb_guard_copy(edge, octets, sizes[i]) ||
		    !vb_guard_copy(octets, edge, sizes[i]) ||
		    vb_guard_copy(edge + 1, octets, sizes[i]) ||
		    vb_guard_copy(octets, edge + 1, sizes[i]))
			_exit(WRONG);
	}
	/* While a handler runs, ThreadSanitizer has a number of its own there. */
	if (VB_GUARD_ROUTINE && errno != 77)
		_exit(WRONG);
}

TEST(a_fault_at_the_end_of_a_copy_is_told)
{
	assert_true(is_fine(status_of(copy_into_edge)));
}

static void copy_beyond_end_of_file(void)
{
	FILE *file = tmpfile();
	char octet, *map;

	map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fileno(file), 0);
	vb_sigguard_install();
	if (vb_guard_copy(&octet, map, 1))
		_exit(WRONG);
}

TEST(a_bus_error_in_a_guard_is_told)
{
	assert_true(is_fine(status_of(copy_beyond_end_of_file)));
}

/* --- somebody else's, while a guard is on --- */

static sigjmp_buf probing;
static volatile int calls;

static void give_up_probe(int signum)
{
	siglongjmp(probing, 1);
}

/* What a sampling profiler does that follows frame pointers: it looks whether memory is there. */
static void probe(int signum)
{
	if (sigsetjmp(probing, 1) == 0)
		_exit(*hole ? WRONG : WRONG);
	calls++;
}

/* A guard that covers these octets is interrupted by a handler that probes the hole. */
static void interrupt_guard(const volatile void *covered, size_t bytes, int flags)
{
	struct sigaction timer = { .sa_handler = probe, .sa_flags = flags };
	struct vb_guard guard;
	sigset_t now, then;

	signal(SIGSEGV, give_up_probe);
	sigaction(SIGALRM, &timer, NULL);
	vb_sigguard_install();
	pthread_sigmask(SIG_BLOCK, NULL, &then);
	vb_guard_cover(&guard, (const void *)covered, (const void *)covered, bytes);
	if (!vb_guard_enter(&guard))
		_exit(WRONG);
	raise(SIGALRM);
	raise(SIGALRM);
	if (vb_guard_current != &guard)
		_exit(WRONG);
	vb_guard_leave();
	pthread_sigmask(SIG_BLOCK, NULL, &now);
	for (int i = 1; i < NSIG; i++) {
		if (sigismember(&now, i) != sigismember(&then, i))
			_exit(WRONG);
	}
	if (calls != 2)
		_exit(WRONG);
}

static void probe_other_memory(void)
{
	static char octets[64];

	interrupt_guard(octets, sizeof(octets), 0);
}

static void probe_covered_memory(void)
{
	interrupt_guard(hole, 4096, 0);
}

static void probe_covered_memory_on_a_stack_of_its_own(void)
{
	static char room[65536];
	stack_t stack = { .ss_sp = room, .ss_size = sizeof(room) };

	sigaltstack(&stack, NULL);
	interrupt_guard(hole, 4096, SA_ONSTACK);
}

TEST(a_handler_that_probes_memory_is_left_alone)
{
#ifdef __SANITIZE_THREAD__
	SKIP("ThreadSanitizer blocks all signals while a handler runs");
#endif
	assert_true(is_fine(status_of(probe_other_memory)));
	if (!VB_GUARD_ROUTINE)
		return; /* a sanitizer's frames tell nothing */
	assert_true(is_fine(status_of(probe_covered_memory)));
	assert_true(is_fine(status_of(probe_covered_memory_on_a_stack_of_its_own)));
}

/* "Action optional": about memory that broke somewhere, not about what this thread does. */
static void hear_of_broken_memory(void)
{
	siginfo_t info = { .si_signo = SIGBUS, .si_code = BUS_MCEERR_AO };
	static char octets[64];
	struct vb_guard guard;

	info.si_addr = octets;
	vb_sigguard_install();
	vb_guard_cover(&guard, octets, octets, sizeof(octets));
	if (!vb_guard_enter(&guard))
		_exit(WRONG);
	syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGBUS, &info);
	vb_guard_leave();
}

TEST(a_warning_is_no_fault)
{
	assert_true(died_of(status_of(hear_of_broken_memory), SIGBUS));
}

/* --- the thread is as it was --- */

static void copy_from_nothing(void)
{
	static char room[65536], octets[4096];
	stack_t now, stack = { .ss_sp = room, .ss_size = sizeof(room),
			       .ss_flags = (int)SS_AUTODISARM };
	sigset_t blocked, mask;

	munmap((void *)hole, 4096);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	pthread_sigmask(SIG_SETMASK, &blocked, NULL);
	if (sigaltstack(&stack, NULL) != 0)
		return; /* before Linux 4.7 */
	vb_sigguard_install();
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		if (vb_guard_copy(octets, (void *)hole, sizes[i]))
			_exit(WRONG);
		sigaltstack(NULL, &now);
		pthread_sigmask(SIG_BLOCK, NULL, &mask);
		if (now.ss_sp != room || (now.ss_flags & SS_DISABLE) ||
		    sigismember(&mask, SIGUSR1) != 1 || sigismember(&mask, SIGSEGV) != 0 ||
		    sigismember(&mask, SIGUSR2) != 0)
			_exit(WRONG);
	}
}

TEST(a_thread_keeps_its_mask_and_signal_stack)
{
	assert_true(is_fine(status_of(copy_from_nothing)));
}

/* --- pages that are there, but forbidden --- */

static void open_page(int signum, siginfo_t *info, void *context)
{
	calls++;
	mprotect((void *)((uintptr_t)info->si_addr & -4096ul), 4096, PROT_READ | PROT_WRITE);
}

/* To read first, and to write when that was not enough. */
static void open_page_by_and_by(int signum, siginfo_t *info, void *context)
{
	mprotect((void *)hole, 4096, calls++ ? PROT_READ | PROT_WRITE : PROT_READ);
}

static void look_on(int signum, siginfo_t *info, void *context)
{
	calls++;
}

static void with_handler(void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags };

	sigaction(SIGSEGV, &action, NULL);
}

/* As programs do that want to know what is written to. */
static void copy_to_and_from_tracked_pages(void)
{
	static char octets[4096];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		char *at = (char *)hole + 4096 - sizes[i];

		calls = 0;
		memset(octets, (int)i + 1, sizeof(octets));
		mprotect((void *)hole, 4096, PROT_READ);
		if (!vb_guard_copy(at, octets, sizes[i]) || calls != 1 ||
		    memcmp(at, octets, sizes[i]) != 0)
			_exit(WRONG);
		memset(octets, 0, sizeof(octets));
		mprotect((void *)hole, 4096, PROT_NONE);
		if (!vb_guard_copy(octets, at, sizes[i]) || calls != 2 ||
		    memcmp(at, octets, sizes[i]) != 0)
			_exit(WRONG);
	}
}

static void track_before(void)
{
	with_handler(open_page, 0);
	vb_sigguard_install();
	copy_to_and_from_tracked_pages();
}

static void track_after(void)
{
	vb_sigguard_install();
	with_handler(open_page, SA_ONSTACK);
	copy_to_and_from_tracked_pages();
}

TEST(a_handler_opens_a_page)
{
	assert_true(is_fine(status_of(track_before)));
	assert_true(is_fine(status_of(track_after)));
}

static void track_by_steps(void)
{
	static char octets[4096];

	with_handler(open_page_by_and_by, 0);
	vb_sigguard_install();
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		calls = 0;
		mprotect((void *)hole, 4096, PROT_NONE);
		if (!vb_guard_copy((void *)hole, octets, sizes[i]) || calls != 2)
			_exit(WRONG);
	}
}

TEST(a_handler_opens_a_page_in_two_steps)
{
	assert_true(is_fine(status_of(track_by_steps)));
}

/* A handler that has no idea is asked a few times, and then the copy fails. */
static void ask_in_vain(void)
{
	static char octets[4096];

	with_handler(look_on, 0);
	vb_sigguard_install();
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		calls = 0;
		if (vb_guard_copy(octets, (void *)hole, sizes[i]) || !calls || calls > 16)
			_exit(WRONG);
	}
}

TEST(a_handler_that_does_nothing_ends_nothing)
{
	assert_true(is_fine(status_of(ask_in_vain)));
}

static void report_crash(int signum, siginfo_t *info, void *context)
{
	_exit(WRONG);
}

static void copy_from_nothing_with_reporter(void)
{
	with_handler(report_crash, 0);
	copy_from_nothing();
}

/* Where nothing is mapped nobody is asked: many a handler would take it for a crash. */
TEST(a_crash_reporter_is_not_asked_about_nothing)
{
	assert_true(is_fine(status_of(copy_from_nothing_with_reporter)));
}

/* --- outside, nobody had the signal before --- */

static void touch_hole(void)
{
	vb_sigguard_install();
	*hole = 1;
}

TEST(a_fault_elsewhere_kills_as_ever)
{
	assert_true(died_of(status_of(touch_hole), SIGSEGV));
}

static void touch_hole_ignoring(void)
{
	signal(SIGSEGV, SIG_IGN);
	touch_hole();
}

/* The kernel does not let a fault be ignored. */
TEST(an_ignored_fault_kills)
{
	assert_true(died_of(status_of(touch_hole_ignoring), SIGSEGV));
}

static void kill_self(void)
{
	vb_sigguard_install();
	kill(getpid(), SIGSEGV);
	sleep(5);
}

TEST(a_sent_signal_kills)
{
	assert_true(died_of(status_of(kill_self), SIGSEGV));
}

static void kill_self_ignoring(void)
{
	signal(SIGSEGV, SIG_IGN);
	vb_sigguard_install();
	kill(getpid(), SIGSEGV);
}

TEST(an_ignored_sent_signal_is_ignored)
{
	assert_true(is_fine(status_of(kill_self_ignoring)));
}

/* A signal that somebody sends while a guard is on is no fault of the guarded access. */
static void kill_self_in_guard(void)
{
	struct vb_guard guard;

	vb_sigguard_install();
	vb_guard_cover(&guard, (const void *)hole, (const void *)hole, 4096);
	if (!vb_guard_enter(&guard))
		_exit(WRONG);
	kill(getpid(), SIGSEGV);
	sleep(5);
}

TEST(a_sent_signal_does_not_leave_a_guard)
{
	assert_true(died_of(status_of(kill_self_in_guard), SIGSEGV));
}

/* --- outside, with a handler before --- */

static void with_info(int signum, siginfo_t *info, void *context)
{
	sigset_t now;

	pthread_sigmask(SIG_BLOCK, NULL, &now);
	_exit(signum == SIGSEGV && info->si_addr == hole && context &&
			      sigismember(&now, SIGSEGV) == 1 && sigismember(&now, SIGUSR1) == 1
		      ? FINE
		      : WRONG);
}

static void touch_hole_with_info(void)
{
	struct sigaction action = { .sa_sigaction = with_info, .sa_flags = SA_SIGINFO };

	sigemptyset(&action.sa_mask);
	sigaddset(&action.sa_mask, SIGUSR1);
	sigaction(SIGSEGV, &action, NULL);
	touch_hole();
	_exit(WRONG);
}

TEST(a_handler_gets_address_context_and_mask)
{
	assert_true(is_fine(status_of(touch_hole_with_info)));
}

static void make_accessible(int signum)
{
	calls++;
	mprotect((void *)hole, 4096, PROT_READ | PROT_WRITE);
}

static void touch_hole_with_plain(void)
{
	sigset_t now;

	signal(SIGSEGV, make_accessible);
	touch_hole();
	pthread_sigmask(SIG_BLOCK, NULL, &now);
	if (calls != 1 || *hole != 1 || sigismember(&now, SIGSEGV))
		_exit(WRONG);
}

/* Garbage collectors do so: the access succeeds the second time, and all is as before. */
TEST(a_handler_may_repair_and_return)
{
	assert_true(is_fine(status_of(touch_hole_with_plain)));
}

static char alternate[65536];

static void look_where_it_runs(int signum)
{
	char here;

	calls = (uintptr_t)(&here - alternate) < sizeof(alternate) ? 1 : 2;
	make_accessible(signum);
}

static void touch_hole_with_stack(int flags, int expected)
{
	struct sigaction action = { .sa_handler = look_where_it_runs, .sa_flags = flags };
	stack_t stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) };

	sigaltstack(&stack, NULL);
	sigaction(SIGSEGV, &action, NULL);
	vb_sigguard_install();
	*hole = 1;
	if (calls != expected + 1 || *hole != 1)
		_exit(WRONG);
}

static void touch_hole_on_alternate_stack(void)
{
	touch_hole_with_stack(SA_ONSTACK, 1);
}

static void touch_hole_on_same_stack(void)
{
	touch_hole_with_stack(0, 2);
}

TEST(a_handler_runs_on_the_stack_that_it_asked_for)
{
	assert_true(is_fine(status_of(touch_hole_on_alternate_stack)));
	assert_true(is_fine(status_of(touch_hole_on_same_stack)));
}

static void only_count(int signum)
{
	calls++;
}

static void kill_self_with_handler(void)
{
	signal(SIGSEGV, only_count);
	vb_sigguard_install();
	kill(getpid(), SIGSEGV);
	kill(getpid(), SIGSEGV);
	if (calls != 2)
		_exit(WRONG);
}

TEST(a_handler_gets_sent_signals)
{
	assert_true(is_fine(status_of(kill_self_with_handler)));
}

static void kill_self_with_one_shot(void)
{
	struct sigaction action = { .sa_handler = only_count, .sa_flags = SA_RESETHAND };

	sigaction(SIGSEGV, &action, NULL);
	vb_sigguard_install();
	kill(getpid(), SIGSEGV);
	if (calls != 1)
		_exit(WRONG);
	kill(getpid(), SIGSEGV);
	sleep(5);
}

TEST(a_one_shot_handler_is_called_once)
{
	assert_true(died_of(status_of(kill_self_with_one_shot), SIGSEGV));
}
