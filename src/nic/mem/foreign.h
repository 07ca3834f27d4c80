/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_FOREIGN_H
#define VB_NIC_FOREIGN_H

/*
 * A context of another process that was imported here: its PDs and regions are looked up in that
 * process's export, and its memory is mapped. Only files can be mapped (device memory is one), so
 * nothing else of it can be reached.
 *
 * The keys that a QP in such a PD is given may be of either process: ours are looked up first.
 * That the owner deregisters nothing that is in use here is the applications' care
 * (ibv_import_mr(3)). What it has deregistered is refused all the same.
 */

#include "nic/core/ctx.h"
#include "nic/core/export.h"

struct vb_foreign_map {
	/* The registration: no other has this key, and this number in its entry. key 0: none. */
	_Atomic uint32_t key;
	uint32_t seq;
	uint64_t base, bytes; /* there */
	uint8_t *memory;      /* here */
};

struct vb_foreign {
	struct vb_nic *nic;
	const struct vb_export *export; /* the owner's */
	uint64_t family;		/* of the context there */
	_Atomic uint32_t refs;		/* contexts and PDs */
	vb_lock lock;			/* changing maps */
	struct vb_foreign_map map[VB_FOREIGN_MAPS];
	void *run; /* belongs to the host */
};

/* The host has set nic, export, family and run. There is one reference. */
void vb_foreign_init(struct vb_foreign *foreign);

/* The last one unmaps all, and has the host free it. */
void vb_foreign_drop(struct vb_foreign *foreign);

/* As vb_mr_get(), of the owner's region. Maps it, the first time. */
uint8_t *vb_foreign_get(const struct vb_pd *pd, uint32_t key, uint64_t va, uint64_t bytes,
			unsigned access);

/*
 * What the owner says of a region: EINVAL: there is none, or in another PD; EOPNOTSUPP: it cannot
 * be mapped. Makes room by unmapping what the owner has deregistered; ENOMEM: there is none.
 */
int vb_foreign_find(const struct vb_pd *pd, uint32_t key, struct vb_export_region *region);

#endif
