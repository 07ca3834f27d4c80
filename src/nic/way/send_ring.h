/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_SEND_RING_H
#define VB_NIC_SEND_RING_H

/* The way out through shared memory. QPs locked. */

#include "nic/data/qp.h"
#include "nic/way/peer.h"

/* The XRCETH of a request in a ring. On a wire it is cut to the SRQ's number. */
static inline uint32_t vb_lane_xrceth(const struct vb_qp *qp, const struct vb_wqe *wqe)
{
	return wqe->remote.srqn | (qp->req.mtu == VB_LANE_MTU_BYTES ? VB_LANE_LARGE : 0);
}

/* Send what a QP that is bound to a peer owes and may send; if there is no room, it waits. */
void vb_lane_transmit(struct vb_qp *qp, enum ibv_qp_state state);

/*
 * The short way for an RC in RTS that is bound to a peer: nothing but an ACK is owed, or nothing is
 * owed and there is one work request, just posted. False: there is more to it, and nothing has
 * changed.
 */
bool vb_lane_transmit_short(struct vb_qp *qp);

/*
 * XRC, DC: has the QP to be aimed before it begins the request that is next? XRC's is for another
 * slot than it aims at, or its pieces could be larger now; DC's could go by a ring now.
 */
static inline bool vb_lane_is_astray(struct vb_qp *qp)
{
	const struct vb_req *req = &qp->req;
	const struct vb_wqe *wqe;

	if (!vb_transport_aims(req->transport) || req->pos.next == req->tail)
		return false;
	wqe = vb_sq_at(&req->sq, req->pos.next);
	if (vb_wqe_is_local(wqe))
		return false;
	if (req->transport == VB_XRC && wqe->remote.target != qp->special.aimed_slot)
		return true;
	/* What was begun is sent again by the same way, and in the same pieces. */
	if (wqe->psn != req->top_psn || req->pos.next_psn != req->top_psn)
		return false;
	return qp->service->send.could_do_better(qp);
}

/* DC: one packet without payload; false: there is no room. No lane locked. */
bool vb_lane_put_one(struct vb_lane *lane, struct vb_pkt *pkt);

/* UD: does the datagram that is next go through shared memory, or wait to know whether it does? */
bool vb_lane_is_next(struct vb_qp *qp);

/* UD: send those that come next and do. False: nothing else may go now, by whichever way. */
bool vb_lane_datagrams(struct vb_qp *qp, enum ibv_qp_state state);

#endif
