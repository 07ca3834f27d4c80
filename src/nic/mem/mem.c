/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/mem/mem.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/guard.h"
#include "base/prf.h"
#include "base/refusal.h"
#include "engine/newer.h"
#include "nic/core/names.h"
#include "nic/core/quiesce.h"
#include "nic/mem/mem_kinds.h"
#include "nic/mem/mkey.h"
#include "nic/core/lowered.h"

#define ACCESS_KNOWN                                                                              \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |              \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |                  \
	 IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | VB_ACCESS_FLUSH_GLOBAL)

/* After this many random draws any free place will do. */
#define DRAWS_MAX 64u

void vb_keys_init(struct vb_keys *keys, uint64_t seed)
{
	keys->secret[0] = seed;
	vb_lock_init(&keys->lock, VB_RANK_KEYS);
}

void vb_keys_fini(struct vb_keys *keys)
{
	vb_mkeys_free(keys);
	vb_lock_fini(&keys->lock);
}

static struct vb_export_key *entry_of(struct vb_nic *nic, uint32_t key)
{
	return &nic->export->key[vb_key_place(key)];
}

static void entry_set(struct vb_export_key *entry, const struct vb_export_region *region,
		      const struct vb_shared *shared)
{
	uint32_t seq = atomic_load_explicit(&entry->seq, memory_order_relaxed);

	VB_EXPORT_SET(entry->seq, seq + 1);
	VB_EXPORT_SET(entry->key, region->key);
	VB_EXPORT_SET(entry->pd, region->pd);
	VB_EXPORT_SET(entry->iova, region->iova);
	VB_EXPORT_SET(entry->bytes, region->bytes);
	VB_EXPORT_SET(entry->base, region->base);
	VB_EXPORT_SET(entry->access, region->access);
	VB_EXPORT_SET(entry->shared, shared->file);
	VB_EXPORT_SET(entry->shared_offset, shared->offset);
	VB_EXPORT_SET(entry->shared_id, shared->id);
	VB_EXPORT_SET(entry->shared_skip, shared->skip);
	VB_EXPORT_SET(entry->shared_cut, shared->cut);
	VB_EXPORT_SET(entry->seq, seq + 2);
}

/* Place 0 is never used, so that no key is 0. */
static bool is_taken(struct vb_nic *nic, uint32_t key)
{
	return !vb_key_place(key) || VB_EXPORT_GET(entry_of(nic, key)->key);
}

/*
 * Knowing some keys must not help to guess others: places are as random as the other bits. In a
 * table that is almost full, the next free place is used.
 */
uint32_t vb_key_take_locked(struct vb_nic *nic)
{
	struct vb_keys *keys = &nic->keys;
	uint32_t key;

	for (unsigned i = 0; i < DRAWS_MAX; i++) {
		key = (uint32_t)vb_prf(keys->secret, ++keys->drawn);
		if (!is_taken(nic, key))
			return key;
	}
	while (is_taken(nic, key))
		key = vb_key_beside(key);
	return key;
}

void vb_key_write_locked(struct vb_nic *nic, const struct vb_export_region *region,
			 const struct vb_shared *shared)
{
	entry_set(entry_of(nic, region->key), region, shared);
}

void vb_key_drop_locked(struct vb_nic *nic, uint32_t key)
{
	const struct vb_export_region nothing = { .key = 0 };
	const struct vb_shared not_shared = { .file = -1 };

	entry_set(entry_of(nic, key), &nothing, &not_shared);
	vb_key_owner(nic, key)->mr = NULL;
	vb_key_owner(nic, key)->mw = NULL;
	atomic_store(&vb_key_owner(nic, key)->mkey, NULL);
}

