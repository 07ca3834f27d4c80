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

enum { FD_EVENT, FD_BELL, FD_PORTS, FDS_MAX = FD_PORTS + VB_PROGRESS_PORT_FDS_MAX };

struct driver {
	struct vb_device *dev;
	int fd;
	bool (*has)(void *arg);
	void *arg;
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
			if (vb_nic_lanes_poll(driver->dev->nic) && driver->has(driver->arg)) {
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

static int sleep_once(struct driver *driver)
{
	struct vb_device *dev = driver->dev;
	struct pollfd fds[FDS_MAX];
	unsigned count;
	volatile int rc = 0; /* volatile: cancelling poll() leaves by a long jump */

	fds[FD_EVENT] = (struct pollfd){ .fd = driver->fd, .events = POLLIN };
	fds[FD_BELL] = (struct pollfd){ .fd = dev->peers.bell_fd, .events = POLLIN };
	count = FD_PORTS + vb_progress_ports_fill(dev, fds + FD_PORTS);
	pthread_cleanup_push(awake, driver);
	/* The progress thread looks after deadlines and the hub. */
	vb_lock_order_wait("an event");
	if (vb_nic_asleep(dev->nic))
		rc = poll(fds, count, -1) < 0 ? errno : 0;
	pthread_cleanup_pop(1);
	if (rc == 0 && fds[FD_BELL].revents) {
		vb_bell_hush(dev->peers.bell_fd);
		vb_nic_heard(dev->nic);
	}
	return rc;
}

static bool drive(struct driver *driver)
{
	int rc = 0;

	turn(driver->dev);
	while (!driver->has(driver->arg) && !spin(driver)) {
		rc = sleep_once(driver);
		if (rc != 0)
			break;
		turn(driver->dev);
	}
	return rc != EINTR || !wants_eintr();
}

bool vb_await(struct vb_device *dev, int fd, bool (*has)(void *arg), void *arg)
{
	struct vb_progress *progress = &dev->progress;
	struct driver driver = { dev, fd, has, arg };
	bool ok = true, expected = false;

	if (has(arg))
		return true;
	/* A non-blocking reader drives nothing: let the progress thread know. */
	if (fcntl(fd, F_GETFL) & O_NONBLOCK) {
		atomic_store(&progress->drives, false);
		vb_progress_app_waits(dev);
		return true;
	}
	if (!atomic_compare_exchange_strong(&progress->driver, &expected, true)) {
		atomic_store(&progress->followed, true);
		return true;
	}
	atomic_store(&progress->drives, true);
	if (atomic_load(&progress->watches))
		vb_progress_wake(dev);
	pthread_cleanup_push(leave, &driver);
	ok = drive(&driver);
	pthread_cleanup_pop(1);
	return ok;
}
