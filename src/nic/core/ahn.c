/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/core/ahn.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "nic/core/ah.h"
#include "nic/core/internal.h"

enum { BUCKETS = 4096 };

/* Numbers count from 1, so 0 ends a chain. */
struct vb_ahn {
	uint8_t gid[VB_GID_BYTES];
	uint32_t handles;
	uint16_t next; /* in its bucket */
};

void vb_ahns_init(struct vb_ahns *ahns)
{
	vb_lock_init(&ahns->lock, VB_RANK_AHNS);
}

void vb_ahns_fini(struct vb_ahns *ahns)
{
	vb_lock_fini(&ahns->lock);
	free(ahns->bucket);
	free(ahns->all);
}

static uint16_t *bucket_of(struct vb_ahns *ahns, const uint8_t *gid)
{
	uint32_t h = 2166136261u;

	for (unsigned i = 0; i < VB_GID_BYTES; i++)
		h = (h ^ gid[i]) * 16777619u;
	return &ahns->bucket[(h >> 8) % BUCKETS];
}

/* Memory for all of them: pages that are never written cost nothing. */
static bool make_room(struct vb_ahns *ahns)
{
	if (!ahns->all)
		ahns->all = calloc(VB_AHN_NONE, sizeof(*ahns->all));
	if (!ahns->bucket)
		ahns->bucket = calloc(BUCKETS, sizeof(*ahns->bucket));
	return ahns->all && ahns->bucket && ahns->count + 1 < VB_AHN_NONE;
}

static uint16_t find(struct vb_ahns *ahns, const uint8_t *gid)
{
	uint16_t number = ahns->bucket ? *bucket_of(ahns, gid) : 0;

	while (number && memcmp(ahns->all[number].gid, gid, VB_GID_BYTES) != 0)
		number = ahns->all[number].next;
	return number;
}

/* The number of this GID, old or new; 0: there is no room for it. */
static uint16_t enter(struct vb_ahns *ahns, const uint8_t *gid)
{
	uint16_t number = find(ahns, gid), *bucket;

	if (number || !make_room(ahns))
		return number;
	number = (uint16_t)++ahns->count;
	bucket = bucket_of(ahns, gid);
	memcpy(ahns->all[number].gid, gid, VB_GID_BYTES);
	ahns->all[number].next = *bucket;
	*bucket = number;
	return number;
}

uint16_t vb_ah_number(struct vb_ah *ah)
{
	struct vb_ahns *ahns = &vb_nic_of(ah->ibv.context)->special.ahns;

	vb_lock_take(&ahns->lock);
	if (!ah->number) {
		ah->number = enter(ahns, ah->path.dst);
		if (ah->number)
			ahns->all[ah->number].handles++;
	}
	vb_lock_drop(&ahns->lock);
	return ah->number ? ah->number : VB_AHN_NONE;
}

void vb_ahn_leave(struct vb_ah *ah)
{
	struct vb_ahns *ahns = &vb_nic_of(ah->ibv.context)->special.ahns;

	if (!ah->number)
		return;
	vb_lock_take(&ahns->lock);
	ahns->all[ah->number].handles--;
	vb_lock_drop(&ahns->lock);
	ah->number = 0;
}

bool vb_ahn_gid(struct vb_nic *nic, uint16_t number, uint8_t gid[VB_GID_BYTES])
{
	struct vb_ahns *ahns = &nic->special.ahns;
	bool is;

	vb_lock_take(&ahns->lock);
	is = number && number <= ahns->count;
	if (is)
		memcpy(gid, ahns->all[number].gid, VB_GID_BYTES);
	vb_lock_drop(&ahns->lock);
	return is;
}

uint16_t vb_ahn_enter(struct vb_nic *nic, const uint8_t gid[VB_GID_BYTES])
{
	struct vb_ahns *ahns = &nic->special.ahns;
	uint16_t number;

	vb_lock_take(&ahns->lock);
	number = enter(ahns, gid);
	vb_lock_drop(&ahns->lock);
	return number ? number : VB_AHN_NONE;
}

struct vb_ahn_sender vb_ahn_sender(struct vb_nic *nic, uint16_t number)
{
	struct vb_ahns *ahns = &nic->special.ahns;
	struct vb_ahn_sender sender = { number, VB_AHN_NONE };

	vb_lock_take(&ahns->lock);
	if (number && number <= ahns->count && ahns->all[number].handles)
		sender.slid = number;
	vb_lock_drop(&ahns->lock);
	return sender;
}
