/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_MEM_H
#define VB_NIC_MEM_H

/* Memory regions and the table of keys. */

#include "nic/core/internal.h"
#include "nic/mem/dm.h"

/* What is behind a region. */
enum vb_mr_kind {
	VB_MR_MEMORY,	/* of the application */
	VB_MR_DM,	/* device memory */
	VB_MR_DMABUF,	/* what a descriptor stands for, which we have mapped */
	VB_MR_NULL,	/* nothing: zeros to read, and what is written vanishes */
	VB_MR_IMPORTED, /* another struct vb_mr has all that */
	VB_MR_FOREIGN,	/* another process has (foreign.h) */
};

struct vb_mr {
	struct ibv_mr ibv;
	enum vb_mr_kind kind;
	uint64_t iova;	 /* the address that SGEs and RETHs use for the first octet */
	uint8_t *base;	 /* where that octet is */
	uint64_t bytes;
	unsigned access; /* IBV_ACCESS_* */
	struct vb_shared shared;
	uint32_t windows; /* bound to it (the keys' lock) */
	struct vb_dm *dm; /* VB_MR_DM */
	struct vb_handle handle;
};

/*
 * Register. access: any of LOCAL_WRITE, REMOTE_*, MW_BIND, ZERO_BASED, ON_DEMAND, HUGETLB (which is
 * the application's promise) and the optional range. EINVAL: unknown bits, or REMOTE_WRITE /
 * REMOTE_ATOMIC without LOCAL_WRITE; ENOMEM; EFAULT: not mapped or not writable. iova is ignored
 * with ZERO_BASED (it is 0 then).
 *
 * All memory is paged on demand here, so ON_DEMAND means that nothing has to be there yet, and that
 * whatever is not there when it is touched makes no signal: the kernel copies (vb_mr_find). The
 * whole address space (addr NULL, SIZE_MAX octets) can be registered so, at its own addresses and
 * without HUGETLB; otherwise EINVAL.
 */
int vb_mr_reg(struct vb_pd *pd, void *addr, size_t bytes, uint64_t iova, unsigned access,
	      struct vb_mr **mr);

/*
 * ibv_rereg_mr(3). flags: IBV_REREG_MR_CHANGE_*. The keys stay. EINVAL and EFAULT as reg; EINVAL
 * for a null MR (ibv_alloc_null_mr(3)) and one that was imported; EOPNOTSUPP for device memory and
 * dma-buf; EBUSY: as dereg. On failure nothing changed. Accesses that meet the region just then are
 * refused.
 */
int vb_mr_rereg(struct vb_mr *mr, int flags, struct vb_pd *pd, void *addr, size_t bytes,
		unsigned access);

/*
 * Waits for accesses under way, which are copies of microseconds: on return of 0 nobody reads or
 * writes that memory any more. Frees mr. EBUSY, and it is registered as before: windows are bound
 * to it (ibv_alloc_mw(3), NOTES), or a process that reaches into it by itself was stopped in the
 * midst of that (direct.h), which takes some seconds to find. ENOENT: it is imported, or was, and
 * the region is gone already; EOPNOTSUPP: it is another process's. With these two it can be given
 * up (import.h).
 */
int vb_mr_dereg(struct vb_mr *mr);

/*
 * For the host, of a region that it has in hand between `share` and `unshare`: here is the file.
 * Peers are told of it. Any thread.
 */
void vb_mr_found(struct vb_shared *shared, int32_t file);

/* --- inside nic --- */

void vb_keys_init(struct vb_keys *keys, uint64_t seed);
void vb_keys_fini(struct vb_keys *keys);

/*
 * For those who own keys, with the keys' lock held. take: a key that says nothing about any other,
 * of a place that nobody has; the caller writes its entry at once. write: the only way an entry is
 * changed, see vb_export_key_read().
 */
uint32_t vb_key_take_locked(struct vb_nic *nic);
void vb_key_write_locked(struct vb_nic *nic, const struct vb_export_region *region,
			 const struct vb_shared *shared);

/* After this, nobody knows the key, and its place is free. */
void vb_key_drop_locked(struct vb_nic *nic, uint32_t key);

static inline struct vb_key_owner *vb_key_owner(struct vb_nic *nic, uint32_t key)
{
	return &nic->keys.owner[vb_key_place(key)];
}

/*
 * Find the memory at va, if the key allows it: where it is, or NULL. access: IBV_ACCESS_* bits that
 * all must be granted, 0 for a local read. It stays registered as long as the caller keeps the
 * right by which it came here: the rx right, a lane's rx_lock, or the QP's lock where the
 * application must not deregister what it posted (vb_nic_quiesce).
 */
uint8_t *vb_mr_get(struct vb_nic *nic, struct ibv_pd *pd, uint32_t key, uint64_t va,
		   uint64_t bytes, unsigned access);

/*
 * The same of any region, and is it one of on-demand paging? vb_mr_get() does not give its memory
 * away: pages may be missing there, so it is not for whoever copies by pointers (vb_mr_copy).
 */
uint8_t *vb_mr_find(struct vb_nic *nic, struct ibv_pd *pd, uint32_t key, uint64_t va,
		    uint64_t bytes, unsigned access, bool *paged);

/* memcpy to or from what was found: false if a part of it is not there. */
bool vb_mr_copy(struct vb_nic *nic, bool paged, void *to, const void *from, uint64_t bytes);

/* Does a region of this key grant these rights, wherever it is? */
bool vb_key_grants(struct vb_nic *nic, const struct ibv_pd *pd, uint32_t key, unsigned access);

/*
 * A region as `like` describes it: kind, iova, base, bytes, access, dm, and addr and length of ibv.
 * Shares it, gives it a key and counts it. ENOMEM.
 */
int vb_mr_make(struct vb_pd *pd, const struct vb_mr *like, struct vb_mr **mr);

/* IBA 10.6.3.1: are these rights known, and do they go together? */
bool vb_mr_access_fits(unsigned access);

/*
 * What vb_mr_get() does when the table of keys has nothing to offer for this PD. Inlined, its
 * registers would be saved by every look-up.
 */
__attribute__((noinline)) uint8_t *vb_mr_get_other(struct vb_nic *nic, const struct vb_pd *pd,
						   uint32_t key, uint64_t va, uint64_t bytes,
						   unsigned access);

/*
 * As vb_mr_get() and vb_mr_find(), through a window (data/window.h) that the peer of this QP of
 * ours may use.
 */
uint8_t *vb_window_get(struct vb_nic *nic, struct ibv_pd *pd, uint32_t qpn, uint32_t key,
		       uint64_t va, uint64_t bytes, unsigned access);
uint8_t *vb_window_find(struct vb_nic *nic, struct ibv_pd *pd, uint32_t qpn, uint32_t key,
			uint64_t va, uint64_t bytes, unsigned access, bool *paged);

#endif
