/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_IMPORT_H
#define VB_NIC_IMPORT_H

/*
 * ibv_import_pd(3), ibv_import_mr(3), ibv_import_dm(3): further handles for objects of a context,
 * in a context imported from it. Within a process they are equivalent to the first handle. From
 * another process, regions and device memory can be imported if their memory can be mapped
 * (foreign.h). Objects made in the imported PD, or of its memory, are ours; the owner does not know
 * of them.
 */

#include "nic/mem/mem.h"

/* Makes ctx a member of this family, whose contexts may import each other's objects. */
void vb_ctx_adopt(struct vb_ctx *ctx, uint64_t family);

/* The same for a context of another process; takes over the reference. */
void vb_ctx_adopt_foreign(struct vb_ctx *ctx, struct vb_foreign *foreign);

/* Before the context is destroyed. */
void vb_ctx_disown(struct vb_ctx *ctx);

/* EINVAL: the context has no such PD; ENOMEM. */
int vb_pd_import(struct vb_ctx *ctx, uint32_t handle, struct vb_pd **pd);

/*
 * Gives up a pointer, imported or original, and leaves the object alone. Objects made in the PD can
 * still be destroyed.
 */
void vb_pd_unimport(struct vb_pd *pd);

/* EINVAL: no such region in this PD; EOPNOTSUPP: its memory cannot be mapped; ENOMEM. */
int vb_mr_import(struct vb_pd *pd, uint32_t handle, struct vb_mr **mr);
void vb_mr_unimport(struct vb_mr *mr);

/* EINVAL: no such memory; EOPNOTSUPP: it cannot be mapped; ENOMEM. Functions of ibv as in dm.h. */
int vb_dm_import(struct vb_ctx *ctx, uint32_t handle, struct vb_dm **dm);
void vb_dm_unimport(struct vb_dm *dm);

#endif
