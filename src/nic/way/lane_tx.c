/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/way/lane_tx.h"

#include "base/check.h"
#include "base/guard.h"
#include "base/psn.h"
#include "nic/core/ah.h"
#include "nic/data/pace.h"
#include "nic/data/snapshot.h"
#include "nic/way/peer.h"
#include "nic/way/tx.h"
#include "nic/way/way.h"
#include "wire/bytes.h"

/* How long a datagram waits for a reader before it counts as lost. */
#define DATAGRAM_NS 20000000u

/* When to look once more whether whoever it was sent to sleeps. */
#define LATER_NS 10000000u

enum put { PUT, NO_ROOM, NO_DATA };

/* The XRCETH of a request in a ring. */
static inline uint32_t xrceth(const struct vb_qp *qp, const struct vb_wqe *wqe)
{
	return wqe->remote.srqn | (qp->req.mtu == VB_LANE_MTU_BYTES ? VB_LANE_LARGE : 0);
}

/* Build a frame in the ring. The lane's tx_lock is held. */
static enum put put(struct vb_lane *lane, struct vb_pkt *pkt, const struct vb_payload *payload,
		    const struct vb_path *path)
{
	uint32_t head = vb_op_info(pkt->opcode)->header_bytes;
	uint32_t extra = path ? VB_LANE_PATH_BYTES : 0;
	uint8_t *to = vb_ring_reserve(&lane->tx, head + extra, payload->bytes);

	if (!to)
		return NO_ROOM;
	vb_pkt_emit(lane->tx.octets, pkt);
	if (vb_op_info(pkt->opcode)->headers & VB_H_XRCETH)
		vb_be32_put(lane->tx.octets + VB_BTH_BYTES, pkt->srqn);
	if (path) {
		vb_be32_put(lane->tx.octets + VB_LANE_FLOW_OFFSET,
			    (uint32_t)path->tclass << 20 | path->flow_label);
		memcpy(lane->tx.octets + head, path->src, VB_GID_BYTES);
		memcpy(lane->tx.octets + head + VB_GID_BYTES, path->dst, VB_GID_BYTES);
	}
	if (payload->bytes && !vb_payload_copy(to, payload))
		return NO_DATA;
	vb_ring_publish(&lane->tx, head + extra, payload->bytes);
	return PUT;
}

bool vb_lane_put_one(struct vb_lane *lane, struct vb_pkt *pkt)
{
	static const struct vb_payload none;
	enum put done;

	vb_lock_take(&lane->tx_lock);
	done = put(lane, pkt, &none, NULL);
	vb_lock_drop(&lane->tx_lock);
	if (done == PUT)
		vb_peer_published(lane->peer);
	return done == PUT;
}

/* Most of what a responder owes is a plain ACK; false if there is no room. */
static bool put_ack(struct vb_qp *qp, struct vb_lane *lane)
{
	uint8_t opcode = qp->resp.transport == VB_XRC ? VB_OP_XRC_ACK : VB_OP_RC_ACK;
	uint32_t aeth, psn;
	uint8_t *out;

	if (!vb_ring_reserve(&lane->tx, VB_BTH_BYTES + sizeof(aeth), 0))
		return false;
	out = lane->tx.octets;
	aeth = vb_rc_ack(&qp->resp, &psn);
	vb_bth_put(out, opcode, false, qp->to.migreq, VB_PKEY_DEFAULT, qp->to.dqpn, false, psn);
	vb_be32_put(out + VB_BTH_BYTES, aeth);
	vb_ring_publish(&lane->tx, VB_BTH_BYTES + sizeof(aeth), 0);
	return true;
}

/* An RC that is up, towards somebody who lives, with nothing to be seen to but what it sends. */
static bool is_plain(const struct vb_qp *qp)
{
	return qp->to.peer && qp->req.transport == VB_RC && vb_qp_state(qp) == IBV_QPS_RTS &&
	       !qp->user.parcels && !(qp->send.paced | qp->send.drain_event | qp->resp.broken) &&
	       !vb_peer_is_lost(qp->to.peer);
}

bool vb_lane_ack(struct vb_qp *qp)
{
	struct vb_lane *lane = qp->lane.tx;
	bool done;

	if (!vb_resp_owes_ack_only(&qp->resp) || qp->req.pos.next != qp->req.tail || !is_plain(qp))
		return false;
	vb_lock_take(&lane->tx_lock);
	done = put_ack(qp, lane);
	vb_lock_drop(&lane->tx_lock);
	if (done)
		vb_peer_published(qp->to.peer);
	return done;
}

