/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_RSPRELOAD_USE_H
#define VB_ABI_RSPRELOAD_USE_H

/* What a call by which data goes begins with. */

#include <errno.h>

#include "abi/rspreload/calls.h"
#include "abi/rspreload/front.h"

enum {
	VB_USE_KERNEL = -1, /* it is the kernel's */
	VB_USE_FAILED = -2, /* with errno: EAGAIN if the socket's timeout is over, EINTR */
};

/* The front's rsocket, which may come to be now, or one of those. events: POLLIN or POLLOUT. */
int vb_use(int fd, short events, int flags);

/*
 * Calls the rsocket's; what a handler with SA_RESTART has interrupted begins again, but where a
 * time is set for such calls (signal(7)). time: SO_RCVTIMEO or SO_SNDTIMEO.
 */
#define VB_USE_CALL(fd, time, call)                                                               \
	({                                                                                        \
		__typeof__(vb_rsockets->call) vb_said;                                            \
		do {                                                                              \
			vb_held.ran_restarting = vb_held.ran_ending = false;                      \
			vb_said = VB_RS_CALL(call);                                               \
		} while (vb_said < 0 && errno == EINTR && vb_use_restarts(fd, time));             \
		vb_said;                                                                          \
	})

bool vb_use_restarts(int fd, int time); /* errno: EINTR */

/* For a call that waits for descriptors: what it waits at instead of that. */
int vb_use_awaited(int fd);

#endif
