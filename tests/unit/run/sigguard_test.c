/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a signal does is tried in children, each with a fresh process's dispositions: the handler
 * is installed once per process.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/guard.h"
#include "run/sigguard.h"

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

static void a_fault_in_a_guard_is_told(void **state)
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

static void a_fault_at_the_end_of_a_copy_is_told(void **state)
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

static void a_bus_error_in_a_guard_is_told(void **state)
{
	assert_true(is_fine(status_of(copy_beyond_end_of_file)));
}

/* --- outside, nobody had the signal before --- */

static void touch_hole(void)
{
	vb_sigguard_install();
	*hole = 1;
}

static void a_fault_elsewhere_kills_as_ever(void **state)
{
	assert_true(died_of(status_of(touch_hole), SIGSEGV));
}

static void touch_hole_ignoring(void)
{
	signal(SIGSEGV, SIG_IGN);
	touch_hole();
}

/* The kernel does not let a fault be ignored. */
static void an_ignored_fault_kills(void **state)
{
	assert_true(died_of(status_of(touch_hole_ignoring), SIGSEGV));
}

static void kill_self(void)
{
	vb_sigguard_install();
	kill(getpid(), SIGSEGV);
	sleep(5);
}

static void a_sent_signal_kills(void **state)
{
	assert_true(died_of(status_of(kill_self), SIGSEGV));
}

static void kill_self_ignoring(void)
{
	signal(SIGSEGV, SIG_IGN);
	vb_sigguard_install();
	kill(getpid(), SIGSEGV);
}

static void an_ignored_sent_signal_is_ignored(void **state)
{
	assert_true(is_fine(status_of(kill_self_ignoring)));
}

/* A signal that somebody sends while a guard is on is no fault of the guarded access. */
static void kill_self_in_guard(void)
{
	struct vb_guard guard;

	vb_sigguard_install();
	if (!vb_guard_enter(&guard))
		_exit(WRONG);
	kill(getpid(), SIGSEGV);
	sleep(5);
}

static void a_sent_signal_does_not_leave_a_guard(void **state)
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

static void a_handler_gets_address_context_and_mask(void **state)
{
	assert_true(is_fine(status_of(touch_hole_with_info)));
}

static volatile int calls;

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
static void a_handler_may_repair_and_return(void **state)
{
	assert_true(is_fine(status_of(touch_hole_with_plain)));
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

static void a_handler_gets_sent_signals(void **state)
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

static void a_one_shot_handler_is_called_once(void **state)
{
	assert_true(died_of(status_of(kill_self_with_one_shot), SIGSEGV));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fault_in_a_guard_is_told),
		cmocka_unit_test(a_fault_at_the_end_of_a_copy_is_told),
		cmocka_unit_test(a_bus_error_in_a_guard_is_told),
		cmocka_unit_test(a_fault_elsewhere_kills_as_ever),
		cmocka_unit_test(an_ignored_fault_kills),
		cmocka_unit_test(a_sent_signal_kills),
		cmocka_unit_test(an_ignored_sent_signal_is_ignored),
		cmocka_unit_test(a_sent_signal_does_not_leave_a_guard),
		cmocka_unit_test(a_handler_gets_address_context_and_mask),
		cmocka_unit_test(a_handler_may_repair_and_return),
		cmocka_unit_test(a_handler_gets_sent_signals),
		cmocka_unit_test(a_one_shot_handler_is_called_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