/* What the responder owes; false if there is no room. */
static bool put_responses(struct vb_qp *qp, struct vb_lane *lane)
{
	struct vb_resp *resp = &qp->resp;

	while (vb_resp_owes(resp)) {
		struct vb_resp_pos before;
		struct vb_payload payload;
		enum put done = NO_DATA;
		struct vb_pkt pkt;
		bool data;

		if (vb_resp_owes_ack_only(resp) && resp->transport != VB_DC)
			return put_ack(qp, lane);
		before = vb_resp_pos_get(resp);
		vb_qp_pkt_begin(qp, &pkt);
		vb_payload_none(&payload);
		if (!vb_rc_response(resp, &pkt, &data))
			return true;
		if (resp->transport == VB_DC)
			qp->service->send.header_fill(qp, &pkt);
		if (!data || vb_qp_gather_response(qp, &pkt, &payload))
			done = put(lane, &pkt, &payload, NULL);
		if (done == NO_ROOM) {
			vb_resp_pos_put(resp, &before);
			return false;
		}
		if (done == NO_DATA && vb_rc_response_fault(resp, &before, &pkt))
			vb_qp_event(qp, vb_verdict_rows[VB_BAD_MEMORY].event);
	}
	return true;
}

/* The request at pos cannot be sent: it fails when all before it is done. */
static void fault(struct vb_qp *qp, const struct vb_req_pos *before, enum ibv_wc_status status)
{
	qp->req.pos = *before;
	vb_req_fault(&qp->req, status);
}

enum step { SENT, NOTHING, FULL };

/* A packet that is a whole message: no struct in between. */
static inline __attribute__((always_inline)) enum put
put_only(struct vb_qp *qp, struct vb_lane *lane, const struct vb_wqe *wqe,
	 const struct vb_segment *seg, bool ackreq)
{
	const struct vb_op_info *info = vb_op_info(seg->opcode);
	bool se = (wqe->flags & IBV_SEND_SOLICITED) && vb_wqe_takes_recv(wqe);
	uint8_t *to = vb_ring_reserve(&lane->tx, info->header_bytes, seg->bytes);
	uint8_t *out = lane->tx.octets;

	if (!to)
		return NO_ROOM;
	vb_bth_put(out, seg->opcode, se, qp->to.migreq, VB_PKEY_DEFAULT, qp->to.dqpn, ackreq,
		   seg->psn);
	out += VB_BTH_BYTES;
	if (info->headers & VB_H_XRCETH) {
		vb_be32_put(out, xrceth(qp, wqe));
		out += VB_XRCETH_BYTES;
	}
	if (info->headers & VB_H_RETH) {
		vb_reth_put(out, wqe->remote.va, wqe->remote.rkey, wqe->bytes);
		out += VB_RETH_BYTES;
	}
	if (info->headers & VB_H_IMM)
		memcpy(out, &wqe->imm_be, sizeof(wqe->imm_be));
	if (wqe->flags & IBV_SEND_INLINE)
		memcpy(to, wqe->data, seg->bytes);
	else if (seg->bytes && !vb_payload_put(qp->nic, qp->ibv.qp.pd, wqe, seg, to))
		return NO_DATA;
	vb_ring_publish(&lane->tx, info->header_bytes, seg->bytes);
	return PUT;
}

bool vb_lane_send(struct vb_qp *qp)
{
	struct vb_lane *lane = qp->lane.tx;
	const struct vb_wqe *wqe = vb_req_lone(&qp->req);
	struct vb_segment seg;
	enum put done;

	/* The clock that looks whether it gets on runs already (vb_qp_after_locked). */
	if (!wqe || vb_resp_owes(&qp->resp) || !is_plain(qp) ||
	    vb_timer_at_ns(&qp->later.timer) == VB_NEVER_NS ||
	    vb_rc_deadline_ns(&qp->req) != VB_NEVER_NS ||
	    (vb_op_info(wqe->only)->headers & VB_H_IETH))
		return false;
	seg.opcode = wqe->only;
	seg.psn = qp->req.pos.next_psn;
	seg.bytes = wqe->bytes;
	seg.offset = 0;
	vb_lock_take(&lane->tx_lock);
	done = put_only(qp, lane, wqe, &seg, true);
	vb_lock_drop(&lane->tx_lock);
	if (done != PUT)
		return false;
	vb_req_lone_sent(&qp->req);
	vb_peer_published(qp->to.peer);
	return true;
}