static void key_write_locked(struct vb_nic *nic, const struct vb_mr *mr)
{
	uint64_t pd = ((struct vb_pd *)mr->ibv.pd)->id;
	const struct vb_export_region region = {
		.key = mr->ibv.lkey,
		.pd = mr->kind == VB_MR_NULL ? vb_export_pd_of_null(pd) : pd,
		.iova = mr->iova,
		.bytes = mr->bytes,
		.base = (uintptr_t)mr->base,
		.access = mr->access | vb_access_of_order(nic),
	};

	vb_key_write_locked(nic, &region, &mr->shared);
}

static int key_add(struct vb_nic *nic, struct vb_mr *mr)
{
	struct vb_keys *keys = &nic->keys;
	int err = 0;

	vb_lock_take(&keys->lock);
	if (keys->mrs >= vb_lowered(nic, VB_LIMIT_MR)) {
		err = vb_lowered_full(nic, VB_LIMIT_MR);
	} else {
		keys->mrs++;
		mr->ibv.lkey = mr->ibv.rkey = vb_key_take_locked(nic);
		key_write_locked(nic, mr);
		vb_key_owner(nic, mr->ibv.lkey)->mr = mr;
	}
	vb_lock_drop(&keys->lock);
	return err;
}

static void key_show(struct vb_nic *nic, struct vb_mr *mr)
{
	vb_lock_take(&nic->keys.lock);
	key_write_locked(nic, mr);
	vb_key_owner(nic, mr->ibv.lkey)->mr = mr;
	vb_lock_drop(&nic->keys.lock);
}

/*
 * Revokes a region's key but keeps its place; afterwards no access is under way or possible, since
 * no PD has id 0. EBUSY: windows are bound to it (ibv_alloc_mw(3), NOTES), or a peer does not stop
 * accessing it; then it is as before.
 */
static int key_hide(struct vb_nic *nic, struct vb_mr *mr)
{
	const struct vb_export_region nothing = { .key = mr->ibv.lkey };
	const struct vb_shared not_shared = { .file = -1 };

	uint32_t windows;

	vb_lock_take(&nic->keys.lock);
	windows = mr->windows;
	if (windows) {
		vb_lock_drop(&nic->keys.lock);
		return vb_refuse(EBUSY, "%u memory windows are bound to the region", windows);
	}
	/* No window can be bound to it any more. */
	vb_key_owner(nic, mr->ibv.lkey)->mr = NULL;
	vb_key_write_locked(nic, &nothing, &not_shared);
	vb_lock_drop(&nic->keys.lock);
	vb_nic_quiesce(nic);
	if (vb_nic_settle(nic, mr->ibv.lkey))
		return 0;
	key_show(nic, mr);
	return vb_refuse(EBUSY, "a process that accesses the region directly is stopped");
}

static void key_drop(struct vb_nic *nic, struct vb_mr *mr)
{
	vb_lock_take(&nic->keys.lock);
	vb_key_drop_locked(nic, mr->ibv.lkey);
	nic->keys.mrs--;
	vb_lock_drop(&nic->keys.lock);
}

bool vb_key_grants(struct vb_nic *nic, const struct ibv_pd *pd, uint32_t key, unsigned access)
{
	struct vb_export_region region;

	return vb_export_key_read(entry_of(nic, key), &region) && region.key == key &&
	       region.pd == ((const struct vb_pd *)pd)->id && (region.access & access) == access;
}

unsigned vb_key_access(struct vb_nic *nic, uint32_t key)
{
	struct vb_export_region region;

	return vb_export_key_read(entry_of(nic, key), &region) && region.key == key ? region.access
										    : 0;
}

uint8_t *vb_mr_get(struct vb_nic *nic, struct ibv_pd *pd, uint32_t key, uint64_t va,
		   uint64_t bytes, unsigned access)
{
	struct vb_export_region region;

	if (!vb_export_key_read(entry_of(nic, key), &region) ||
	    vb_export_region_is_apart(&region) ||
	    !vb_export_region_allows(&region, ((struct vb_pd *)pd)->id, key, va, bytes, access))
		return vb_mr_get_other(nic, (struct vb_pd *)pd, key, va, bytes, access);
	return (uint8_t *)(uintptr_t)region.base + (va - region.iova);
}

