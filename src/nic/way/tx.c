/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The way out. Packets of one QP are gathered into bursts (framer.h). What may be sent comes from
 * the engine; if the link refuses a burst, the engine is set back to where it was before.
 */

#include <errno.h>

#include "base/check.h"
#include "base/guard.h"
#include "base/psn.h"
#include "nic/core/ah.h"
#include "nic/data/acks.h"
#include "nic/data/pace.h"
#include "nic/data/window.h"
#include "nic/way/framer.h"
#include "nic/way/lane_tx.h"
#include "nic/way/pair.h"

struct sender {
	struct vb_qp *qp;
	bool ack_rides; /* an ACK is owed, and nothing else: it may join requests */
	/* To go back to, if the link refuses. */
	struct vb_req_pos req_pos;
	struct vb_resp_pos resp_pos;
	struct vb_framer *framer;
};

static void begin(struct sender *s)
{
	vb_framer_begin(s->framer);
	s->req_pos = s->qp->req.pos;
	s->resp_pos = vb_resp_pos_get(&s->qp->resp);
}

/* PSNs that had been sent before. */
static void count_again(struct vb_qp *qp, const struct vb_req_pos *from)
{
	int32_t sent = vb_psn_diff(qp->req.pos.next_psn, from->next_psn);
	int32_t known = vb_psn_diff(qp->req.top_psn, from->next_psn);

	if (sent > 0 && known > 0)
		vb_stat_add(&qp->nic->stats, VB_STAT_RETRANSMITS,
			    (uint64_t)(sent < known ? sent : known));
}

#define ACK_FRAME_BYTES (VB_BTH_BYTES + 4 + VB_ICRC_BYTES)

enum added { ADDED, FAULT };

static uint32_t frame_bytes(uint8_t opcode, uint32_t payload)
{
	return vb_op_info(opcode)->header_bytes + ((payload + 3) & ~3u) + VB_ICRC_BYTES;
}

/*
 * The ACK that is owed, as the last and shortest frame of a burst of requests, if there is room: a
 * datagram of its own would cost as much as the burst.
 */
static void add_ack(struct sender *s)
{
	static const struct vb_payload none;
	struct vb_qp *qp = s->qp;
	struct vb_pkt pkt;
	bool data;

	if (!vb_resp_owes_ack_only(&qp->resp) ||
	    !vb_framer_fits(s->framer, &qp->to.path, s->framer->burst.slot, ACK_FRAME_BYTES))
		return;
	vb_qp_pkt_begin(qp, &pkt);
	vb_rc_response(&qp->resp, &pkt, &data);
	vb_framer_add(s->framer, &qp->to.path, &pkt, &none);
}

/* By whose socket it leaves. Some numbers are nobody's. */
static uint16_t slot_from(const struct vb_qp *qp)
{
	uint16_t slot = (uint16_t)(qp->ibv.qp.qp_num >> VB_INDEX_BITS);

	return slot ? slot : qp->service->send.slot(qp);
}

