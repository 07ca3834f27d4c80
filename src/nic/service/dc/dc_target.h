/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_DC_TARGET_H
#define VB_NIC_DC_TARGET_H

/* Targets of DC, and their contexts. QP locked, unless it says otherwise. */

#include "nic/service/dc/dc.h"

int vb_dct_make(struct vb_qp *target, const struct vb_qp_extra *extra);
void vb_dct_unmake(struct vb_qp *target);

/* The receive request for a message that begins; false: there is none. */
bool vb_dc_context_recv_take(struct vb_qp *context);

/* A request, or what connects; after that one of its contexts may be held. */
void vb_dct_take(struct vb_batch *batch, struct vb_qp *target, const struct vb_from *from,
		 const struct vb_pkt *pkt, const struct vb_op_info *info);

void vb_dc_context_request(struct vb_batch *batch, struct vb_qp *context,
			   const struct vb_frame *frame, const struct vb_pkt *pkt,
			   const struct vb_op_info *info);

/* Contexts of the other process: nobody is there any more. Rx right held, target not locked. */
void vb_dct_peer_gone(struct vb_qp *target, struct vb_peer *peer);

/* Nobody finds the target any more: what its contexts owe leaves, and nothing finds them either. */
void vb_dct_leave(struct vb_qp *target);

#endif
