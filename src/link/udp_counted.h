/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_UDP_COUNTED_H
#define VB_LINK_UDP_COUNTED_H

/*
 * Connected IPv4 sockets: the kernel's search for the way is a tenth of what a small datagram
 * costs, and a few hundredths of a long burst, and a connected socket remembers it. But there the
 * kernel counts the datagrams in the identification of the IPv4 header, from a random number on,
 * and the ICRC covers that. So the socket learns where the count stands when it is made, from three
 * datagrams to its own host, whose headers the kernel shows again with the times of their leaving
 * (SO_TIMESTAMPING, without a privilege), and from then on it counts as well. Whoever wants to send
 * by it claims the next identification first, and makes the ICRCs for that.
 *
 * Where that cannot be, or something happens of which it is not known whether the kernel counted
 * it, the socket is given up for good: there is always the other way.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/frame.h"
#include "base/lock.h"

/* All zero: none. */
struct vb_udp_counted {
	atomic_int fd_plus_1;
	vb_lock lock;		   /* whoever has the claim */
	uint16_t id;		   /* of the next datagram */
	uint32_t segment_bytes;	   /* that it cuts into by itself; 0: into none */
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
 * Claim the identification of the next burst. False: there is no socket, or another thread has the
 * claim. It ends with the burst's sending, or is given back. The path is the one that the socket is
 * made for. Any thread.
 */
bool vb_udp_counted_claim(struct vb_udp_counted *counted, uint16_t *id);
void vb_udp_counted_unclaim(struct vb_udp_counted *counted);

/* Send that burst, and end the claim; as vb_link_ops.tx. */
int vb_udp_counted_send(struct vb_udp_counted *counted, const struct vb_burst *burst);

/* Close it. In a forked child as well, whoever held the lock. */
void vb_udp_counted_close(struct vb_udp_counted *counted);

#endif
