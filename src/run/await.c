/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/await.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/timerfd.h>
#include <time.h>

#include "base/check.h"
#include "base/lock.h"
#include "link/shm.h"
#include "nic/way/peer.h"
#include "run/device.h"

/* How long to spin before a sleep, where spinning paid lately. */
#define SPIN_NS 20000u
#define LUCK_MAX 8
#define TRY_EVERY 64u

/* How long the driver may be away before the progress thread takes its place. */
#define TAKEOVER_NS 1000000

enum { NOT_SLEPT = -2 };

struct driver {
	struct vb_device *dev;
	const struct vb_awaited *awaited;
	uint64_t end_ns; /* of the timeout */
	int found;	 /* of the awaited descriptors */
	int error;	 /* of poll(2), or 0 */
};

/* Signals of the thread's own faults: a waiting thread causes none. */
static bool is_fault(int signal)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT };

	for (size_t i = 0; i < VB_ARRAY_LEN(faults); i++) {
		if (faults[i] == signal)
			return true;
	}
	return false;
}

/* Does any handler lack SA_RESTART? EINTR does not tell which signal interrupted the call. */
static bool wants_eintr(void)
{
	for (int i = 1; i < NSIG; i++) {
		struct sigaction action;

		if (is_fault(i) || sigaction(i, NULL, &action))
			continue;
		if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN &&
		    !(action.sa_flags & SA_RESTART))
			return true;
	}
	return false;
}

static void turn(struct vb_device *dev)
{
	vb_progress_take(dev);
	vb_nic_lanes_scan(dev->nic);
}

static bool has_come(const struct driver *driver)
{
	return driver->awaited->has(driver->awaited->arg);
}

/* Spins for SPIN_NS, since frames often follow one another. Returns true if the event came. */
static bool spin(struct driver *driver)
{
	struct vb_progress *progress = &driver->dev->progress;
	uint64_t end_ns;

	/* After sleeps for which spinning did not pay, one in TRY_EVERY spins again. */
	if (progress->luck <= 0 && ++progress->sleeps % TRY_EVERY != 0)
		return false;
	end_ns = vb_now_ns() + SPIN_NS;
	do {
		for (unsigned i = 0; i < 16; i++) {
			if (vb_nic_lanes_poll(driver->dev->nic) && has_come(driver)) {
				if (progress->luck < LUCK_MAX)
					progress->luck++;
				return true;
			}
		}
	} while (vb_now_ns() < end_ns);
	if (progress->luck > 0)
		progress->luck--;
	return false;
}

static void leave(void *arg)
{
	struct driver *driver = arg;
	struct vb_progress *progress = &driver->dev->progress;
	struct itimerspec takeover = { .it_value.tv_nsec = TAKEOVER_NS };

	/* This comes first: the progress thread, once woken, sleeps again if it finds a driver. */
	atomic_store(&progress->driver, false);
	/* Another waiter relied on us as the driver: the progress thread must take over at once. */
	if (atomic_exchange(&progress->followed, false))
		vb_progress_wake(driver->dev);
	else if (!atomic_exchange(&progress->takeover_set, true))
		timerfd_settime(progress->takeover_fd, 0, &takeover, NULL);
}

static void awake(void *arg)
{
	struct driver *driver = arg;

	vb_nic_awake(driver->dev->nic);
}

/* How long poll(2) may sleep. */
static int left_ms(const struct driver *driver)
{
	uint64_t now_ns;

	if (driver->end_ns == UINT64_MAX)
		return -1;
	now_ns = vb_now_ns();
	return now_ns < driver->end_ns ? (int)((driver->end_ns - now_ns + 999999) / 1000000) : 0;
}

/* As poll(2), or NOT_SLEPT if there is something to take in. */
static int doze(struct driver *driver, struct pollfd *fds, unsigned count)
{
	volatile int rc = NOT_SLEPT; /* volatile: cancelling poll() leaves by a long jump */

	pthread_cleanup_push(awake, driver);
	/* The progress thread looks after deadlines and the hub. */
	vb_lock_order_wait("an event");
	if (vb_nic_asleep(driver->dev->nic)) {
		rc = poll(fds, count, left_ms(driver));
		driver->error = rc < 0 ? errno : 0;
	}
	pthread_cleanup_pop(1);
	return rc;
}

/* Returns false if there is a reason to stop waiting. */
static bool sleep_once(struct driver *driver)
{
	struct vb_device *dev = driver->dev;
	struct pollfd *fds = driver->awaited->fds, *bell = fds + driver->awaited->count;
	unsigned count = driver->awaited->count + 1;
	int rc;

	*bell = (struct pollfd){ .fd = dev->peers.bell_fd, .events = POLLIN };
	count += vb_progress_ports_fill(dev, fds + count);
	rc = doze(driver, fds, count);
	if (rc == NOT_SLEPT)
		return true;
	if (rc <= 0)
		return false;
	if (bell->revents) {
		vb_bell_hush(dev->peers.bell_fd);
		vb_nic_heard(dev->nic);
	}
	for (const struct pollfd *fd = fds; fd < bell; fd++)
		driver->found += fd->revents != 0;
	return !driver->found;
}

static void drive(struct driver *driver)
{
	turn(driver->dev);
	while (!has_come(driver) && !spin(driver) && sleep_once(driver))
		turn(driver->dev);
}

static bool driver_begin(struct vb_device *dev)
{
	struct vb_progress *progress = &dev->progress;
	bool expected = false;

	if (!atomic_compare_exchange_strong(&progress->driver, &expected, true)) {
		atomic_store(&progress->followed, true);
		return false;
	}
	atomic_store(&progress->drives, true);
	if (atomic_load(&progress->watches))
		vb_progress_wake(dev);
	return true;
}

bool vb_await(struct vb_device *dev, int fd, bool (*has)(void *arg), void *arg)
{
	struct pollfd fds[1 + VB_AWAIT_PLACES];
	struct vb_awaited awaited = { fds, 1, -1, has, arg };
	struct driver driver = { dev, &awaited, UINT64_MAX, 0, 0 };

	if (has(arg))
		return true;
	/* A non-blocking reader drives nothing: let the progress thread know. */
	if (fcntl(fd, F_GETFL) & O_NONBLOCK) {
		atomic_store(&dev->progress.drives, false);
		vb_progress_app_waits(dev);
		return true;
	}
	if (!driver_begin(dev))
		return true;
	fds[0] = (struct pollfd){ .fd = fd, .events = POLLIN };
	pthread_cleanup_push(leave, &driver);
	drive(&driver);
	pthread_cleanup_pop(1);
	return driver.error != EINTR || !wants_eintr();
}

static uint64_t end_of(int timeout_ms)
{
	return timeout_ms < 0 ? UINT64_MAX : vb_now_ns() + 1000000u * (uint64_t)timeout_ms;
}

int vb_await_poll(struct vb_device *dev, const struct vb_awaited *awaited)
{
	struct driver driver = { dev, awaited, end_of(awaited->timeout_ms), 0, 0 };

	if (awaited->has(awaited->arg))
		return 0;
	if (!driver_begin(dev))
		return poll(awaited->fds, awaited->count, awaited->timeout_ms);
	pthread_cleanup_push(leave, &driver);
	drive(&driver);
	pthread_cleanup_pop(1);
	if (!driver.error)
		return driver.found;
	errno = driver.error;
	return -1;
}
