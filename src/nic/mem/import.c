/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/mem/import.h"

#include <errno.h>
#include <stdlib.h>

#include "base/refusal.h"
#include "nic/core/internal.h"
#include "nic/mem/foreign.h"

void vb_ctx_adopt(struct vb_ctx *ctx, uint64_t family)
{
	ctx->family = family;
}

void vb_ctx_adopt_foreign(struct vb_ctx *ctx, struct vb_foreign *foreign)
{
	ctx->foreign = foreign;
}

void vb_ctx_disown(struct vb_ctx *ctx)
{
	if (ctx->foreign)
		vb_foreign_drop(ctx->foreign);
	ctx->foreign = NULL;
}

/* --- PDs --- */

static void foreign_pd_free(void *object)
{
	struct vb_pd *pd = object;

	vb_foreign_drop(pd->foreign);
	free(pd);
}

/* A PD of our own; what it does not have is looked up in the owner's. */
static int foreign_pd(struct vb_ctx *ctx, struct vb_pd *pd)
{
	const struct vb_export_pd *entry = &ctx->foreign->export->pd[pd->ibv.handle];
	struct vb_nic *nic = ctx->nic;

	pd->foreign_id = VB_EXPORT_GET(entry->id);
	if (!pd->foreign_id || VB_EXPORT_GET(entry->family) != ctx->foreign->family)
		return vb_refuse(EINVAL, "the context's owner has no PD of handle %u",
				 pd->ibv.handle);
	pd->id = atomic_fetch_add(&nic->ids.pd_last, 1) + 1;
	pd->foreign = ctx->foreign;
	atomic_fetch_add(&pd->foreign->refs, 1);
	pd->handle.free = foreign_pd_free;
	vb_handle_add(&nic->handles.pds, &pd->handle);
	/* It cannot be imported from us, and there is no object here to destroy. */
	vb_handle_kill(&nic->handles.pds, &pd->handle);
	return 0;
}

static int own_pd(struct vb_ctx *ctx, struct vb_pd *pd)
{
	struct vb_nic *nic = ctx->nic;
	struct vb_handle *original =
		vb_handle_find(&nic->handles.pds, ctx->family, pd->ibv.handle);

	if (!original)
		return vb_refuse(EINVAL, "there is no PD of handle %u", pd->ibv.handle);
	pd->id = ((struct vb_pd *)original->object)->id;
	vb_handle_import(&nic->handles.pds, &pd->handle, original);
	return 0;
}

int vb_pd_import(struct vb_ctx *ctx, uint32_t handle, struct vb_pd **out)
{
	struct vb_pd *pd;
	int err;

	if (handle >= VB_PDS_MAX)
		return vb_refuse(EINVAL, "there is no PD of handle %u", handle);
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return ENOMEM;
	pd->ibv.context = &ctx->ibv.context;
	pd->ibv.handle = handle;
	pd->handle = (struct vb_handle){ .object = pd, .free = free, .users = &pd->users };
	err = ctx->foreign ? foreign_pd(ctx, pd) : own_pd(ctx, pd);
	if (err) {
		free(pd);
		return err;
	}
	*out = pd;
	return 0;
}

void vb_pd_unimport(struct vb_pd *pd)
{
	/* A parent domain has no handle of its own. */
	if (!pd->domain)
		vb_handle_drop(&vb_nic_of(pd->ibv.context)->handles.pds, &pd->handle);
}

/* --- regions --- */

static int foreign_mr(const struct vb_pd *pd, struct vb_mr *mr)
{
	struct vb_export_region region;
	int err = vb_foreign_find(pd, mr->ibv.handle, &region);

	if (err)
		return err;
	mr->kind = VB_MR_FOREIGN;
	mr->bytes = region.bytes;
	mr->ibv.lkey = mr->ibv.rkey = region.key;
	mr->handle.original = &mr->handle;
	return 0;
}

static int own_mr(const struct vb_pd *pd, struct vb_mr *mr)
{
	struct vb_handles *mrs = &vb_nic_of(pd->ibv.context)->handles.mrs;
	struct vb_handle *original =
		vb_handle_find(mrs, vb_ctx_of(pd->ibv.context)->family, mr->ibv.handle);
	const struct vb_mr *region;

	if (!original)
		return vb_refuse(EINVAL, "there is no region of handle %u", mr->ibv.handle);
	region = original->object;
	if (((struct vb_pd *)region->ibv.pd)->id != pd->id) {
		vb_handle_unfind(mrs, original);
		return vb_refuse(EINVAL, "the region of handle %u is of another PD",
				 mr->ibv.handle);
	}
	mr->kind = VB_MR_IMPORTED;
	mr->bytes = region->bytes;
	mr->access = region->access;
	mr->ibv.lkey = region->ibv.lkey;
	mr->ibv.rkey = region->ibv.rkey;
	vb_handle_import(mrs, &mr->handle, original);
	return 0;
}

