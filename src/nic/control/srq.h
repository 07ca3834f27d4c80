/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_CONTROL_SRQ_H
#define VB_NIC_CONTROL_SRQ_H

/* Creates and destroys SRQs of any type. */

#include "nic/queue/srq.h"

/*
 * ibv_create_srq(3): attr is requested in, actual out; they are equal. EINVAL beyond the device's
 * limits. ibv.handle is its number, as for ibv_get_srq_num(3).
 */
int vb_srq_create(struct vb_pd *pd, struct ibv_srq_init_attr *attr, struct vb_srq **srq);

/*
 * ibv_create_srq_ex(3). EINVAL: comp_mask lacks a bit that the type needs, or has one that it does
 * not use; objects of another context; more tags than the device has. EOPNOTSUPP: unknown bits. The
 * number of an XRC SRQ comes from the same range as QPNs.
 */
int vb_srq_create_ex(struct vb_ctx *ctx, struct ibv_srq_init_attr_ex *attr, struct vb_srq **srq);

/*
 * EBUSY while QPs use it. Afterwards it is dead but not freed: the caller waits for acknowledgement
 * of events_delivered, then calls vb_srq_free().
 */
int vb_srq_destroy(struct vb_srq *srq);

#endif
