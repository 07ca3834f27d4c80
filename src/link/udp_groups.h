/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_UDP_GROUPS_H
#define VB_LINK_UDP_GROUPS_H

/*
 * The multicast groups of a UDP link. Each has a socket of its own, bound to the group's address
 * and port 4791, beside the slots' sockets. Bound like that it gets nothing that is for the slots,
 * is no member of their group of sockets, whose order the kernel goes by, and goes with its
 * process; what comes to a slot's socket never was sent to a group.
 *
 * A group of IPv6 that is a link's or an interface's own (ff02::/16, ff01::/16) is another one at
 * each interface, and has a socket for each.
 */

#include <stdatomic.h>
#include <stdint.h>

#include "base/lock.h"
#include "base/path.h"

struct vb_udp_group;

struct vb_udp_groups {
	vb_lock lock; /* the list, and who makes the epoll descriptor */
	atomic_int epoll_fd; /* of all sockets; -1: there never was one */
	struct vb_udp_group *list;
};

void vb_udp_groups_init(struct vb_udp_groups *groups);

/* As vb_link_ops.join and leave. */
int vb_udp_groups_join(struct vb_udp_groups *groups, const uint8_t gid[VB_GID_BYTES],
		       uint32_t ifindex);
void vb_udp_groups_leave(struct vb_udp_groups *groups, const uint8_t gid[VB_GID_BYTES]);

/* A descriptor that is readable when a group's socket is; -1: there are none. Any thread. */
static inline int vb_udp_groups_fd(const struct vb_udp_groups *groups)
{
	return atomic_load_explicit(&groups->epoll_fd, memory_order_acquire);
}

/* A socket at which something waits, or -1. Whoever is in rx, so that none is closed meanwhile. */
int vb_udp_groups_ready(const struct vb_udp_groups *groups);

/* Closes the descriptors. In a forked child as well, whoever held the lock. */
void vb_udp_groups_close(struct vb_udp_groups *groups);

/* Closed before. */
void vb_udp_groups_fini(struct vb_udp_groups *groups);

#endif
