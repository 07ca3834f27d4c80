/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/segment.h"

#include "base/check.h"
#include "base/psn.h"

bool vb_wqe_has_psn(const struct vb_wqe *wqe, uint32_t psn)
{
	return ((psn - wqe->psn) & VB_PSN_MASK) < wqe->packets;
}

static void read_segment(struct vb_segment *seg, const struct vb_wqe *wqe, uint32_t index,
			 uint32_t mtu)
{
	uint32_t chunk = vb_read_chunk_packets(mtu);
	uint32_t end = (index / chunk + 1) * chunk;
	uint64_t left = wqe->bytes - (uint64_t)index * mtu;

	/* Pieces end at fixed offsets, so that a repeated one never reaches into the next. */
	if (end > wqe->packets)
		end = wqe->packets;
	seg->span = end - index;
	seg->last = end == wqe->packets;
	seg->bytes = (uint32_t)vb_min_u64(left, (uint64_t)seg->span * mtu);
}

void vb_segment_at(struct vb_segment *seg, enum vb_transport transport, const struct vb_wqe *wqe,
		   uint32_t psn, uint32_t mtu)
{
	uint32_t index = (psn - wqe->psn) & VB_PSN_MASK;
	unsigned pos = VB_P_ONLY;
	unsigned extra = 0;

	vb_check(index < wqe->packets);
	seg->psn = psn;
	if (wqe->only) {
		seg->opcode = wqe->only;
		seg->first = seg->last = true;
		seg->span = 1;
		seg->offset = 0;
		seg->bytes = wqe->bytes;
		return;
	}
	seg->first = index == 0;
	seg->last = index + 1 == wqe->packets;
	seg->span = 1;
	seg->offset = index * mtu;
	seg->bytes = 0;
	if (wqe->kind == VB_K_READ_REQ) {
		read_segment(seg, wqe, index, mtu);
	} else if (!vb_wqe_is_atomic(wqe)) {
		seg->bytes = seg->last ? wqe->bytes - seg->offset : mtu;
		pos = (seg->first ? VB_P_FIRST : 0) | (seg->last ? VB_P_LAST : 0);
		extra = seg->last ? wqe->extra : 0;
	}
	seg->opcode = vb_op_find(transport, (enum vb_kind)wqe->kind, pos, extra);
}
