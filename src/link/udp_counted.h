/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_UDP_COUNTED_H
#define VB_LINK_UDP_COUNTED_H

/*
 * Connected IPv4 sockets, and the identifications that the kernel counts for them.
 *
 * The kernel's route lookup is a tenth of the cost of a small datagram, and a few hundredths of a
 * long burst; a connected socket remembers the route. But for a connected socket the kernel counts
 * datagrams in the identification of the IPv4 header, from a random number on, and the ICRC covers
 * that field. So the count is learned when the socket is made, from three datagrams to the own
 * host: the kernel returns their headers with the transmit timestamps (SO_TIMESTAMPING, which needs
 * no privilege). From then on we count along. A sender claims the next identification first and
 * makes the ICRCs for it.
 *
 * Where the count cannot be learned, or an error leaves it unknown whether the kernel counted, the
 * socket is given up for good: the unconnected socket remains.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/frame.h"
#include "base/lock.h"

/* All zero: no socket. */
struct vb_udp_counted {
	atomic_int fd_plus_1;
	vb_lock lock;		   /* held by the thread with the claim */
	uint16_t id;		   /* of the next datagram */
	uint32_t segment_bytes;	   /* segment size set on the socket; 0: none */
	uint8_t dst[VB_GID_BYTES]; /* what it is connected to */
};

/*
 * Makes one from an address and port of this host, which it may share with others of this uid, to
 * port 4791 of dst, with that hop limit. Returns 0; or an errno, and there is none: of socket(2),
 * bind(2) or connect(2), or EOPNOTSUPP if the count cannot be learned. Once, before any thread
 * sends.
 */
int vb_udp_counted_open(struct vb_udp_counted *counted, const uint8_t src[VB_GID_BYTES],
			const uint8_t dst[VB_GID_BYTES], uint16_t port, uint8_t hop_limit);

/*
 * Claims the identification of the next burst on the path that the socket is made for. Returns
 * false if there is no socket, or another thread has the claim. The claim ends with sending, or is
 * given back. Any thread.
 */
bool vb_udp_counted_claim(struct vb_udp_counted *counted, uint16_t *id);
void vb_udp_counted_unclaim(struct vb_udp_counted *counted);

/* Sends the burst and ends the claim; as vb_link_ops.tx. */
int vb_udp_counted_send(struct vb_udp_counted *counted, const struct vb_burst *burst);

/* Closes it; also in a forked child, whatever thread held the lock. */
void vb_udp_counted_close(struct vb_udp_counted *counted);

#endif
