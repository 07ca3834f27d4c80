/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_MEM_H
#define VB_NIC_MEM_H

/* Memory regions and the table of keys. */

#include "nic/ctx.h"

struct vb_mr {
	struct ibv_mr ibv;
	uint64_t iova;	 /* the address that SGEs and RETHs use for the first octet */
	uint8_t *base;	 /* where that octet is */
	uint64_t bytes;
	unsigned access; /* IBV_ACCESS_* */
	struct vb_shared shared;
};

/*
 * Register. access: any of LOCAL_WRITE, REMOTE_*, MW_BIND, ZERO_BASED, ON_DEMAND (accepted: all
 * memory is paged on demand here), HUGETLB and the optional range. EINVAL: unknown bits, or
 * REMOTE_WRITE / REMOTE_ATOMIC without LOCAL_WRITE; ENOMEM; EFAULT: not mapped or not writable.
 * iova is ignored with ZERO_BASED (it is 0 then).
 */
int vb_mr_reg(struct vb_pd *pd, void *addr, size_t bytes, uint64_t iova, unsigned access,
	      struct vb_mr **mr);

/*
 * ibv_rereg_mr(3). flags: IBV_REREG_MR_CHANGE_*. The keys stay. EINVAL and EFAULT as reg. On
 * failure nothing changed. Accesses that meet the region just then are refused.
 */
int vb_mr_rereg(struct vb_mr *mr, int flags, struct vb_pd *pd, void *addr, size_t bytes,
		unsigned access);

/* Waits for accesses under way, which are copies of microseconds. Frees mr. */
int vb_mr_dereg(struct vb_mr *mr);

#endif
