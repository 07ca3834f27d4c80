/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/mem/payload.h"

#include "base/guard.h"
#include "nic/mem/journal.h"
#include "nic/mem/mkey.h"

/* --- more pieces than a frame is gathered from, or paged on demand --- */

/*
 * Pieces are looked up one by one while copying, so their number is not bounded, and none is
 * stored.
 */
static unsigned access_of(const struct vb_payload *payload)
{
	return payload->qpn ? IBV_ACCESS_REMOTE_READ : 0;
}

/* By a region's key or, if a peer reads, a window's. */
static uint8_t *find(const struct vb_payload *payload, uint32_t key, uint64_t va, uint32_t bytes,
		     bool *paged)
{
	unsigned access = access_of(payload);
	uint8_t *at = vb_mr_find(payload->nic, payload->pd, key, va, bytes, access, paged);

	return at || !access ? at
			     : vb_window_find(payload->nic, payload->pd, payload->qpn, key, va,
					      bytes, access, paged);
}

/* For a range that is not in one piece per SGE. False: a key does not allow it. */
static __attribute__((noinline)) bool scatter(struct vb_payload *payload)
{
	uint32_t bytes = payload->bytes, offset = payload->offset;
	bool paged;

	payload->count = 0;
	payload->scattered = true;
	for (uint32_t i = 0; i < payload->sge_count && bytes; i++) {
		const struct ibv_sge *sge = &payload->sge[i];
		uint32_t n = sge->length;

		if (offset >= n) {
			offset -= n;
			continue;
		}
		n = n - offset < bytes ? n - offset : bytes;
		if (!vb_mkey_allows(payload->nic, payload->pd, sge->lkey, sge->addr + offset, n,
				    access_of(payload)) &&
		    !find(payload, sge->lkey, sge->addr + offset, n, &paged))
			return false;
		bytes -= n;
		offset = 0;
	}
	return true;
}

static bool copy_piece(uint8_t *to, const struct vb_payload *payload, uint32_t key, uint64_t va,
		       uint32_t bytes)
{
	struct vb_walk walk;
	bool paged;
	const uint8_t *from = find(payload, key, va, bytes, &paged);

	if (from)
		return vb_mr_copy(payload->nic, paged, to, from, bytes);
	vb_walk_begin(&walk, payload->nic, payload->pd, key, va, bytes, access_of(payload));
	return vb_walk_read(&walk, to, bytes);
}

static bool copy_scattered(uint8_t *to, const struct vb_payload *payload)
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

/* --- for the rest of the NIC --- */

bool vb_payload_copy(uint8_t *to, const struct vb_payload *payload)
{
	if (payload->scattered)
		return copy_scattered(to, payload);
	for (uint32_t i = 0; i < payload->count; i++) {
		const struct iovec *from = &payload->iov[i];

		if (!vb_guard_copy(to, from->iov_base, from->iov_len))
			return false;
		to += from->iov_len;
	}
	return true;
}

bool vb_payload_gather(struct vb_nic *nic, struct ibv_pd *pd, const struct vb_wqe *wqe,
		       uint32_t offset, uint32_t bytes, struct vb_payload *out)
{
	const uint32_t start = offset;

	out->count = 0;
	out->bytes = bytes;
	out->scattered = false;
	if (wqe->flags & IBV_SEND_INLINE) {
		out->iov[0] = (struct iovec){ (void *)(vb_wqe_data(wqe) + offset), bytes };
		out->count = bytes ? 1 : 0;
		return true;
	}
	for (uint32_t i = 0; i < wqe->sge_count && bytes; i++) {
		const struct ibv_sge *sge = &wqe->sge[i];
		uint32_t n = sge->length;
		uint8_t *from;

		if (offset >= n) {
			offset -= n;
			continue;
		}
		n = n - offset < bytes ? n - offset : bytes;
		from = vb_mr_get(nic, pd, sge->lkey, sge->addr + offset, n, 0);
		if (!from) {
			out->nic = nic;
			out->pd = pd;
			out->qpn = 0;
			out->sge = wqe->sge;
			out->sge_count = wqe->sge_count;
			out->offset = start;
			return scatter(out);
		}
		out->iov[out->count++] = (struct iovec){ from, n };
		bytes -= n;
		offset = 0;
	}
	return true;
}

