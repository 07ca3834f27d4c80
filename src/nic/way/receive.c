/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Receiving. A frame of the wire has an ICRC and names its source; a ring brings packets of one
 * peer. Except for the commonest packets, both are given to receive(), by take() and
 * vb_lane_take().
 */

#include "nic/way/receive.h"

#include "base/psn.h"
#include "nic/data/demux.h"
#include "nic/data/explain.h"
#include "nic/data/migrate.h"
#include "nic/service/eth/segment.h"
#include "nic/way/congestion.h"
#include "nic/way/mcast.h"
#include "nic/way/pair.h"
#include "nic/way/peer.h"
#include "nic/way/sender.h"
#include "nic/way/watch/watch.h"
#include "nic/way/way.h"
#include "wire/icrc.h"

/*
 * Enough to share the cost of an acknowledgement, few enough for it to come soon: a thread that
 * sends as often as another receives must not run out of a small send queue.
 */
#define BATCH_FRAMES_MAX 8u
#define BATCH_BYTES_MAX (256u << 10)

/* --- for both ways --- */

/*
 * A connected QP accepts packets of its peer only, from its address, and not in addition to shared
 * memory (but see way.h).
 */
static bool is_from_peer_by_wire(struct vb_batch *batch, struct vb_qp *qp,
				 const struct vb_frame *frame, const struct vb_pkt *pkt,
				 const struct vb_op_info *info)
{
	if (info->transport == VB_UD)
		return true;
	if (qp->to.peer && qp->req.transport != VB_XRC &&
	    !(vb_qp_path_fits(qp, &frame->path) && vb_way_heeds_wire(batch, qp)))
		return false;
	return qp->to.migrates ? vb_migration_admit(qp, &frame->path, pkt, info)
			    : vb_qp_path_fits(qp, &frame->path);
}

static bool is_from_peer_by_lane(struct vb_batch *batch, struct vb_qp *qp,
				 const struct vb_lane *lane, const struct vb_pkt *pkt,
				 const struct vb_op_info *info)
{
	if (info->transport == VB_UD)
		return pkt->sqpn >> VB_INDEX_BITS == lane->peer->slot;
	if ((qp->lane.rx != lane ||
	     (info->transport == VB_UC && qp->resp.mtu != VB_LANE_MTU_BYTES)) &&
	    !vb_way_heeds_lane(batch, qp, lane))
		return false;
	if (qp->to.migrates)
		vb_migration_admit(qp, NULL, pkt, info);
	return true;
}

/* What no QP admits may be a CNP, which is no packet of its transport. */
static void refused(struct vb_batch *batch, struct vb_qp *qp, const struct vb_from *from,
		    const struct vb_op_info *info)
{
	if (info->transport == VB_CNP)
		vb_batch_count(batch, from->frame && vb_congestion_heed(qp, &from->frame->path) ?
					      VB_STAT_CNPS_SEEN : VB_STAT_DROP_STRANGER);
}

/* Only what came by the wire, and datagrams, have a path of their own. */
static __attribute__((cold, noinline)) void dropped(struct vb_batch *batch, const struct vb_qp *qp,
						    const struct vb_from *from,
						    const struct vb_pkt *pkt,
						    const struct vb_op_info *info,
						    enum vb_stat reason)
{
	bool has_path = !from->lane || info->transport == VB_UD;

	vb_batch_count(batch, reason);
	vb_explain_drop(batch->nic, qp, has_path ? &from->frame->path : NULL, pkt, info, reason);
}

/* It is for no QP. A QP of SRD wants to be told. */
static __attribute__((cold, noinline)) void
nobody(struct vb_batch *batch, const struct vb_from *from, const struct vb_pkt *pkt,
       const struct vb_op_info *info)
{
	dropped(batch, NULL, from, pkt, info, VB_STAT_DROP_NO_QP);
	if (info->kind == VB_K_CONNECT_SRD && batch->nic->special.nobody)
		batch->nic->special.nobody(batch, from, pkt);
}

