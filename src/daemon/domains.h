/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_DAEMON_DOMAINS_H
#define VB_DAEMON_DOMAINS_H

/*
 * XRC domains, as far as they are the hub's: it makes the memory that they live in, hands it out
 * with the keeper, and takes back what the dead had of them, and their places on the Ethernet
 * segment (nic/service/eth/segment_table.h), which lie there too. It never waits for its lock.
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

/* Fresh memory, mapped, with a descriptor to hand out. 0 or a positive errno. */
int vb_domains_make(struct vb_domains *domains, int *fd);

/* What another hub made. 0, or EPROTO: it is none. */
int vb_domains_adopt(struct vb_domains *domains, int fd);

/* It is not wanted after all: unmapped. */
void vb_domains_drop(struct vb_domains *domains);

/*
 * Take back what processes have whose slots nobody holds, of some at a time. False: there are more,
 * or somebody else has the lock: try again.
 */
bool vb_domains_collect(struct vb_slots *slots);

/* Does any process have something there? */
bool vb_domains_any(const struct vb_domains *domains);

#endif