uint8_t *vb_mr_find(struct vb_nic *nic, struct ibv_pd *pd, uint32_t key, uint64_t va,
		    uint64_t bytes, unsigned access, bool *paged)
{
	struct vb_export_region region;
	bool apart = vb_export_key_read(entry_of(nic, key), &region) &&
		     vb_export_region_is_apart(&region) &&
		     vb_export_region_allows(&region, ((struct vb_pd *)pd)->id, key, va, bytes,
					     access);

	*paged = apart && vb_export_region_is_paged(&region);
	if (apart)
		return (uint8_t *)(uintptr_t)region.base + (va - region.iova);
	return vb_mr_get(nic, pd, key, va, bytes, access);
}

bool vb_mr_copy(struct vb_nic *nic, bool paged, void *to, const void *from, uint64_t bytes)
{
	if (paged && nic->host.paging)
		return nic->host.paging->copy(nic->host.arg, to, from, bytes);
	return vb_guard_copy(to, from, bytes);
}

static uint8_t *window_at(struct vb_nic *nic, struct ibv_pd *pd, uint32_t qpn, uint32_t key,
			  uint64_t va, uint64_t bytes, unsigned access,
			  struct vb_export_region *region)
{
	const struct vb_export_key *entry = entry_of(nic, key);
	uint32_t seq = VB_EXPORT_GET(entry->seq), of = VB_EXPORT_GET(entry->window_qpn);
	uint64_t pd_id = VB_EXPORT_GET(entry->window_pd);

	if (!vb_export_key_read(entry, region) ||
	    atomic_load_explicit(&entry->seq, memory_order_relaxed) != seq)
		return NULL;
	if (pd_id != ((struct vb_pd *)pd)->id || (of && of != qpn) ||
	    !vb_export_region_allows(region, 0, key, va, bytes, access))
		return NULL;
	return (uint8_t *)(uintptr_t)region->base + (va - region->iova);
}

uint8_t *vb_window_find(struct vb_nic *nic, struct ibv_pd *pd, uint32_t qpn, uint32_t key,
			uint64_t va, uint64_t bytes, unsigned access, bool *paged)
{
	struct vb_export_region region;
	uint8_t *at = window_at(nic, pd, qpn, key, va, bytes, access, &region);

	*paged = at && vb_export_region_is_paged(&region);
	return at;
}

uint8_t *vb_window_get(struct vb_nic *nic, struct ibv_pd *pd, uint32_t qpn, uint32_t key,
		       uint64_t va, uint64_t bytes, unsigned access)
{
	struct vb_export_region region;
	uint8_t *at = window_at(nic, pd, qpn, key, va, bytes, access, &region);

	return at && !vb_export_region_is_apart(&region) ? at : NULL;
}

/* Peers may only change what the owner may change. */
bool vb_mr_access_fits(unsigned access)
{
	unsigned required = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

	if (access & ~(ACCESS_KNOWN | IBV_ACCESS_OPTIONAL_RANGE))
		return false;
	return !(access & required) || (access & IBV_ACCESS_LOCAL_WRITE);
}

/* ibv_reg_mr(3): an implicit region is paged on demand. */
static bool is_whole_space(const void *addr, size_t bytes, unsigned access)
{
	return !addr && bytes == SIZE_MAX && (access & IBV_ACCESS_ON_DEMAND);
}

