/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_SEND_WIRE_H
#define VB_NIC_SEND_WIRE_H

/* The way out by the wire. QPs locked. */

#include "nic/data/qp.h"

/* Send what the QP owes and may send; false if the link, or pacing, has no room for more. */
bool vb_wire_transmit(struct vb_qp *qp, enum ibv_qp_state state);

#endif
