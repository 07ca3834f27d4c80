/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_UDP_COUNTED_H
#define VB_LINK_UDP_COUNTED_H

/*
 * Connected IPv4 sockets, for small datagrams: a tenth of what those cost is the kernel's search
 * for the way, and a connected socket remembers it. But there the kernel counts the datagrams in
 * the identification of the IPv4 header, from a random number on, and the ICRC covers that. So the
 * socket learns where the count stands when it is made, from three datagrams to its own host, whose
 * headers the kernel shows again with the times of their leaving (SO_TIMESTAMPING, without a
 * privilege), and from then on it counts as well. Where that cannot be, or something happens of
 * which it is not known whether the kernel counted it, the socket is given up for good: there is
 * always the other way.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/frame.h"
#include "base/lock.h"

enum { VB_UDP_COUNTED_BYTES_MAX = 512 }; /* of a burst: beyond, the way matters less */

/* All zero: none. */
struct vb_udp_counted {
	atomic_int fd_plus_1;
	vb_lock lock;
	uint16_t id;		   /* of the next datagram */
	uint8_t dst[VB_GID_BYTES]; /* that it is connected with */
};

/*
 * Make one from an address and port of this host, which others of this uid may have as well, to
 * dst's port 4791, with that hop limit. 0; or an errno, and there is none: of socket(2), bind(2) or
 * connect(2), or EOPNOTSUPP, as the count cannot be learned. Once, before anybody sends.
 */
int vb_udp_counted_open(struct vb_udp_counted *counted, const uint8_t src[VB_GID_BYTES],
			const uint8_t dst[VB_GID_BYTES], uint16_t port, uint8_t hop_limit);

/*
 * Send a burst that has a `renumber`: true if it has left. False: it has not, since there is no
 * socket, another thread is at it, or the burst is too large, or the kernel refused it. The path is
 * the one that the socket is made for. Any thread.
 */
bool vb_udp_counted_send(struct vb_udp_counted *counted, const struct vb_burst *burst);

/* Close it. In a forked child as well, whoever held the lock. */
void vb_udp_counted_close(struct vb_udp_counted *counted);

#endif
