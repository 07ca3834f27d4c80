/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_PAIR_H
#define VB_NIC_PAIR_H

/*
 * Paces what is not acknowledged. UC and UD go as fast as the CPU allows, and would overflow the
 * receiver's socket buffer. So for each NIC that we send to, we track how much it may not have
 * taken in yet, and ask it now and then (wire/flow.h). A NIC that does not answer is not one of
 * ours, and is sent to without pacing.
 */

#include "engine/req.h"
#include "nic/core/internal.h"
#include "wire/flow.h"

/*
 * May a burst leave now? Returns false if others have to be taken in before; try again a little
 * later. Sends a question if it is time to.
 */
bool vb_pair_admit(struct vb_nic *nic, uint16_t src_slot, const struct vb_burst *burst,
		   uint64_t now_ns);

/*
 * Handles a question or an answer. Returns true if QPs that were held back may continue. Rx right
 * held.
 */
bool vb_pair_rx(struct vb_nic *nic, const struct vb_frame *frame, const struct vb_flow *flow);

/* QPs that pacing holds back: adds one, removes one, takes out the next (NULL: none). */
void vb_pair_hold(struct vb_nic *nic, struct vb_qp *qp);
void vb_pair_unhold(struct vb_nic *nic, struct vb_qp *qp);
struct vb_qp *vb_pair_release(struct vb_nic *nic);

/* The memory of pairs; with the NIC's creation and destruction. */
int vb_pairs_init(struct vb_nic *nic, uint64_t seed);
void vb_pairs_fini(struct vb_nic *nic);

#endif
