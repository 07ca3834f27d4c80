/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_UDP_RX_H
#define VB_LINK_UDP_RX_H

/*
 * The way in of a UDP link: datagrams, and runs of them that the kernel has merged, into frames.
 *
 * They come from the slot's socket. Where many in a row came from one port of one host, there is a
 * second socket for these: connected to that port, so that the kernel finds it by the addresses
 * alone, with no look at its routes and at the group of sockets (a sixth of a ping-pong), and need
 * not say where each datagram comes from. It is the flow. Whatever it does not match still comes by
 * the slot's socket, and each of the two is looked at as often as it is worth it. A frame with a
 * wrong ICRC makes no flow and ends none. Who can make right ones, under any address, has one only
 * until somebody wants it whom this link has a sender for.
 *
 * And there are the sockets of multicast groups (udp_groups.h), which have their turn each time.
 *
 * All but vb_udp_rx_fd() and vb_udp_rx_pending(): one thread at a time.
 */

#include "link/link.h"

struct vb_udp_groups;
struct vb_udp_rx;
struct vb_udp_senders;

/* fd: the slot's socket, which stays the caller's, as groups and senders do. NULL: no memory. */
struct vb_udp_rx *vb_udp_rx_create(int fd, int family, const struct vb_udp_groups *groups,
				   struct vb_udp_senders *senders, vb_identify *identify);
void vb_udp_rx_destroy(struct vb_udp_rx *rx);

/* As vb_link_ops.rx. */
unsigned vb_udp_rx_take(struct vb_udp_rx *rx, struct vb_frame *frames, unsigned max);

/* As vb_link_ops.rx_fd. Any thread. */
int vb_udp_rx_fd(const struct vb_udp_rx *rx, unsigned i);

/* Are there frames that were received, but not taken? Any thread. */
bool vb_udp_rx_pending(const struct vb_udp_rx *rx);

/* In a forked child: close what is ours. */
void vb_udp_rx_forget(struct vb_udp_rx *rx);

#endif
