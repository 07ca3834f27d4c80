/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_AWAIT_H
#define VB_RUN_AWAIT_H

/*
 * A thread of the application waits for an event. Without help it would be woken indirectly: the
 * peer wakes the progress thread, which takes in the frames and then wakes the waiter. So the
 * waiter becomes "the driver": it waits for frames itself, takes them in, and then looks for its
 * event. There is one driver at a time; further waiters wait for the event only.
 */

#include <stdbool.h>

#include "base/lent.h"
#include "link/link.h"
#include "nic/core/limits.h"
#include "run/progress.h"

struct pollfd;
struct vb_device;

/* Descriptors that a driver looks at for itself: the bell and the ports'. */
#define VB_AWAIT_PLACES (1 + VB_PROGRESS_PORT_FDS_MAX)

/* What a thread waits for: one of the descriptors, or what has() says. */
struct vb_awaited {
	struct pollfd *fds; /* count, and VB_AWAIT_PLACES more for the driver */
	unsigned count;
	int timeout_ms; /* -1: none */
	bool (*has)(void *arg);
	void *arg;
};

/*
 * Unless another thread drives, waits until fd is readable or has() returns true. Returns false if
 * a signal handler ran that wants system calls to end (EINTR). True promises nothing: the caller
 * reads fd, and waits there if it must. A cancellation point.
 */
VB_LENT bool vb_await(struct vb_device *dev, int fd, bool (*has)(void *arg), void *arg);

/*
 * poll(2), but that this thread drives meanwhile if no other does. Ends as well once has() returns
 * true: then it returns 0, as after the timeout. A cancellation point.
 */
VB_LENT int vb_await_poll(struct vb_device *dev, const struct vb_awaited *awaited);

#endif