static enum put put_segment(struct vb_qp *qp, struct vb_lane *lane, const struct vb_wqe *wqe,
			    const struct vb_segment *seg, bool ackreq, const struct vb_path *path)
{
	struct vb_payload payload;
	struct vb_pkt pkt;

	if (wqe->only && !path && !(vb_op_info(seg->opcode)->headers & VB_H_IETH))
		return put_only(qp, lane, wqe, seg, ackreq);
	vb_pkt_fill_request(qp, wqe, seg, ackreq, &pkt);
	if (qp->req.transport == VB_XRC)
		pkt.srqn = xrceth(qp, wqe);
	vb_payload_none(&payload);
	if (!vb_wqe_sends_nothing(wqe) &&
	    !vb_qp_gather(qp, wqe, seg->offset, seg->bytes, &payload))
		return NO_DATA;
	return put(lane, &pkt, &payload, path);
}

/* The next packet of the requester; path: of a datagram. */
static enum step put_request(struct vb_qp *qp, struct vb_lane *lane, const struct vb_path *path)
{
	struct vb_req *req = &qp->req;
	struct vb_req_pos before = req->pos;
	const struct vb_wqe *wqe;
	struct vb_segment seg;
	enum put done;
	bool ackreq;

	if (!vb_req_next(req, &seg, &ackreq))
		return NOTHING;
	wqe = vb_sq_at(&req->sq, before.next);
	if (wqe->fault) {
		fault(qp, &before, (enum ibv_wc_status)wqe->fault);
		return NOTHING;
	}
	done = put_segment(qp, lane, wqe, &seg, ackreq, path);
	if (done == NO_ROOM) {
		req->pos = before;
		return FULL;
	}
	if (done == NO_DATA) {
		fault(qp, &before, IBV_WC_LOC_PROT_ERR);
		return NOTHING;
	}
	if (qp->send.paced)
		vb_pace_charge(qp, vb_op_info(seg.opcode)->header_bytes + seg.bytes);
	vb_req_sent(req, &before, 0);
	return SENT;
}

/*
 * Frames in the midst of a message, alike but for their PSNs: how many there was room for. extra:
 * octets behind the BTH, of an XRCETH or none.
 */
static inline __attribute__((always_inline)) uint32_t
put_alike(struct vb_lane *lane, const struct vb_qp *qp, const struct vb_segment *first,
	  const uint8_t *from, uint32_t n, uint32_t extra, uint32_t xrceth_word)
{
	uint32_t bytes = qp->req.mtu, i;

	for (i = 0; i < n; i++, from += bytes) {
		uint8_t *to = vb_ring_reserve(&lane->tx, VB_BTH_BYTES + extra, bytes);

		if (!to)
			break;
		vb_bth_put(lane->tx.octets, first->opcode, false, qp->to.migreq, VB_PKEY_DEFAULT,
			   qp->to.dqpn, false, vb_psn_add(first->psn, i));
		if (extra)
			vb_be32_put(lane->tx.octets + VB_BTH_BYTES, xrceth_word);
		if (!vb_guard_copy(to, from, bytes))
			break;
		vb_ring_publish(&lane->tx, VB_BTH_BYTES + extra, bytes);
	}
	return i;
}

/*
 * The midst of a long message: the engine is asked once, and the key is looked up once. NOTHING: go
 * the long way, which also says what is wrong.
 */
static enum step put_middles(struct vb_qp *qp, struct vb_lane *lane)
{
	struct vb_req *req = &qp->req;
	struct vb_req_pos before = req->pos;
	uint32_t n = vb_req_run(req), sent;
	const struct vb_wqe *wqe;
	struct vb_payload payload;
	struct vb_segment seg;

	if (!n)
		return NOTHING;
	wqe = vb_sq_at(&req->sq, before.next);
	vb_segment_at(&seg, req->transport, wqe, before.next_psn, req->mtu);
	if (!vb_qp_gather(qp, wqe, seg.offset, n * req->mtu, &payload) || payload.count != 1)
		return NOTHING;
	if (req->transport == VB_XRC)
		sent = put_alike(lane, qp, &seg, payload.iov[0].iov_base, n, VB_XRCETH_BYTES,
				 xrceth(qp, wqe));
	else
		sent = put_alike(lane, qp, &seg, payload.iov[0].iov_base, n, 0, 0);
	if (!sent)
		return NOTHING;
	vb_req_skip(req, sent);
	vb_req_sent(req, &before, 0);
	return SENT;
}