/* Gives a packet to its QP. from->frame is also set for datagrams from rings. */
static void receive(struct vb_batch *batch, const struct vb_from *from, const struct vb_pkt *pkt,
		    const struct vb_op_info *info)
{
	struct vb_qp *qp = vb_batch_find(batch, pkt->dqpn);

	if (!qp) {
		nobody(batch, from, pkt, info);
		return;
	}
	vb_batch_hold(batch, qp);
	if (qp->service->receive.take)
		qp->service->receive.take(batch, qp, from, pkt, info);
	else if (!vb_batch_admit(batch, qp, pkt, info))
		refused(batch, qp, from, info);
	else if (from->lane ? is_from_peer_by_lane(batch, qp, from->lane, pkt, info)
			    : is_from_peer_by_wire(batch, qp, from->frame, pkt, info))
		vb_batch_packet(batch, qp, from->frame, pkt, info);
	else
		dropped(batch, qp, from, pkt, info, VB_STAT_DROP_STRANGER);
}

/* --- from the wire --- */

static void release_held(struct vb_batch *batch)
{
	struct vb_qp *qp;

	while ((qp = vb_pair_release(batch->nic))) {
		vb_batch_hold(batch, qp);
		vb_batch_touch(batch, qp);
	}
}

/*
 * Identifications begin at 0 in each batch, or continue from the last batch (link/udp_counted.h):
 * this one is probably as in the last batch.
 */
