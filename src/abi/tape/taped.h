/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_TAPED_H
#define VB_ABI_TAPED_H

/* Posting and polling of a process that is recorded (tape/tape.h). */

#include <infiniband/verbs.h>

/* Gives them to a context that is opened, in place of the usual ones. */
void vb_taped_ops_set(struct ibv_context_ops *ops);

/* Around the posting of a builder's batch; post: what does it. */
struct vb_builder;
int vb_taped_complete(struct ibv_qp_ex *qp, const struct vb_builder *builder,
		      int (*complete)(struct ibv_qp_ex *qp));

#endif
