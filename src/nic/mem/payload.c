/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Payload in more pieces than a frame is gathered from, or paged on demand. They are asked for one
 * by one while it is copied, so their number has no bound, and nothing is remembered of them.
 */

#include "nic/data/window.h"
#include "nic/mem/mkey.h"
#include "nic/way/tx.h"

/* access: 0 where the application sends, and what a peer has to be granted that reads. */
static uint8_t *find(struct vb_qp *qp, uint32_t key, uint64_t va, uint32_t bytes, unsigned access,
		     bool *paged)
{
	return access ? vb_remote_find(qp, key, va, bytes, access, paged)
		      : vb_mr_find(qp->nic, qp->ibv.qp.pd, key, va, bytes, access, paged);
}

bool vb_payload_scatter(struct vb_qp *qp, const struct ibv_sge *sge, uint32_t count,
			uint32_t offset, uint32_t bytes, unsigned access, struct vb_payload *out)
{
	struct ibv_pd *pd = qp->ibv.qp.pd;
	bool paged;

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
		    !find(qp, sge[i].lkey, va, n, access, &paged))
			return false;
		bytes -= n;
		offset = 0;
	}
	return true;
}

static bool copy_piece(uint8_t *to, const struct vb_payload *payload, uint32_t key, uint64_t va,
		       uint32_t bytes)
{
	struct vb_qp *qp = payload->qp;
	struct vb_walk walk;
	bool paged;
	const uint8_t *from = find(qp, key, va, bytes, payload->access, &paged);

	if (from)
		return vb_mr_copy(qp->nic, paged, to, from, bytes);
	vb_walk_begin(&walk, qp->nic, qp->ibv.qp.pd, key, va, bytes, payload->access);
	return vb_walk_read(&walk, to, bytes);
}

bool vb_payload_copy_scattered(uint8_t *to, const struct vb_payload *payload)
{
	uint32_t bytes = payload->bytes, offset = payload->offset;

	for (uint32_t i = 0; i < payload->sge_count && bytes; i++) {
		const struct ibv_sge *sge = &payload->sge[i];
		uint32_t n = sge->length;

		if (offset >= n) {
			offset -= n;
			continue;
		}
		n = n - offset < bytes ? n - offset : bytes;
		if (!copy_piece(to, payload, sge->lkey, sge->addr + offset, n))
			return false;
		to += n;
		bytes -= n;
		offset = 0;
	}
	return true;
}
