/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/domains.h"

#include <errno.h>
#include <unistd.h>

#include "base/failure.h"
#include "daemon/slots.h"
#include "nic/control/store.h"

/*
 * How many dead processes are handled at once: the search covers the whole store, and others wait
 * for the lock.
 */
enum { COLLECTED_MAX = 16 };

static int map(struct vb_domains *domains, int fd)
{
	struct vb_store *store = vb_robust_memory_map(fd, sizeof(*store));
	int rc;

	if (!store)
		return EPROTO;
	/* New memory is still zero: the first process that maps it initializes it. */
	if (!store->xrc.magic && !store->xrc.version)
		vb_xrc_store_init(&store->xrc);
	rc = vb_xrc_store_is_ours(&store->xrc)
		     ? vb_robust_open(&domains->lock, fd, &store->xrc.held)
		     : EPROTO;
	if (rc)
		vb_robust_memory_unmap(store, sizeof(*store));
	else
		domains->store = store;
	return rc;
}

int vb_domains_make(struct vb_domains *domains, int *fd)
{
	int rc = vb_robust_memory_make("verbatim-xrc", sizeof(*domains->store), fd);

	if (rc)
		return rc;
	rc = map(domains, *fd);
	if (rc)
		close(*fd);
	return rc == EPROTO ? vb_failed(ENOMEM, "mmap") : rc;
}

int vb_domains_adopt(struct vb_domains *domains, int fd)
{
	return map(domains, fd) ? EPROTO : 0;
}

void vb_domains_drop(struct vb_domains *domains)
{
	vb_robust_close(&domains->lock);
	vb_robust_memory_unmap(domains->store, sizeof(*domains->store));
}

/* Removes dead processes from the Ethernet segment, which needs no lock. */
static void segment_collect(const struct vb_slots *slots)
{
	struct vb_segment_table *table = &slots->domains.store->segment;

	for (unsigned slot = 1; slot < VB_SLOTS; slot++) {
		if (vb_segment_has(table, (uint16_t)slot) && !vb_slots_is_held(slots, slot))
			vb_segment_clear(table, (uint16_t)slot);
	}
}

bool vb_domains_collect(struct vb_slots *slots)
{
	struct vb_domains *domains = &slots->domains;
	bool holders[VB_SLOTS];
	enum vb_robust rc;
	unsigned n = 0;

	segment_collect(slots);
	if (!vb_xrc_holders(&domains->store->xrc, holders))
		return true;
	rc = vb_robust_try(&domains->lock);
	if (rc == VB_ROBUST_BUSY)
		return false;
	if (rc == VB_ROBUST_INHERITED)
		vb_xrc_store_repair(&domains->store->xrc);
	for (unsigned slot = 0; slot < VB_SLOTS && n < COLLECTED_MAX; slot++) {
		if (!holders[slot] || vb_slots_is_held(slots, slot))
			continue;
		vb_xrc_collect(&domains->store->xrc, (uint16_t)slot);
		n++;
	}
	vb_robust_drop(&domains->lock);
	return n < COLLECTED_MAX;
}

bool vb_domains_any(const struct vb_domains *domains)
{
	bool holders[VB_SLOTS];

	return vb_xrc_holders(&domains->store->xrc, holders);
}
