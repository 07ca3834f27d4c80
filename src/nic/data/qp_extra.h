/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_QP_EXTRA_H
#define VB_NIC_QP_EXTRA_H

/*
 * Properties that a QP may be created with beyond struct ibv_qp_init_attr: those of
 * ibv_create_qp_ex(3), and of mlx5dv_create_qp(3) in our own terms.
 */

#include <infiniband/verbs.h>

#include "nic/data/qp_flags.h"

struct vb_dc_attr;

#define VB_QP_SCATTER_TO_CQE (VB_QP_SCATTER_TO_CQE_OFF | VB_QP_SCATTER_TO_CQE_ON)

struct vb_qp_extra {
	uint32_t create_flags, source_qpn, tso_header_max;
	const struct vb_dc_attr *dc;
	uint32_t dv_flags; /* enum vb_qp_dv_flag */
};

#endif