static int memory_fits(struct vb_nic *nic, const void *addr, size_t bytes, uint64_t iova,
		       unsigned access)
{
	int err;

	if (is_whole_space(addr, bytes, access))
		return iova || (access & IBV_ACCESS_HUGETLB)
			       ? vb_refuse(EINVAL, "a region of the whole address space has its "
						   "own addresses, and no huge pages")
			       : 0;
	if (bytes > nic->identity.most[VB_LIMIT_MR_SIZE] || iova + bytes < iova ||
	    (uintptr_t)addr + bytes < bytes)
		return vb_refuse(EINVAL, "%zu octets at %p (iova 0x%" PRIx64 ") pass the end "
					 "of the address space, or max_mr_size",
				 bytes, addr, iova);
	if (access & IBV_ACCESS_ON_DEMAND)
		return 0;
	err = nic->host.process.probe(nic->host.arg, addr, bytes, access & IBV_ACCESS_LOCAL_WRITE);
	return err ? vb_refuse(err, "the %zu octets at %p are not all mapped%s", bytes, addr,
			       access & IBV_ACCESS_LOCAL_WRITE ? " and writable" : "")
		   : 0;
}

static int refuse_access(unsigned access)
{
	unsigned unknown = access & ~(ACCESS_KNOWN | IBV_ACCESS_OPTIONAL_RANGE);
	char names[VB_REFUSAL_BYTES];

	if (unknown)
		return vb_refuse(EINVAL, "the access flags have bits that are not known: %s",
				 vb_access_names(names, sizeof(names), unknown));
	return vb_refuse(EINVAL, "%s needs IBV_ACCESS_LOCAL_WRITE beside it",
			 access & IBV_ACCESS_REMOTE_WRITE ? "IBV_ACCESS_REMOTE_WRITE"
							  : "IBV_ACCESS_REMOTE_ATOMIC");
}

static void place_region(struct vb_mr *mr, void *addr, size_t bytes, uint64_t iova)
{
	mr->ibv.addr = addr;
	mr->ibv.length = bytes;
	mr->iova = iova;
	mr->base = addr;
	mr->bytes = bytes;
}

/*
 * Only memory that peers may access is worth sharing. Memory paged on demand is not shared: its
 * pages may be replaced, and a peer that has mapped it would still see the old ones.
 */
static void region_share(struct vb_nic *nic, struct vb_mr *mr)
{
	const unsigned remote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				IBV_ACCESS_REMOTE_ATOMIC;

	if (!nic->host.sharing || !(mr->access & remote) || (mr->access & IBV_ACCESS_ON_DEMAND) ||
	    !nic->host.sharing->share(nic->host.arg, mr->base, mr->bytes, &mr->shared))
		mr->shared = (struct vb_shared){ .file = -1 };
}

static void region_unshare(struct vb_nic *nic, struct vb_mr *mr)
{
	if (mr->shared.item && nic->host.sharing->unshare(nic->host.arg, &mr->shared))
		vb_nic_revoked(nic);
}

void vb_mr_found(struct vb_shared *shared, int32_t file)
{
	struct vb_mr *mr = (struct vb_mr *)((char *)shared - offsetof(struct vb_mr, shared));
	struct vb_nic *nic = vb_nic_of(mr->ibv.context);

	vb_lock_take(&nic->keys.lock);
	shared->file = file;
	/* It may have no key yet, or be about to be deregistered. */
	if (vb_key_owner(nic, mr->ibv.lkey)->mr == mr)
		key_write_locked(nic, mr);
	vb_lock_drop(&nic->keys.lock);
}

int vb_mr_make(struct vb_pd *pd, const struct vb_mr *like, struct vb_mr **out)
{
	struct vb_nic *nic = vb_nic_of(pd->ibv.context);
	struct vb_mr *mr = malloc(sizeof(*mr));
	int err;

	if (!mr)
		return ENOMEM;
	*mr = *like;
	mr->ibv.context = pd->ibv.context;
	mr->ibv.pd = &pd->ibv;
	region_share(nic, mr);
	err = key_add(nic, mr);
	if (err) {
		region_unshare(nic, mr);
		free(mr);
		return err;
	}
	mr->ibv.handle = mr->ibv.lkey;
	mr->handle = (struct vb_handle){ .object = mr, .free = free, .number = mr->ibv.handle,
					 .family = vb_ctx_of(pd->ibv.context)->family };
	vb_handle_add(&nic->handles.mrs, &mr->handle);
	atomic_fetch_add(&pd->users, 1);
	*out = mr;
	return 0;
}