static bool put_requests(struct vb_qp *qp, struct vb_lane *lane)
{
	enum step step = NOTHING;

	while (qp->req.pos.next != qp->req.tail) {
		step = NOTHING;
		if ((qp->send.paced && vb_pace_waits(qp)) || vb_lane_is_astray(qp))
			break;
		/* A message of one packet has no midst. */
		if (!qp->send.paced && !vb_sq_at(&qp->req.sq, qp->req.pos.next)->only)
			step = put_middles(qp, lane);
		if (step == NOTHING)
			step = put_request(qp, lane, NULL);
		if (step != SENT && !(step == NOTHING && vb_req_local(&qp->req)))
			break;
	}
	if (!vb_transport_acks(qp->req.transport))
		vb_req_complete_sent(&qp->req);
	return step != FULL;
}

/* What would have kept it from leaving, had anybody been there. */
static enum ibv_wc_status own_fault(struct vb_qp *qp, const struct vb_wqe *wqe,
				    const struct vb_segment *seg)
{
	struct vb_payload payload;

	if (wqe->fault)
		return (enum ibv_wc_status)wqe->fault;
	return vb_qp_gather(qp, wqe, seg->offset, seg->bytes, &payload) ? IBV_WC_SUCCESS
									: IBV_WC_LOC_PROT_ERR;
}

/*
 * There is nobody any more, and what is sent is lost as on any wire. Of a process that died an RC
 * learns at once. One that left had no more use for what is outstanding, and many a program leaves
 * a peer before that peer has counted to the end: there the QP's own clock tells, if it has one.
 */
static void nobody_there(struct vb_qp *qp, enum ibv_qp_state state)
{
	struct vb_req *req = &qp->req;
	struct vb_req_pos before;
	enum ibv_wc_status status;
	struct vb_segment seg;
	bool ackreq;

	if (state != IBV_QPS_RTS && state != IBV_QPS_SQD)
		return;
	/* What needs nobody is done all the same. */
	while (vb_req_local(req))
		continue;
	if (vb_req_settle(req) == VB_REQ_FAILED) {
		vb_qp_after_locked(qp, VB_REQ_FAILED);
		return;
	}
	before = req->pos;
	if (vb_transport_acks(req->transport) &&
	    (!atomic_load(&qp->to.peer->left) || !req->retry.timeout)) {
		if (req->head != req->tail && !(req->sqd && vb_req_drained(req))) {
			vb_req_complete_head(req, IBV_WC_RETRY_EXC_ERR);
			vb_qp_after_locked(qp, VB_REQ_FAILED);
		}
		return;
	}
	for (; vb_req_next(req, &seg, &ackreq) || vb_req_local(req); before = req->pos) {
		if (vb_wqe_is_local(vb_sq_at(&req->sq, before.next)))
			continue;
		status = own_fault(qp, vb_sq_at(&req->sq, before.next), &seg);
		if (status != IBV_WC_SUCCESS) {
			fault(qp, &before, status);
			break;
		}
		vb_req_sent(req, &before, 0);
	}
	if (!vb_transport_acks(req->transport))
		vb_req_complete_sent(req);
}

/* True if nobody reads the lane any more, or the reader has corrupted its tail. tx_lock held. */
static bool is_lost(struct vb_lane *lane)
{
	if (lane->tx.broken)
		atomic_store(&lane->peer->broken, true);
	return vb_peer_is_lost(lane->peer);
}

/*
 * An application that sends and does nothing more may have missed that the other side fell asleep
 * (`dirty`): the clock sees to it that somebody looks. An RC has a clock of its own.
 */
static void look_later(struct vb_qp *qp)
{
	if (vb_timer_at_ns(&qp->later.timer) == UINT64_MAX)
		vb_timer_arm(qp->nic, qp, vb_nic_now_ns(qp->nic) + LATER_NS);
}

void vb_lane_transmit(struct vb_qp *qp, enum ibv_qp_state state)
{
	struct vb_lane *lane = qp->lane.tx;
	bool sends = state == IBV_QPS_RTS || state == IBV_QPS_SQD, done, lost;
	uint32_t from;

	if (vb_peer_is_lost(qp->to.peer)) {
		nobody_there(qp, state);
		return;
	}
	vb_lock_take(&lane->tx_lock);
	from = lane->tx.head;
	do
		done = put_responses(qp, lane) && (!sends || put_requests(qp, lane));
	while (!done && !vb_lane_wait_locked(lane, qp));
	from -= lane->tx.head;
	lost = is_lost(lane);
	vb_lock_drop(&lane->tx_lock);
	if (from) {
		vb_peer_published(qp->to.peer);
		if (!vb_transport_acks(qp->req.transport))
			look_later(qp);
	}
	if (lost)
		nobody_there(qp, state);
}

/* --- datagrams --- */