/* Hand over what was gathered: false if the link is full, and then it was undone. */
static bool flush(struct sender *s)
{
	struct vb_qp *qp = s->qp;
	struct vb_nic *nic = qp->nic;
	const struct vb_burst *burst;
	uint16_t slot = s->framer->slot;
	int err;

	if (!s->framer->burst.frames)
		return true;
	if (s->ack_rides)
		add_ack(s);
	burst = vb_framer_burst(s->framer);
	if (!vb_transport_acks(qp->req.transport) &&
	    !vb_pair_admit(nic, slot, burst, qp->now_ns)) {
		vb_pair_hold(nic, qp);
		err = EAGAIN;
	} else {
		err = nic->host.wire.tx(nic->host.arg, slot, burst);
		s->framer->burst.claim = NULL;
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
	vb_stat_add(&nic->stats, VB_STAT_TX_BURSTS, 1);
	count_again(qp, &s->req_pos);
	vb_req_sent(&qp->req, &s->req_pos, qp->now_ns);
	if (!vb_transport_acks(qp->req.transport))
		vb_req_complete_sent(&qp->req);
	begin(s);
	return true;
}

/* Add the packet in hand, leaving with what was gathered first if it does not fit. */
static bool add_or_flush(struct sender *s, const struct vb_path *path, struct vb_pkt *pkt,
			 const struct vb_payload *payload, enum added *added)
{
	uint32_t bytes = frame_bytes(pkt->opcode, payload->bytes);
	uint16_t slot = (uint16_t)(pkt->dqpn >> VB_INDEX_BITS);

	if (!vb_framer_fits(s->framer, path, slot, bytes))
		return false;
	*added = vb_framer_add(s->framer, path, pkt, payload) ? ADDED : FAULT;
	return true;
}

/* --- what the requester may send --- */

void vb_pkt_fill_request(const struct vb_qp *qp, const struct vb_wqe *wqe,
			 const struct vb_segment *seg, bool ackreq, struct vb_pkt *pkt)
{
	unsigned headers = vb_op_info(seg->opcode)->headers;

	vb_qp_pkt_begin(qp, pkt);
	pkt->opcode = seg->opcode;
	pkt->se = seg->last && (wqe->flags & IBV_SEND_SOLICITED) && vb_wqe_takes_recv(wqe);
	pkt->ackreq = ackreq;
	pkt->psn = seg->psn;
	pkt->imm_be = wqe->imm_be;
	pkt->inv_rkey = wqe->inv_rkey;
	if (headers & VB_H_XRCETH)
		pkt->srqn = wqe->remote.srqn;
	if (headers & VB_H_DCETH)
		qp->service->send.header_fill(qp, pkt);
	if (headers & (VB_H_RETH | VB_H_ATOMIC)) {
		pkt->reth.va = wqe->remote.va;
		pkt->reth.rkey = wqe->remote.rkey;
		pkt->reth.bytes = wqe->bytes;
		pkt->atomic.swap_add = wqe->remote.swap_add;
		pkt->atomic.compare = wqe->remote.compare;
		pkt->flush.type = wqe->remote.flush_type;
		pkt->flush.level = wqe->remote.flush_level;
	}
	if (wqe->kind == VB_K_READ_REQ) {
		pkt->reth.va += seg->offset;
		pkt->reth.bytes = seg->bytes;
	}
	if (headers & VB_H_DETH) {
		pkt->dqpn = wqe->ud.dqpn;
		pkt->qkey = wqe->ud.qkey;
		pkt->sqpn = qp->special.sqpn;
	}
}

/* The request at pos cannot be sent: stop there, and let what was gathered before it go. */
static void fault(struct sender *s, const struct vb_req_pos *before, enum ibv_wc_status status)
{
	s->qp->req.pos = *before;
	vb_req_fault(&s->qp->req, status);
}

/* Append the run of full middle packets in one pass. False: there is none, or no room. */
static bool add_middles(struct sender *s)
{
	struct vb_qp *qp = s->qp;
	struct vb_req *req = &qp->req;
	uint32_t n = vb_req_run(req);
	struct vb_payload payload;
	struct vb_segment seg;
	const struct vb_wqe *wqe;
	struct vb_pkt pkt;

	if (n)
		n = (uint32_t)vb_min_u64(n, vb_framer_room(s->framer, req->mtu));
	if (!n)
		return false;
	wqe = vb_sq_at(&req->sq, req->pos.next);
	vb_segment_at(&seg, req->transport, wqe, req->pos.next_psn, req->mtu);
	if (!vb_qp_gather(qp, wqe, seg.offset, n * req->mtu, &payload) || payload.count != 1)
		return false;
	vb_pkt_fill_request(qp, wqe, &seg, false, &pkt);
	pkt.pad = 0;
	if (!vb_framer_add_middles(s->framer, &pkt, payload.iov[0].iov_base, req->mtu, n))
		return false;
	vb_req_skip(req, n);
	return true;
}

/* The same for what is owed: the midst of a READ's answer. */
static bool answer_middles(struct sender *s)
{
	struct vb_qp *qp = s->qp;
	struct vb_resp *resp = &qp->resp;
	uint32_t n = vb_resp_run(resp);
	struct vb_resp_pos before;
	struct vb_pkt pkt;
	const uint8_t *from;
	bool data;

	if (n)
		n = (uint32_t)vb_min_u64(n, vb_framer_room(s->framer, resp->mtu));
	if (!n || resp->transport != VB_RC)
		return false;
	before = vb_resp_pos_get(resp);
	vb_qp_pkt_begin(qp, &pkt);
	vb_rc_response(resp, &pkt, &data);
	pkt.pad = 0;
	from = vb_remote_get(qp, pkt.reth.rkey, pkt.reth.va, n * resp->mtu, IBV_ACCESS_REMOTE_READ);
	if (!from || !vb_framer_add_middles(s->framer, &pkt, from, resp->mtu, n)) {
		vb_resp_pos_put(resp, &before);
		return false;
	}
	vb_resp_skip(resp, n - 1);
	return true;
}

/* True if all that is owed was sent or gathered. */
static bool transmit_responses(struct sender *s)
{
	struct vb_qp *qp = s->qp;
	struct vb_resp *resp = &qp->resp;

	for (;;) {
		struct vb_resp_pos before;
		struct vb_payload payload;
		enum added added = FAULT;
		struct vb_pkt pkt;
		bool data;

		if (!vb_resp_owes(resp))
			return true;
		s->framer->certain = resp->done < resp->fresh;
		if (answer_middles(s))
			continue;
		before = vb_resp_pos_get(resp);
		vb_payload_none(&payload);
		vb_qp_pkt_begin(qp, &pkt);
		if (!vb_rc_response(resp, &pkt, &data))
			return true;
		if (resp->transport == VB_DC)
			qp->service->send.header_fill(qp, &pkt);
		if (!data || vb_qp_gather_response(qp, &pkt, &payload)) {
			if (!add_or_flush(s, &qp->to.path, &pkt, &payload, &added)) {
				vb_resp_pos_put(resp, &before);
				if (!flush(s))
					return false;
				continue;
			}
		}
		if (added == FAULT && vb_rc_response_fault(resp, &before, &pkt))
			vb_qp_event(qp, vb_verdict_rows[VB_BAD_MEMORY].event);
	}
}

/* False if the link is full. */
static bool transmit_requests(struct sender *s)
{
	struct vb_qp *qp = s->qp;
	struct vb_req *req = &qp->req;

	for (;;) {
		struct vb_req_pos before = req->pos;
		const struct vb_wqe *wqe;
		const struct vb_path *path;
		struct vb_payload payload;
		struct vb_segment seg;
		struct vb_pkt pkt;
		enum added added;
		bool ackreq;

		if (qp->send.paced && vb_pace_waits(qp))
			break;
		s->framer->certain = vb_psn_diff(req->pos.next_psn, req->top_psn) < 0;
		if (!qp->send.paced && add_middles(s))
			continue;
		if ((req->transport == VB_UD && vb_lane_is_next(qp)) || vb_lane_is_astray(qp))
			break;
		if (!vb_req_next(req, &seg, &ackreq)) {
			if (vb_req_local(req))
				continue;
			break;
		}
		wqe = vb_sq_at(&req->sq, before.next);
		path = req->transport == VB_UD ? &wqe->ud.path : &qp->to.path;
		if (wqe->fault) {
			fault(s, &before, (enum ibv_wc_status)wqe->fault);
			break;
		}
		vb_payload_none(&payload);
		vb_pkt_fill_request(qp, wqe, &seg, ackreq, &pkt);
		if (!vb_wqe_sends_nothing(wqe) &&
		    !vb_qp_gather(qp, wqe, seg.offset, seg.bytes, &payload)) {
			fault(s, &before, IBV_WC_LOC_PROT_ERR);
			break;
		}
		if (!add_or_flush(s, path, &pkt, &payload, &added)) {
			req->pos = before;
			if (!flush(s))
				return false;
			continue;
		}
		if (added == FAULT) {
			fault(s, &before, IBV_WC_LOC_PROT_ERR);
			break;
		}
		if (qp->send.paced)
			vb_pace_charge(qp, s->framer->burst.last_bytes);
	}
	return flush(s);
}

static bool transmit_by(struct sender *s, enum ibv_qp_state state)
{
	struct vb_qp *qp = s->qp;
	bool sends = state == IBV_QPS_RTS || state == IBV_QPS_SQD;

	begin(s);
	s->ack_rides = sends && vb_resp_owes_ack_only(&qp->resp);
	if (!s->ack_rides && (!transmit_responses(s) || !flush(s)))
		return false;
	if (sends && !transmit_requests(s))
		return false;
	s->ack_rides = false;
	return vb_ack_waits(qp) || (transmit_responses(s) && flush(s));
}

bool vb_wire_transmit(struct vb_qp *qp, enum ibv_qp_state state)
{
	struct sender s;
	bool done;

	s.qp = qp;
	s.framer = vb_framer_take(qp, slot_from(qp));
	vb_qp_window_share(qp);
	qp->send.link_full = false;
	done = transmit_by(&s, state);
	vb_framer_drop(s.framer);
	return done;
}

/* Has sending left nothing behind: no failure, no event to tell, and a clock where one is due? */
static bool is_settled(const struct vb_qp *qp)
{
	const struct vb_req *req = &qp->req;

	return vb_qp_state(qp) == IBV_QPS_RTS && !req->fault_met.status && !req->local.done &&
	       !qp->resp.broken &&
	       !qp->send.drain_event && vb_rc_deadline_ns(req) == VB_NEVER_NS &&
	       (vb_timer_at_ns(&qp->later.timer) != VB_NEVER_NS ||
		req->una_psn == req->top_psn);
}

void vb_qp_transmit_locked(struct vb_qp *qp)
{
	enum ibv_qp_state state = vb_qp_state(qp);

	if (state < IBV_QPS_RTR)
		return;
	if (qp->user.parcels)
		vb_parcels_before_send(qp);
	if (qp->service->send.transmit) {
		qp->service->send.transmit(qp, state);
	} else if (qp->to.peer) {
		vb_lane_transmit(qp, state);
		if (is_settled(qp))
			return;
	} else {
		vb_wire_transmit(qp, state);
	}
	if (qp->resp.broken && state != IBV_QPS_ERR)
		vb_qp_fail_locked(qp);
	vb_qp_after_locked(qp, vb_req_settle(&qp->req));
}
