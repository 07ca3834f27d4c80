/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ETH_TSO_H
#define VB_ETH_TSO_H

/*
 * TCP segmentation: one header and a long piece of a stream become frames of at most mss octets of
 * that stream each (ibv_post_send(3), IBV_WR_TSO; ibv_wr_post(3), ibv_wr_send_tso). The header is
 * all that stands in front of the data, and may have VLAN tags and a tunnel. Pure.
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
	struct vb_eth_frame frame; /* where what is in it; octets points nowhere */
	uint32_t header_bytes, payload_bytes, mss;
	uint32_t offset; /* so much of the data was cut off already */
	uint32_t index;	 /* ... in so many frames */
};

/* The data of one frame: these octets of the whole. */
struct vb_tso_cut {
	uint32_t offset, bytes, index;
};

/*
 * False: the header does not end with that of TCP, is longer than VB_TSO_HEADER_BYTES_MAX, mss is
 * 0, a packet would be longer than IP can tell, or IPv6 has segments left in a routing header
 * (checksum.h). What lengths the header tells does not matter.
 */
bool vb_tso_begin(struct vb_tso *tso, const uint8_t *header, uint32_t header_bytes,
		  uint32_t payload_bytes, uint32_t mss);

/* The next frame; false: there was the last. Without any data there is one frame. */
bool vb_tso_next(struct vb_tso *tso, struct vb_tso_cut *cut);

/*
 * Write the header of that frame in front of its data, which stands at octets + header_bytes
 * already. From the header that was given differ: the lengths of IP, and of UDP where it carries a
 * tunnel; the identification of IPv4 and the sequence number of GRE, which count up; the sequence
 * number of TCP; CWR, which only the first has (RFC 3168, 6.1.2), and FIN and PSH, which only the
 * last has; all checksums, that of GRE too.
 */
void vb_tso_frame(const struct vb_tso *tso, const struct vb_tso_cut *cut, uint8_t *octets);

#endif
