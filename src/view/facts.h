/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_VIEW_FACTS_H
#define VB_VIEW_FACTS_H

/* What is true of our devices on this host now, for the tree. One thread. */

#include <stdint.h>

#include "run/address/gids.h"
#include "topology/table.h"
#include "view/tree.h"

struct vb_persona;

struct vb_view_facts {
	const struct vb_topology *topology;
	const struct vb_persona *persona; /* one for each device, with what is said of it */
	struct vb_gids *gids;	       /* as many as the topology has ... */
	struct vb_view_device *device; /* ... */
	unsigned opened;	       /* ... of which so many are filled */
};

/* Returns 0 or an errno; noted. The caller keeps topology and the personas, one for each device. */
int vb_view_facts_open(struct vb_view_facts *facts, const struct vb_topology *topology,
		       const struct vb_persona *persona);

/* Looks again; true: something changed. facts->gids[0].watch_fd says when that may be. */
bool vb_view_facts_refresh(struct vb_view_facts *facts, uint64_t now_ns);
void vb_view_facts_close(struct vb_view_facts *facts);

/*
 * The CPUs of a list ("0-3,8") as the kernel's masks show them: "0000010f". What is not understood
 * is left out. Returns text.
 */
const char *vb_view_cpu_mask(char *text, size_t bytes, const char *list);

#endif
