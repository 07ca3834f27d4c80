/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_WIRE_ICRC_H
#define VB_WIRE_ICRC_H

/*
 * The invariant CRC of RoCEv2 (IBTA 7.8.1, Annex A17): Ethernet's CRC-32 over 8 octets of ones,
 * the IP header, the UDP header, the BTH and all that follows up to the ICRC. What routers may
 * change counts as ones: TOS or traffic class, flow label, TTL or hop limit, both checksums, the
 * BTH's octet 4. So a path's tclass, hop_limit and flow_label never matter here.
 *
 * Sending:   crc = vb_icrc_header(path, bytes, id, header, header_bytes);
 *            crc = vb_icrc_add(crc, piece, piece_bytes);  for payload and pad, as often as needed
 *            vb_icrc_put(behind_the_pad, vb_icrc_finish(crc));
 *
 * Here `udp_payload_bytes` is the length of the frame, BTH to ICRC inclusive, and ip_id the IPv4
 * identification in host order: 0 on a socket that sets DF, 0, 1, 2 ... in the segments of one
 * UDP_SEGMENT send. It is ignored on IPv6. IPv4 frames are taken to have DF set and no options.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/path.h"

#define VB_ROCE_PORT 4791

/* The CRC up to and including the UDP header. */
uint32_t vb_icrc_start(const struct vb_path *path, size_t udp_payload_bytes, uint16_t ip_id);

/* Continues over the BTH and bytes - 12 further octets; bytes is at least 12. */
uint32_t vb_icrc_bth(uint32_t crc, const uint8_t *header, size_t bytes);

/* vb_icrc_start() and vb_icrc_bth() in one pass, in half the time. */
uint32_t vb_icrc_header(const struct vb_path *path, size_t udp_payload_bytes, uint16_t ip_id,
			const uint8_t *header, size_t header_bytes);

/* The ICRC of a frame in one piece. bytes, at least 16, includes the ICRC, which is not read. */
uint32_t vb_icrc_frame(const struct vb_path *path, const uint8_t *frame, size_t bytes,
		       uint16_t ip_id);

/*
 * What the ICRCs of a path begin with: of the path that it was last used with. Zeros: of none. One
 * thread at a time. The functions with a memo do what those without it do, in less time if the path
 * is the same as before.
 */
struct vb_icrc_memo {
	uint8_t src[VB_GID_BYTES], dst[VB_GID_BYTES];
	uint16_t sport;
	bool known, ipv4;
	uint32_t crc;
};

uint32_t vb_icrc_known_header(struct vb_icrc_memo *memo, const struct vb_path *path,
			      size_t udp_payload_bytes, uint16_t ip_id, const uint8_t *header,
			      size_t header_bytes);
uint32_t vb_icrc_known_frame(struct vb_icrc_memo *memo, const struct vb_path *path,
			     const uint8_t *frame, size_t bytes, uint16_t ip_id);

/*
 * For consecutive frames of one send, which differ only in identification and PSN, by one each. crc
 * is the vb_icrc_header() of the current frame; the next one's is computed at a tenth of the cost.
 * Both numbers wrap to 0; bth is the first frame's.
 */
struct vb_icrc_run {
	uint32_t crc, psn;
	uint16_t ip_id;
	bool ipv4;
};

void vb_icrc_run_begin(struct vb_icrc_run *run, struct vb_icrc_memo *memo,
		       const struct vb_path *path, size_t udp_payload_bytes, uint16_t ip_id,
		       const uint8_t *bth);
void vb_icrc_run_next(struct vb_icrc_run *run);

/* Continues over octets behind the headers. */
uint32_t vb_icrc_add(uint32_t crc, const void *data, size_t bytes);

/* The ICRC after all octets were added. */
static inline uint32_t vb_icrc_finish(uint32_t crc)
{
	return crc;
}

/* Writes and reads the ICRC as four octets, least significant first. */
static inline void vb_icrc_put(uint8_t out[4], uint32_t icrc)
{
	out[0] = (uint8_t)icrc;
	out[1] = (uint8_t)(icrc >> 8);
	out[2] = (uint8_t)(icrc >> 16);
	out[3] = (uint8_t)(icrc >> 24);
}

static inline uint32_t vb_icrc_get(const uint8_t in[4])
{
	return (uint32_t)in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16 |
	       (uint32_t)in[3] << 24;
}

/*
 * Is the ICRC of this frame, BTH to ICRC inclusive, valid for its path?
 *
 * A UDP socket does not report the IPv4 identification, so id_hint is tried first: the index of the
 * segment in its batch, else 0. If that fails, another identification may fit: CRC-32 is linear, so
 * there is at most one, which is computed, not searched. id: NULL, or where to store the
 * identification that fits, if the result is true. If it equals id_hint, all 32 bits were checked;
 * otherwise 16 of them were used to find it, and a randomly damaged frame passes with probability
 * 2^-16 instead of 2^-32. With IPv6 the check is always exact. Returns false for invalid lengths:
 * below 16, above VB_FRAME_BYTES_MAX, or not a multiple of 4.
 */
bool vb_icrc_check(const struct vb_path *path, const uint8_t *frame, size_t bytes, uint16_t id_hint,
		   uint16_t *id);
bool vb_icrc_known_check(struct vb_icrc_memo *memo, const struct vb_path *path,
			 const uint8_t *frame, size_t bytes, uint16_t id_hint, uint16_t *id);

#endif
