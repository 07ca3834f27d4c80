/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_SENDER_H
#define VB_NIC_SENDER_H

/*
 * Turns the responses that a QP owes and the requests that it may send into packets, for either
 * way. A way is a constant struct vb_sender_ops (send_wire.c, send_ring.c), and these loops are
 * inlined with it, so that no call is indirect. QP locked throughout.
 */

#include "base/psn.h"
#include "engine/rc_resp.h"
#include "nic/data/pace.h"
#include "nic/data/window.h"
#include "nic/way/send.h"
#include "nic/way/send_ring.h"

#define VB_FOLDED static inline __attribute__((always_inline))

struct vb_framer;
struct vb_lane;

/* The state of sending for one QP, during one call. */
struct vb_sender {
	struct vb_qp *qp;
	struct vb_lane *lane;
	struct vb_framer *framer;
	bool ack_rides; /* only an ACK is owed: it may join requests */
	bool is_done;	/* nothing is left for this way, but there may be for the other */
	/* Restored if packets do not leave. */
	struct vb_req_pos req_pos;
	struct vb_resp_pos resp_pos;
};

/* The headers that put_whole can write. */
#define VB_SENDER_WHOLE_HEADERS ((unsigned)(VB_H_IMM | VB_H_RETH | VB_H_XRCETH))

enum vb_put { VB_PUT, VB_PUT_NO_ROOM, VB_PUT_NO_DATA };

/* `again`: the packet was sent before. */
struct vb_sender_ops {
	/* Puts one packet. pkt->pad is not set yet. */
	enum vb_put (*put)(struct vb_sender *s, const struct vb_path *path, struct vb_pkt *pkt,
			   const struct vb_payload *payload, bool again);

	/*
	 * There was no room. Returns true if there is by now; otherwise the QP's turn comes again.
	 */
	bool (*make_room)(struct vb_sender *s);

	/* The requests that were put leave. Returns false if they had to be taken back. */
	bool (*leave)(struct vb_sender *s);

	/* Does the next request use another way? */
	bool (*is_elsewhere)(struct vb_sender *s);

	/*
	 * Packets in the middle of a message, like the first except for their PSNs: a BTH, perhaps
	 * an XRCETH, and `bytes` of data in one piece. room: how many of n fit; put_run: how many
	 * were put. NULL, here and below: only put is available.
	 */
	uint32_t (*room)(const struct vb_sender *s, uint32_t bytes, uint32_t n);
	uint32_t (*put_run)(struct vb_sender *s, const struct vb_pkt *first, const uint8_t *from,
			    uint32_t bytes, uint32_t n, bool again);

	/* Puts a request of one packet, whose headers are among VB_SENDER_WHOLE_HEADERS. */
	enum vb_put (*put_whole)(struct vb_sender *s, const struct vb_wqe *wqe,
				 const struct vb_segment *seg, bool ackreq);

	/* Puts the ACK if that is all that is owed. Returns false if there is no room. */
	bool (*put_ack)(struct vb_sender *s);
};

/* The size of a packet on a wire. */
static inline uint32_t vb_frame_bytes(uint8_t opcode, uint32_t payload)
{
	return vb_op_info(opcode)->header_bytes + payload + vb_pkt_pad(payload) + VB_ICRC_BYTES;
}

/* --- responses --- */

/* Puts packets in the middle of a READ response in one pass. Returns false: none, or no room. */
VB_FOLDED bool vb_sender_answer_run(const struct vb_sender_ops *ops, struct vb_sender *s,
				    bool again)
{
	struct vb_resp *resp = &s->qp->resp;
	struct vb_resp_pos before;
	const uint8_t *from;
	struct vb_pkt pkt;
	uint32_t n;
	bool data;

	if (!ops->put_run || resp->transport != VB_RC)
		return false;
	n = vb_resp_run(resp);
	if (n)
		n = ops->room(s, resp->mtu, n);
	if (!n)
		return false;
	before = vb_resp_pos_get(resp);
	vb_qp_pkt_begin(s->qp, &pkt);
	vb_rc_response(resp, &pkt, &data);
	from = vb_remote_get(s->qp, pkt.reth.rkey, pkt.reth.va, n * resp->mtu,
			     IBV_ACCESS_REMOTE_READ);
	n = from ? ops->put_run(s, &pkt, from, resp->mtu, n, again) : 0;
	if (!n) {
		vb_resp_pos_put(resp, &before);
		return false;
	}
	vb_resp_skip(resp, n - 1);
	return true;
}

/* Puts all that is owed. Returns false if there is no room. */
VB_FOLDED bool vb_sender_answer(const struct vb_sender_ops *ops, struct vb_sender *s)
{
	struct vb_qp *qp = s->qp;
	struct vb_resp *resp = &qp->resp;

	while (vb_resp_owes(resp)) {
		bool again = resp->done < resp->fresh, data;
		enum vb_put done = VB_PUT_NO_DATA;
		struct vb_resp_pos before;
		struct vb_payload payload;
		struct vb_pkt pkt;

		if (ops->put_ack && resp->transport != VB_DC && vb_resp_owes_ack_only(resp)) {
			if (!ops->put_ack(s) && !ops->make_room(s))
				return false;
			continue;
		}
		if (vb_sender_answer_run(ops, s, again))
			continue;
		before = vb_resp_pos_get(resp);
		vb_payload_none(&payload);
		vb_qp_pkt_begin(qp, &pkt);
		if (!vb_rc_response(resp, &pkt, &data))
			return true;
		if (resp->transport == VB_DC)
			qp->service->send.header_fill(qp, &pkt);
		if (!data || vb_qp_gather_response(qp, &pkt, &payload))
			done = ops->put(s, &qp->to.path, &pkt, &payload, again);
		if (done == VB_PUT_NO_ROOM) {
			vb_resp_pos_put(resp, &before);
			if (!ops->make_room(s))
				return false;
		} else if (done == VB_PUT_NO_DATA && vb_rc_response_fault(resp, &before, &pkt)) {
			vb_qp_event(qp, vb_verdict_rows[VB_BAD_MEMORY].event);
		}
	}
	return true;
}

