/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ETH_TSO_H
#define VB_ETH_TSO_H

/*
 * TCP segmentation: a header and a long piece of a stream become frames with at most mss octets of
 * that stream each (ibv_post_send(3), IBV_WR_TSO; ibv_wr_post(3), ibv_wr_send_tso). The header is
 * everything before the data, and may contain VLAN tags and a tunnel. Pure.
 *
 *	if (vb_tso_begin(&tso, header, header_bytes, payload_bytes, mss))
 *		while (vb_tso_next(&tso, &cut)) {
 *			gather cut.bytes of the data from cut.offset on to frame + header_bytes
 *			vb_tso_frame(&tso, &cut, frame);
 *			send frame, header_bytes + cut.bytes
 *		}
 */

#include <stdbool.h>
#include <stdint.h>

#include "eth/parse.h"

#define VB_TSO_HEADER_BYTES_MAX 512u

struct vb_tso {
	uint8_t header[VB_TSO_HEADER_BYTES_MAX];
	struct vb_eth_frame frame; /* the offsets in header; its octets are not set */
	uint32_t header_bytes, payload_bytes, mss;
	uint32_t offset; /* of the next frame's data */
	uint32_t index;	 /* of the next frame */
};

/* The data of one frame, as part of the whole. */
struct vb_tso_cut {
	uint32_t offset, bytes, index;
};

/*
 * Returns false if the header does not end with TCP's or is longer than VB_TSO_HEADER_BYTES_MAX,
 * mss is 0, a packet would exceed IP's length field, or IPv6 has segments left in a routing header
 * (checksum.h). Lengths in the header are ignored.
 */
bool vb_tso_begin(struct vb_tso *tso, const uint8_t *header, uint32_t header_bytes,
		  uint32_t payload_bytes, uint32_t mss);

/* The next frame; false after the last. Without data there is one frame. */
bool vb_tso_next(struct vb_tso *tso, struct vb_tso_cut *cut);

/*
 * Writes the header of that frame before its data, which is at octets + header_bytes already. It
 * differs from the given header in the lengths of IP, and of UDP if it carries a tunnel; the
 * identification of IPv4 and the sequence number of GRE, which count up; the sequence number of
 * TCP; CWR, set only in the first (RFC 3168, 6.1.2), and FIN and PSH, only in the last; all
 * checksums, that of GRE included.
 */
void vb_tso_frame(const struct vb_tso *tso, const struct vb_tso_cut *cut, uint8_t *octets);

#endif
