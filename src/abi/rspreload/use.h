/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_RSPRELOAD_USE_H
#define VB_ABI_RSPRELOAD_USE_H

/* What a call by which data goes begins with. */

#include "abi/rspreload/front.h"

enum {
	VB_USE_KERNEL = -1, /* it is the kernel's */
	VB_USE_FAILED = -2, /* with errno: EAGAIN if the socket's timeout is over, EINTR */
};

/* The front's rsocket, which may come to be now, or one of those. events: POLLIN or POLLOUT. */
int vb_use(int fd, short events, int flags);

/* For a call that waits for descriptors: what it waits at instead of that. */
int vb_use_awaited(int fd);

#endif
