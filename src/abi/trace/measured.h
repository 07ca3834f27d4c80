/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_MEASURED_H
#define VB_ABI_MEASURED_H

/*
 * Posting and polling that also measure (nic/data/latency.h). The NIC has them put in place while
 * somebody watches (control/sample.h); each takes itself away again when nobody has looked for
 * longer than was announced. So they cost nothing where nobody looks.
 */

#include <infiniband/verbs.h>

struct vb_ctx;
struct vb_qp;

/* Puts them in place for a context; or for a QP and its CQ, if these have their own. */
void vb_measure(struct vb_ctx *ctx, struct vb_qp *qp);

/* What vb_cq.abi of an extended CQ begins with: its functions when nobody measures. */
struct vb_measured_cq {
	int (*start)(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr);
	int (*next)(struct ibv_cq_ex *cq);
	const struct ibv_wc *(*current)(struct ibv_cq_ex *cq); /* the completion at hand */
};

#endif
