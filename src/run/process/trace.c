/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/process/trace.h"

#include "base/probe.h"
#include "link/gather.h"
#include "run/process/trail.h"
#include "wire/bytes.h"
#include "wire/opcode.h"

enum { FRAME_BYTES_MAX = 10000, AETH_BYTES = 4 };

/* The link's own functions, and those that note what these do. */
static const struct vb_link_ops *inner;
static struct vb_link_ops traced;

static void note(enum vb_trail_kind kind, uint64_t ns, const uint8_t *frame, uint32_t bytes)
{
	struct vb_trail_event event = { .kind = (uint8_t)kind, .ns = ns, .bytes = bytes };
	const struct vb_op_info *info;
	uint32_t aeth;

	if (bytes < VB_BTH_BYTES + AETH_BYTES)
		return;
	event.op = frame[0];
	event.qpn = vb_be32_get(frame + VB_BTH_DQPN_OFFSET) & 0xffffff;
	event.psn = vb_be32_get(frame + VB_BTH_PSN_OFFSET) & 0xffffff;
	info = vb_op_info(event.op);
	if (info && (info->headers & VB_H_AETH)) {
		aeth = vb_be32_get(frame + VB_BTH_BYTES);
		event.syndrome = (uint8_t)(aeth >> 24);
		event.una = aeth & 0xffffff;
	}
	vb_trail_add(event);
	if (kind == VB_TRAIL_TX || kind == VB_TRAIL_RX)
		VB_PROBE(packet, kind == VB_TRAIL_TX, event.qpn, event.op, event.psn, bytes,
			 VB_RECORD_UDP);
}

static int traced_tx(struct vb_link *link, const struct vb_burst *burst)
{
	uint64_t ns = vb_trail_now_ns(); /* before the peer can have them */
	struct vb_gather gather = { 0 };
	uint8_t frame[FRAME_BYTES_MAX];
	int rc = inner->tx(link, burst);

	if (rc || burst->frame_bytes > sizeof(frame) || burst->last_bytes > sizeof(frame))
		return rc;
	while (gather.frame < burst->frames) {
		uint32_t bytes = vb_gather_bytes(&gather, burst);

		if (vb_gather_next(&gather, burst, frame))
			break;
		note(VB_TRAIL_TX, ns, frame, bytes);
	}
	return 0;
}

static unsigned traced_rx(struct vb_link *link, struct vb_frame *frames, unsigned max)
{
	unsigned n = inner->rx(link, frames, max);
	uint64_t ns = n ? vb_trail_now_ns() : 0;

	for (unsigned i = 0; i < n; i++)
		note(VB_TRAIL_RX, ns, frames[i].data, frames[i].bytes);
	return n;
}

void vb_trace_see(const struct vb_record *record)
{
	/* Its headers are in one piece, and are all that is noted. */
	if (record->link == VB_RECORD_SHM && vb_trail_is_open())
		note(record->sent ? VB_TRAIL_PUT : VB_TRAIL_TAKEN, record->ns,
		     record->piece[0].iov_base, vb_record_bytes(record));
}

void vb_trace_link(struct vb_link *link)
{
	if (!inner) {
		inner = link->ops;
		traced = *link->ops;
		traced.tx = traced_tx;
		traced.rx = traced_rx;
	}
	link->ops = &traced;
}