bool vb_payload_put(struct vb_nic *nic, struct ibv_pd *pd, const struct vb_wqe *wqe,
		    const struct vb_segment *seg, uint8_t *to)
{
	struct vb_payload payload;

	return vb_payload_gather(nic, pd, wqe, seg->offset, seg->bytes, &payload) &&
	       vb_payload_copy(to, &payload);
}

bool vb_payload_response(struct vb_nic *nic, struct ibv_pd *pd, uint32_t qpn,
			 const struct vb_pkt *pkt, struct vb_payload *out)
{
	const unsigned access = IBV_ACCESS_REMOTE_READ;
	uint8_t *from;

	out->count = 0;
	out->bytes = pkt->reth.bytes;
	out->scattered = false;
	if (!pkt->reth.bytes)
		return true;
	from = vb_mr_get(nic, pd, pkt->reth.rkey, pkt->reth.va, pkt->reth.bytes, access);
	if (!from)
		from = vb_window_get(nic, pd, qpn, pkt->reth.rkey, pkt->reth.va, pkt->reth.bytes,
				     access);
	if (!from) {
		out->nic = nic;
		out->pd = pd;
		out->qpn = qpn;
		out->response = (struct ibv_sge){ pkt->reth.va, pkt->reth.bytes, pkt->reth.rkey };
		out->sge = &out->response;
		out->sge_count = 1;
		out->offset = 0;
		return scatter(out);
	}
	out->iov[0] = (struct iovec){ from, pkt->reth.bytes };
	out->count = 1;
	return true;
}

/* --- writing --- */

enum vb_verdict vb_mr_write_found(struct vb_nic *nic, struct ibv_pd *pd, uint32_t key, uint64_t va,
				  const uint8_t *data, uint32_t bytes, unsigned access,
				  uint8_t *to, bool paged)
{
	struct vb_walk walk;

	if (to && nic->host.order && vb_journal_put(vb_key_access(nic, key), to, data, bytes))
		return VB_OK;
	if (to)
		return vb_mr_copy(nic, paged, to, data, bytes) ? VB_OK : VB_BAD_MEMORY;
	/* The regions behind an indirect key are written to in their order. */
	if (nic->host.order)
		vb_journal_settle();
	vb_walk_begin(&walk, nic, pd, key, va, bytes, access);
	return walk.mkey && vb_walk_write(&walk, data, bytes) ? VB_OK : VB_BAD_ACCESS;
}

static bool write_local(struct vb_nic *nic, struct ibv_pd *pd, uint32_t key, uint64_t va,
			const uint8_t *data, uint32_t bytes)
{
	bool paged;
	uint8_t *to = vb_mr_find(nic, pd, key, va, bytes, IBV_ACCESS_LOCAL_WRITE, &paged);

	return vb_mr_write_found(nic, pd, key, va, data, bytes, IBV_ACCESS_LOCAL_WRITE, to,
				 paged) == VB_OK;
}

bool vb_mr_scatter(struct vb_nic *nic, struct ibv_pd *pd, const struct ibv_sge *sge, uint32_t count,
		   uint32_t offset, const uint8_t *data, uint32_t bytes)
{
	for (uint32_t i = 0; i < count && bytes; i++) {
		uint32_t n = sge[i].length;
		uint8_t *to;

		if (offset >= n) {
			offset -= n;
			continue;
		}
		n = n - offset < bytes ? n - offset : bytes;
		to = vb_mr_get(nic, pd, sge[i].lkey, sge[i].addr + offset, n,
			       IBV_ACCESS_LOCAL_WRITE);
		if (to ? !vb_guard_copy(to, data, n)
		       : !write_local(nic, pd, sge[i].lkey, sge[i].addr + offset, data, n))
			return false;
		data += n;
		bytes -= n;
		offset = 0;
	}
	return true;
}
