/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/way/send.h"

#include "engine/rc_answer.h"
#include "nic/way/peer.h"
#include "nic/way/send_ring.h"
#include "nic/way/send_wire.h"

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
		pkt->srqn = vb_lane_xrceth(qp, wqe);
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

/* Has sending left nothing to do: no failure, no event, and a timer if one is needed? */
static bool is_settled(const struct vb_qp *qp)
{
	const struct vb_req *req = &qp->req;

	return vb_qp_state(qp) == IBV_QPS_RTS && !req->fault_met.status && !req->local.done &&
	       !(qp->resp.broken | qp->send.drain_event | qp->send.link_full) &&
	       vb_rc_deadline_ns(req) == VB_NEVER_NS &&
	       (vb_timer_at_ns(&qp->later.timer) != VB_NEVER_NS || req->una_psn == req->top_psn);
}

void vb_qp_transmit_by_way(struct vb_qp *qp, enum ibv_qp_state state)
{
	if (qp->to.peer)
		vb_lane_transmit(qp, state);
	else
		vb_wire_transmit(qp, state);
}

void vb_qp_transmit_locked(struct vb_qp *qp)
{
	enum ibv_qp_state state = vb_qp_state(qp);

	if (state == IBV_QPS_RTS && qp->to.peer && qp->req.transport == VB_RC &&
	    vb_lane_transmit_short(qp))
		return;
	if (state < IBV_QPS_RTR)
		return;
	if (qp->user.has_parcels)
		vb_parcels_before_send(qp);
	if (qp->service->send.transmit)
		qp->service->send.transmit(qp, state);
	else
		vb_qp_transmit_by_way(qp, state);
	if (qp->to.peer && is_settled(qp))
		return;
	if (qp->resp.broken && state != IBV_QPS_ERR)
		vb_qp_fail_locked(qp);
	vb_qp_after_locked(qp, vb_req_settle(&qp->req));
}
