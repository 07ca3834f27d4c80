/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_CONTROL_SRQ_H
#define VB_NIC_CONTROL_SRQ_H

/* How SRQs are made and destroyed, of whatever type. */

#include "nic/queue/srq.h"

/*
 * ibv_create_srq(3): attr has what is wanted, and what came out, which is the same. EINVAL beyond
 * the device's limits. ibv.handle is its number, as ibv_get_srq_num(3) has it.
 */
int vb_srq_create(struct vb_pd *pd, struct ibv_srq_init_attr *attr, struct vb_srq **srq);

/*
 * ibv_create_srq_ex(3). EINVAL: a bit of comp_mask that the type needs is missing, or one that it
 * has no use for is set, or objects of another context, or more tags than the device has.
 * EOPNOTSUPP: bits that we do not know. The number of an XRC SRQ is one of the NIC's, as QPNs are.
 */
int vb_srq_create_ex(struct vb_ctx *ctx, struct ibv_srq_init_attr_ex *attr, struct vb_srq **srq);

/*
 * EBUSY while QPs use it. Dead but not freed after that: the caller waits for acks of
 * events_delivered, then calls vb_srq_free().
 */
int vb_srq_destroy(struct vb_srq *srq);

#endif
