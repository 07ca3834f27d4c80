/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Payload in more pieces than a frame is gathered from. They are asked for one by one while it is
 * copied, so their number has no bound, and nothing is remembered of them.
 */

#include "nic/mkey.h"
#include "nic/tx.h"

bool vb_payload_scatter(struct vb_qp *qp, const struct ibv_sge *sge, uint32_t count,
			uint32_t offset, uint32_t bytes, unsigned access, struct vb_payload *out)
{
	struct ibv_pd *pd = qp->ibv.qp.pd;

	out->count = 0;
	out->bytes = bytes;
	out->scattered = true;
	out->qp = qp;
	out->sge = sge;
	out->sge_count = count;
	out->offset = offset;
	out->access = access;
	for (uint32_t i = 0; i < count && bytes; i++) {
		uint32_t n = sge[i].length;
		uint64_t va = sge[i].addr + offset;

		if (offset >= n) {
			offset -= n;
			continue;
		}
		n = n - offset < bytes ? n - offset : bytes;
		if (!vb_mkey_allows(qp->nic, pd, sge[i].lkey, va, n, access) &&
		    !vb_mr_get(qp->nic, pd, sge[i].lkey, va, n, access))
			return false;
		bytes -= n;
		offset = 0;
	}
	return true;
}

bool vb_payload_copy_scattered(uint8_t *to, const struct vb_payload *payload)
{
	uint32_t bytes = payload->bytes, offset = payload->offset;

	for (uint32_t i = 0; i < payload->sge_count && bytes; i++) {
		const struct ibv_sge *sge = &payload->sge[i];
		uint32_t n = sge->length;
		struct vb_walk walk;

		if (offset >= n) {
			offset -= n;
			continue;
		}
		n = n - offset < bytes ? n - offset : bytes;
		vb_walk_begin(&walk, payload->qp->nic, payload->qp->ibv.qp.pd, sge->lkey,
			      sge->addr + offset, n, payload->access);
		if (!vb_walk_read(&walk, to, n))
			return false;
		to += n;
		bytes -= n;
		offset = 0;
	}
	return true;
}
