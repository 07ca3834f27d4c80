/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "group.h"
#include "run/process/eventfd.h"

static bool is_readable(int fd)
{
	struct pollfd poller = { .fd = fd, .events = POLLIN };

	return poll(&poller, 1, 0) == 1;
}

TEST(readable_exactly_while_events_wait)
{
	int fd = vb_eventfd_create();

	assert_true(fd >= 0);
	assert_false(is_readable(fd));
	vb_eventfd_signal(fd);
	vb_eventfd_signal(fd);
	assert_true(is_readable(fd));
	assert_true(vb_eventfd_take(fd));
	assert_true(is_readable(fd));
	assert_true(vb_eventfd_take(fd));
	assert_false(is_readable(fd));
	close(fd);
}

/* Applications set O_NONBLOCK on it (ibv_get_cq_event(3), EXAMPLES). */
TEST(nonblocking_take_says_eagain)
{
	int fd = vb_eventfd_create();

	assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
	errno = 0;
	assert_false(vb_eventfd_take(fd));
	assert_int_equal(errno, EAGAIN);
	close(fd);
}

TEST(unsignal_takes_one_back)
{
	int fd = vb_eventfd_create();

	vb_eventfd_signal(fd);
	vb_eventfd_signal(fd);
	vb_eventfd_unsignal(fd);
	assert_true(is_readable(fd));
	vb_eventfd_unsignal(fd);
	assert_false(is_readable(fd));
	close(fd);
}

/* The application may have read the event already; the fd blocks, and unsignal must not. */
TEST(unsignal_of_nothing_returns)
{
	int fd = vb_eventfd_create();

	alarm(10);
	vb_eventfd_unsignal(fd);
	alarm(0);
	assert_false(is_readable(fd));
	close(fd);
}

TEST(closed_on_exec)
{
	int fd = vb_eventfd_create();

	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
}
