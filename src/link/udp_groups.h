/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_UDP_GROUPS_H
#define VB_LINK_UDP_GROUPS_H

/*
 * The multicast groups of a UDP link. Each has a socket of its own, bound to the group's address
 * and port 4791, beside the slots' sockets. So it receives nothing that is for the slots, is not
 * part of their reuseport group, whose order matters, and ends with its process. What a slot's
 * socket receives was never sent to a multicast group.
 *
 * An IPv6 group of link or interface scope (ff02::/16, ff01::/16) is a different group at each
 * interface, and has a socket for each.
 */

#include <stdatomic.h>
#include <stdint.h>

#include "base/lock.h"
#include "base/path.h"

struct vb_udp_group;

struct vb_udp_groups {
	vb_lock lock; /* guards the list, and making epoll_fd */
	atomic_int epoll_fd; /* of all sockets; -1: none yet */
	struct vb_udp_group *list;
};

void vb_udp_groups_init(struct vb_udp_groups *groups);

/* As vb_link_ops.join and leave. */
int vb_udp_groups_join(struct vb_udp_groups *groups, const uint8_t gid[VB_GID_BYTES],
		       uint32_t ifindex);
void vb_udp_groups_leave(struct vb_udp_groups *groups, const uint8_t gid[VB_GID_BYTES]);

/* A descriptor that is readable when a group's socket is; -1: none. Any thread. */
static inline int vb_udp_groups_fd(const struct vb_udp_groups *groups)
{
	return atomic_load_explicit(&groups->epoll_fd, memory_order_acquire);
}

/* A readable group socket, or -1. Only within rx, so that none is closed meanwhile. */
int vb_udp_groups_ready(const struct vb_udp_groups *groups);

/* Closes the descriptors; also in a forked child, whatever thread held the lock. */
void vb_udp_groups_close(struct vb_udp_groups *groups);

/* After vb_udp_groups_close(). */
void vb_udp_groups_fini(struct vb_udp_groups *groups);

#endif
