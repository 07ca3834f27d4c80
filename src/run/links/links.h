/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_LINKS_LINKS_H
#define VB_RUN_LINKS_LINKS_H

/*
 * Reports by which link each peer is reached, and why: to the log and the hub, once for each peer
 * and outcome (docs/shm.md). Nothing is decided here.
 */

#include <stdint.h>

#include "base/lock.h"
#include "base/path.h"
#include "hub/client.h"
#include "run/process/env.h"

enum { VB_LINKS_MAX = 64 }; /* peers; further ones are not reported */

struct vb_link_told {
	uint16_t slot; /* 0: identified by gid */
	uint8_t gid[VB_GID_BYTES];
	uint32_t pid; /* process that held the slot, 0 if unknown */
	enum vb_hub_link_why why;
	bool there;
};

struct vb_links_told {
	const struct vb_env *env;
	struct vb_hub_client *const *hub; /* NULL: there is none any more */
	const uint16_t *own_slot;	  /* the process's first */
	vb_lock lock;
	unsigned n;
	struct vb_link_told told[VB_LINKS_MAX];
};

/* What is pointed to is read when something is told. */
void vb_links_open(struct vb_links_told *links, const struct vb_env *env,
		   struct vb_hub_client *const *hub, const uint16_t *own_slot);
void vb_links_close(struct vb_links_told *links);

/* Reports the outcome rc of vb_peers_reach(). peer: what the hub said of it, or why not asked. */
void vb_links_decided(struct vb_links_told *links, uint16_t own_slot, uint16_t slot, int rc,
		      const struct vb_hub_peer *peer);

/* As in struct vb_host_wire. */
void vb_links_afar(struct vb_links_told *links, const uint8_t gid[VB_GID_BYTES]);

#endif
