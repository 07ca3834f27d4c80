/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_SEND_RING_H
#define VB_NIC_SEND_RING_H

/* Sending through shared memory. QPs locked. */

#include "nic/data/qp.h"
#include "nic/way/peer.h"

/* The XRCETH of a request in a ring. On a wire it is truncated to the SRQ's number. */
static inline uint32_t vb_lane_xrceth(const struct vb_qp *qp, const struct vb_wqe *wqe)
{
	return wqe->remote.srqn | (qp->req.mtu == VB_LANE_MTU_BYTES ? VB_LANE_LARGE : 0);
}

/* Sends what a QP that is bound to a peer owes and may send; without room, it waits. */
void vb_lane_transmit(struct vb_qp *qp, enum ibv_qp_state state);

/*
 * The fast path for an RC QP in RTS that is bound to a peer: only an ACK is owed, or nothing is
 * owed and there is one work request, just posted. Returns false, with nothing changed, in all
 * other cases.
 */
bool vb_lane_transmit_short(struct vb_qp *qp);

/*
 * XRC, DC: does the QP need another destination or way before its next request? XRC: the request is
 * for another slot, or its pieces could be larger now. DC: a ring is available now.
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
	/* A message that has begun is retransmitted by the same way, in the same pieces. */
	if (wqe->psn != req->top_psn || req->pos.next_psn != req->top_psn)
		return false;
	return qp->service->send.could_do_better(qp);
}

/* DC: sends a packet without payload. Returns false if there is no room. No lane locked. */
bool vb_lane_put_one(struct vb_lane *lane, struct vb_pkt *pkt);

/* UD: does the next datagram go through shared memory, or wait to know? */
bool vb_lane_is_next(struct vb_qp *qp);

/*
 * UD: sends the next datagrams that do. Returns false if nothing else may leave now, by either way.
 */
bool vb_lane_datagrams(struct vb_qp *qp, enum ibv_qp_state state);

#endif
