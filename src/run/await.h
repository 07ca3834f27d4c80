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

struct vb_device;

/*
 * Unless another thread drives, waits until fd is readable or has() returns true. Returns false if
 * a signal handler ran that wants system calls to end (EINTR). True promises nothing: the caller
 * reads fd, and waits there if it must. A cancellation point.
 */
VB_LENT bool vb_await(struct vb_device *dev, int fd, bool (*has)(void *arg), void *arg);

#endif
