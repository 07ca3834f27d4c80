/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_SEND_H
#define VB_NIC_SEND_H

/* Sending by either way: packets from work requests, and the choice of a QP's way. QP locked. */

#include "nic/data/qp.h"
#include "nic/mem/payload.h"

/* Begins a packet to the QP's peer; the caller sets opcode and PSN. */
static inline void vb_qp_pkt_begin(const struct vb_qp *qp, struct vb_pkt *pkt)
{
	vb_pkt_begin(pkt, qp->to.dqpn, VB_PKEY_DEFAULT);
	pkt->migreq = qp->to.migreq;
}

/* Finds the QP's data: vb_payload_gather(), vb_payload_response(). */
static inline bool vb_qp_gather(struct vb_qp *qp, const struct vb_wqe *wqe, uint32_t offset,
				uint32_t bytes, struct vb_payload *out)
{
	return vb_payload_gather(qp->nic, qp->ibv.qp.pd, wqe, offset, bytes, out);
}

static inline bool vb_qp_gather_response(struct vb_qp *qp, const struct vb_pkt *pkt,
					 struct vb_payload *out)
{
	return vb_payload_response(qp->nic, qp->ibv.qp.pd, qp->ibv.qp.qp_num, pkt, out);
}

/* May requests leave in this state? */
static inline bool vb_qp_sends(enum ibv_qp_state state)
{
	return state == IBV_QPS_RTS || state == IBV_QPS_SQD;
}

/* Fills in the opcode's headers for a segment, except P_Key and pad; sets nothing else. */
void vb_pkt_fill_request(const struct vb_qp *qp, const struct vb_wqe *wqe,
			 const struct vb_segment *seg, bool ackreq, struct vb_pkt *pkt);

/* Sends what the QP owes and may send: by the ring that it is bound to, or by the wire. */
void vb_qp_transmit_by_way(struct vb_qp *qp, enum ibv_qp_state state);

#endif
