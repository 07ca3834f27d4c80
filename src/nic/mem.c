/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/mem.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "base/check.h"
#include "nic/internal.h"

#define ACCESS_KNOWN                                                                              \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |              \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |                  \
	 IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB)

/*
 * A key is 7 random bits, 17 bits of place in the table, 8 random bits: the low octet last, since
 * ibv_inc_rkey() counts there.
 */
#define PLACE_BITS 17
#define PLACE_SHIFT 8
#define PLACE_MASK ((1u << PLACE_BITS) - 1)

_Static_assert(1 << PLACE_BITS == VB_MRS_MAX, "the key's place bits are the number of regions");

int vb_keys_init(struct vb_keys *keys)
{
	keys->slot = calloc(VB_MRS_MAX, sizeof(*keys->slot));
	if (!keys->slot)
		return ENOMEM;
	vb_lock_init(&keys->lock);
	return 0;
}

void vb_keys_fini(struct vb_keys *keys)
{
	vb_lock_fini(&keys->lock);
	free(keys->slot);
}

static struct vb_key_slot *key_slot(struct vb_nic *nic, uint32_t key)
{
	return &nic->keys.slot[key >> PLACE_SHIFT & PLACE_MASK];
}

static int key_add(struct vb_nic *nic, struct vb_mr *mr)
{
	struct vb_keys *keys = &nic->keys;
	uint32_t place, random = (uint32_t)vb_nic_random(nic);

	vb_lock_take(&keys->lock);
	if (keys->count == VB_MRS_MAX - 1) {
		vb_lock_drop(&keys->lock);
		return ENOMEM;
	}
	do
		place = ++keys->next & PLACE_MASK;
	while (!place || atomic_load(&keys->slot[place].mr)); /* so that no key is 0 */
	keys->count++;
	mr->ibv.lkey = mr->ibv.rkey =
		(random & ~(PLACE_MASK << PLACE_SHIFT)) | place << PLACE_SHIFT;
	atomic_store(&keys->slot[place].mr, mr);
	vb_lock_drop(&keys->lock);
	return 0;
}

/* After this, nobody is inside the region and nobody gets in. */
static void key_hide(struct vb_key_slot *slot)
{
	atomic_store(&slot->mr, NULL);
	while (atomic_load(&slot->users))
		sched_yield();
}

uint8_t *vb_mr_get(struct vb_nic *nic, struct ibv_pd *pd, uint32_t key, uint64_t va,
		   uint64_t bytes, unsigned access)
{
	struct vb_key_slot *slot = key_slot(nic, key);
	struct vb_mr *mr;

	/* Count first, look then: whoever hides the region waits for the count. */
	atomic_fetch_add(&slot->users, 1);
	mr = atomic_load(&slot->mr);
	if (mr && mr->ibv.lkey == key && mr->ibv.pd == pd && (mr->access & access) == access &&
	    va >= mr->iova && bytes <= mr->bytes && va - mr->iova <= mr->bytes - bytes)
		return mr->base + (va - mr->iova);
	atomic_fetch_sub(&slot->users, 1);
	return NULL;
}

void vb_mr_put(struct vb_nic *nic, uint32_t key)
{
	atomic_fetch_sub(&key_slot(nic, key)->users, 1);
}

/* IBA 10.6.3.1: what others may change, the owner must be allowed to change. */
static bool access_fits(unsigned access)
{
	unsigned required = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

	if (access & ~(ACCESS_KNOWN | IBV_ACCESS_OPTIONAL_RANGE))
		return false;
	return !(access & required) || (access & IBV_ACCESS_LOCAL_WRITE);
}

static int memory_fits(struct vb_nic *nic, const void *addr, size_t bytes, uint64_t iova,
		       unsigned access)
{
	if (bytes > VB_MR_BYTES_MAX || iova + bytes < iova || (uintptr_t)addr + bytes < bytes)
		return EINVAL;
	if (access & IBV_ACCESS_ON_DEMAND)
		return 0;
	return nic->host.probe_memory(nic->host.arg, addr, bytes, access & IBV_ACCESS_LOCAL_WRITE);
}

static void place_region(struct vb_mr *mr, void *addr, size_t bytes, uint64_t iova)
{
	mr->ibv.addr = addr;
	mr->ibv.length = bytes;
	mr->iova = iova;
	mr->base = addr;
	mr->bytes = bytes;
}

int vb_mr_reg(struct vb_pd *pd, void *addr, size_t bytes, uint64_t iova, unsigned access,
	      struct vb_mr **out)
{
	struct vb_nic *nic = vb_nic_of(pd->ibv.context);
	struct vb_mr *mr;
	int err;

	if (!access_fits(access))
		return EINVAL;
	if (access & IBV_ACCESS_ZERO_BASED)
		iova = 0;
	err = memory_fits(nic, addr, bytes, iova, access);
	if (err)
		return err;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return ENOMEM;
	mr->ibv.context = pd->ibv.context;
	mr->ibv.pd = &pd->ibv;
	mr->access = access;
	place_region(mr, addr, bytes, iova);
	err = key_add(nic, mr);
	if (err) {
		free(mr);
		return err;
	}
	atomic_fetch_add(&pd->users, 1);
	*out = mr;
	return 0;
}

int vb_mr_rereg(struct vb_mr *mr, int flags, struct vb_pd *pd, void *addr, size_t bytes,
		unsigned access)
{
	struct vb_nic *nic = vb_nic_of(mr->ibv.context);
	struct vb_key_slot *slot = key_slot(nic, mr->ibv.lkey);
	bool translation = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
	int err;

	if (!flags || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED))
		return EINVAL;
	if (!(flags & IBV_REREG_MR_CHANGE_ACCESS))
		access = mr->access;
	if (((flags & IBV_REREG_MR_CHANGE_PD) && !pd) || !access_fits(access))
		return EINVAL;
	if (!translation) {
		addr = mr->ibv.addr;
		bytes = mr->ibv.length;
	}
	err = memory_fits(nic, addr, bytes, (uintptr_t)addr, access);
	if (err)
		return err;
	key_hide(slot);
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		atomic_fetch_sub(&((struct vb_pd *)mr->ibv.pd)->users, 1);
		atomic_fetch_add(&pd->users, 1);
		mr->ibv.pd = &pd->ibv;
	}
	if (translation)
		place_region(mr, addr, bytes,
			     access & IBV_ACCESS_ZERO_BASED ? 0 : (uintptr_t)addr);
	mr->access = access;
	atomic_store(&slot->mr, mr);
	return 0;
}

int vb_mr_dereg(struct vb_mr *mr)
{
	struct vb_nic *nic = vb_nic_of(mr->ibv.context);

	key_hide(key_slot(nic, mr->ibv.lkey));
	vb_lock_take(&nic->keys.lock);
	nic->keys.count--;
	vb_lock_drop(&nic->keys.lock);
	atomic_fetch_sub(&((struct vb_pd *)mr->ibv.pd)->users, 1);
	free(mr);
	return 0;
}
