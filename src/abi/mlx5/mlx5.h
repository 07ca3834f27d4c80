/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_MLX5_MLX5_H
#define VB_ABI_MLX5_MLX5_H

/*
 * Shared by the files of libmlx5.so.1: mlx5 direct verbs, mlx5dv_*(3). They translate between
 * <infiniband/mlx5dv.h> and the NIC, which does not know that header, and call the NIC through
 * functions that libibverbs.so.1 lends (base/lent.h). One file per subject, as in abi/verbs;
 * stubs.c has what is not supported at all.
 */

#include <infiniband/mlx5dv.h>

#include "abi/verbs/abi.h"
#include "abi/verbs/wr.h"

/* The part of a QP of mlx5dv_create_qp() that has a builder; vb_builder.dv points to it. */
struct vb_mlx5_qp {
	struct mlx5dv_qp_ex ex; /* first: the handle that the application holds is the object */
	struct ibv_qp_ex *qp;
};

static inline struct ibv_qp_ex *vb_mlx5_qp_of(struct mlx5dv_qp_ex *mqp)
{
	return ((struct vb_mlx5_qp *)mqp)->qp;
}

static inline struct vb_builder *vb_mlx5_builder(struct mlx5dv_qp_ex *mqp)
{
	return vb_wr_builder(vb_mlx5_qp_of(mqp));
}

#endif
