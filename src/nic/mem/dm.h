/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_DM_H
#define VB_NIC_DM_H

/*
 * Device memory (ibv_alloc_dm(3)). There is no device, so it is a stretch of memory that the host
 * provides, which other processes can map: what they write to it takes a store.
 */

#include "nic/core/ctx.h"

struct vb_dm {
	struct ibv_dm ibv;
	uint8_t *memory;
	uint64_t bytes;
	uint32_t first, units;	/* of the device's memory, if that is where it lies */
	bool apart;		/* or in memory of its own */
	struct vb_foreign *foreign; /* or in another process, mapped here (import.h); or NULL */
	_Atomic uint32_t users;	    /* MRs */
	struct vb_handle handle;
};

/*
 * What is there is zero. EINVAL: no length or one beyond VB_DM_BYTES_MAX, an alignment beyond
 * 2^VB_DM_ALIGN_LOG_MAX, a comp_mask; ENOMEM: so much is not left; EOPNOTSUPP: the host has none.
 * The caller fills in the functions of ibv.
 */
int vb_dm_alloc(struct vb_ctx *ctx, const struct ibv_alloc_dm_attr *attr, struct vb_dm **dm);

/*
 * The same where nothing of the NIC can be used, in a forked child: no lock is taken, and it cannot
 * be registered. vb_dm_free_apart() ends it.
 */
int vb_dm_alloc_apart(struct vb_ctx *ctx, const struct ibv_alloc_dm_attr *attr,
		      struct vb_dm **dm);
void vb_dm_free_apart(struct vb_dm *dm);

/*
 * EBUSY: registered, by whatever handle; ENOENT: imported, or was, and freed already; EOPNOTSUPP:
 * another process's.
 */
int vb_dm_free(struct vb_dm *dm);

/*
 * ibv_memcpy_to_dm, ibv_memcpy_from_dm: offset and length are multiples of four octets, as
 * hardware has it. EINVAL: they are not; EFAULT: beyond its end, or the application's memory
 * cannot be accessed. Any thread.
 */
int vb_dm_write(struct vb_dm *dm, uint64_t offset, const void *from, size_t bytes);
int vb_dm_read(const struct vb_dm *dm, uint64_t offset, void *to, size_t bytes);

#endif
