/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_RSPRELOAD_MIGRATE_H
#define VB_ABI_RSPRELOAD_MIGRATE_H

/*
 * Fork support (rsocket(7)): a connection begins as TCP's, so that it may go to a child of its
 * server's, and becomes an rsocket's in the process that uses it. The passive side listens at the
 * same port and tells that by four zero octets; the active side waits for them and connects there.
 * Any thread.
 */

#include "abi/rspreload/front.h"

/* A passive one: does it now, and waits for the peer. Afterwards it is to migrate no more. */
void vb_migrate_invite(int fd, struct vb_front *front);

/* An active one, connected or about to be: it is VB_FRONT_ACTIVE until the peer invites it. */
void vb_migrate_invited(int fd, struct vb_front *front);

/* Waits for that. 0, EAGAIN after the time (-1: without end), or EINTR. */
int vb_migrate_await(int fd, struct vb_front *front, int timeout_ms);

/*
 * epoll_ctl(2): an active one becomes a member when it has migrated. False: it is no such one, or
 * no more; otherwise *rc is the result.
 */
bool vb_migrate_ctl(struct vb_front *front, int epfd, int op, int fd, struct epoll_event *event,
		    int *rc);

/* The application has closed an active one. */
void vb_migrate_wake(void);

/* In a forked child: the parent sees to those that there are. */
void vb_migrate_forget(void);

#endif
