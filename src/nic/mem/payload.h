/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_PAYLOAD_H
#define VB_NIC_PAYLOAD_H

/* Where the payload of a packet lies, and how it is copied together, or put where it belongs. */

#include "engine/segment.h"
#include "engine/verdict.h"
#include "nic/core/internal.h"

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
	struct vb_nic *nic;
	struct ibv_pd *pd;
	uint32_t qpn; /* of a response: whose peer reads; else 0 */
	const struct ibv_sge *sge;
	uint32_t sge_count, offset;
	struct ibv_sge response;
};

static inline void vb_payload_none(struct vb_payload *payload)
{
	payload->count = payload->bytes = 0;
	payload->scattered = false;
}

/*
 * Where a stretch of a work request's data lies, whose keys are of this PD; false: a key does not
 * allow it. The right by which the caller is here keeps it registered (vb_mr_get).
 */
bool vb_payload_gather(struct vb_nic *nic, struct ibv_pd *pd, const struct vb_wqe *wqe,
		       uint32_t offset, uint32_t bytes, struct vb_payload *out);

/*
 * Where the data of the READ response pkt lies, which the peer of our QP of that number is to get;
 * false: the key does not allow it (any more).
 */
bool vb_payload_response(struct vb_nic *nic, struct ibv_pd *pd, uint32_t qpn,
			 const struct vb_pkt *pkt, struct vb_payload *out);

/* Gather and copy a segment's payload, which is not inline; false: a key or memory forbids it. */
bool vb_payload_put(struct vb_nic *nic, struct ibv_pd *pd, const struct vb_wqe *wqe,
		    const struct vb_segment *seg, uint8_t *to);

/* Copy it together; false: a part of it is not mapped any more, or a key does not allow it. */
bool vb_payload_copy(uint8_t *to, const struct vb_payload *payload);

/* Scatter over a list of SGEs: false if a key does not allow it or memory is gone. */
bool vb_mr_scatter(struct vb_nic *nic, struct ibv_pd *pd, const struct ibv_sge *sge, uint32_t count,
		   uint32_t offset, const uint8_t *data, uint32_t bytes);

/*
 * What is not found like any other memory may be paged on demand, or in several pieces. to: what a
 * look-up found that knows of paging, and whether it is.
 */
enum vb_verdict vb_mr_write_found(struct vb_nic *nic, struct ibv_pd *pd, uint32_t key, uint64_t va,
				  const uint8_t *data, uint32_t bytes, unsigned access,
				  uint8_t *to, bool paged);

#endif
