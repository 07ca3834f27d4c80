/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/way/disorder.h"

#include "nic/core/order.h"
#include "nic/mem/journal.h"
#include "nic/way/receive.h"

/* Acknowledgements of a batch in so many are late, and so is what would come next. */
#define LATE_ONE_IN 8u

/* Datagrams are exchanged in a batch in so many: who sends them again is to come to an end. */
#define MIX_ONE_IN 4u

/* Of rings, one in so many is looked into late, so that there is more to exchange. */
#define WAIT_ONE_IN 4u

/* From a ring at a time: as many as in a batch of receive.c are too few to be exchanged. */
#define LANE_FRAMES_MAX 32u

/* Where a header has its destination: an octet of other use, and three of the number. */
#define DQPN_OFFSET 4u
#define DQPN_MASK 0xffffffu

/* The stream of what is for no QP; single datagrams have streams of their own from there on. */
#define STREAM_NO_QP (1u << 24)
#define STREAM_DATAGRAM (STREAM_NO_QP + 1)

struct intake {
	struct vb_batch batch;
	struct vb_journal journal;
	uint64_t draws;
	uint32_t stream; /* of the last packet */
	bool mixes;	 /* datagrams overtake each other in this batch */
};

static void begin(struct intake *in, struct vb_nic *nic, uint64_t now_ns)
{
	in->batch = (struct vb_batch){ .nic = nic, .now_ns = now_ns, .touched = VB_LATER_EMPTY };
	in->draws = vb_order_begin(nic, VB_ORDER_OF_PACKETS);
	in->stream = STREAM_NO_QP;
	in->mixes = vb_order_below(&in->draws, MIX_ONE_IN) == 0;
	vb_journal_begin(&in->journal, nic, &in->draws);
}

/* Places all before acknowledgements leave, unless these promise no more than the specification. */
static void end(struct intake *in, struct vb_lane *lane, unsigned frames, uint64_t octets)
{
	bool iba = in->batch.nic->host.order->iba;

	if (!iba)
		vb_journal_settle();
	vb_order_dawdle(in->batch.nic, &in->draws, LATE_ONE_IN);
	if (lane)
		vb_lane_end(&in->batch, lane, frames, octets, false);
	else
		vb_batch_end(&in->batch);
	if (iba)
		vb_order_dawdle(in->batch.nic, &in->draws, LATE_ONE_IN);
	vb_journal_end(&in->journal);
}

/* IBA 9.5: packets of one QP to another stay in order, datagrams need not. */
static uint32_t stream_of(const struct intake *in, const uint8_t *head, uint32_t bytes,
			  unsigned index)
{
	const struct vb_op_info *info = bytes >= VB_BTH_BYTES ? vb_op_info(head[0]) : NULL;
	uint32_t dqpn;

	if (!info)
		return STREAM_NO_QP;
	dqpn = vb_be32_get(head + DQPN_OFFSET) & DQPN_MASK;
	return info->transport == VB_UD && dqpn != VB_QPN_GSI && in->mixes ? STREAM_DATAGRAM + index
									   : dqpn;
}

/*
 * C9-28 of the specification: memory that a WRITE has written to may be looked at once a later SEND
 * or a WRITE with immediate data has completed, or an atomic has changed something. What a READ
 * brings, and a SEND, is there at its completion. So only these packets are noted for later; those
 * of several initiators (XRC, DC) have acknowledgements that leave earlier.
 */
static bool is_for_later(const struct vb_op_info *info)
{
	bool ends = info->pos & VB_P_LAST;

	switch (info->kind) {
	case VB_K_WRITE:
		return !ends || !(info->headers & VB_H_IMM || vb_transport_aims(info->transport));
	case VB_K_SEND:
	case VB_K_READ_RESP:
		return !ends;
	default:
		return false;
	}
}

/* Is it the last of a message? It may be placed before the others, and then makes all visible. */
static bool joins(const struct vb_op_info *info, uint32_t data_bytes)
{
	return info->payload && info->pos == VB_P_LAST && data_bytes;
}

