/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_DM_H
#define VB_NIC_DM_H

/*
 * Device memory (ibv_alloc_dm(3)). There is no device, so the host provides memory that other
 * processes can map: they write to it by plain stores.
 */

#include "nic/core/ctx.h"

struct vb_dm {
	struct ibv_dm ibv;
	uint8_t *memory;
	uint64_t bytes;
	uint32_t first, units;	/* within the device's memory, unless apart or foreign */
	bool apart;		/* or in memory of its own */
	struct vb_foreign *foreign; /* or in another process, mapped here (import.h); or NULL */
	_Atomic uint32_t users;	    /* MRs */
	struct vb_handle handle;
};

/*
 * Its content is zero. EINVAL: length 0 or beyond VB_DM_BYTES_MAX, an alignment beyond
 * 2^VB_DM_ALIGN_LOG_MAX, a comp_mask; ENOMEM: not enough left; EOPNOTSUPP: the host has none. The
 * caller fills in the functions of ibv.
 */
int vb_dm_alloc(struct vb_ctx *ctx, const struct ibv_alloc_dm_attr *attr, struct vb_dm **dm);

/*
 * The same in a forked child, where the NIC cannot be used: takes no lock, and the memory cannot be
 * registered. vb_dm_free_apart() ends it.
 */
int vb_dm_alloc_apart(struct vb_ctx *ctx, const struct ibv_alloc_dm_attr *attr,
		      struct vb_dm **dm);
void vb_dm_free_apart(struct vb_dm *dm);

/*
 * EBUSY: registered, through any handle; ENOENT: freed through another handle; EOPNOTSUPP: it
 * belongs to another process.
 */
int vb_dm_free(struct vb_dm *dm);

/*
 * ibv_memcpy_to_dm, ibv_memcpy_from_dm. As with hardware, offset and length must be multiples of
 * four octets, else EINVAL. EFAULT: beyond the end, or the application's memory cannot be accessed.
 * Any thread.
 */
int vb_dm_write(struct vb_dm *dm, uint64_t offset, const void *from, size_t bytes);
int vb_dm_read(const struct vb_dm *dm, uint64_t offset, void *to, size_t bytes);

#endif
