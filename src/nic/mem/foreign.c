/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/mem/foreign.h"

#include <errno.h>

#include "nic/core/quiesce.h"

void vb_foreign_init(struct vb_foreign *foreign)
{
	vb_lock_init(&foreign->lock, VB_RANK_FOREIGN);
	atomic_store(&foreign->refs, 1);
}

static void unmap(struct vb_foreign *foreign, struct vb_foreign_map *map)
{
	const struct vb_nic_host *host = &foreign->nic->host;

	host->foreign->unmap(host->arg, map->memory, map->bytes);
	*map = (struct vb_foreign_map){ .memory = NULL };
}

void vb_foreign_drop(struct vb_foreign *foreign)
{
	const struct vb_nic_host *host = &foreign->nic->host;

	if (atomic_fetch_sub(&foreign->refs, 1) != 1)
		return;
	for (unsigned i = 0; i < VB_FOREIGN_MAPS; i++) {
		if (atomic_load(&foreign->map[i].key))
			unmap(foreign, &foreign->map[i]);
	}
	vb_lock_fini(&foreign->lock);
	host->foreign->leave(host->arg, foreign);
}

/* Reads an entry consistently, with its sequence number. */
static bool entry_read(const struct vb_foreign *foreign, uint32_t key,
		       struct vb_export_region *region, uint32_t *seq)
{
	const struct vb_export_key *entry = &foreign->export->key[vb_key_place(key)];

	*seq = VB_EXPORT_GET(entry->seq);
	return vb_export_key_read(entry, region) && VB_EXPORT_GET(entry->seq) == *seq;
}

static struct vb_foreign_map *map_find(struct vb_foreign *foreign, uint32_t key, uint32_t seq)
{
	for (unsigned i = 0; i < VB_FOREIGN_MAPS; i++) {
		struct vb_foreign_map *map = &foreign->map[i];

		if (atomic_load_explicit(&map->key, memory_order_acquire) == key &&
		    map->seq == seq)
			return map;
	}
	return NULL;
}

/* Returns 0: it is mapped; ENOMEM: no room; EOPNOTSUPP. The lock is held. */
static int map_make(struct vb_foreign *foreign, const struct vb_export_region *region,
		    uint32_t seq)
{
	const struct vb_nic_host *host = &foreign->nic->host;
	struct vb_foreign_map *map = NULL;

	if (map_find(foreign, region->key, seq))
		return 0;
	/* Its pages may be replaced at any time. */
	if (region->access & IBV_ACCESS_ON_DEMAND)
		return EOPNOTSUPP;
	for (unsigned i = 0; i < VB_FOREIGN_MAPS && !map; i++) {
		if (!atomic_load(&foreign->map[i].key))
			map = &foreign->map[i];
	}
	if (!map)
		return ENOMEM;
	map->memory = host->foreign->map(host->arg, foreign, region->base, region->bytes);
	if (!map->memory)
		return EOPNOTSUPP;
	map->seq = seq;
	map->base = region->base;
	map->bytes = region->bytes;
	atomic_store_explicit(&map->key, region->key, memory_order_release);
	return 0;
}

static int map_make_locking(struct vb_foreign *foreign, const struct vb_export_region *region,
			    uint32_t seq)
{
	int err;

	vb_lock_take(&foreign->lock);
	err = map_make(foreign, region, seq);
	vb_lock_drop(&foreign->lock);
	return err;
}

uint8_t *vb_foreign_get(const struct vb_pd *pd, uint32_t key, uint64_t va, uint64_t bytes,
			unsigned access)
{
	struct vb_foreign *foreign = pd->foreign;
	struct vb_export_region region;
	struct vb_foreign_map *map;
	uint32_t seq;

	if (!entry_read(foreign, key, &region, &seq) || !region.bytes ||
	    !vb_export_region_allows(&region, pd->foreign_id, key, va, bytes, access))
		return NULL;
	map = map_find(foreign, key, seq);
	if (!map && !map_make_locking(foreign, &region, seq))
		map = map_find(foreign, key, seq);
	/* What is mapped stays valid even if the owner's entry has changed. */
	if (!map || bytes > map->bytes || va - region.iova > map->bytes - bytes)
		return NULL;
	return map->memory + (va - region.iova);
}

/* Unmaps regions that are deregistered; waits for threads that use them. */
static void sweep(struct vb_foreign *foreign)
{
	struct vb_foreign_map stale[VB_FOREIGN_MAPS];
	struct vb_export_region region;
	unsigned count = 0;
	uint32_t seq;

	vb_lock_take(&foreign->lock);
	for (unsigned i = 0; i < VB_FOREIGN_MAPS; i++) {
		struct vb_foreign_map *map = &foreign->map[i];
		uint32_t key = atomic_load(&map->key);

		if (!key || (entry_read(foreign, key, &region, &seq) && seq == map->seq))
			continue;
		stale[count].memory = map->memory;
		stale[count++].bytes = map->bytes;
		atomic_store(&map->key, 0);
	}
	vb_lock_drop(&foreign->lock);
	if (count)
		vb_nic_quiesce(foreign->nic);
	for (unsigned i = 0; i < count; i++)
		unmap(foreign, &stale[i]);
}

int vb_foreign_find(const struct vb_pd *pd, uint32_t key, struct vb_export_region *region)
{
	uint32_t seq;

	if (!entry_read(pd->foreign, key, region, &seq) || region->key != key ||
	    region->pd != pd->foreign_id)
		return EINVAL;
	/* Not one octet of it can be accessed. */
	if (!region->bytes)
		return 0;
	sweep(pd->foreign);
	return map_make_locking(pd->foreign, region, seq);
}
