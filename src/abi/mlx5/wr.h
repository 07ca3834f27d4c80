/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_MLX5_WR_H
#define VB_ABI_MLX5_WR_H

/* The builder of QPs that mlx5dv_create_qp(3) makes. */

#include "abi/mlx5/mlx5.h"

/* Allocates one by malloc(), without its QP; NULL: no memory. */
struct vb_mlx5_qp *vb_mlx5_qp_part(void);

#endif
