/* SPDX-License-Identifier: BSD-2-Clause */

/* The sending end of XRC: requests go to one slot after the other. */

#include "nic/core/ah.h"
#include "nic/service/xrc/xrc_tx.h"
#include "nic/way/send.h"
#include "nic/way/send_ring.h"
#include "nic/way/way.h"

/* Looks for the destination's process as early as possible. */
void vb_xrc_address(struct vb_qp *qp, struct vb_wqe *wqe, const struct ibv_send_wr *wr,
		    const struct vb_post *post)
{
	struct vb_peer *peer;

	wqe->remote.srqn = wr->qp_type.xrc.remote_srqn & 0xffffff;
	wqe->remote.target = wqe->remote.srqn >> VB_INDEX_BITS;
	if (qp->to.path.local)
		vb_way_seek(qp->nic, qp->ibv.qp.qp_num, wqe->remote.srqn, &peer);
}

/* Was there no ring back yet when pieces of the path MTU were chosen? */
bool vb_xrc_could_do_better(struct vb_qp *qp)
{
	return qp->req.mtu != VB_LANE_MTU_BYTES && qp->to.peer &&
	       atomic_load_explicit(&qp->to.peer->has_rx, memory_order_acquire);
}

/*
 * Selects the destination of the next requests, and the way to it. Only when nothing is
 * outstanding.
 */
static void aim(struct vb_qp *qp)
{
	const struct vb_req *req = &qp->req;
	uint32_t slot, towards;
	struct vb_peer *peer;

	if (!vb_req_is_between(req) || req->pos.next == req->tail ||
	    vb_wqe_is_local(vb_sq_at(&req->sq, req->pos.next)))
		return;
	if (vb_xrc_could_do_better(qp))
		vb_qp_pieces_set(qp);
	slot = vb_sq_at(&req->sq, req->pos.next)->remote.target;
	if (slot == qp->special.aimed_slot && qp->to.peer && qp->to.path.local &&
	    !vb_peer_is_lost(qp->to.peer))
		return;
	towards = slot << VB_INDEX_BITS | (qp->to.dqpn & (VB_INDICES - 1));
	peer = qp->to.path.local ? vb_peer_known(qp->nic, qp->ibv.qp.qp_num, towards) : NULL;
	if (slot == qp->special.aimed_slot &&
	    (peer == qp->to.peer || (qp->to.path.local && (!peer || vb_peer_is_lost(peer)))))
		return;
	if (peer)
		vb_qp_bind_locked(qp, peer, towards);
	else
		vb_qp_unbind_locked(qp);
	vb_qp_pieces_set(qp);
	vb_qp_link_set(qp);
	qp->special.aimed_slot = slot;
	vb_path_sport_set(qp->nic, &qp->to.path, (uint16_t)(qp->ibv.qp.qp_num >> VB_INDEX_BITS),
			  towards);
	/* By the wire there are clocks. */
	if (!qp->to.peer)
		qp->now_ns = vb_nic_now_ns(qp->nic);
}

/* Is the way of the next work request still unknown? (way.h) */
static bool is_awaited(struct vb_qp *qp)
{
	const struct vb_req *req = &qp->req;
	const struct vb_wqe *wqe;

	if (!qp->to.path.local || !vb_req_is_between(req) || req->pos.next == req->tail)
		return false;
	wqe = vb_sq_at(&req->sq, req->pos.next);
	/* If it is for the current destination, the way is known. */
	if (vb_wqe_is_local(wqe) || wqe->remote.target == qp->special.aimed_slot)
		return false;
	return vb_way_is_awaited(qp, wqe->remote.srqn);
}

void vb_xrc_transmit(struct vb_qp *qp, enum ibv_qp_state state)
{
	bool sends = state == IBV_QPS_RTS || state == IBV_QPS_SQD;

	do {
		if (sends && is_awaited(qp))
			return;
		if (sends)
			aim(qp);
		vb_qp_transmit_by_way(qp, state);
	} while (sends && qp->req.una_psn == qp->req.top_psn && vb_lane_is_astray(qp));
}
