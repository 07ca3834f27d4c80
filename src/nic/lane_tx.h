/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_LANE_TX_H
#define VB_NIC_LANE_TX_H

/* The way out through shared memory. QPs locked. */

#include "nic/qp.h"

/* Send what a QP that is bound to a peer owes and may send; if there is no room, it waits. */
void vb_lane_transmit(struct vb_qp *qp, enum ibv_qp_state state);

/*
 * XRC: to whom its requests go next, and by which way. Nothing is outstanding where that changes,
 * so nothing happens where something is.
 */
void vb_lane_aim(struct vb_qp *qp);

/* XRC: is the request that is next for another slot than the QP aims at? */
static inline bool vb_lane_is_astray(const struct vb_qp *qp)
{
	const struct vb_req *req = &qp->req;
	const struct vb_wqe *wqe;

	if (req->transport != VB_XRC || req->pos.next == req->tail)
		return false;
	wqe = vb_sq_at(&req->sq, req->pos.next);
	return !vb_wqe_is_local(wqe) && vb_wqe_srq_slot(wqe) != qp->aimed_slot;
}

/* DC: one packet without payload; false: there is no room. No lane locked. */
bool vb_lane_put_one(struct vb_lane *lane, struct vb_pkt *pkt);

/* UD: does the datagram that is next go through shared memory? */
bool vb_lane_is_next(struct vb_qp *qp);

/* UD: send those that come next and do. False: nothing else may go now, by whichever way. */
bool vb_lane_datagrams(struct vb_qp *qp, enum ibv_qp_state state);

#endif
