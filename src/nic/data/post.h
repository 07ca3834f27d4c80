/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_POST_H
#define VB_NIC_POST_H

/* Work requests on their way into the queues of a QP. Any thread. */

#include <infiniband/verbs.h>

struct vb_qp;

/*
 * ibv_post_send(3), ibv_post_recv(3). EINVAL: state, opcode, SGEs, size; ENOMEM: full;
 * EOPNOTSUPP: an opcode that we do not do. *bad is the first work request not queued; those
 * before it are.
 */
int vb_qp_post_send(struct vb_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int vb_qp_post_recv(struct vb_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/*
 * As vb_qp_post_send(), but all or none: ibv_wr_complete(3). A FLUSH is told in wr.atomic: the
 * octets in compare_add, type and (from bit 8 on) level in swap.
 */
int vb_qp_post_batch(struct vb_qp *qp, const struct ibv_send_wr *wr);

/* --- inside nic --- */

/* The BIND of a window of type 1, which no work request of the application's can be (window.c). */
int vb_qp_post_bind(struct vb_qp *qp, const struct ibv_send_wr *wr);

#endif
