/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_UDP_H
#define VB_LINK_UDP_H

/*
 * The sockets under UDP links: one per slot, all bound to port 4791 with SO_REUSEPORT, so that
 * the kernel hands each datagram to the socket of the slot that its BTH names.
 *
 * The kernel knows a socket by its place in the group, and its place is the order of binding:
 * whoever makes these sockets binds them in slot order and never closes one while another lives.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/path.h"

enum {
	VB_UDP_PORT = 4791,	       /* RoCEv2, IBTA annex A17 */
	VB_UDP_BUFFER_BYTES = 8 << 20, /* asked for; the system may grant less */
	VB_UDP_HOP_LIMIT_DEFAULT = 64,
};

/*
 * Make an unbound socket with every option set: AF_INET6 for both families, AF_INET where the
 * kernel has no IPv6. 0 and the fd, or a positive errno.
 */
int vb_udp_socket_create(int *fd);

/*
 * Attach the program that picks the socket by slot to a socket's group, so far a group of one:
 * slot 0's, before it is bound; those that are bound later join the group and its program.
 * 0 or a positive errno (SO_ATTACH_REUSEPORT_CBPF, socket(7)).
 */
int vb_udp_socket_steer(int fd);

/* Bind to port 4791 of every address. 0 or a positive errno: EADDRINUSE as in udp(7). */
int vb_udp_socket_bind(int fd);

/*
 * Make a socket that only sends, of that family (AF_INET6 for both): options as above, bound to
 * that port of an address, or of every address (src NULL), next to others of this uid or alone,
 * with that hop limit. 0 and the fd, or a positive errno.
 */
int vb_udp_socket_sender(int *fd, int family, const uint8_t src[VB_GID_BYTES], uint16_t port,
			 uint8_t hop_limit, bool alone);

/*
 * Have a socket send without UDP checksums. Kernels merge no such datagrams (GRO), and cut none
 * either (UDP_SEGMENT). The ICRC does not cover that checksum. 0 or a positive errno.
 */
int vb_udp_socket_unsum(int fd, int family);

/*
 * Make a socket that gets what comes from one port of one host, and nothing else: from path->src
 * and path->sport to path->dst and VB_UDP_PORT. The others of the group do not get that any more.
 * It never is one of them, and may be closed at any time. 0 and the fd, or a positive errno:
 * EADDRNOTAVAIL if the kernel would answer that host from another address; EAFNOSUPPORT where the
 * kernel has no IPv6.
 */
int vb_udp_socket_flow(int *fd, int family, const struct vb_path *path);

/*
 * Make a socket of the group's own family that is bound to it and to VB_UDP_PORT, and gets what is
 * sent there once it has joined (IP_ADD_MEMBERSHIP), and nothing else. scope: the interface, for
 * groups that each interface has its own of, else 0. May be closed at any time. 0 and the fd, or a
 * positive errno.
 */
int vb_udp_socket_group(int *fd, const uint8_t gid[VB_GID_BYTES], uint32_t scope);

/* True if the socket has been bound already. */
bool vb_udp_socket_bound(int fd);

/*
 * Whether port 4791 is free of anybody, our own uid included (binding with SO_REUSEPORT does not
 * tell: it joins silently). 0, EADDRINUSE, or another positive errno.
 */
int vb_udp_port_probe(void);

/*
 * Let nothing in any more, and throw away what waits: a filter is attached first, so this ends even
 * under a flood.
 */
void vb_udp_socket_shut(int fd);

/* Let everything in again. */
void vb_udp_socket_open(int fd);

#endif
