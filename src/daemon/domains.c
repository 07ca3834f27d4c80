/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/domains.h"

#include <errno.h>
#include <unistd.h>

#include "base/failure.h"
#include "daemon/slots.h"
#include "link/robust.h"
#include "nic/xrc_store.h"

static void prepare(struct vb_xrc_store *store)
{
	vb_robust_init(store->lock);
	vb_xrc_store_init(store);
}

int vb_domains_make(struct vb_xrc_store **store, int *fd)
{
	int rc = vb_robust_memory_make("verbatim-xrc", sizeof(**store), fd);

	if (rc)
		return rc;
	*store = vb_robust_memory_map(*fd, sizeof(**store));
	if (!*store) {
		close(*fd);
		return vb_failed(ENOMEM, "mmap");
	}
	prepare(*store);
	return 0;
}

struct vb_xrc_store *vb_domains_adopt(int fd)
{
	struct vb_xrc_store *store = vb_robust_memory_map(fd, sizeof(*store));

	/* Nobody has used it yet: whoever maps it looks first whether it is one. */
	if (store && !store->magic && !store->version)
		prepare(store);
	if (!store || vb_xrc_store_is_ours(store))
		return store;
	vb_robust_memory_unmap(store, sizeof(*store));
	return NULL;
}

void vb_domains_drop(struct vb_xrc_store *store)
{
	vb_robust_memory_unmap(store, sizeof(*store));
}

/* Who is dead is on no Ethernet segment; that needs no lock. */
static void segment_collect(const struct vb_slots *slots)
{
	struct vb_segment_table *table = &slots->store->segment;

	for (unsigned slot = 1; slot < VB_SLOTS; slot++) {
		if (vb_segment_has(table, (uint16_t)slot) && !vb_slots_is_held(slots, slot))
			vb_segment_clear(table, (uint16_t)slot);
	}
}

bool vb_domains_collect(const struct vb_slots *slots)
{
	struct vb_xrc_store *store = slots->store;
	bool holders[VB_SLOTS];
	enum vb_robust rc;

	segment_collect(slots);
	if (!vb_xrc_holders(store, holders))
		return true;
	rc = vb_robust_try(store->lock);
	if (rc == VB_ROBUST_BUSY)
		return false;
	if (rc == VB_ROBUST_INHERITED)
		vb_xrc_store_repair(store);
	for (unsigned slot = 0; slot < VB_SLOTS; slot++) {
		if (holders[slot] && !vb_slots_is_held(slots, slot))
			vb_xrc_collect(store, (uint16_t)slot);
	}
	vb_robust_drop(store->lock);
	return true;
}

bool vb_domains_any(const struct vb_xrc_store *store)
{
	bool holders[VB_SLOTS];

	return vb_xrc_holders(store, holders);
}
