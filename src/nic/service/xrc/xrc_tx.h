/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_XRC_TX_H
#define VB_NIC_XRC_TX_H

/* The sending end of XRC, for its table. QP locked. */

#include "nic/service/xrc/xrc.h"

void vb_xrc_address(struct vb_qp *qp, struct vb_wqe *wqe, const struct ibv_send_wr *wr,
		    const struct vb_post *post);
void vb_xrc_transmit(struct vb_qp *qp, enum ibv_qp_state state);
bool vb_xrc_could_do_better(struct vb_qp *qp);

#endif
