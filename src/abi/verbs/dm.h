/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_VERBS_DM_H
#define VB_ABI_VERBS_DM_H

/* Device memory (dm.c); ibv_alloc_dm(3) itself is an entry of ops.h. */

#include <infiniband/verbs.h>

/* Sets what ibv_memcpy_to_dm(3) and ibv_memcpy_from_dm(3) call. */
void vb_abi_dm_fill_in(struct ibv_dm *dm);

#endif
