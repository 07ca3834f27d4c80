/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_LANE_TX_H
#define VB_NIC_LANE_TX_H

/* The way out through shared memory. QPs locked. */

#include "nic/qp.h"

/* Send what a QP that is bound to a peer owes and may send; if there is no room, it waits. */
void vb_lane_transmit(struct vb_qp *qp, enum ibv_qp_state state);

/* UD: does the datagram that is next go through shared memory? */
bool vb_lane_is_next(struct vb_qp *qp);

/* UD: send those that come next and do. False: nothing else may go now, by whichever way. */
bool vb_lane_datagrams(struct vb_qp *qp, enum ibv_qp_state state);

#endif