int vb_mr_import(struct vb_pd *pd, uint32_t handle, struct vb_mr **out)
{
	struct vb_mr *mr = calloc(1, sizeof(*mr));
	int err;

	if (!mr)
		return ENOMEM;
	mr->ibv.context = pd->ibv.context;
	mr->ibv.pd = &pd->ibv;
	mr->ibv.handle = handle;
	mr->shared.file = -1;
	mr->handle = (struct vb_handle){ .object = mr, .free = free };
	err = pd->foreign ? foreign_mr(pd, mr) : own_mr(pd, mr);
	if (err) {
		free(mr);
		return err;
	}
	mr->ibv.length = mr->bytes;
	*out = mr;
	return 0;
}

void vb_mr_unimport(struct vb_mr *mr)
{
	if (mr->kind == VB_MR_FOREIGN)
		free(mr);
	else
		vb_handle_drop(&vb_nic_of(mr->ibv.context)->handles.mrs, &mr->handle);
}

/* --- device memory --- */

static void foreign_dm_free(void *object)
{
	struct vb_dm *dm = object;
	const struct vb_nic_host *host = &dm->foreign->nic->host;

	host->foreign->unmap(host->arg, dm->memory, dm->bytes);
	vb_foreign_drop(dm->foreign);
	free(dm);
}

static int foreign_dm(struct vb_ctx *ctx, uint32_t handle, struct vb_dm *dm)
{
	const struct vb_export *export = ctx->foreign->export;
	const struct vb_nic_host *host = &ctx->nic->host;
	uint64_t offset = (uint64_t)handle * VB_DM_UNIT_BYTES, bytes;

	if (handle >= VB_DM_UNITS)
		return vb_refuse(EINVAL, "there is no device memory of handle %u", handle);
	bytes = VB_EXPORT_GET(export->dm[handle].bytes);
	if (!bytes || bytes > VB_DM_BYTES_MAX - offset ||
	    VB_EXPORT_GET(export->dm[handle].family) != ctx->foreign->family)
		return vb_refuse(EINVAL, "the context's owner has no device memory of handle %u",
				 handle);
	*dm = (struct vb_dm){ .bytes = bytes, .foreign = ctx->foreign,
			      .ibv.comp_mask = IBV_DM_MASK_HANDLE, .ibv.handle = handle };
	dm->memory = host->foreign->map(host->arg, ctx->foreign,
				       VB_EXPORT_GET(export->dm_base) + offset, bytes);
	if (!dm->memory)
		return EOPNOTSUPP;
	atomic_fetch_add(&ctx->foreign->refs, 1);
	dm->handle = (struct vb_handle){ .object = dm, .free = foreign_dm_free,
					 .users = &dm->users };
	vb_handle_add(&ctx->nic->handles.dms, &dm->handle);
	vb_handle_kill(&ctx->nic->handles.dms, &dm->handle);
	return 0;
}

static int own_dm(struct vb_ctx *ctx, uint32_t handle, struct vb_dm *dm)
{
	struct vb_handles *dms = &ctx->nic->handles.dms;
	struct vb_handle *original = vb_handle_find(dms, ctx->family, handle);

	if (!original)
		return vb_refuse(EINVAL, "there is no device memory of handle %u", handle);
	*dm = *(struct vb_dm *)original->object;
	atomic_store(&dm->users, 0);
	dm->handle = (struct vb_handle){ .object = dm, .free = free, .users = &dm->users };
	vb_handle_import(dms, &dm->handle, original);
	return 0;
}

int vb_dm_import(struct vb_ctx *ctx, uint32_t handle, struct vb_dm **out)
{
	struct vb_dm *dm = malloc(sizeof(*dm));
	int err;

	if (!dm)
		return ENOMEM;
	err = ctx->foreign ? foreign_dm(ctx, handle, dm) : own_dm(ctx, handle, dm);
	if (err) {
		free(dm);
		return err;
	}
	dm->ibv.context = &ctx->ibv.context;
	*out = dm;
	return 0;
}

void vb_dm_unimport(struct vb_dm *dm)
{
	vb_handle_drop(&vb_nic_of(dm->ibv.context)->handles.dms, &dm->handle);
}
