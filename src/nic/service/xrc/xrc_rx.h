/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_XRC_RX_H
#define VB_NIC_XRC_RX_H

/* Shadows of receive QPs, and what they receive (xrc.h). */

#include "nic/service/xrc/xrc.h"

/* The shadow of the QP with this number, made if possible; else NULL. */
struct vb_qp *vb_xrc_shadow(struct vb_nic *nic, uint32_t qpn);

/* Updates it from the store. Returns false if that is not possible now. Shadow locked. */
bool vb_xrc_refresh(struct vb_qp *qp);

/* For the service table (service.h). */
void vb_xrc_take(struct vb_batch *batch, struct vb_qp *qp, const struct vb_from *from,
		 const struct vb_pkt *pkt, const struct vb_op_info *info);
bool vb_xrc_middle(struct vb_batch *batch, struct vb_qp *qp, const struct vb_lane *lane,
		   const struct vb_ring_frame *from);
void vb_xrc_request(struct vb_batch *batch, struct vb_qp *qp, const struct vb_frame *frame,
		    const struct vb_pkt *pkt, const struct vb_op_info *info);

/*
 * QPs may have ended or failed: flushes receive requests taken for messages that will not continue.
 * No QP locked.
 */
void vb_xrc_shadows_look(struct vb_nic *nic);

/* This peer can no longer be answered. Rx right held. */
void vb_xrc_peer_gone(struct vb_peer *peer);

/* Packets no longer find the SRQ: makes sure that no shadow points to it. */
void vb_xrc_srq_leave(struct vb_srq *srq);

#endif
