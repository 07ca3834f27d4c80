/* SPDX-License-Identifier: BSD-2-Clause */
/* Device memory, ibv_alloc_dm(3). */
#include "abi/verbs/dm.h"

#include "abi/verbs/abi.h"
#include "abi/verbs/context.h"
#include "abi/verbs/ops.h"
#include "nic/mem/mem.h"
#include "nic/mem/mem_kinds.h"
#include "tape/tape.h"

/* Is the memory there? In a forked child the parent's is not. */
static bool is_there(const struct vb_dm *dm)
{
	return dm->apart || !vb_abi_is_gone(dm->ibv.context);
}

static int memcpy_to_dm(struct ibv_dm *ibv, uint64_t dm_offset, const void *host_addr,
			size_t length)
{
	struct vb_dm *dm = (struct vb_dm *)ibv;

	return vb_report_refused("ibv_memcpy_to_dm",
				 is_there(dm) ? vb_dm_write(dm, dm_offset, host_addr, length)
					      : EIO);
}

static int memcpy_from_dm(void *host_addr, struct ibv_dm *ibv, uint64_t dm_offset, size_t length)
{
	struct vb_dm *dm = (struct vb_dm *)ibv;

	return vb_report_refused("ibv_memcpy_from_dm",
				 is_there(dm) ? vb_dm_read(dm, dm_offset, host_addr, length) : EIO);
}

void vb_abi_dm_fill_in(struct ibv_dm *dm)
{
	dm->memcpy_to_dm = memcpy_to_dm;
	dm->memcpy_from_dm = memcpy_from_dm;
}

/*
 * Works in a forked child as well, since it needs no NIC: with a kernel driver a child could
 * allocate through the descriptor that it inherited, and programs do that.
 */
struct ibv_dm *vb_abi_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	struct vb_ctx *ctx = vb_ctx_of(context);
	struct vb_dm *dm;
	int rc = EIO;

	if (vb_abi_is_gone(context))
		rc = vb_dm_alloc_apart(ctx, attr, &dm);
	else if (!vb_abi_is_dead(context))
		rc = vb_tape_is_on() ? vb_refuse(EOPNOTSUPP, "device memory is not recorded")
				     : vb_dm_alloc(ctx, attr, &dm);
	if (rc != 0) {
		vb_abi_result(rc);
		return NULL;
	}
	if (!dm->apart)
		vb_abi_made(context);
	vb_abi_dm_fill_in(&dm->ibv);
	vb_known_add(VB_KNOWN_DM, &dm->ibv);
	return &dm->ibv;
}

int vb_abi_free_dm(struct ibv_dm *ibv)
{
	struct vb_dm *dm = (struct vb_dm *)ibv;
	struct ibv_context *context;
	int rc = vb_known_end(VB_KNOWN_DM, ibv);

	if (rc != 0)
		return vb_abi_result(rc);
	context = ibv->context;
	if (dm->apart) {
		vb_known_ended(VB_KNOWN_DM, ibv, 0);
		vb_dm_free_apart(dm);
		return 0;
	}
	if (vb_abi_is_gone(context))
		return 0;
	rc = vb_known_ended(VB_KNOWN_DM, ibv, vb_dm_free(dm));
	return vb_abi_ended(context, vb_report_refused(__func__, rc));
}

/* A dma-buf is the kernel's, and this memory is the process's own. */
int ibv_dm_export_dmabuf_fd(struct ibv_dm *dm);

int ibv_dm_export_dmabuf_fd(struct ibv_dm *dm)
{
	int rc = vb_abi_check(DM, dm);

	if (rc == 0)
		rc = vb_refuse(EOPNOTSUPP, "device memory is the process's own, and no dma-buf");
	vb_abi_result(rc);
	return -1;
}

struct ibv_mr *vb_abi_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset,
				size_t length, unsigned access)
{
	struct vb_mr *mr;
	int rc = vb_abi_check(PD, pd);

	if (rc == 0)
		rc = vb_known(VB_KNOWN_DM, dm);
	if (rc == 0)
		rc = vb_mr_reg_dm((struct vb_pd *)pd, (struct vb_dm *)dm, offset, length, access,
				  &mr);
	if (rc != 0) {
		vb_abi_result(rc);
		return NULL;
	}
	vb_known_add(VB_KNOWN_MR, &mr->ibv);
	return &mr->ibv;
}
