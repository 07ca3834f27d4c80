/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_SEND_WIRE_H
#define VB_NIC_SEND_WIRE_H

/* Sending by the wire. QPs locked. */

#include "nic/data/qp.h"

/*
 * Sends what the QP owes and may send. Returns false if the link, or pacing, has no room for more.
 */
bool vb_wire_transmit(struct vb_qp *qp, enum ibv_qp_state state);

#endif
