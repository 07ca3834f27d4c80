/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ENGINE_SEGMENT_H
#define VB_ENGINE_SEGMENT_H

/*
 * (work request, PSN) -> packet. A pure function: a retransmission is the same call as the first
 * transmission, and the only progress stored is a PSN.
 */

#include "engine/wqe.h"

/*
 * A READ is requested in pieces of at most this size, each a request of its own on the wire: so no
 * more data is in flight to the requester than it can take in.
 */
#define VB_READ_CHUNK_BYTES 65536u

struct vb_segment {
	uint8_t opcode;
	bool first, last; /* of the work request */
	uint32_t psn;
	uint32_t span;	 /* PSNs covered: 1, or those of the response to a READ */
	uint32_t offset; /* within the work request's data */
	uint32_t bytes;	 /* of payload, or of requested data */
};

static inline uint32_t vb_read_chunk_packets(uint32_t mtu)
{
	return VB_READ_CHUNK_BYTES / mtu;
}

/* PSNs that a work request of this size takes (IBA 9.7.2: at least one). */
static inline uint32_t vb_packets(uint32_t bytes, uint32_t mtu)
{
	if (bytes <= mtu)
		return 1; /* most messages are short, and a division is slow */
	return (uint32_t)(((uint64_t)bytes + mtu - 1) / mtu);
}

/* psn must belong to the work request. */
void vb_segment_at(struct vb_segment *seg, enum vb_transport transport, const struct vb_wqe *wqe,
		   uint32_t psn, uint32_t mtu);

/* The opcode of a SEND or WRITE with a single packet, known when it is posted. */
static inline uint8_t vb_segment_only(enum vb_transport transport, const struct vb_wqe *wqe)
{
	return vb_op_find(transport, (enum vb_kind)wqe->kind, VB_P_ONLY, wqe->extra);
}

/* Does the PSN belong to the work request? */
bool vb_wqe_has_psn(const struct vb_wqe *wqe, uint32_t psn);

#endif
