/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_MEM_KINDS_H
#define VB_NIC_MEM_KINDS_H

/* Other kinds of memory: device memory, dma-buf, null regions; and advice. */

#include "nic/mem/mem.h"

/*
 * ibv_reg_dm_mr(3): registers device memory from offset on; its first octet has address 0. EINVAL:
 * beyond the device memory, no ZERO_BASED, incompatible rights, or rights other than LOCAL_WRITE,
 * REMOTE_* and the optional range; ENOMEM.
 */
int vb_mr_reg_dm(struct vb_pd *pd, struct vb_dm *dm, uint64_t offset, uint64_t bytes,
		 unsigned access, struct vb_mr **mr);

/*
 * ibv_reg_dmabuf_mr(3): registers the octets from offset on of what fd refers to. EBADF: no
 * descriptor; EINVAL: no contents, or fewer octets; offset and iova differ in their offset within a
 * page; length 0; rights as for device memory, but without ZERO_BASED; EOPNOTSUPP: it cannot be
 * mapped so; ENOMEM.
 */
int vb_mr_reg_dmabuf(struct vb_pd *pd, uint64_t offset, uint64_t bytes, uint64_t iova, int fd,
		     unsigned access, struct vb_mr **mr);

/* ibv_alloc_null_mr(3): valid for any address and length, by its lkey only. ENOMEM. */
int vb_mr_alloc_null(struct vb_pd *pd, struct vb_mr **mr);

/*
 * ibv_advise_mr(3). Checks everything before it fetches anything. EOPNOTSUPP: no such advice;
 * EINVAL: flags other than FLUSH, no SGE, a region that is not ON_DEMAND; ENOENT: no region has
 * that lkey; EPERM: it is in another PD, or to be written without LOCAL_WRITE; EFAULT: beyond its
 * bounds, or parts are not mapped (or not writable); ENOMEM.
 */
int vb_mr_advise(struct vb_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		 const struct ibv_sge *sge, uint32_t count);

/*
 * max_dm_size and the attributes of on-demand paging in ibv_query_device_ex(3); orig_attr is set.
 */
void vb_mem_query(const struct vb_nic *nic, struct ibv_device_attr_ex *attr);

/* --- inside nic --- */

/* Releases what its kind uses, when the region is deregistered and no longer accessed. */
void vb_mr_let_go(struct vb_mr *mr);

#endif
