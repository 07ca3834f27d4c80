/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_PACE_H
#define VB_NIC_PACE_H

/*
 * Rate limits (ibv_modify_qp(3) with IBV_QP_RATE_LIMIT, ibv_modify_qp_rate_limit(3)): they bound
 * the octets of frames with the QP's requests, on any way. After a pause a burst may leave at once;
 * answers to requests of others are not delayed.
 *
 * A peer that tells of congestion by CNPs sets a rate, too (engine/dcqcn.h); the lower one counts.
 *
 * All functions are called with the QP locked.
 */

#include "nic/data/qp.h"

/* 0: no limit. burst_bytes 0: what the rate allows in VB_PACE_BURST_NS. */
void vb_pace_set(struct vb_qp *qp, uint32_t rate_kbps, uint32_t burst_bytes);

/* A CNP came: the QP goes slower for a while. */
void vb_pace_cut(struct vb_qp *qp);

/* Is it too early for the next packet? Then sets the QP's timer. Paced QPs only. */
bool vb_pace_waits(struct vb_qp *qp);

/* A frame of this size leaves. Paced QPs only. */
void vb_pace_charge(struct vb_qp *qp, uint32_t bytes);

/* Does the device support this rate? 0 or EINVAL. */
int vb_pace_check(uint32_t rate_kbps);

#define VB_PACE_BURST_NS 1000000u

#endif
