/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_UDP_RX_H
#define VB_LINK_UDP_RX_H

/*
 * The receive side of a UDP link: makes frames of datagrams, and of runs that the kernel merged
 * (GRO).
 *
 * Datagrams come by the slot's socket. When many in a row come from one port of one host, they get
 * a second socket, the flow: it is connected to that port, so the kernel finds it by its addresses
 * alone, without routing and the reuseport program (a sixth of a ping-pong), and does not report
 * each datagram's source. All others still come by the slot's socket. Each of the two is looked at
 * as often as that pays. A frame with a wrong ICRC neither starts nor ends a flow. A host that can
 * make valid ICRCs under any address keeps a flow only until a host to which this link has a sender
 * needs it.
 *
 * The sockets of multicast groups (udp_groups.h) take turns with these.
 *
 * All but vb_udp_rx_fd() and vb_udp_rx_pending(): one thread at a time.
 */

#include "link/link.h"

struct vb_udp_groups;
struct vb_udp_rx;
struct vb_udp_senders;

/* fd: the slot's socket; it stays the caller's, as do groups and senders. NULL: no memory. */
struct vb_udp_rx *vb_udp_rx_create(int fd, int family, const struct vb_udp_groups *groups,
				   struct vb_udp_senders *senders, vb_identify *identify);
void vb_udp_rx_destroy(struct vb_udp_rx *rx);

/* As vb_link_ops.rx. */
unsigned vb_udp_rx_take(struct vb_udp_rx *rx, struct vb_frame *frames, unsigned max);

/* As vb_link_ops.rx_fd. Any thread. */
int vb_udp_rx_fd(const struct vb_udp_rx *rx, unsigned i);

/* Are there received frames that were not taken? Any thread. */
bool vb_udp_rx_pending(const struct vb_udp_rx *rx);

/* In a forked child: closes our descriptors. */
void vb_udp_rx_forget(struct vb_udp_rx *rx);

#endif
