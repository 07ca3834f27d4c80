/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/mlx5/mlx5.h"

/* mlx5 adds receive requests with several strides, which we do not support. */
struct ibv_wq *mlx5dv_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *attr,
				struct mlx5dv_wq_init_attr *mlx5_attr)
{
	if (mlx5_attr && mlx5_attr->comp_mask) {
		errno = mlx5_attr->comp_mask & ~(uint64_t)MLX5DV_WQ_INIT_ATTR_MASK_STRIDING_RQ
				? EINVAL
				: EOPNOTSUPP;
		return NULL;
	}
	return ibv_create_wq(context, attr);
}
