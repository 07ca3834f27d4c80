/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_RDMACM_REPOLL_REPOLL_H
#define VB_ABI_RDMACM_REPOLL_REPOLL_H

/*
 * Sets: epoll descriptors that hold rsockets beside whatever else. Any epoll descriptor becomes one
 * as soon as an rsocket is added; all that is no rsocket stays the kernel's, data and all.
 */

#include <sys/epoll.h>

#include "abi/rdmacm/rs/socket.h"

/* In <rdma/rsocket.h> of rdma-core 65 and later. As the calls of epoll(7); rclose() ends a set. */
int repoll_create(int flags);
int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int repoll_wait(int epfd, struct epoll_event *events, int max, int timeout);

/* repoll_ctl() of a socket that has several names, such as duplicates: each is one of its own. */
int vb_rs_set_ctl(int epfd, int op, int fd, int name, struct epoll_event *event);

/*
 * From now on the descriptor itself is readable while its rsockets have something to tell: somebody
 * else looks at it, by poll(2) or as a member of another. He may be told once in vain. 0, or -1
 * with errno.
 */
int vb_rs_set_show(int epfd);

/*
 * A set's own event in what the kernel tells of its descriptor, which is nobody else's: whoever
 * asks the kernel himself removes it. True: it was there.
 */
#define VB_RS_SET_DATA 0x7fb27e2d51c4a069u

static inline bool vb_rs_set_event_remove(struct epoll_event *events, int *count)
{
	int before = *count;

	for (int i = before - 1; i >= 0; i--) {
		if (events[i].data.u64 == VB_RS_SET_DATA)
			events[i] = events[--*count];
	}
	return *count < before;
}

/* The socket is about to be closed: no set has it any more. */
void vb_rs_sets_forget(struct vb_rs *rs);

/* False: it is no set. Otherwise it is closed. */
bool vb_rs_set_close(int epfd);

#endif
