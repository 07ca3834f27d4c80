/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/way/send_ring.h"

#include "base/guard.h"
#include "engine/rc_answer.h"
#include "engine/rc_resp.h"
#include "nic/core/ah.h"
#include "nic/data/snapshot.h"
#include "nic/way/sender.h"
#include "nic/way/watch/watch.h"
#include "nic/way/way.h"

/* How long a datagram waits for its reader before it counts as lost. */
#define DATAGRAM_NS 20000000u

/* When to check again whether the receiver sleeps. */
#define LATER_NS 10000000u

/* --- putting into a ring: a vb_sender with its lane, whose tx_lock is held --- */

/* A datagram's path follows its headers, for the receiver's GRH. */
VB_FOLDED enum vb_put put(struct vb_sender *s, const struct vb_path *path, struct vb_pkt *pkt,
		       const struct vb_payload *payload, bool again)
{
	const struct vb_op_info *info = vb_op_info(pkt->opcode);
	uint32_t head = info->header_bytes, all = head;
	struct vb_ring_tx *ring = &s->lane->tx;
	uint8_t *to;

	if (info->transport == VB_UD)
		all += VB_LANE_PATH_BYTES;
	to = vb_ring_reserve(ring, all, payload->bytes);
	if (!to)
		return VB_PUT_NO_ROOM;
	vb_pkt_emit(ring->octets, pkt);
	/* The XRCETH has more bits here than on a wire. */
	if (info->headers & VB_H_XRCETH)
		vb_be32_put(ring->octets + VB_BTH_BYTES, pkt->srqn);
	if (info->transport == VB_UD) {
		vb_be32_put(ring->octets + VB_LANE_FLOW_OFFSET,
			    (uint32_t)path->tclass << 20 | path->flow_label);
		memcpy(ring->octets + head, path->src, VB_GID_BYTES);
		memcpy(ring->octets + head + VB_GID_BYTES, path->dst, VB_GID_BYTES);
	}
	if (payload->bytes && !vb_payload_copy(to, payload))
		return VB_PUT_NO_DATA;
	vb_ring_publish(ring, all, payload->bytes);
	return VB_PUT;
}

static uint32_t room(const struct vb_sender *s, uint32_t bytes, uint32_t n)
{
	return n;
}

static uint32_t put_run(struct vb_sender *s, const struct vb_pkt *first, const uint8_t *from,
			uint32_t bytes, uint32_t n, bool again)
{
	/* A copy, which no octet that is written can be part of: so what is alike is read once. */
	const struct vb_pkt pkt = *first;
	const uint32_t head = vb_op_info(pkt.opcode)->header_bytes;
	struct vb_ring_tx *ring = &s->lane->tx;
	uint32_t i;

	for (i = 0; i < n; i++, from += bytes) {
		uint8_t *to = vb_ring_reserve(ring, head, bytes);

		if (!to)
			break;
		vb_bth_put(ring->octets, pkt.opcode, false, pkt.migreq, VB_PKEY_DEFAULT, pkt.dqpn,
			   false, vb_psn_add(pkt.psn, i));
		if (head > VB_BTH_BYTES)
			vb_be32_put(ring->octets + VB_BTH_BYTES, pkt.srqn);
		if (!vb_guard_copy(to, from, bytes))
			break;
		vb_ring_publish(ring, head, bytes);
	}
	return i;
}

