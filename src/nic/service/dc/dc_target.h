/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_DC_TARGET_H
#define VB_NIC_DC_TARGET_H

/* DC targets and their contexts. QP locked unless stated otherwise. */

#include "nic/service/dc/dc.h"

int vb_dct_make(struct vb_qp *target, const struct vb_qp_extra *extra);
void vb_dct_unmake(struct vb_qp *target);

/* Takes the receive request for a new message. Returns false if there is none. */
bool vb_dc_context_recv_take(struct vb_qp *context);

/* Handles a request, or a CONNECT; afterwards one of its contexts may be held. */
void vb_dct_take(struct vb_batch *batch, struct vb_qp *target, const struct vb_from *from,
		 const struct vb_pkt *pkt, const struct vb_op_info *info);

void vb_dc_context_request(struct vb_batch *batch, struct vb_qp *context,
			   const struct vb_frame *frame, const struct vb_pkt *pkt,
			   const struct vb_op_info *info);

/* Contexts of this process no longer have an initiator. Rx right held, target not locked. */
void vb_dct_peer_gone(struct vb_qp *target, struct vb_peer *peer);

/* The target can no longer be found: sends what its contexts owe, and hides them, too. */
void vb_dct_leave(struct vb_qp *target);

#endif
