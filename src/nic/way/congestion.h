/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_CONGESTION_H
#define VB_NIC_CONGESTION_H

/*
 * Congestion notification (IBTA Annex A17): the receiver of a marked packet tells the sender by a
 * CNP, and the sender slows down (data/pace.h). For services with one peer: RC and UC.
 */

#include "base/frame.h"
#include "nic/data/qp.h"

/*
 * A frame came marked. Sends a CNP to its QP's peer, if it is from there; not more often than the
 * peer's rate could change. Rx right held, no QP locked.
 */
void vb_congestion_tell(struct vb_nic *nic, const struct vb_frame *frame);

/* A CNP came, by that path. Returns false if that is not the peer's. QP locked. */
bool vb_congestion_heed(struct vb_qp *qp, const struct vb_path *came);

#endif