static enum vb_way datagram_way(struct vb_qp *qp, struct vb_lane **lane)
{
	const struct vb_req *req = &qp->req;
	const struct vb_wqe *wqe;
	struct vb_peer *peer;
	enum vb_way way;

	if (req->transport != VB_UD || req->pos.next == req->tail)
		return VB_WAY_WIRE;
	wqe = vb_sq_at(&req->sq, req->pos.next);
	/* A ring takes no other number than the sender's for its source. */
	if (!wqe->ud.path.local || wqe->fault || qp->special.sqpn != qp->ibv.qp.qp_num)
		return VB_WAY_WIRE;
	way = vb_way_choose(qp, wqe->ud.dqpn, &peer);
	if (way == VB_WAY_RING)
		*lane = &peer->lane[qp->ibv.qp.qp_num % VB_RING_LANES];
	return way;
}

bool vb_lane_is_next(struct vb_qp *qp)
{
	struct vb_lane *lane;

	return datagram_way(qp, &lane) != VB_WAY_WIRE;
}

/* Nobody reads there: what waits longest is lost, as in any network. */
static bool is_overdue(struct vb_qp *qp)
{
	uint64_t now_ns = vb_nic_now_ns(qp->nic);

	if (!qp->lane.stuck_ns)
		qp->lane.stuck_ns = now_ns;
	if (now_ns >= qp->lane.stuck_ns + DATAGRAM_NS)
		return true;
	vb_timer_arm(qp->nic, qp, qp->lane.stuck_ns + DATAGRAM_NS);
	return false;
}

static void lose_datagram(struct vb_qp *qp)
{
	struct vb_segment seg;
	bool ackreq;

	vb_stat_add(&qp->nic->stats, VB_STAT_TX_LOST, 1);
	vb_req_next(&qp->req, &seg, &ackreq);
}

static enum step send_datagram(struct vb_qp *qp, struct vb_lane *lane)
{
	const struct vb_wqe *wqe = vb_sq_at(&qp->req.sq, qp->req.pos.next);
	enum step step;
	bool lost = false;

	if (qp->lane.waits != lane)
		vb_lane_unwait(qp);
	vb_lock_take(&lane->tx_lock);
	/* Asked with the lock held: who ends the peer says so first, and then empties the queue. */
	do
		step = put_request(qp, lane, &wqe->ud.path);
	while (step == FULL && !(lost = is_lost(lane)) && !vb_lane_wait_locked(lane, qp));
	vb_lock_drop(&lane->tx_lock);
	if (step == SENT) {
		qp->lane.stuck_ns = 0;
		vb_peer_published(lane->peer);
		look_later(qp);
	} else if (step == FULL && (lost || is_overdue(qp))) {
		vb_lane_unwait(qp);
		lose_datagram(qp);
		step = SENT;
	}
	return step;
}

bool vb_lane_datagrams(struct vb_qp *qp, enum ibv_qp_state state)
{
	struct vb_lane *lane = NULL;
	enum step step = SENT;
	enum vb_way way = VB_WAY_WIRE;

	if (state != IBV_QPS_RTS && state != IBV_QPS_SQD)
		return false;
	while (step == SENT && (way = datagram_way(qp, &lane)) != VB_WAY_WIRE) {
		if (way == VB_WAY_ASKED || (qp->send.paced && vb_pace_waits(qp)))
			step = FULL;
		else
			step = send_datagram(qp, lane);
	}
	if (way == VB_WAY_ASKED)
		vb_snapshots_take(qp);
	vb_req_complete_sent(&qp->req);
	/* What may not leave by this way holds up what comes behind it. */
	return step == SENT;
}

/* --- which way --- */

void vb_qp_bind_locked(struct vb_qp *qp, struct vb_peer *peer, uint32_t dqpn)
{
	vb_qp_unbind_locked(qp);
	/* If the process has just died, the QP goes by way of the wire, and finds nobody there. */
	if (!vb_peer_hold(peer))
		return;
	if (peer->slot != dqpn >> VB_INDEX_BITS) {
		vb_peer_drop(peer);
		return;
	}
	qp->to.peer = peer;
	qp->lane.tx = vb_lane_of(peer, qp->req.transport, qp->ibv.qp.qp_num);
	qp->lane.rx = vb_lane_of(peer, qp->req.transport, dqpn);
}

void vb_qp_unbind_locked(struct vb_qp *qp)
{
	struct vb_peer *peer = qp->to.peer;

	vb_lane_unwait(qp);
	qp->to.peer = NULL;
	qp->lane.tx = qp->lane.rx = NULL;
	if (peer)
		vb_peer_drop(peer);
}
