/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_MLX5_MLX5_H
#define VB_ABI_MLX5_MLX5_H

/*
 * What the files of libmlx5.so.1 share: mlx5 direct verbs, mlx5dv_*(3). They translate between
 * <infiniband/mlx5dv.h> and the NIC, which does not know that header, and call the NIC itself, by
 * functions that libibverbs.so.1 lends (base/lent.h). Files by subject, as in abi/verbs; what we
 * do not do at all is in stubs.c.
 */

#include <infiniband/mlx5dv.h>

#include "abi/verbs/abi.h"

#endif
