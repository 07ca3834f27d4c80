/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_UDP_SOCKET_H
#define VB_LINK_UDP_SOCKET_H

/*
 * The sockets under UDP links: one per slot, all bound to port 4791 with SO_REUSEPORT, so that the
 * kernel hands each datagram to the socket of the slot that its BTH names.
 *
 * The kernel identifies a socket of the reuseport group by its position, which is the order of
 * binding. So they are bound in slot order, and none is closed while another lives.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/path.h"

enum {
	VB_UDP_PORT = 4791,	       /* RoCEv2, IBTA annex A17 */
	VB_UDP_BUFFER_BYTES = 8 << 20, /* requested; the system may grant less */
	VB_UDP_HOP_LIMIT_DEFAULT = 64,
};

/*
 * Makes an unbound socket with all options set: AF_INET6 for both families, AF_INET if the kernel
 * has no IPv6. Returns 0 with *fd, or a positive errno.
 */
int vb_udp_socket_create(int *fd);

/*
 * Attaches the program that picks the socket by slot. For slot 0's socket, before it is bound;
 * sockets bound later join its reuseport group, and so its program. Returns 0 or a positive errno
 * (SO_ATTACH_REUSEPORT_CBPF, socket(7)).
 */
int vb_udp_socket_steer(int fd);

/* Binds to port 4791 of every address. Returns 0 or a positive errno: EADDRINUSE as in udp(7). */
int vb_udp_socket_bind(int fd);

/*
 * Makes a socket that only sends, of that family (AF_INET6 for both), with options as above and
 * that hop limit. It is bound to that port of an address, or of every address (src NULL), shared
 * with others of this uid or `alone`. Returns 0 with *fd, or a positive errno.
 */
int vb_udp_socket_sender(int *fd, int family, const uint8_t src[VB_GID_BYTES], uint16_t port,
			 uint8_t hop_limit, bool alone);

/*
 * Makes a socket send without UDP checksums. Kernels do not merge such datagrams (GRO), nor segment
 * them (UDP_SEGMENT). The ICRC does not cover that checksum. Returns 0 or a positive errno.
 */
int vb_udp_socket_unsum(int fd, int family);

/*
 * Makes a socket that receives only from one port of one host: from path->src and path->sport to
 * path->dst and VB_UDP_PORT. The reuseport group does not receive that any more. The socket is
 * never part of the group, and may be closed at any time. Returns 0 with *fd, or a positive errno:
 * EADDRNOTAVAIL if the kernel would answer that host from another address; EAFNOSUPPORT if the
 * kernel has no IPv6.
 */
int vb_udp_socket_flow(int *fd, int family, const struct vb_path *path);

/*
 * Makes a socket bound to a multicast group and VB_UDP_PORT, of the group's family. It receives
 * what is sent there once it has joined (IP_ADD_MEMBERSHIP), and nothing else. scope: the interface
 * for groups of link or interface scope, else 0. May be closed at any time. Returns 0 with *fd, or
 * a positive errno.
 */
int vb_udp_socket_group(int *fd, const uint8_t gid[VB_GID_BYTES], uint32_t scope);

/* Is the socket bound? */
bool vb_udp_socket_bound(int fd);

/*
 * Is port 4791 free, also of sockets of our own uid? (Binding with SO_REUSEPORT would join those.)
 * Returns 0, EADDRINUSE, or another positive errno.
 */
int vb_udp_port_probe(void);

/*
 * Lets nothing in any more, and drops what waits. A filter comes first, so this ends even under a
 * flood.
 */
void vb_udp_socket_shut(int fd);

/* Lets everything in again. */
void vb_udp_socket_open(int fd);

#endif