/* Without building a struct vb_pkt. */
VB_FOLDED enum vb_put put_whole(struct vb_sender *s, const struct vb_wqe *wqe,
				const struct vb_segment *seg, bool ackreq)
{
	const struct vb_op_info *info = vb_op_info(seg->opcode);
	bool se = (wqe->flags & IBV_SEND_SOLICITED) && vb_wqe_takes_recv(wqe);
	struct vb_ring_tx *ring = &s->lane->tx;
	uint8_t *to = vb_ring_reserve(ring, info->header_bytes, seg->bytes);
	uint8_t *out = ring->octets;
	struct vb_qp *qp = s->qp;

	if (!to)
		return VB_PUT_NO_ROOM;
	vb_bth_put(out, seg->opcode, se, qp->to.migreq, VB_PKEY_DEFAULT, qp->to.dqpn, ackreq,
		   seg->psn);
	out += VB_BTH_BYTES;
	if (info->headers & VB_H_XRCETH) {
		vb_be32_put(out, vb_lane_xrceth(qp, wqe));
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
		return VB_PUT_NO_DATA;
	vb_ring_publish(ring, info->header_bytes, seg->bytes);
	return VB_PUT;
}

static bool put_ack(struct vb_sender *s)
{
	struct vb_qp *qp = s->qp;
	uint8_t opcode = qp->resp.transport == VB_XRC ? VB_OP_XRC_ACK : VB_OP_RC_ACK, *out;
	struct vb_ring_tx *ring = &s->lane->tx;
	uint32_t aeth, psn;

	if (!vb_ring_reserve(ring, VB_BTH_BYTES + sizeof(aeth), 0))
		return false;
	out = ring->octets;
	aeth = vb_rc_ack(&qp->resp, &psn);
	vb_bth_put(out, opcode, false, qp->to.migreq, VB_PKEY_DEFAULT, qp->to.dqpn, false, psn);
	vb_be32_put(out + VB_BTH_BYTES, aeth);
	vb_ring_publish(ring, VB_BTH_BYTES + sizeof(aeth), 0);
	return true;
}

static bool make_room(struct vb_sender *s)
{
	return !vb_lane_is_lost(s->lane) && !vb_lane_wait_locked(s->lane, s->qp);
}

static bool leave(struct vb_sender *s)
{
	struct vb_req *req = &s->qp->req;

	vb_req_sent(req, &s->req_pos, 0);
	if (!vb_transport_acks(req->transport))
		vb_req_complete_sent(req);
	return true;
}

static bool is_elsewhere(struct vb_sender *s)
{
	return vb_lane_is_astray(s->qp);
}

static const struct vb_sender_ops ring = {
	.put = put,
	.make_room = make_room,
	.leave = leave,
	.is_elsewhere = is_elsewhere,
	.room = room,
	.put_run = put_run,
	.put_whole = put_whole,
	.put_ack = put_ack,
};

/* The same for a NIC that is watched, one packet at a time. */
static enum vb_put put_watched(struct vb_sender *s, const struct vb_path *path, struct vb_pkt *pkt,
			       const struct vb_payload *payload, bool again)
{
	uint64_t ns = vb_nic_now_ns(s->lane->peer->nic); /* before the peer can have it */
	enum vb_put done = put(s, path, pkt, payload, again);

	if (done == VB_PUT)
		vb_watch_lane(s->lane, s->qp, path, pkt, payload->bytes, again, ns);
	return done;
}

static const struct vb_sender_ops ring_watched = {
	.put = put_watched,
	.make_room = make_room,
	.leave = leave,
	.is_elsewhere = is_elsewhere,
};

static bool is_watched(const struct vb_lane *lane)
{
	return vb_peer_marks(lane->peer) & VB_PEER_WATCHED;
}

bool vb_lane_put_one(struct vb_lane *lane, struct vb_pkt *pkt)
{
	static const struct vb_payload none;
	struct vb_sender s = { .lane = lane };
	enum vb_put done;

	vb_lock_take(&lane->tx_lock);
	done = is_watched(lane) ? put_watched(&s, NULL, pkt, &none, false)
				: put(&s, NULL, pkt, &none, false);
	vb_lock_drop(&lane->tx_lock);
	if (done == VB_PUT)
		vb_peer_published(lane->peer);
	return done == VB_PUT;
}

/* --- the fast path --- */

/* Sends the work request just posted, if there is nothing else to send. */
static inline bool send_lone(struct vb_sender *s)
{
	struct vb_req *req = &s->qp->req;
	const struct vb_wqe *wqe = vb_req_lone(req);
	struct vb_segment seg;
	enum vb_put done;

	/* The timer that checks for progress is running (vb_qp_after_locked). */
	if (!wqe || vb_timer_at_ns(&s->qp->later.timer) == VB_NEVER_NS ||
	    vb_rc_deadline_ns(req) != VB_NEVER_NS ||
	    (vb_op_info(wqe->only)->headers & ~VB_SENDER_WHOLE_HEADERS))
		return false;
	seg.opcode = wqe->only;
	seg.psn = req->pos.next_psn;
	seg.bytes = wqe->bytes;
	seg.offset = 0;
	vb_lock_take(&s->lane->tx_lock);
	done = put_whole(s, wqe, &seg, true);
	vb_lock_drop(&s->lane->tx_lock);
	if (done != VB_PUT)
		return false;
	vb_req_lone_sent(req);
	return true;
}

/* Sends the ACK that is owed, if there is nothing to send. */
static inline bool send_ack(struct vb_sender *s)
{
	bool done;

	if (!vb_resp_owes_ack_only(&s->qp->resp) || s->qp->req.pos.next != s->qp->req.tail)
		return false;
	vb_lock_take(&s->lane->tx_lock);
	done = put_ack(s);
	vb_lock_drop(&s->lane->tx_lock);
	return done;
}

bool vb_lane_transmit_short(struct vb_qp *qp)
{
	struct vb_sender s = { .qp = qp, .lane = qp->lane.tx };

	if ((qp->user.has_parcels | qp->send.paced | qp->send.drain_event | qp->resp.broken) ||
	    vb_peer_marks(qp->to.peer) ||
	    !(vb_resp_owes(&qp->resp) ? send_ack(&s) : send_lone(&s)))
		return false;
	vb_peer_published(qp->to.peer);
	return true;
}

/* --- the general path --- */

static enum vb_put put_nowhere(struct vb_sender *s, const struct vb_path *path, struct vb_pkt *pkt,
			       const struct vb_payload *payload, bool again)
{
	return VB_PUT;
}

static const struct vb_sender_ops nowhere = {
	.put = put_nowhere,
	.make_room = make_room,
	.leave = leave,
	.is_elsewhere = is_elsewhere,
};

/*
 * The peer is gone, and packets are lost as on any wire. If its process died, an RC QP fails at
 * once. If it left by itself, it did not need what is outstanding, and many programs exit before
 * their peer has finished: then the QP's timeout decides, if it has one.
 */
static void nobody_there(struct vb_sender *s, enum ibv_qp_state state)
{
	struct vb_qp *qp = s->qp;
	struct vb_req *req = &qp->req;

	if (!vb_qp_sends(state))
		return;
	/* Work requests without a packet are carried out nevertheless. */
	while (vb_req_local(req))
		continue;
	if (vb_req_settle(req) == VB_REQ_FAILED) {
		vb_qp_after_locked(qp, VB_REQ_FAILED);
	} else if (!vb_transport_acks(req->transport) ||
		   (atomic_load(&qp->to.peer->left) && req->retry.timeout)) {
		vb_sender_request(&nowhere, s);
	} else if (req->head != req->tail && !(req->sqd && vb_req_drained(req))) {
		vb_req_complete_head(req, IBV_WC_RETRY_EXC_ERR);
		vb_qp_after_locked(qp, VB_REQ_FAILED);
	}
}

/*
 * An application that only sends may have missed that the other side fell asleep (`dirty`): sets a
 * timer to check again. RC has a timer of its own.
 */
static void look_later(struct vb_qp *qp)
{
	if (vb_timer_at_ns(&qp->later.timer) == UINT64_MAX)
		vb_timer_arm(qp->nic, qp, vb_nic_now_ns(qp->nic) + LATER_NS);
}

static void transmit_watched(struct vb_sender *s, enum ibv_qp_state state)
{
	if (vb_sender_answer(&ring_watched, s) && vb_qp_sends(state))
		vb_sender_request(&ring_watched, s);
}

void vb_lane_transmit(struct vb_qp *qp, enum ibv_qp_state state)
{
	struct vb_lane *lane = qp->lane.tx;
	struct vb_sender s = { .qp = qp, .lane = lane, .req_pos = qp->req.pos };
	uint32_t marks = vb_peer_marks(qp->to.peer), from;
	bool lost;

	if (marks & (VB_PEER_GONE | VB_PEER_BROKEN)) {
		nobody_there(&s, state);
		return;
	}
	vb_lock_take(&lane->tx_lock);
	from = lane->tx.head;
	if (marks)
		transmit_watched(&s, state);
	else if (vb_sender_answer(&ring, &s) && vb_qp_sends(state))
		vb_sender_request(&ring, &s);
	from -= lane->tx.head;
	lost = vb_lane_is_lost(lane);
	vb_lock_drop(&lane->tx_lock);
	if (from) {
		vb_peer_published(qp->to.peer);
		if (!vb_transport_acks(qp->req.transport))
			look_later(qp);
	}
	if (lost) {
		s.req_pos = qp->req.pos;
		nobody_there(&s, state);
	}
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
	/* Rings require the sender's own number as source. */
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

static enum vb_put put_datagram(struct vb_sender *s, const struct vb_path *path, struct vb_pkt *pkt,
				const struct vb_payload *payload, bool again)
{
	struct vb_lane *lane = s->lane;
	struct vb_qp *qp = s->qp;
	enum vb_put done;
	bool lost;

	if (qp->lane.waits != lane)
		vb_lane_unwait(qp);
	vb_lock_take(&lane->tx_lock);
	/*
	 * Checked with the lock held: when a peer ends, it is marked first and then its queue is
	 * emptied.
	 */
	do
		done = is_watched(lane) ? put_watched(s, path, pkt, payload, again)
					: put(s, path, pkt, payload, again);
	while (done == VB_PUT_NO_ROOM && make_room(s));
	lost = vb_lane_is_lost(lane);
	vb_lock_drop(&lane->tx_lock);
	if (done == VB_PUT) {
		qp->lane.stuck_ns = 0;
		vb_peer_published(lane->peer);
		look_later(qp);
	} else if (done == VB_PUT_NO_ROOM && (lost || vb_lane_is_overdue(qp, DATAGRAM_NS))) {
		/* The receiver does not read: the oldest datagram is lost, as in any network. */
		vb_lane_unwait(qp);
		vb_stat_add(&qp->nic->stats, VB_STAT_TX_LOST, 1);
		done = VB_PUT;
	}
	return done;
}

static bool no_room(struct vb_sender *s)
{
	return false;
}

static bool is_no_lanes(struct vb_sender *s)
{
	enum vb_way way = datagram_way(s->qp, &s->lane);

	if (way == VB_WAY_ASKED)
		vb_snapshots_take(s->qp);
	s->is_done = way == VB_WAY_WIRE;
	return way != VB_WAY_RING;
}

static const struct vb_sender_ops datagrams = {
	.put = put_datagram,
	.make_room = no_room,
	.leave = leave,
	.is_elsewhere = is_no_lanes,
};

bool vb_lane_datagrams(struct vb_qp *qp, enum ibv_qp_state state)
{
	struct vb_sender s = { .qp = qp, .req_pos = qp->req.pos };

	if (vb_qp_sends(state))
		vb_sender_request(&datagrams, &s);
	return s.is_done;
}
