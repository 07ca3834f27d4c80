/* SPDX-License-Identifier: BSD-2-Clause */
/* mlx5dv_create_qp(3), translated into the NIC's flags. */
#include <stdlib.h>
#include <string.h>

#include "abi/mlx5/mlx5.h"
#include "abi/mlx5/wr.h"
#include "abi/verbs/qp.h"
#include "base/check.h"
#include "tape/calls.h"

struct flag {
	uint64_t theirs;
	uint32_t ours;
};

/* MLX5DV_QP_CREATE_OOO_DP of rdma-core 56 and later. */
#define CREATE_OOO_DP (1u << 7)

static const struct flag create_flags[] = {
	{ MLX5DV_QP_CREATE_TUNNEL_OFFLOADS, VB_QP_TUNNEL_OFFLOADS },
	{ MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_UC, VB_QP_LOOPBACK_UC },
	{ MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_MC, VB_QP_LOOPBACK_MC },
	{ MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE, VB_QP_SCATTER_TO_CQE_OFF },
	{ MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE, VB_QP_SCATTER_TO_CQE_ON },
	{ MLX5DV_QP_CREATE_PACKET_BASED_CREDIT_MODE, VB_QP_PACKET_CREDITS },
	{ CREATE_OOO_DP, VB_QP_OOO_DP },
	/* This concerns signatures, which we do not support. */
	{ MLX5DV_QP_CREATE_SIG_PIPELINING, 0 },
};

static const struct flag send_ops[] = {
	{ MLX5DV_QP_EX_WITH_MR_INTERLEAVED, VB_QP_MR_INTERLEAVED },
	{ MLX5DV_QP_EX_WITH_MR_LIST, VB_QP_MR_LIST },
	{ MLX5DV_QP_EX_WITH_MKEY_CONFIGURE, VB_QP_MKEY_CONFIGURE },
	{ MLX5DV_QP_EX_WITH_RAW_WQE, VB_QP_RAW_WQE },
	{ MLX5DV_QP_EX_WITH_MEMCPY, VB_QP_MEMCPY },
};

/*
 * Returns EOPNOTSUPP for a flag that we know and do not support, `unknown` for one that is not in
 * the table.
 */
static int translate(const struct flag *table, size_t rows, uint64_t flags, int unknown,
		     uint32_t *out)
{
	uint64_t known = 0;
	int rc = 0;

	for (size_t i = 0; i < rows; i++) {
		known |= table[i].theirs;
		if (flags & table[i].theirs) {
			*out |= table[i].ours;
			if (!table[i].ours)
				rc = EOPNOTSUPP;
		}
	}
	return flags & ~known ? unknown : rc;
}

/* Reads what is valid of dc_init_attr: the DC type and one member of the union. */
static int dc_of(const struct mlx5dv_qp_init_attr *attr, struct vb_dc_attr *dc)
{
	const struct mlx5dv_dc_init_attr *from = &attr->dc_init_attr;
	bool streams = attr->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS;

	if (from->dc_type == MLX5DV_DCTYPE_DCT) {
		*dc = (struct vb_dc_attr){ .target = true, .access_key = from->dct_access_key };
		return streams ? EINVAL : 0;
	}
	*dc = (struct vb_dc_attr){ .streams = streams };
	if (streams) {
		dc->streams_log = from->dci_streams.log_num_concurent;
		dc->errored_log = from->dci_streams.log_num_errored;
	}
	return from->dc_type == MLX5DV_DCTYPE_DCI ? 0 : EINVAL;
}

/* If no flag decides, the environment does, as with mlx5. */
static uint32_t scatter_by_default(uint32_t flags)
{
	const char *set = secure_getenv("MLX5_SCATTER_TO_CQE");

	if ((flags & (VB_QP_SCATTER_TO_CQE_OFF | VB_QP_SCATTER_TO_CQE_ON)) || !set ||
	    strcmp(set, "0") != 0)
		return flags;
	return flags | VB_QP_SCATTER_TO_CQE_OFF;
}

/* Reads only what comp_mask says is valid. */
static int attr_of(const struct ibv_qp_init_attr_ex *attr, const struct mlx5dv_qp_init_attr *from,
		   struct vb_qp_dv_attr *dv, struct vb_dc_attr *dc)
{
	static const uint64_t known = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS |
				      MLX5DV_QP_INIT_ATTR_MASK_DC |
				      MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS |
				      MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS;
	int rc = 0;

	if (from->comp_mask & ~known)
		return EINVAL;
	if (from->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_DC) {
		rc = dc_of(from, dc);
		dv->dc = dc;
	} else if (from->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS) {
		rc = EINVAL;
	}
	if (rc == 0 && (from->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS))
		rc = translate(create_flags, VB_ARRAY_LEN(create_flags), from->create_flags,
			       EINVAL, &dv->flags);
	if (rc == 0 && (from->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS))
		rc = translate(send_ops, VB_ARRAY_LEN(send_ops), from->send_ops_flags, EOPNOTSUPP,
			       &dv->flags);
	dv->flags = scatter_by_default(dv->flags);
	return rc;
}

struct ibv_qp *mlx5dv_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
				struct mlx5dv_qp_init_attr *mlx5_attr)
{
	static const struct mlx5dv_qp_init_attr nothing;
	struct vb_qp_dv_attr dv = { 0 };
	struct vb_mlx5_qp *part;
	struct ibv_qp *qp;
	struct vb_dc_attr dc;
	int rc = attr_of(attr, mlx5_attr ? mlx5_attr : &nothing, &dv, &dc);

	if (rc != 0) {
		vb_abi_result(rc);
		return NULL;
	}
	part = vb_mlx5_qp_part();
	if (!part) {
		errno = ENOMEM;
		return NULL;
	}
	qp = vb_abi_create_qp_dv(context, attr, &dv, part);
	if (qp && ibv_qp_to_qp_ex(qp))
		part->qp = ibv_qp_to_qp_ex(qp);
	return qp;
}

int mlx5dv_modify_qp_udp_sport(struct ibv_qp *qp, uint16_t udp_sport)
{
	if (vb_abi_is_dead(qp->context))
		return EIO;
	return vb_taped_qp_sport_choose((struct vb_qp *)qp, udp_sport);
}
