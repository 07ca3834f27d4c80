/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_DAEMON_DOMAINS_H
#define VB_DAEMON_DOMAINS_H

/*
 * The hub's part in XRC domains: it makes the memory that they live in, hands it out with the
 * keeper, and takes back what dead processes had in it, also their entries in the table of the
 * Ethernet segment (nic/service/eth/segment_table.h), which lies there, too. It never waits for the
 * memory's lock.
 */

#include <stdbool.h>
#include <stdint.h>

#include "link/robust.h"

struct vb_slots;
struct vb_store;

struct vb_domains {
	struct vb_store *store;
	struct vb_robust_lock lock;
};

/* Makes new memory, mapped, with a descriptor to hand out. Returns 0 or a positive errno. */
int vb_domains_make(struct vb_domains *domains, int *fd);

/* Maps what an earlier hub made. Returns 0, or EPROTO if it is something else. */
int vb_domains_adopt(struct vb_domains *domains, int fd);

/* Unmaps memory that is not needed after all. */
void vb_domains_drop(struct vb_domains *domains);

/*
 * Takes back what processes have whose slots are no longer held, for some of them at a time.
 * Returns false if there are more, or another process has the lock: try again.
 */
bool vb_domains_collect(struct vb_slots *slots);

/* Does any process have something in there? */
bool vb_domains_any(const struct vb_domains *domains);

#endif
