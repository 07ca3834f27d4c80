/* SPDX-License-Identifier: BSD-2-Clause */
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "group.h"
#include "link/shm.h"
#include "netns.h"
#include "run/await.h"
#include "run/device.h"

/*
 * Who waits drives the NIC, and there is one who does; whatever ends the wait, the place is free
 * afterwards. What programs see of this is tested in tests/verbs/events_test.c.
 */

enum { WAIT_S = 20 };

static struct vb_device *dev;
static int fd; /* of the event */

/* verbatimd of the build that this test belongs to, BUILD/tests/unit/TEST. */
static void hub_settings(void)
{
	char self[PATH_MAX], hub[PATH_MAX + 16];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	vb_check(n > 0);
	self[n] = 0;
	for (unsigned up = 0; up < 3; up++)
		*strrchr(self, '/') = 0;
	snprintf(hub, sizeof(hub), "%s/verbatimd", self);
	setenv("VERBATIM_HUB", hub, 1);
	setenv("VERBATIM_HUB_IDLE_MS", "300", 1);
}

static int setup(void **state)
{
	static bool entered, there;

	if (!entered) {
		entered = true;
		there = netns_enter();
		hub_settings();
	}
	if (!there)
		return group_lacks(NO_NETWORK_NAMESPACE);
	assert_int_equal(vb_device_open(0, &dev), 0);
	fd = eventfd(0, EFD_SEMAPHORE);
	assert_true(fd >= 0);
	return 0;
}

static int teardown(void **state)
{
	close(fd);
	vb_device_close(dev);
	return 0;
}

#define AWAIT_TEST(name) TEST_BETWEEN(name, setup, teardown)

/* --- a wait, in a thread of its own --- */

struct wait {
	pthread_t thread;
	_Atomic bool has; /* the event is there */
	_Atomic unsigned looks;
	bool result;
};

static bool has(void *arg)
{
	struct wait *wait = arg;

	atomic_fetch_add(&wait->looks, 1);
	return atomic_load(&wait->has);
}

static void *await(void *arg)
{
	struct wait *wait = arg;

	wait->result = vb_await(dev, fd, has, wait);
	return NULL;
}

static void pause_ms(long ms)
{
	struct timespec time = { 0, ms * 1000000 };

	nanosleep(&time, NULL);
}

static bool drives(void)
{
	return atomic_load(&dev->progress.driver);
}

/* Until somebody drives, or nobody. */
static void expect_driver(bool wanted)
{
	time_t end = time(NULL) + WAIT_S;

	while (drives() != wanted) {
		assert_true(time(NULL) < end);
		pause_ms(1);
	}
}

static void begin(struct wait *wait)
{
	*wait = (struct wait){ .has = false };
	assert_int_equal(pthread_create(&wait->thread, NULL, await, wait), 0);
	expect_driver(true);
}

static bool is_over(struct wait *wait)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WAIT_S;
	return pthread_timedjoin_np(wait->thread, NULL, &until) == 0;
}

static void event_comes(struct wait *wait)
{
	uint64_t one = 1;

	atomic_store(&wait->has, true);
	assert_int_equal(write(fd, &one, sizeof(one)), sizeof(one));
}

/* --- tests --- */

AWAIT_TEST(what_is_there_is_not_waited_for)
{
	struct wait wait = { .has = true };

	await(&wait);
	assert_true(wait.result);
	assert_int_equal(wait.looks, 1);
	assert_false(drives());
}

AWAIT_TEST(who_does_not_wait_does_not_drive)
{
	struct wait wait = { .has = false };

	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	await(&wait);
	assert_true(wait.result);
	assert_false(drives());
}

AWAIT_TEST(an_event_ends_the_wait)
{
	struct wait wait;

	for (int i = 0; i < 20; i++) {
		uint64_t one;

		begin(&wait);
		event_comes(&wait);
		assert_true(is_over(&wait));
		assert_true(wait.result);
		assert_false(drives());
		assert_int_equal(read(fd, &one, sizeof(one)), sizeof(one));
	}
}

/* The second does not wait here, but in read(), while the first turns the NIC for both. */
AWAIT_TEST(there_is_one_driver)
{
	struct wait first, second = { .has = false };

	begin(&first);
	await(&second);
	assert_true(second.result);
	assert_true(drives());
	assert_true(atomic_load(&dev->progress.followed));
	event_comes(&first);
	assert_true(is_over(&first));
	assert_false(drives());
	assert_false(atomic_load(&dev->progress.followed));
}

/* Until the progress thread sees to the clock and the hub, and to nothing else. */
static void expect_standing_by(void)
{
	time_t end = time(NULL) + WAIT_S;

	while (atomic_load(&dev->progress.watches) || !atomic_load(&dev->progress.sleep_until_ns)) {
		assert_true(time(NULL) < end);
		pause_ms(1);
	}
}

/* A bell is no event: the driver looks around, and sleeps on. */
AWAIT_TEST(a_bell_is_no_event)
{
	struct wait wait;

	begin(&wait);
	expect_standing_by();
	for (int i = 0; i < 20; i++) {
		unsigned looks = atomic_load(&wait.looks);
		time_t end = time(NULL) + WAIT_S;

		vb_peers_wake_self(dev);
		while (atomic_load(&wait.looks) == looks)
			assert_true(time(NULL) < end);
		assert_true(drives());
	}
	event_comes(&wait);
	assert_true(is_over(&wait));
	assert_true(wait.result);
}

static void handler(int signal)
{
}

/* signal(7): the caller wants EINTR if its handler is without SA_RESTART, and only then. */
AWAIT_TEST(a_signal_ends_the_wait_if_its_handler_says_so)
{
	struct sigaction action = { .sa_handler = handler };
	struct wait wait;

	for (int restart = 0; restart < 2; restart++) {
		time_t end = time(NULL) + WAIT_S;

		action.sa_flags = restart ? SA_RESTART : 0;
		assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
		begin(&wait);
		/* One that comes before it sleeps is not felt. */
		while (drives() && time(NULL) < end) {
			pthread_kill(wait.thread, SIGUSR1);
			pause_ms(1);
		}
		/* To go on means to wait in read() now. */
		assert_true(is_over(&wait));
		assert_int_equal(wait.result, restart);
	}
	signal(SIGUSR1, SIG_DFL);
}

AWAIT_TEST(a_cancelled_wait_leaves_the_place)
{
	struct wait wait;
	void *result;

	/* A cancelled thread's stack is a fault to the one; the other sees no atomics there. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("a sanitizer does not understand cancelled threads");
#endif
	for (int i = 0; i < 10; i++) {
		begin(&wait);
		if (i % 2)
			pause_ms(2);
		assert_int_equal(pthread_cancel(wait.thread), 0);
		assert_int_equal(pthread_join(wait.thread, &result), 0);
		assert_ptr_equal(result, PTHREAD_CANCELED);
		assert_false(drives());
	}
	begin(&wait);
	event_comes(&wait);
	assert_true(is_over(&wait));
	assert_true(wait.result);
}