/* --- requests --- */

/*
 * Puts packets in the middle of a long message in one pass: asks the engine once, and looks up the
 * key once. Returns false: none, or no room.
 */
VB_FOLDED bool vb_sender_run(const struct vb_sender_ops *ops, struct vb_sender *s, bool again)
{
	struct vb_qp *qp = s->qp;
	struct vb_req *req = &qp->req;
	const struct vb_wqe *wqe = vb_sq_at(&req->sq, req->pos.next);
	struct vb_payload payload;
	struct vb_segment seg;
	struct vb_pkt pkt;
	uint32_t n;

	/* A message of one packet has no middle. A rate limit needs single packets. */
	if (!ops->put_run || wqe->only || qp->send.paced)
		return false;
	n = vb_req_run(req);
	if (n)
		n = ops->room(s, req->mtu, n);
	if (!n)
		return false;
	vb_segment_at(&seg, req->transport, wqe, req->pos.next_psn, req->mtu);
	if (!vb_qp_gather(qp, wqe, seg.offset, n * req->mtu, &payload) || payload.count != 1)
		return false;
	vb_qp_pkt_begin(qp, &pkt);
	pkt.opcode = seg.opcode;
	pkt.psn = seg.psn;
	if (req->transport == VB_XRC)
		pkt.srqn = vb_lane_xrceth(qp, wqe);
	n = ops->put_run(s, &pkt, payload.iov[0].iov_base, req->mtu, n, again);
	if (n)
		vb_req_skip(req, n);
	return n;
}

VB_FOLDED enum vb_put vb_sender_put(const struct vb_sender_ops *ops, struct vb_sender *s,
				    const struct vb_wqe *wqe, const struct vb_segment *seg,
				    bool ackreq, bool again)
{
	struct vb_qp *qp = s->qp;
	struct vb_payload payload;
	struct vb_pkt pkt;

	if (wqe->fault)
		return VB_PUT_NO_DATA;
	if (ops->put_whole && wqe->only &&
	    !(vb_op_info(seg->opcode)->headers & ~VB_SENDER_WHOLE_HEADERS))
		return ops->put_whole(s, wqe, seg, ackreq);
	vb_payload_none(&payload);
	vb_pkt_fill_request(qp, wqe, seg, ackreq, &pkt);
	if (!vb_wqe_sends_nothing(wqe) &&
	    !vb_qp_gather(qp, wqe, seg->offset, seg->bytes, &payload))
		return VB_PUT_NO_DATA;
	return ops->put(s, qp->req.transport == VB_UD ? &wqe->ud.path : &qp->to.path, &pkt,
			&payload, again);
}

/* Puts the next packet. Returns false if it may not leave now, or there is no room. */
VB_FOLDED bool vb_sender_next(const struct vb_sender_ops *ops, struct vb_sender *s, bool again)
{
	struct vb_qp *qp = s->qp;
	struct vb_req *req = &qp->req;
	struct vb_req_pos before = req->pos;
	const struct vb_wqe *wqe;
	struct vb_segment seg;
	bool ackreq;

	if (!vb_req_next(req, &seg, &ackreq))
		return vb_req_local(req);
	wqe = vb_sq_at(&req->sq, before.next);
	switch (vb_sender_put(ops, s, wqe, &seg, ackreq, again)) {
	case VB_PUT_NO_ROOM:
		req->pos = before;
		return ops->make_room(s);
	case VB_PUT_NO_DATA:
		/* It fails when everything before it is done. */
		req->pos = before;
		vb_req_fault(req, wqe->fault ? (enum ibv_wc_status)wqe->fault
					     : IBV_WC_LOC_PROT_ERR);
		return false;
	case VB_PUT:
		break;
	}
	if (qp->send.paced)
		vb_pace_charge(qp, vb_frame_bytes(seg.opcode,
						  vb_wqe_sends_nothing(wqe) ? 0 : seg.bytes));
	return true;
}

/* Puts all that may leave by this way. Returns false if there is no room. */
VB_FOLDED bool vb_sender_request(const struct vb_sender_ops *ops, struct vb_sender *s)
{
	const struct vb_req *req = &s->qp->req;

	while (req->pos.next != req->tail) {
		bool again = vb_psn_diff(req->pos.next_psn, req->top_psn) < 0;

		if ((s->qp->send.paced && vb_pace_waits(s->qp)) || ops->is_elsewhere(s))
			break;
		if (!vb_sender_run(ops, s, again) && !vb_sender_next(ops, s, again))
			break;
	}
	return ops->leave(s);
}

#endif
