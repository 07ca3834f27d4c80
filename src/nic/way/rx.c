/* SPDX-License-Identifier: BSD-2-Clause */

/* The way in from the wire: frames, their ICRC, and whether they come from whom they should. */

#include "nic/data/acks.h"
#include "nic/data/demux.h"
#include "nic/data/migrate.h"
#include "nic/way/mcast.h"
#include "nic/way/pair.h"
#include "nic/way/way.h"
#include "wire/icrc.h"

/*
 * A QP that is connected hears its peer only, from its address, and not beside shared memory (but
 * see way.h). To one of XRC that way is open beside the wire.
 */
static bool comes_by_path(const struct vb_qp *qp, const struct vb_frame *frame)
{
	return memcmp(frame->path.src, qp->to.path.dst, VB_GID_BYTES) == 0 &&
	       memcmp(frame->path.dst, qp->to.path.src, VB_GID_BYTES) == 0;
}

static bool is_from_peer(const struct vb_qp *qp, const struct vb_frame *frame)
{
	return (!qp->to.peer || qp->req.transport == VB_XRC) && comes_by_path(qp, frame);
}

static bool is_admitted(struct vb_batch *batch, struct vb_qp *qp, const struct vb_frame *frame,
			const struct vb_pkt *pkt, const struct vb_op_info *info)
{
	if (qp->to.peer && qp->req.transport != VB_XRC &&
	    !(comes_by_path(qp, frame) && vb_way_heeds_wire(batch, qp)))
		return false;
	return qp->to.migrates ? vb_migration_admit(qp, &frame->path, pkt, info)
			 : comes_by_path(qp, frame);
}

static void release_held(struct vb_batch *batch)
{
	struct vb_qp *qp;

	while ((qp = vb_pair_release(batch->nic))) {
		vb_batch_hold(batch, qp);
		vb_batch_touch(batch, qp);
	}
}

/*
 * Identifications begin at 0 in each batch, or count on from batch to batch
 * (link/udp_counted.h): it is likely to be as it was with the last one.
 */
static bool icrc_fits(struct vb_nic *nic, const struct vb_frame *frame)
{
	uint16_t first = nic->wire.id_first, id;

	if (first && !frame->id_hint)
		first++;
	if (!vb_icrc_check(&frame->path, frame->data, frame->bytes,
			   (uint16_t)(first + frame->id_hint), &id))
		return false;
	nic->wire.id_first = (uint16_t)(id - frame->id_hint);
	return true;
}

static bool icrc_is_right(struct vb_batch *batch, const struct vb_frame *frame)
{
	if (icrc_fits(batch->nic, frame))
		return true;
	vb_batch_count(batch, VB_STAT_DROP_ICRC);
	return false;
}

/* Between NICs, for no QP: true if it was such a frame. */
static bool take_flow(struct vb_batch *batch, const struct vb_frame *frame)
{
	struct vb_flow flow;

	/* One who asked a group would have all of it answer. */
	if (vb_gid_is_group(frame->path.dst) ||
	    !vb_flow_parse(&flow, frame->data, frame->bytes))
		return false;
	if (!icrc_is_right(batch, frame))
		return true;
	vb_batch_hold(batch, NULL);
	if (vb_pair_rx(batch->nic, frame, &flow))
		release_held(batch);
	return true;
}

/*
 * Most frames of a long message are alike, and come in a run: one that is as the QP in hand expects
 * it takes a short way. False: it is for take_frame(), which also says what is wrong with it.
 */
static bool take_middle(struct vb_batch *batch, const struct vb_frame *frame)
{
	struct vb_bare bare;

	return batch->locked &&
	       vb_pkt_is_bare(&bare, frame->data, frame->bytes, VB_PKEY_DEFAULT) &&
	       vb_batch_expects(batch, &bare) && is_from_peer(batch->locked, frame) &&
	       icrc_fits(batch->nic, frame) &&
	       vb_batch_middle(batch, &bare, frame->data + VB_BTH_BYTES,
			       frame->bytes - VB_BTH_BYTES - VB_ICRC_BYTES);
}

static void take_frame(struct vb_batch *batch, const struct vb_frame *frame)
{
	const struct vb_op_info *info;
	struct vb_pkt pkt;
	struct vb_qp *qp;

	if (vb_pkt_parse(&pkt, frame->data, frame->bytes) != VB_PARSE_OK) {
		if (!take_flow(batch, frame))
			vb_batch_count(batch, VB_STAT_DROP_MALFORMED);
		return;
	}
	if (!icrc_is_right(batch, frame))
		return;
	info = vb_op_info(pkt.opcode);
	qp = vb_batch_find(batch, pkt.dqpn);
	if (!qp && pkt.dqpn == VB_QPN_GROUP) {
		vb_group_packet(batch, frame, &pkt, info);
		return;
	}
	if (!qp) {
		vb_batch_count(batch, VB_STAT_DROP_NO_QP);
		return;
	}
	/* IBA 9.6.1: what was sent to a group is for no QP in particular. */
	if (info->transport == VB_UD && vb_gid_is_group(frame->path.dst)) {
		vb_batch_count(batch, VB_STAT_DROP_GROUP);
		return;
	}
	vb_batch_hold(batch, qp);
	if (qp->service->receive.take) {
		qp->service->receive.take(batch, qp, &(struct vb_from){ .frame = frame }, &pkt,
					  info);
		return;
	}
	if (!vb_batch_admit(batch, qp, &pkt, info))
		return;
	if (info->transport != VB_UD && !is_admitted(batch, qp, frame, &pkt, info)) {
		vb_batch_count(batch, VB_STAT_DROP_STRANGER);
		return;
	}
	vb_batch_packet(batch, qp, frame, &pkt, info);
}

static uint64_t take(struct vb_nic *nic, const struct vb_frame *frames, unsigned n, bool polled)
{
	struct vb_batch batch = { .nic = nic, .now_ns = vb_nic_now_ns(nic), .polled = polled };

	vb_stat_add(&nic->stats, VB_STAT_RX_FRAMES, n);
	for (unsigned i = 0; i < n; i++) {
		if (!take_middle(&batch, &frames[i]))
			take_frame(&batch, &frames[i]);
	}
	vb_batch_end(&batch);
	return batch.now_ns;
}

uint64_t vb_nic_rx(struct vb_nic *nic, const struct vb_frame *frames, unsigned n)
{
	return take(nic, frames, n, false);
}

uint64_t vb_nic_rx_polled(struct vb_nic *nic, const struct vb_frame *frames, unsigned n)
{
	return take(nic, frames, n, true);
}

void vb_nic_turn(struct vb_nic *nic)
{
	uint64_t now_ns = vb_nic_now_ns(nic);
	struct vb_timer *timer;

	if (vb_nic_deadline_ns(nic) > now_ns)
		return;
	vb_lock_take(&nic->rx);
	while ((timer = vb_timer_take(nic, now_ns))) {
		if (timer->of_cq)
			vb_cq_on_time(vb_container_of(timer, struct vb_cq, timer), now_ns);
		else
			vb_qp_on_time(vb_container_of(timer, struct vb_qp, later.timer), now_ns);
	}
	vb_acks_turn(nic, now_ns);
	vb_lock_drop(&nic->rx);
}