/* A packet is about to be taken. */
static void prepare(struct intake *in, const uint8_t *head, uint32_t head_bytes, uint32_t stream,
		    const uint8_t *data, uint32_t data_bytes)
{
	const struct vb_op_info *info = head_bytes >= VB_BTH_BYTES ? vb_op_info(head[0]) : NULL;
	bool same = stream == in->stream;

	in->stream = stream;
	in->journal.data = data;
	in->journal.data_bytes = data_bytes;
	in->journal.defers = info && is_for_later(info);
	/* Another QP's lock: whoever takes this one's may send its acknowledgement. */
	if (!in->batch.nic->host.order->iba && !same)
		vb_journal_settle();
	if (!in->journal.defers && !(info && joins(info, data_bytes)))
		vb_journal_settle();
}

static void prepare_frame(struct intake *in, const struct vb_frame *frame, uint32_t stream)
{
	const struct vb_op_info *info = frame->bytes ? vb_op_info(frame->data[0]) : NULL;
	uint32_t around = info ? info->header_bytes + (uint32_t)VB_ICRC_BYTES : frame->bytes;

	prepare(in, frame->data, frame->bytes, stream, frame->data,
		frame->bytes > around ? frame->bytes : 0);
}

static void rx(struct vb_nic *nic, const struct vb_frame *frames, unsigned count, uint64_t now_ns)
{
	uint32_t stream[VB_ORDER_MAX];
	uint8_t place[VB_ORDER_MAX];
	struct intake in;

	begin(&in, nic, now_ns);
	for (unsigned i = 0; i < count; i++)
		stream[i] = stream_of(&in, frames[i].data, frames[i].bytes, i);
	vb_order_streams(&in.draws, stream, count, place);
	for (unsigned i = 0; i < count; i++) {
		prepare_frame(&in, &frames[place[i]], stream[place[i]]);
		vb_take_frame(&in.batch, &frames[place[i]]);
	}
	end(&in, NULL, 0, 0);
}

uint64_t vb_disorder_rx(struct vb_nic *nic, const struct vb_frame *frames, unsigned count)
{
	uint64_t now_ns = vb_nic_now_ns(nic), begun_ns = now_ns;

	vb_frames_count(nic, frames, count);
	for (unsigned n; count; frames += n, count -= n) {
		n = count < VB_ORDER_MAX ? count : VB_ORDER_MAX;
		rx(nic, frames, n, now_ns);
		now_ns = vb_nic_now_ns(nic);
	}
	return begun_ns;
}

unsigned vb_disorder_take(struct vb_lane *lane)
{
	struct vb_ring_frame frame[LANE_FRAMES_MAX];
	uint32_t stream[VB_ORDER_MAX];
	uint8_t place[VB_ORDER_MAX];
	struct intake in;
	unsigned count = 0;
	uint64_t octets = 0;

	begin(&in, lane->peer->nic, 0);
	if (vb_ring_ready(&lane->rx))
		vb_order_dawdle(in.batch.nic, &in.draws, WAIT_ONE_IN);
	while (count < LANE_FRAMES_MAX && vb_ring_take(&lane->rx, &frame[count])) {
		stream[count] = stream_of(&in, frame[count].octets, frame[count].head_bytes,
					  count);
		vb_ring_pass(&lane->rx);
		octets += frame[count++].payload_bytes;
	}
	vb_order_streams(&in.draws, stream, count, place);
	for (unsigned i = 0; i < count; i++) {
		const struct vb_ring_frame *from = &frame[place[i]];

		prepare(&in, from->octets, from->head_bytes, stream[place[i]], from->payload,
			from->payload_bytes);
		vb_take_lane_frame(&in.batch, lane, from);
	}
	end(&in, lane, count, octets);
	/* Until here the frames were read. */
	if (vb_ring_tell(&lane->rx))
		vb_lane_tell_room(lane);
	return count;
}