int vb_mr_reg(struct vb_pd *pd, void *addr, size_t bytes, uint64_t iova, unsigned access,
	      struct vb_mr **out)
{
	struct vb_mr like = { .kind = VB_MR_MEMORY, .access = access };
	int err;

	if (!vb_mr_access_fits(access))
		return refuse_access(access);
	if (access & IBV_ACCESS_ZERO_BASED)
		iova = 0;
	err = memory_fits(vb_nic_of(pd->ibv.context), addr, bytes, iova, access);
	if (err)
		return err;
	place_region(&like, addr, bytes, iova);
	return vb_mr_make(pd, &like, out);
}

int vb_mr_rereg(struct vb_mr *mr, int flags, struct vb_pd *pd, void *addr, size_t bytes,
		unsigned access)
{
	struct vb_nic *nic = vb_nic_of(mr->ibv.context);
	bool translation = flags & IBV_REREG_MR_CHANGE_TRANSLATION, anew;
	int err;

	if (mr->kind == VB_MR_DM || mr->kind == VB_MR_DMABUF)
		return vb_refuse(EOPNOTSUPP, "regions of device memory and of dma-bufs cannot be "
					     "registered again");
	if (mr->kind != VB_MR_MEMORY || !flags || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED))
		return vb_refuse(EINVAL,
				 "flags are 0x%x; known are 0x%x, and one is needed; the "
				 "region has to be one of ibv_reg_mr",
				 flags, (unsigned)IBV_REREG_MR_FLAGS_SUPPORTED);
	if (!(flags & IBV_REREG_MR_CHANGE_ACCESS))
		access = mr->access;
	if ((flags & IBV_REREG_MR_CHANGE_PD) && !pd)
		return vb_refuse(EINVAL, "IBV_REREG_MR_CHANGE_PD without a PD");
	if (!vb_mr_access_fits(access))
		return refuse_access(access);
	if (!translation) {
		addr = mr->ibv.addr;
		bytes = mr->ibv.length;
	}
	err = memory_fits(nic, addr, bytes, (uintptr_t)addr, access);
	if (err)
		return err;
	err = key_hide(nic, mr);
	if (err)
		return err;
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		atomic_fetch_sub(&((struct vb_pd *)mr->ibv.pd)->users, 1);
		atomic_fetch_add(&pd->users, 1);
		mr->ibv.pd = &pd->ibv;
	}
	anew = translation || ((access ^ mr->access) & IBV_ACCESS_ON_DEMAND);
	mr->access = access;
	if (anew)
		region_unshare(nic, mr);
	if (translation)
		place_region(mr, addr, bytes,
			     access & IBV_ACCESS_ZERO_BASED ? 0 : (uintptr_t)addr);
	if (anew)
		region_share(nic, mr);
	key_show(nic, mr);
	return 0;
}

int vb_mr_dereg(struct vb_mr *mr)
{
	struct vb_nic *nic = vb_nic_of(mr->ibv.context);
	struct vb_mr *region = mr->handle.original->object;
	int err;

	if (mr->kind == VB_MR_FOREIGN)
		return EOPNOTSUPP;
	if (!vb_handle_kill(&nic->handles.mrs, &mr->handle))
		return ENOENT;
	err = key_hide(nic, region);
	if (err) {
		vb_handle_revive(&nic->handles.mrs, &mr->handle);
		return err;
	}
	key_drop(nic, region);
	region_unshare(nic, region);
	vb_mr_let_go(region);
	atomic_fetch_sub(&((struct vb_pd *)region->ibv.pd)->users, 1);
	vb_handle_drop(&nic->handles.mrs, &mr->handle);
	return 0;
}
