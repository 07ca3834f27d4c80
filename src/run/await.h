/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_AWAIT_H
#define VB_RUN_AWAIT_H

/*
 * A thread of the application waits for an event. It would be woken twice removed: the peer wakes
 * the progress thread, which takes the frames in and wakes the waiter. So the waiter takes over
 * (it is "the driver"): it waits for frames itself, and finds its event when it has taken them in.
 * There is one driver at a time; other waiters wait as ever.
 */

#include <stdbool.h>

struct vb_device;

/*
 * Wait, if nobody else drives, until fd is readable or has() says so. False: a signal handler ran
 * that wants system calls to end (EINTR). True does not promise anything: the caller reads fd, and
 * waits there if it must. A cancellation point.
 */
bool vb_await(struct vb_device *dev, int fd, bool (*has)(void *arg), void *arg);

#endif
