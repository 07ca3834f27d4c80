/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_TX_H
#define VB_NIC_TX_H

/* What the ways out have in common: headers from work requests, payload from where it lies. */

#include "nic/data/qp.h"

/* The pieces of one packet's payload. */
struct vb_payload {
	struct iovec iov[VB_SGE_MAX];
	uint32_t count;
	uint32_t bytes;
	/*
	 * More pieces than there is room for, behind an indirect key, or such as are paged on
	 * demand: they are looked for when they are copied (vb_payload_copy), and count is 0. Then
	 * the rest is where; else it is not set.
	 */
	bool scattered;
	struct vb_qp *qp;
	const struct ibv_sge *sge;
	uint32_t sge_count, offset;
	unsigned access;
	struct ibv_sge response;
};

static inline void vb_payload_none(struct vb_payload *payload)
{
	payload->count = payload->bytes = 0;
	payload->scattered = false;
}

/* A packet to the QP's peer; opcode and PSN are the caller's to set. */
static inline void vb_qp_pkt_begin(const struct vb_qp *qp, struct vb_pkt *pkt)
{
	vb_pkt_begin(pkt, qp->dqpn, VB_PKEY_DEFAULT);
	pkt->migreq = qp->migreq;
}

/* Where a stretch of a work request's data lies; false: a key does not allow it. QP locked. */
bool vb_payload_gather(struct vb_qp *qp, const struct vb_wqe *wqe, uint32_t offset, uint32_t bytes,
		       struct vb_payload *out);

/* Where the data of the READ response pkt lies; false: the key does not allow it (any more). */
bool vb_payload_response(struct vb_qp *qp, const struct vb_pkt *pkt, struct vb_payload *payload);

/* Gather and copy a segment's payload, which is not inline; false: a key or memory forbids it. */
bool vb_payload_put(struct vb_qp *qp, const struct vb_wqe *wqe, const struct vb_segment *seg,
		    uint8_t *to);

/* Copy it together; false: a part of it is not mapped any more, or a key does not allow it. */
bool vb_payload_copy(uint8_t *to, const struct vb_payload *payload);

/*
 * Behind keys of which one did not give all its octets in one piece: if it is because they are in
 * several, *out says where, and is true. QP locked.
 */
bool vb_payload_scatter(struct vb_qp *qp, const struct ibv_sge *sge, uint32_t count,
			uint32_t offset, uint32_t bytes, unsigned access, struct vb_payload *out);

/* vb_payload_copy() of such. */
bool vb_payload_copy_scattered(uint8_t *to, const struct vb_payload *payload);

/* What the opcode's headers need of a segment, but for P_Key and pad; nothing else is set. */
void vb_pkt_fill_request(const struct vb_qp *qp, const struct vb_wqe *wqe,
			 const struct vb_segment *seg, bool ackreq, struct vb_pkt *pkt);

#endif
