/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_VERBS_QP_H
#define VB_ABI_VERBS_QP_H

/* QPs beside those that ibv_create_qp(3) makes. */

#include <infiniband/verbs.h>

struct vb_qp_dv_attr;

/*
 * mlx5dv_create_qp(3), translated; attr may ask for more than ibv_create_qp_ex() accepts. part:
 * memory from malloc() that abi/mlx5 finds again in the builder (wr.h), which then owns it; freed
 * at once if the QP gets no builder. Returns NULL with errno.
 */
struct ibv_qp *vb_abi_create_qp_dv(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
				   const struct vb_qp_dv_attr *dv, void *part);

#endif
