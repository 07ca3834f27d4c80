/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_POST_WHY_H
#define VB_NIC_POST_WHY_H

/*
 * Says why a post was refused. Found out afterwards, so that posting itself takes no step for it.
 * Inside nic; called only if a post fails.
 */

#include "nic/data/qp.h"

/*
 * Notes why this work request got `error` (base/refusal.h). Returns error. QP locked, and in the
 * state in which the post found it.
 */
int vb_send_refused(struct vb_qp *qp, const struct ibv_send_wr *wr, int error)
	__attribute__((cold, noinline));

/* The same for a receive request of this QP. */
int vb_recv_refused(struct vb_qp *qp, const struct ibv_recv_wr *wr, int error)
	__attribute__((cold, noinline));

/* The same for a receive request of this SRQ. No lock is needed. */
int vb_srq_recv_refused(const struct vb_srq *srq, const struct ibv_recv_wr *wr, int error)
	__attribute__((cold, noinline));

#endif
