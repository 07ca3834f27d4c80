/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_MEM_H
#define VB_NIC_MEM_H

/* Memory regions and the table of keys. */

#include "nic/core/internal.h"
#include "nic/mem/dm.h"

/* What memory a region consists of. */
enum vb_mr_kind {
	VB_MR_MEMORY,	/* the application's */
	VB_MR_DM,	/* device memory */
	VB_MR_DMABUF,	/* behind a descriptor, mapped by us */
	VB_MR_NULL,	/* none: reads give zeros, writes are discarded */
	VB_MR_IMPORTED, /* another struct vb_mr describes it */
	VB_MR_FOREIGN,	/* in another process (foreign.h) */
};

struct vb_mr {
	struct ibv_mr ibv;
	enum vb_mr_kind kind;
	uint64_t iova;	 /* the address that SGEs and RETHs use for the first octet */
	uint8_t *base;	 /* where that octet is */
	uint64_t bytes;
	unsigned access; /* IBV_ACCESS_* */
	struct vb_shared shared;
	uint32_t windows; /* windows bound to it (the keys' lock) */
	struct vb_dm *dm; /* VB_MR_DM */
	_Atomic uint32_t *users; /* owned by `abi`: of what it was registered with; or NULL */
	struct vb_handle handle;
};

/*
 * Registers memory. access: any of LOCAL_WRITE, REMOTE_*, MW_BIND, ZERO_BASED, ON_DEMAND, HUGETLB
 * (the application's promise) and the optional range. EINVAL: unknown bits, or REMOTE_WRITE or
 * REMOTE_ATOMIC without LOCAL_WRITE; ENOMEM; EFAULT: not mapped or not writable. iova is ignored
 * with ZERO_BASED (it is 0 then).
 *
 * Memory is never pinned here. So ON_DEMAND means that pages may be missing at registration, and
 * that accessing a missing page raises no signal: the kernel copies (vb_mr_find). The whole address
 * space (addr NULL, SIZE_MAX octets) can be registered this way, at its own addresses and without
 * HUGETLB; otherwise EINVAL.
 */
int vb_mr_reg(struct vb_pd *pd, void *addr, size_t bytes, uint64_t iova, unsigned access,
	      struct vb_mr **mr);

/*
 * ibv_rereg_mr(3). flags: IBV_REREG_MR_CHANGE_*. The keys stay. EINVAL and EFAULT as reg; EINVAL
 * for a null MR (ibv_alloc_null_mr(3)) and an imported one; EOPNOTSUPP for device memory and
 * dma-buf; EBUSY as dereg. On failure nothing changed. Accesses during the call are refused.
 */
int vb_mr_rereg(struct vb_mr *mr, int flags, struct vb_pd *pd, void *addr, size_t bytes,
		unsigned access);

/*
 * Waits for accesses under way, which are copies of microseconds: after 0 the memory is no longer
 * read or written. Frees mr. EBUSY, with the region still registered: windows are bound to it
 * (ibv_alloc_mw(3), NOTES), or a process was stopped while accessing it directly (direct.h), which
 * takes some seconds to find out. ENOENT: the region was deregistered through another handle;
 * EOPNOTSUPP: it belongs to another process. In these two cases the handle can be given up
 * (import.h).
 */
int vb_mr_dereg(struct vb_mr *mr);

/*
 * Called by the host between `share` and `unshare` of a region, once its file is found. Peers are
 * told of it. Any thread.
 */
void vb_mr_found(struct vb_shared *shared, int32_t file);

/* --- inside nic --- */

void vb_keys_init(struct vb_keys *keys, uint64_t seed);
void vb_keys_fini(struct vb_keys *keys);

/*
 * With the keys' lock held. take: a new key in a free place that says nothing about other keys; the
 * caller writes its entry at once. write: the only way to change an entry, see
 * vb_export_key_read().
 */
uint32_t vb_key_take_locked(struct vb_nic *nic);
void vb_key_write_locked(struct vb_nic *nic, const struct vb_export_region *region,
			 const struct vb_shared *shared);

/* Makes the key invalid, and its place free. */
void vb_key_drop_locked(struct vb_nic *nic, uint32_t key);

static inline struct vb_key_owner *vb_key_owner(struct vb_nic *nic, uint32_t key)
{
	return &nic->keys.owner[vb_key_place(key)];
}

/*
 * Finds the memory at va if the key allows the access; else NULL. access: IBV_ACCESS_* bits, all of
 * which must be granted; 0 for a local read. It stays registered while the caller holds its right:
 * the rx right, a lane's rx_lock, or the QP's lock if the application must not deregister what it
 * posted (vb_nic_quiesce).
 */
uint8_t *vb_mr_get(struct vb_nic *nic, struct ibv_pd *pd, uint32_t key, uint64_t va,
		   uint64_t bytes, unsigned access);

/*
 * The same for any region; *paged: it is paged on demand. vb_mr_get() refuses those: their pages
 * may be missing, so they cannot be copied by pointers (vb_mr_copy).
 */
uint8_t *vb_mr_find(struct vb_nic *nic, struct ibv_pd *pd, uint32_t key, uint64_t va,
		    uint64_t bytes, unsigned access, bool *paged);

/* memcpy to or from what was found. False: a part of it is not mapped. */
bool vb_mr_copy(struct vb_nic *nic, bool paged, void *to, const void *from, uint64_t bytes);

/* All rights of the region or window with this key, with VB_ACCESS_DISORDER; 0: none has it. */
unsigned vb_key_access(struct vb_nic *nic, uint32_t key);

/* What every region of this NIC has beside its rights. */
static inline unsigned vb_access_of_order(const struct vb_nic *nic)
{
	return nic->host.order ? VB_ACCESS_DISORDER : 0;
}

/* Does a region with this key grant these rights, at any address? */
bool vb_key_grants(struct vb_nic *nic, const struct ibv_pd *pd, uint32_t key, unsigned access);

/*
 * Makes a region like `like` (kind, iova, base, bytes, access, dm, and addr and length of ibv):
 * shares it, gives it a key and counts it. ENOMEM.
 */
int vb_mr_make(struct vb_pd *pd, const struct vb_mr *like, struct vb_mr **mr);

/* IBA 10.6.3.1: are these rights known and compatible? */
bool vb_mr_access_fits(unsigned access);

/*
 * The rest of vb_mr_get(), for keys that the table of keys does not resolve for this PD. Not
 * inlined, since its registers would have to be saved by every look-up.
 */
__attribute__((noinline)) uint8_t *vb_mr_get_other(struct vb_nic *nic, const struct vb_pd *pd,
						   uint32_t key, uint64_t va, uint64_t bytes,
						   unsigned access);

/*
 * As vb_mr_get() and vb_mr_find(), through a window (data/window.h) that the peer of our QP qpn may
 * use.
 */
uint8_t *vb_window_get(struct vb_nic *nic, struct ibv_pd *pd, uint32_t qpn, uint32_t key,
		       uint64_t va, uint64_t bytes, unsigned access);
uint8_t *vb_window_find(struct vb_nic *nic, struct ibv_pd *pd, uint32_t qpn, uint32_t key,
			uint64_t va, uint64_t bytes, unsigned access, bool *paged);

#endif
