/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_PAYLOAD_H
#define VB_NIC_PAYLOAD_H

/* Where the payload of a packet is, and copying it together, or to its destination. */

#include "engine/segment.h"
#include "engine/verdict.h"
#include "nic/core/internal.h"

/* The pieces of a packet's payload. */
struct vb_payload {
	struct iovec iov[VB_SGE_MAX];
	uint32_t count;
	uint32_t bytes;
	/*
	 * There are more pieces than iov has room for, behind an indirect key, or pieces are paged
	 * on demand: they are looked up while copying (vb_payload_copy), and count is 0. The
	 * following members say where; otherwise they are not set.
	 */
	bool scattered;
	struct vb_nic *nic;
	struct ibv_pd *pd;
	uint32_t qpn; /* for a response: the QP whose peer reads; else 0 */
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
 * Finds a range of a work request's data, whose keys are of this PD. False: a key does not allow
 * it. It stays registered while the caller holds its right (vb_mr_get).
 */
bool vb_payload_gather(struct vb_nic *nic, struct ibv_pd *pd, const struct vb_wqe *wqe,
		       uint32_t offset, uint32_t bytes, struct vb_payload *out);

/*
 * Finds the data of the READ response pkt for the peer of our QP qpn. False: the key does not allow
 * it (any more).
 */
bool vb_payload_response(struct vb_nic *nic, struct ibv_pd *pd, uint32_t qpn,
			 const struct vb_pkt *pkt, struct vb_payload *out);

/* Gathers and copies a segment's payload, which is not inline. False: refused or unmapped. */
bool vb_payload_put(struct vb_nic *nic, struct ibv_pd *pd, const struct vb_wqe *wqe,
		    const struct vb_segment *seg, uint8_t *to);

/* Copies the payload together. False: a part is unmapped, or a key does not allow it. */
bool vb_payload_copy(uint8_t *to, const struct vb_payload *payload);

/* Scatters to a list of SGEs. False: a key does not allow it, or memory is unmapped. */
bool vb_mr_scatter(struct vb_nic *nic, struct ibv_pd *pd, const struct ibv_sge *sge, uint32_t count,
		   uint32_t offset, const uint8_t *data, uint32_t bytes);

/*
 * Writes where vb_mr_get() does not find memory: paged on demand, or in several pieces. to, paged:
 * the result of vb_mr_find() or vb_window_find().
 */
enum vb_verdict vb_mr_write_found(struct vb_nic *nic, struct ibv_pd *pd, uint32_t key, uint64_t va,
				  const uint8_t *data, uint32_t bytes, unsigned access,
				  uint8_t *to, bool paged);

#endif
