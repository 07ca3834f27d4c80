/* SPDX-License-Identifier: BSD-2-Clause */
/* ibv_import_device(3) and the like: objects of another context, of this process or another. */
#include "abi/verbs/abi.h"
#include "abi/verbs/context.h"
#include "abi/verbs/device.h"
#include "abi/verbs/dm.h"
#include "nic/mem/import.h"
#include "run/foreign.h"
#include "tape/tape.h"

/* The context takes over the descriptor only if it is made. */
static int import_context(struct vb_device *dev, int cmd_fd, const struct vb_card *card,
			  struct vb_ctx **ctx)
{
	struct vb_foreign *foreign = NULL;
	int rc = 0;

	if (!vb_card_is_own(dev, card))
		rc = vb_foreign_meet(dev, card, &foreign);
	if (rc != 0)
		return rc;
	rc = vb_abi_context_make(dev, cmd_fd, ctx);
	if (rc == 0 && foreign)
		vb_ctx_adopt_foreign(*ctx, foreign);
	else if (rc == 0)
		vb_ctx_adopt(*ctx, card->family);
	else if (foreign)
		vb_foreign_drop(foreign);
	return rc;
}

struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct vb_device *dev;
	struct vb_card card;
	struct vb_ctx *ctx;
	int rc = vb_card_read(cmd_fd, &card);

	if (rc == 0 && vb_tape_is_on())
		rc = vb_refuse(EOPNOTSUPP, "objects of other contexts are not recorded");
	if (rc == 0)
		rc = vb_abi_device_at(card.row) ? vb_device_open(card.row, &dev) : ENODEV;
	if (rc == 0) {
		rc = import_context(dev, cmd_fd, &card, &ctx);
		if (rc != 0)
			vb_device_close(dev);
	}
	if (rc != 0) {
		vb_abi_result(rc);
		return NULL;
	}
	vb_known_add(VB_KNOWN_CONTEXT, &ctx->ibv.context);
	return &ctx->ibv.context;
}

struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
	struct vb_pd *pd;
	int rc = EIO;

	if (!vb_abi_is_dead(context))
		rc = vb_pd_import(vb_ctx_of(context), pd_handle, &pd);
	if (rc != 0) {
		vb_abi_result(rc);
		return NULL;
	}
	vb_abi_made(context);
	vb_known_add(VB_KNOWN_PD, &pd->ibv);
	return &pd->ibv;
}

void ibv_unimport_pd(struct ibv_pd *pd)
{
	struct ibv_context *context;

	if (vb_known_end(VB_KNOWN_PD, pd) != 0 || vb_abi_is_gone(pd->context))
		return;
	context = pd->context;
	vb_pd_unimport((struct vb_pd *)pd);
	vb_known_ended(VB_KNOWN_PD, pd, 0);
	vb_abi_ended(context, 0);
}

struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	struct vb_mr *mr;
	int rc = vb_abi_check(PD, pd);

	if (rc == 0)
		rc = vb_mr_import((struct vb_pd *)pd, mr_handle, &mr);
	if (rc != 0) {
		vb_abi_result(rc);
		return NULL;
	}
	vb_known_add(VB_KNOWN_MR, &mr->ibv);
	return &mr->ibv;
}

void ibv_unimport_mr(struct ibv_mr *mr)
{
	if (vb_known_end(VB_KNOWN_MR, mr) != 0 || vb_abi_is_gone(mr->context))
		return;
	vb_mr_unimport((struct vb_mr *)mr);
	vb_known_ended(VB_KNOWN_MR, mr, 0);
}

struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
	struct vb_dm *dm;
	int rc = EIO;

	if (!vb_abi_is_dead(context))
		rc = vb_dm_import(vb_ctx_of(context), dm_handle, &dm);
	if (rc != 0) {
		vb_abi_result(rc);
		return NULL;
	}
	vb_abi_made(context);
	vb_abi_dm_fill_in(&dm->ibv);
	vb_known_add(VB_KNOWN_DM, &dm->ibv);
	return &dm->ibv;
}

void ibv_unimport_dm(struct ibv_dm *ibv)
{
	struct vb_dm *dm = (struct vb_dm *)ibv;
	struct ibv_context *context;

	if (vb_known(VB_KNOWN_DM, ibv) != 0 || dm->apart || vb_abi_is_gone(ibv->context) ||
	    vb_known_end(VB_KNOWN_DM, ibv) != 0)
		return;
	context = ibv->context;
	vb_dm_unimport(dm);
	vb_known_ended(VB_KNOWN_DM, ibv, 0);
	vb_abi_ended(context, 0);
}
