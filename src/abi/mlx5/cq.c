/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/mlx5/mlx5.h"

struct ibv_cq_ex *mlx5dv_create_cq(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr,
				   struct mlx5dv_cq_init_attr *mlx5_attr)
{
	if (mlx5_attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return vb_abi_create_cq_ex(context, attr);
}
