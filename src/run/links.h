/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_LINKS_H
#define VB_RUN_LINKS_H

/*
 * Reports by which link each peer is reached, and why: to the log and the hub, once for each peer
 * and outcome (docs/shm.md). Nothing is decided here.
 */

#include <stdint.h>

#include "base/lock.h"
#include "base/path.h"
#include "hub/client.h"

struct vb_device;

enum { VB_LINKS_MAX = 64 }; /* peers; further ones are not reported */

struct vb_link_told {
	uint16_t slot; /* 0: identified by gid */
	uint8_t gid[VB_GID_BYTES];
	uint32_t pid; /* process that held the slot, 0 if unknown */
	enum vb_hub_link_why why;
	bool there;
};

struct vb_links_told {
	vb_lock lock;
	unsigned n;
	struct vb_link_told told[VB_LINKS_MAX];
};

void vb_links_open(struct vb_device *dev);
void vb_links_close(struct vb_device *dev);

/*
 * Reports the outcome rc of vb_peers_reach(). peer: what the hub said about it, NULL: the hub was
 * not asked.
 */
void vb_links_decided(struct vb_device *dev, uint16_t own_slot, uint16_t slot, int rc,
		      const struct vb_hub_peer *peer);

/* As in struct vb_host_wire; arg is the struct vb_device. */
void vb_links_afar(void *arg, const uint8_t gid[VB_GID_BYTES]);

#endif