static bool icrc_fits(struct vb_nic *nic, const struct vb_frame *frame)
{
	uint16_t first = nic->wire.id_first, id;

	if (first && !frame->id_hint)
		first++;
	if (!vb_icrc_known_check(&nic->wire.icrc, &frame->path, frame->data, frame->bytes,
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

/* Handles frames between NICs, which are for no QP. Returns true if it was one. */
static bool take_flow(struct vb_batch *batch, const struct vb_frame *frame)
{
	struct vb_flow flow;

	/* If a group were asked, all its members would answer. */
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
 * The fast path for the commonest frame of a long message: the one that the held QP expects next.
 * False: use take_frame(), which also handles errors.
 */
static bool take_middle(struct vb_batch *batch, const struct vb_frame *frame)
{
	const struct vb_qp *qp = batch->locked;
	struct vb_bare bare;

	return qp && vb_pkt_is_bare(&bare, frame->data, frame->bytes, VB_PKEY_DEFAULT) &&
	       vb_batch_expects(batch, &bare) && !qp->to.peer &&
	       vb_qp_path_fits(qp, &frame->path) && icrc_fits(batch->nic, frame) &&
	       vb_batch_middle(batch, &bare, frame->data + VB_BTH_BYTES,
			       frame->bytes - VB_BTH_BYTES - VB_ICRC_BYTES);
}

VB_FOLDED void take_frame(struct vb_batch *batch, const struct vb_frame *frame)
{
	const struct vb_op_info *info;
	struct vb_pkt pkt;

	if (vb_pkt_parse(&pkt, frame->data, frame->bytes) != VB_PARSE_OK) {
		if (!take_flow(batch, frame))
			vb_batch_count(batch, VB_STAT_DROP_MALFORMED);
		return;
	}
	if (!icrc_is_right(batch, frame))
		return;
	info = vb_op_info(pkt.opcode);
	/* IBA 9.6.1: what was sent to a group is for no QP in particular. */
	if (pkt.dqpn == VB_QPN_GROUP)
		vb_group_packet(batch, frame, &pkt, info);
	else if (pkt.dqpn == VB_QPN_GSI && batch->nic->host.gsi)
		batch->nic->host.gsi->came(batch->nic->host.arg, &frame->path, frame->data,
					   frame->bytes);
	else if (info->transport == VB_UD && vb_gid_is_group(frame->path.dst))
		vb_batch_count(batch, vb_batch_find(batch, pkt.dqpn) ? VB_STAT_DROP_GROUP
								     : VB_STAT_DROP_NO_QP);
	else
		receive(batch, &(struct vb_from){ .frame = frame }, &pkt, info);
}

void vb_take_frame(struct vb_batch *batch, const struct vb_frame *frame)
{
	take_frame(batch, frame);
}

static inline void take_frames(struct vb_batch *batch, const struct vb_frame *frames, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (!take_middle(batch, &frames[i]))
			take_frame(batch, &frames[i]);
	}
}

static __attribute__((noinline)) void take_watched(struct vb_batch *batch,
						   const struct vb_frame *frames, unsigned n)
{
	struct vb_watch watch;

	for (unsigned i = 0; i < n; i++) {
		vb_watch_frame(&watch, batch, &frames[i]);
		take_frame(batch, &frames[i]);
		vb_watch_end(&watch);
	}
}

void vb_frames_count(struct vb_nic *nic, const struct vb_frame *frames, unsigned n)
{
	uint64_t octets = 0;

	for (unsigned i = 0; i < n; i++)
		octets += frames[i].bytes;
	vb_stat_add(&nic->stats, VB_STAT_RX_FRAMES, n);
	vb_stat_add(&nic->stats, VB_STAT_RX_OCTETS, octets);
}

static uint64_t take(struct vb_nic *nic, const struct vb_frame *frames, unsigned n, bool polled)
{
	struct vb_batch batch = {
		.nic = nic,
		.now_ns = vb_nic_now_ns(nic),
		.polled = polled,
		.touched = VB_LATER_EMPTY,
	};

	vb_frames_count(nic, frames, n);
	if (vb_nic_is_watched(nic))
		take_watched(&batch, frames, n);
	else
		take_frames(&batch, frames, n);
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

/* --- from a ring --- */

bool vb_lane_path(struct vb_frame *frame, const struct vb_ring_frame *from, uint32_t head)
{
	uint32_t flow;

	if (from->head_bytes != head + VB_LANE_PATH_BYTES)
		return false;
	flow = vb_be32_get(from->octets + VB_LANE_FLOW_OFFSET);
	memset(&frame->path, 0, sizeof(frame->path));
	frame->path.tclass = (uint8_t)(flow >> 20);
	frame->path.flow_label = flow & 0xfffff;
	memcpy(frame->path.src, from->octets + head, VB_GID_BYTES);
	memcpy(frame->path.dst, from->octets + head + VB_GID_BYTES, VB_GID_BYTES);
	frame->path.hop_limit = 64;
	frame->bytes = head + from->payload_bytes + vb_pkt_pad(from->payload_bytes) +
		       VB_ICRC_BYTES; /* as it would be on a wire */
	return true;
}

/* As take_middle(). */
static bool take_lane_middle(struct vb_batch *batch, const struct vb_lane *lane,
			     const struct vb_ring_frame *from)
{
	struct vb_qp *qp = batch->locked;
	struct vb_bare bare;

	if (!qp || qp->lane.rx != lane)
		return false;
	if (from->head_bytes != VB_BTH_BYTES)
		return qp->service->receive.middle &&
		       qp->service->receive.middle(batch, qp, lane, from);
	return vb_pkt_head_is_bare(&bare, from->octets, VB_PKEY_DEFAULT) &&
	       vb_batch_expects(batch, &bare) &&
	       vb_batch_middle(batch, &bare, from->payload, from->payload_bytes);
}

/*
 * The fast path for the commonest message: a SEND in one packet, and its ACK. False: use
 * take_lane_frame().
 */
static bool take_plain(struct vb_batch *batch, const struct vb_lane *lane,
		       const struct vb_ring_frame *from)
{
	bool ack = from->octets[0] == VB_OP_RC_ACK;
	const struct vb_op_info *info;
	struct vb_pkt pkt;
	struct vb_qp *qp;
	uint32_t aeth;

	if (!ack && from->octets[0] != VB_OP_RC_SEND_ONLY)
		return false;
	info = vb_op_info(from->octets[0]);
	if (from->head_bytes != info->header_bytes ||
	    !vb_bth_get(&pkt, from->octets, VB_PKEY_DEFAULT) || vb_qpn_is_shared(pkt.dqpn))
		return false;
	qp = vb_nic_qp_find(batch->nic, pkt.dqpn);
	if (!qp)
		return false;
	vb_batch_hold(batch, qp);
	/* For an RC QP in RTS, whose packets say nothing about its path. */
	if (qp->lane.rx != lane || qp->req.transport != VB_RC || vb_qp_state(qp) != IBV_QPS_RTS ||
	    qp->to.migrates)
		return false;
	pkt.payload = from->payload;
	pkt.payload_bytes = from->payload_bytes;
	if (!ack) {
		vb_batch_rc_request(batch, qp, &pkt, info);
		return true;
	}
	if (from->payload_bytes)
		return false;
	aeth = vb_be32_get(from->octets + VB_BTH_BYTES);
	pkt.aeth.syndrome = (uint8_t)(aeth >> 24);
	pkt.aeth.msn = aeth & VB_PSN_MASK;
	vb_batch_answer(batch, qp, &pkt, info);
	return true;
}

VB_FOLDED void take_lane_frame(struct vb_batch *batch, struct vb_lane *lane,
			    const struct vb_ring_frame *from)
{
	const struct vb_op_info *info;
	struct vb_frame frame;
	struct vb_pkt pkt;

	info = vb_pkt_parse_head(&pkt, from->octets, from->head_bytes);
	if (!info && from->octets[0] == VB_SEGMENT_OPCODE) {
		vb_batch_hold(batch, NULL);
		batch->went_out |= vb_segment_came(lane, from);
		return;
	}
	if (!info || (from->payload_bytes && !info->payload) ||
	    (info->transport == VB_UD && !vb_lane_path(&frame, from, info->header_bytes))) {
		vb_batch_count(batch, VB_STAT_DROP_MALFORMED);
		return;
	}
	pkt.payload = from->payload;
	pkt.payload_bytes = from->payload_bytes;
	receive(batch, &(struct vb_from){ &frame, lane, from }, &pkt, info);
}

/* As many as take_batch() does. */
static __attribute__((noinline)) unsigned take_batch_watched(struct vb_batch *batch,
							     struct vb_lane *lane,
							     unsigned *bytes, bool *told)
{
	struct vb_ring_frame frame;
	struct vb_watch watch;
	unsigned n = 0;

	while (n < BATCH_FRAMES_MAX && vb_ring_take(&lane->rx, &frame)) {
		if (frame.octets[0] == VB_SEGMENT_OPCODE)
			vb_watch_ethernet(batch->nic, frame.payload, frame.payload_bytes, false);
		else
			vb_watch_ring(&watch, batch, &frame);
		take_lane_frame(batch, lane, &frame);
		vb_watch_end(&watch);
		*bytes += frame.payload_bytes;
		*told |= vb_ring_release(&lane->rx);
		n++;
	}
	return n;
}

void vb_take_lane_frame(struct vb_batch *batch, struct vb_lane *lane,
			const struct vb_ring_frame *from)
{
	take_lane_frame(batch, lane, from);
}

inline void vb_lane_end(struct vb_batch *batch, struct vb_lane *lane, unsigned frames,
			uint64_t octets, bool told)
{
	if (vb_ring_rx_is_broken(&lane->rx) &&
	    !(atomic_fetch_or(&lane->peer->marks, VB_PEER_BROKEN) & VB_PEER_BROKEN))
		vb_batch_count(batch, VB_STAT_DROP_MALFORMED);
	vb_batch_end(batch);
	if (batch->went_out)
		vb_segment_flush(batch->nic);
	vb_held_sum_add(&lane->frames, frames);
	vb_held_sum_add(&lane->octets, octets);
	if (told)
		vb_lane_tell_room(lane);
}

unsigned vb_lane_take(struct vb_lane *lane)
{
	struct vb_batch batch = { .nic = lane->peer->nic, .touched = VB_LATER_EMPTY };
	struct vb_ring_frame frame;
	unsigned n = 0, bytes = 0;
	bool told = false;

	if (vb_peer_marks(lane->peer) & VB_PEER_WATCHED) {
		n = take_batch_watched(&batch, lane, &bytes, &told);
	} else {
		while (n < BATCH_FRAMES_MAX && bytes < BATCH_BYTES_MAX &&
		       vb_ring_take(&lane->rx, &frame)) {
			if (!take_plain(&batch, lane, &frame) &&
			    !take_lane_middle(&batch, lane, &frame))
				take_lane_frame(&batch, lane, &frame);
			bytes += frame.payload_bytes;
			told |= vb_ring_release(&lane->rx);
			n++;
		}
	}
	vb_lane_end(&batch, lane, n, bytes, told);
	return n;
}

unsigned vb_lane_rx(struct vb_nic *nic, struct vb_lane *lane)
{
	unsigned n;

	if (!vb_lock_try(&lane->rx_lock))
		return 0;
	n = lane->take(lane);
	vb_lock_drop(&lane->rx_lock);
	return n;
}

void vb_lane_count(struct vb_lane *lane)
{
	struct vb_stats *stats = &lane->peer->nic->stats;

	vb_held_sum_take(&lane->frames, stats, VB_STAT_RX_LANE_FRAMES);
	vb_held_sum_take(&lane->octets, stats, VB_STAT_RX_LANE_OCTETS);
}

void vb_lane_drain(struct vb_lane *lane)
{
	unsigned n, left = VB_RING_SLOTS;

	vb_lock_take(&lane->rx_lock);
	/* There cannot have been more: a producer that keeps writing must not keep us here. */
	while (left && (n = lane->take(lane)))
		left -= n < left ? n : left;
	vb_lane_count(lane);
	vb_lock_drop(&lane->rx_lock);
}
