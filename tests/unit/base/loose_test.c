/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/loose.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "group.h"

enum { NONE = -1 };

/* What a table would be: a child looks here for what it closes. */
static _Atomic int table;
static atomic_bool begun, forks;

static void before(void)
{
	atomic_store(&forks, true);
	vb_loose_await();
}

static int watch_forks(void **state)
{
	return pthread_atfork(before, vb_loose_resume, vb_loose_forget);
}

GROUP(watch_forks, NULL)

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* What the child exits with. */
static int status_of(pid_t child)
{
	int status;

	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Has a descriptor in its hand, until a fork has come and waits. */
static void *holds(void *arg)
{
	int fd;

	vb_loose_begin();
	vb_loose_begin();
	fd = dup(0);
	vb_loose_end();
	atomic_store(&begun, true);
	while (!atomic_load(&forks))
		pause_ms(1);
	pause_ms(20);
	atomic_store(&table, fd);
	vb_loose_end();
	return NULL;
}

TEST(a_fork_waits_until_nothing_is_loose)
{
	pthread_t thread;
	pid_t child;

	atomic_store(&table, NONE);
	atomic_store(&begun, false);
	atomic_store(&forks, false);
	assert_int_equal(pthread_create(&thread, NULL, holds, NULL), 0);
	while (!atomic_load(&begun))
		pause_ms(1);
	child = fork();
	if (!child)
		_exit(atomic_load(&table) == NONE);
	assert_int_equal(status_of(child), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	close(atomic_load(&table));
}

static void *takes_a_turn(void *arg)
{
	vb_loose_begin();
	atomic_store(&begun, true);
	vb_loose_end();
	return NULL;
}

TEST(nobody_begins_during_a_fork)
{
	pthread_t thread;

	atomic_store(&begun, false);
	vb_loose_await();
	assert_int_equal(pthread_create(&thread, NULL, takes_a_turn, NULL), 0);
	pause_ms(50);
	assert_false(atomic_load(&begun));
	vb_loose_resume();
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(atomic_load(&begun));
}

/* As from a handler of a signal that came just then. */
TEST(who_forks_does_not_wait_for_itself)
{
	pid_t child;

	vb_loose_begin();
	child = fork();
	if (!child) {
		vb_loose_end();
		_exit(fork() < 0);
	}
	vb_loose_end();
	assert_int_equal(status_of(child), 0);
}

static void *forks_once(void *arg)
{
	vb_loose_await();
	vb_loose_resume();
	return NULL;
}

/* Whatever locks the two of them wait for besides. */
TEST(nobody_waits_for_ever)
{
	pthread_t thread;

	vb_loose_await();
	assert_int_equal(pthread_create(&thread, NULL, takes_a_turn, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	vb_loose_resume();

	vb_loose_begin();
	assert_int_equal(pthread_create(&thread, NULL, forks_once, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	vb_loose_end();
}
