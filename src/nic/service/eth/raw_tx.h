/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_RAW_TX_H
#define VB_NIC_RAW_TX_H

/* How RAW_PACKET QPs are made, and send (raw.h). */

#include "nic/service/eth/raw.h"

/* Makes qp->raw for a QP with a context; extra->tso_header_max 0: no TSO. ENOMEM, EOPNOTSUPP. */
int vb_raw_make(struct vb_qp *qp, const struct vb_qp_extra *extra);
void vb_raw_unmake(struct vb_qp *qp);

/* The size of a work request's data, given its size without TSO. */
uint32_t vb_raw_wqe_room(struct vb_qp *qp, uint32_t bytes);

/* The QP is reset: drops the frame under way. */
void vb_raw_reset(struct vb_qp *qp);

/*
 * Decodes an IBV_WR_TSO (ibv_post_send(3)). EINVAL: the QP was not created for it, or not for a
 * header of this length; a header shorter than Ethernet's; no mss. EFAULT: the header cannot be
 * read.
 */
int vb_raw_tso_decode(const struct vb_qp *qp, const struct ibv_send_wr *wr, struct vb_wqe *wqe);

/* vb_qp_transmit_locked() for these QPs. */
void vb_raw_transmit(struct vb_qp *qp, enum ibv_qp_state state);

#endif
