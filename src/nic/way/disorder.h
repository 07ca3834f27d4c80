/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_DISORDER_H
#define VB_NIC_DISORDER_H

/*
 * Receiving in another order (core/order.h), in place of what receive.h has. Packets of one QP are
 * taken in the order in which they came, those of different QPs, and datagrams, are not. What they
 * write is noted, and placed before anything tells that it is there: a completion, an answer, the
 * acknowledgement.
 */

#include "nic/core/nic.h"
#include "nic/way/peer.h"

/* As vb_nic_rx(). */
uint64_t vb_disorder_rx(struct vb_nic *nic, const struct vb_frame *frames, unsigned count);

/* As vb_lane_take(). */
unsigned vb_disorder_take(struct vb_lane *lane);

#endif
