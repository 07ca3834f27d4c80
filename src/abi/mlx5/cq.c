/* SPDX-License-Identifier: BSD-2-Clause */
/* mlx5dv_create_cq(3). */
#include <stdlib.h>

#include "abi/mlx5/mlx5.h"
#include "abi/verbs/ops.h"
#include "nic/queue/cq.h"

/* The environment decides, as with mlx5. */
static uint16_t bytes_by_default(void)
{
	const char *set = secure_getenv("MLX5_CQE_SIZE");
	unsigned long bytes = set ? strtoul(set, NULL, 10) : VB_CQE_BYTES;

	return bytes > VB_CQE_BYTES_MAX ? 0 : (uint16_t)bytes;
}

/*
 * Completions have 64 octets by default. Their size decides how much data fits in one
 * (nic/queue/parcel.h); padding has no visible effect.
 */
static int check(const struct mlx5dv_cq_init_attr *attr, uint16_t *cqe_bytes)
{
	static const uint64_t known = MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE |
				      MLX5DV_CQ_INIT_ATTR_MASK_FLAGS |
				      MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE;
	uint32_t flags = attr->comp_mask & MLX5DV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;

	if (attr->comp_mask & ~known)
		return EINVAL;
	*cqe_bytes = attr->comp_mask & MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE ? attr->cqe_size
									 : bytes_by_default();
	if (*cqe_bytes != VB_CQE_BYTES && *cqe_bytes != VB_CQE_BYTES_MAX)
		return EINVAL;
	/* "a padded 128B CQE" */
	if (flags & ~(uint32_t)MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD ||
	    (flags && *cqe_bytes != VB_CQE_BYTES_MAX))
		return EINVAL;
	return attr->comp_mask & MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE ? EOPNOTSUPP : 0;
}

struct ibv_cq_ex *mlx5dv_create_cq(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr,
				   struct mlx5dv_cq_init_attr *mlx5_attr)
{
	static const struct mlx5dv_cq_init_attr nothing;
	struct ibv_cq_ex *cq;
	uint16_t cqe_bytes;
	int rc = check(mlx5_attr ? mlx5_attr : &nothing, &cqe_bytes);

	if (rc != 0) {
		vb_abi_result(rc);
		return NULL;
	}
	cq = vb_abi_create_cq_ex(context, attr);
	if (cq)
		((struct vb_cq *)cq)->made.cqe_bytes = cqe_bytes;
	return cq;
}
