/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_PAIR_H
#define VB_NIC_PAIR_H

/*
 * Pacing of what is not acknowledged. UC and UD go as fast as the processor lets them, and the
 * other side's socket buffer overflows. So, for each NIC that we send to, we know how much it
 * may not yet have taken in, and ask now and then (wire/flow.h). A NIC that does not answer is
 * none of ours: it is left alone, and sent to without pacing.
 */

#include "engine/req.h"
#include "nic/core/internal.h"
#include "wire/flow.h"

/*
 * May a burst leave now? False: not before others were taken in; try again a little later.
 * Asks, when it is time to.
 */
bool vb_pair_admit(struct vb_nic *nic, uint16_t src_slot, const struct vb_burst *burst,
		   uint64_t now_ns);

/* A question or an answer arrived: true if QPs that were held back may go on. Rx right held. */
bool vb_pair_rx(struct vb_nic *nic, const struct vb_frame *frame, const struct vb_flow *flow);

/* QPs that pacing holds back: hold one, give one up, let one go (NULL: none). */
void vb_pair_hold(struct vb_nic *nic, struct vb_qp *qp);
void vb_pair_unhold(struct vb_nic *nic, struct vb_qp *qp);
struct vb_qp *vb_pair_release(struct vb_nic *nic);

/* The pairs' memory, with the NIC's. */
int vb_pairs_init(struct vb_nic *nic, uint64_t seed);
void vb_pairs_fini(struct vb_nic *nic);

#endif
