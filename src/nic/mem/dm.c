/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/mem/dm.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "base/refusal.h"
#include "nic/core/internal.h"

#define ACCESS_BYTES 4u

static int check(const struct ibv_alloc_dm_attr *attr)
{
	if (!attr->length || attr->length > VB_DM_BYTES_MAX ||
	    attr->log_align_req > VB_DM_ALIGN_LOG_MAX || attr->comp_mask)
		return EINVAL;
	return 0;
}

/* The first place with so many free units; VB_DM_UNITS: none. */
static uint32_t find_place(const bool *used, uint32_t units, uint32_t align_units)
{
	uint32_t first = 0, free_units = 0;

	while (first + units <= VB_DM_UNITS && free_units < units) {
		if (used[first + free_units]) {
			first = (first + free_units + align_units) / align_units * align_units;
			free_units = 0;
		} else {
			free_units++;
		}
	}
	return first + units <= VB_DM_UNITS ? first : VB_DM_UNITS;
}

static int place_take(struct vb_nic *nic, struct vb_dm *dm, uint32_t align_log)
{
	struct vb_dms *dms = &nic->dms;
	uint32_t align_units = (1u << align_log) / VB_DM_UNIT_BYTES;

	if (!dms->memory)
		dms->memory = nic->host.memory->device(nic->host.arg, VB_DM_BYTES_MAX);
	if (!dms->memory)
		return EOPNOTSUPP;
	VB_EXPORT_SET(nic->export->dm_base, (uintptr_t)dms->memory);
	dm->units = (uint32_t)((dm->bytes + VB_DM_UNIT_BYTES - 1) / VB_DM_UNIT_BYTES);
	dm->first = find_place(dms->used, dm->units, align_units ? align_units : 1);
	if (dm->first == VB_DM_UNITS)
		return ENOMEM;
	memset(dms->used + dm->first, true, dm->units * sizeof(dms->used[0]));
	dm->memory = dms->memory + (size_t)dm->first * VB_DM_UNIT_BYTES;
	return 0;
}

/* Lets other processes import it. */
static void show(struct vb_nic *nic, const struct vb_dm *dm, uint64_t family)
{
	VB_EXPORT_SET(nic->export->dm[dm->first].family, family);
	VB_EXPORT_SET(nic->export->dm[dm->first].bytes, dm->bytes);
}

static struct vb_dm *make(struct vb_ctx *ctx, const struct ibv_alloc_dm_attr *attr)
{
	struct vb_dm *dm = calloc(1, sizeof(*dm));

	if (!dm)
		return NULL;
	dm->bytes = attr->length;
	dm->ibv.context = &ctx->ibv.context;
	dm->ibv.comp_mask = IBV_DM_MASK_HANDLE;
	return dm;
}

int vb_dm_alloc(struct vb_ctx *ctx, const struct ibv_alloc_dm_attr *attr, struct vb_dm **out)
{
	struct vb_nic *nic = ctx->nic;
	struct vb_dm *dm;
	int err = check(attr);

	if (err)
		return err;
	if (!nic->host.memory || ctx->foreign)
		return EOPNOTSUPP;
	dm = make(ctx, attr);
	if (!dm)
		return ENOMEM;
	vb_lock_take(&nic->dms.lock);
	err = place_take(nic, dm, attr->log_align_req);
	vb_lock_drop(&nic->dms.lock);
	if (err) {
		free(dm);
		return err;
	}
	memset(dm->memory, 0, dm->bytes);
	dm->ibv.handle = dm->first;
	dm->handle = (struct vb_handle){ .object = dm, .free = free, .number = dm->first,
					 .family = ctx->family, .users = &dm->users };
	vb_handle_add(&nic->handles.dms, &dm->handle);
	show(nic, dm, ctx->family);
	*out = dm;
	return 0;
}

int vb_dm_free(struct vb_dm *dm)
{
	struct vb_nic *nic = vb_nic_of(dm->ibv.context);
	const struct vb_dm *original = dm->handle.original->object;

	if (dm->foreign)
		return EOPNOTSUPP;
	if (vb_handle_is_used(&nic->handles.dms, &dm->handle))
		return vb_refuse(EBUSY, "regions still use the device memory");
	if (!vb_handle_kill(&nic->handles.dms, &dm->handle))
		return ENOENT;
	VB_EXPORT_SET(nic->export->dm[original->first].bytes, 0);
	vb_lock_take(&nic->dms.lock);
	memset(nic->dms.used + original->first, false,
	       original->units * sizeof(nic->dms.used[0]));
	vb_lock_drop(&nic->dms.lock);
	vb_handle_drop(&nic->handles.dms, &dm->handle);
	return 0;
}

int vb_dm_alloc_apart(struct vb_ctx *ctx, const struct ibv_alloc_dm_attr *attr,
		      struct vb_dm **out)
{
	struct vb_dm *dm;
	int err = check(attr);

	if (err)
		return err;
	dm = make(ctx, attr);
	if (!dm)
		return ENOMEM;
	dm->memory = calloc(1, dm->bytes);
	if (!dm->memory) {
		free(dm);
		return ENOMEM;
	}
	dm->apart = true;
	*out = dm;
	return 0;
}

void vb_dm_free_apart(struct vb_dm *dm)
{
	free(dm->memory);
	free(dm);
}

static int access_check(const struct vb_dm *dm, uint64_t offset, size_t bytes)
{
	if (offset > dm->bytes || bytes > dm->bytes - offset)
		return vb_refuse(EFAULT,
				 "%zu octets from %" PRIu64 " on pass the end of the %" PRIu64
				 " of the device memory",
				 bytes, offset, (uint64_t)dm->bytes);
	if (offset % ACCESS_BYTES || bytes % ACCESS_BYTES)
		return vb_refuse(EINVAL,
				 "offset %" PRIu64 " and length %zu have to be multiples of "
				 "%d",
				 offset, bytes, ACCESS_BYTES);
	return 0;
}

int vb_dm_write(struct vb_dm *dm, uint64_t offset, const void *from, size_t bytes)
{
	int err = access_check(dm, offset, bytes);

	if (err)
		return err;
	return vb_guard_copy(dm->memory + offset, from, bytes) ? 0 : EFAULT;
}

int vb_dm_read(const struct vb_dm *dm, uint64_t offset, void *to, size_t bytes)
{
	int err = access_check(dm, offset, bytes);

	if (err)
		return err;
	return vb_guard_copy(to, dm->memory + offset, bytes) ? 0 : EFAULT;
}
