/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_DC_TARGET_H
#define VB_NIC_DC_TARGET_H

/* DC targets and their contexts. QP locked unless stated otherwise. */

#include "nic/service/dc/dc.h"

int vb_dct_make(struct vb_qp *target, const struct vb_qp_extra *extra);
void vb_dct_unmake(struct vb_qp *target);

/* Makes the QP a target of that kind, which vb_dct_unmake() frees. 0 or ENOMEM. */
int vb_dct_begin(struct vb_qp *target, struct vb_dct *dct, const struct vb_dct_kind *kind);

/*
 * The target has failed, or is reset: its contexts take and answer nothing any more. flush: gives
 * the receive requests back that they have taken for messages without an end.
 */
void vb_dct_close(struct vb_qp *target, bool flush);

/* Takes the receive request for a new message. Returns false if there is none. */
bool vb_dc_context_recv_take(struct vb_qp *context);

/* Handles a request, or a CONNECT; afterwards one of its contexts may be held. */
void vb_dct_take(struct vb_batch *batch, struct vb_qp *target, const struct vb_from *from,
		 const struct vb_pkt *pkt, const struct vb_op_info *info);

/*
 * A CONNECT of SRD for a QP that does not exist, or has failed: tells the sender, which would wait
 * in vain. DC does not, since hardware does not either.
 */
void vb_dc_nobody(struct vb_batch *batch, const struct vb_from *from, const struct vb_pkt *pkt);

void vb_dc_context_request(struct vb_batch *batch, struct vb_qp *context,
			   const struct vb_frame *frame, const struct vb_pkt *pkt,
			   const struct vb_op_info *info);

/* Contexts of this process no longer have an initiator. Rx right held, target not locked. */
void vb_dct_peer_gone(struct vb_qp *target, struct vb_peer *peer);

/* The target can no longer be found: sends what its contexts owe, and hides them, too. */
void vb_dct_leave(struct vb_qp *target);

#endif
