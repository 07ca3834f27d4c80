/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_RQ_H
#define VB_NIC_RQ_H

/* The queue under every receive queue, shared or not. Inside nic. */

#include "engine/recv.h"
#include "nic/srq.h"

int vb_rq_init(struct vb_rq *rq, uint32_t wr_max, uint32_t sge_max);
void vb_rq_fini(struct vb_rq *rq);

/* EINVAL, ENOMEM: as ibv_post_recv(3); *bad is the first request not queued. */
int vb_rq_post(struct vb_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* Take the oldest request: false if there is none. *left: how many remain. */
bool vb_rq_take(struct vb_rq *rq, struct vb_recv *recv, uint32_t *left);
bool vb_srq_take(struct vb_srq *srq, struct vb_recv *recv);

uint32_t vb_rq_count(struct vb_rq *rq);
void vb_rq_empty(struct vb_rq *rq);

#endif
