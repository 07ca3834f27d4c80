/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Sending by the wire. Packets of one QP are gathered into bursts (framer.h). If the link refuses a
 * burst, the engine returns to its position before.
 */

#include "nic/way/send_wire.h"

#include <errno.h>

#include "base/probe.h"
#include "engine/rc_resp.h"
#include "nic/data/acks.h"
#include "nic/way/framer.h"
#include "nic/way/pair.h"
#include "nic/way/send_ring.h"
#include "nic/way/sender.h"
#include "nic/way/watch/watch.h"

static void begin(struct vb_sender *s)
{
	vb_framer_begin(s->framer);
	s->req_pos = s->qp->req.pos;
	s->resp_pos = vb_resp_pos_get(&s->qp->resp);
}

/* Counts packets sent again. */
static void count_again(struct vb_qp *qp, const struct vb_req_pos *from)
{
	int32_t known = vb_psn_diff(qp->req.top_psn, from->next_psn), sent;

	if (known <= 0)
		return;
	sent = vb_psn_diff(qp->req.pos.next_psn, from->next_psn);
	if (sent <= 0)
		return;
	if (known > sent)
		known = sent;
	vb_stat_add(&qp->nic->stats, VB_STAT_RETRANSMITS, (uint64_t)known);
	qp->tally.resent += (uint32_t)known;
	VB_PROBE(resend, qp->ibv.qp.qp_num, from->next_psn, known);
}

/*
 * Adds the ACK that is owed as the last and shortest frame of a burst of requests, if there is
 * room: a datagram of its own would cost as much as the burst.
 */
static void add_ack(struct vb_sender *s)
{
	static const struct vb_payload none;
	struct vb_qp *qp = s->qp;
	struct vb_pkt pkt;
	bool data;

	if (!vb_resp_owes_ack_only(&qp->resp) ||
	    !vb_framer_fits(s->framer, &qp->to.path, s->framer->burst.slot,
			    vb_frame_bytes(VB_OP_RC_ACK, 0)))
		return;
	vb_qp_pkt_begin(qp, &pkt);
	vb_rc_response(&qp->resp, &pkt, &data);
	vb_framer_add(s->framer, &qp->to.path, &pkt, &none);
}

/* The slot to send from. Some QPNs have none. */
static uint16_t slot_from(const struct vb_qp *qp)
{
	uint16_t slot = (uint16_t)(qp->ibv.qp.qp_num >> VB_INDEX_BITS);

	return slot ? slot : qp->service->send.slot(qp);
}

/* Gives the burst to the link. Returns false if the link is full; then the burst is undone. */
static bool flush(struct vb_sender *s)
{
	struct vb_qp *qp = s->qp;
	struct vb_nic *nic = qp->nic;
	const struct vb_burst *burst;
	uint16_t slot;
	bool acks;
	int err;

	if (!s->framer->burst.frames)
		return true;
	if (s->ack_rides)
		add_ack(s);
	burst = vb_framer_burst(s->framer);
	slot = s->framer->slot;
	acks = vb_transport_acks(qp->req.transport);
	if (!acks && !vb_pair_admit(nic, slot, burst, qp->now_ns)) {
		vb_pair_hold(nic, qp);
		err = EAGAIN;
	} else {
		err = nic->host.wire.tx(nic->host.arg, slot, burst);
		s->framer->burst.claim = NULL;
		if (vb_nic_is_watched(nic) && !err)
			vb_watch_burst(nic, qp, burst);
	}
	if (err == EAGAIN) {
		vb_stat_add(&nic->stats, VB_STAT_TX_FULL, 1);
		qp->req.pos = s->req_pos;
		vb_resp_pos_put(&qp->resp, &s->resp_pos);
		qp->send.link_full = true;
		begin(s);
		return false;
	}
	vb_stat_add(&nic->stats, err ? VB_STAT_TX_LOST : VB_STAT_TX_FRAMES, burst->frames);
	if (!err)
		vb_stat_add(&nic->stats, VB_STAT_TX_OCTETS, vb_burst_octets(burst));
	vb_stat_add(&nic->stats, VB_STAT_TX_BURSTS, 1);
	count_again(qp, &s->req_pos);
	vb_req_sent(&qp->req, &s->req_pos, qp->now_ns);
	if (!acks)
		vb_req_complete_sent(&qp->req);
	begin(s);
	return true;
}

static bool leave(struct vb_sender *s)
{
	return flush(s) && !s->qp->send.link_full;
}

static enum vb_put put(struct vb_sender *s, const struct vb_path *path, struct vb_pkt *pkt,
		       const struct vb_payload *payload, bool again)
{
	uint32_t bytes = vb_frame_bytes(pkt->opcode, payload->bytes);
	uint16_t slot = (uint16_t)(pkt->dqpn >> VB_INDEX_BITS);

	if (!vb_framer_fits(s->framer, path, slot, bytes))
		return VB_PUT_NO_ROOM;
	s->framer->certain = again;
	return vb_framer_add(s->framer, path, pkt, payload) ? VB_PUT : VB_PUT_NO_DATA;
}

static uint32_t room(const struct vb_sender *s, uint32_t bytes, uint32_t n)
{
	return (uint32_t)vb_min_u64(n, vb_framer_room(s->framer, bytes));
}

static uint32_t put_run(struct vb_sender *s, const struct vb_pkt *first, const uint8_t *from,
			uint32_t bytes, uint32_t n, bool again)
{
	s->framer->certain = again;
	return vb_framer_add_middles(s->framer, first, from, bytes, n) ? n : 0;
}

static bool is_elsewhere(struct vb_sender *s)
{
	struct vb_qp *qp = s->qp;

	return qp->req.transport == VB_UD ? vb_lane_is_next(qp) : vb_lane_is_astray(qp);
}

static const struct vb_sender_ops wire = {
	.put = put,
	.make_room = flush,
	.leave = leave,
	.is_elsewhere = is_elsewhere,
	.room = room,
	.put_run = put_run,
};

static bool answer(struct vb_sender *s)
{
	return vb_sender_answer(&wire, s) && flush(s);
}

static bool transmit_by(struct vb_sender *s, enum ibv_qp_state state)
{
	struct vb_qp *qp = s->qp;
	bool sends = vb_qp_sends(state);

	begin(s);
	s->ack_rides = sends && vb_resp_owes_ack_only(&qp->resp);
	if (!s->ack_rides && !answer(s))
		return false;
	if (sends && !vb_sender_request(&wire, s))
		return false;
	s->ack_rides = false;
	return vb_ack_waits(qp) || answer(s);
}

bool vb_wire_transmit(struct vb_qp *qp, enum ibv_qp_state state)
{
	struct vb_sender s;
	bool done;

	s.qp = qp;
	s.framer = vb_framer_take(qp, slot_from(qp));
	vb_qp_window_share(qp);
	qp->send.link_full = false;
	done = transmit_by(&s, state);
	vb_framer_drop(s.framer);
	return done;
}
