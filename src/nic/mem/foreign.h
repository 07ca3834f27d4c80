/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_FOREIGN_H
#define VB_NIC_FOREIGN_H

/*
 * A context of another process that was imported here. Its PDs and regions are looked up in that
 * process's export, and its memory is mapped. Only files can be mapped (device memory is one), so
 * other memory cannot be reached.
 *
 * QPs in such a PD may use keys of either process: ours are looked up first. Applications must not
 * deregister what is in use here (ibv_import_mr(3)); a deregistered region is refused nevertheless.
 */

#include "nic/core/ctx.h"
#include "nic/core/export.h"

struct vb_foreign_map {
	/* Identifies the registration: this key with this sequence number. key 0: none. */
	_Atomic uint32_t key;
	uint32_t seq;
	uint64_t base, bytes; /* in the owner */
	uint8_t *memory;      /* mapped here */
};

struct vb_foreign {
	struct vb_nic *nic;
	const struct vb_export *export; /* the owner's */
	uint64_t family;		/* of the context in the owner */
	_Atomic uint32_t refs;		/* contexts and PDs */
	vb_lock lock;			/* held to change maps */
	struct vb_foreign_map map[VB_FOREIGN_MAPS];
	void *run; /* owned by the host */
};

/* The host has set nic, export, family and run. Starts with one reference. */
void vb_foreign_init(struct vb_foreign *foreign);

/* Drops a reference; the last one unmaps everything and lets the host free it. */
void vb_foreign_drop(struct vb_foreign *foreign);

/* As vb_mr_get(), for the owner's region. Maps it on first use. */
uint8_t *vb_foreign_get(const struct vb_pd *pd, uint32_t key, uint64_t va, uint64_t bytes,
			unsigned access);

/*
 * Reads the owner's entry of a region. EINVAL: none, or in another PD; EOPNOTSUPP: it cannot be
 * mapped. Makes room by unmapping what the owner has deregistered; ENOMEM: no room.
 */
int vb_foreign_find(const struct vb_pd *pd, uint32_t key, struct vb_export_region *region);

#endif
