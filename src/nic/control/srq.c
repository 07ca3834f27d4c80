/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/control/srq.h"

#include <errno.h>

#include "base/check.h"
#include "base/refusal.h"
#include "nic/core/quiesce.h"
#include "nic/queue/cq.h"
#include "nic/service/tm/tm.h"
#include "nic/service/xrc/xrc.h"
#include "nic/service/xrc/xrc_rx.h"

int vb_srq_create(struct vb_pd *pd, struct ibv_srq_init_attr *attr, struct vb_srq **out)
{
	int err = vb_srq_make(pd, &attr->attr, attr->srq_context, out);

	if (!err)
		attr->attr.max_wr = (*out)->rq.wr_max;
	return err;
}

/*
 * What each type takes beside a PD. A bit too many is an error of the caller, as one too few is:
 * the caller would believe that it had an effect. But a basic SRQ ignores a CQ, as with every
 * device, since programs fill in the whole structure.
 */
static const struct {
	uint32_t needs, ignores;
} type_rows[] = {
	[IBV_SRQT_BASIC] = { .needs = 0, .ignores = IBV_SRQ_INIT_ATTR_CQ },
	[IBV_SRQT_XRC] = { .needs = IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_XRCD },
	[IBV_SRQT_TM] = { .needs = IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM },
};

static int check_ex(const struct vb_ctx *ctx, const struct ibv_srq_init_attr_ex *attr,
		    enum ibv_srq_type type)
{
	const struct ibv_context *context = &ctx->ibv.context;
	uint32_t common = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;

	if (attr->comp_mask >= IBV_SRQ_INIT_ATTR_RESERVED)
		return vb_refuse(EOPNOTSUPP, "comp_mask 0x%x has bits that are not known",
				 attr->comp_mask);
	if ((unsigned)type >= VB_ARRAY_LEN(type_rows))
		return vb_refuse(EINVAL,
				 "srq_type is %d; types are IBV_SRQT_BASIC (0), XRC (1) and "
				 "TM (2)",
				 (int)type);
	common |= type_rows[type].ignores;
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) ||
	    (attr->comp_mask & ~common) != type_rows[type].needs)
		return vb_refuse(EINVAL, "comp_mask 0x%x does not fit an SRQ of type %d",
				 attr->comp_mask, (int)type);
	if (!attr->pd || attr->pd->context != context)
		return vb_refuse(EINVAL, "pd is NULL, or of another context");
	if (type != IBV_SRQT_BASIC && (!attr->cq || attr->cq->context != context))
		return vb_refuse(EINVAL, "cq is NULL, or of another context");
	if (type == IBV_SRQT_XRC && (!attr->xrcd || attr->xrcd->context != context))
		return vb_refuse(EINVAL, "xrcd is NULL, or of another context");
	return 0;
}

/* Packets no longer find it. */
static void hide(struct vb_srq *srq)
{
	struct vb_nic *nic = vb_nic_of(srq->ibv.context);

	vb_nic_srq_remove(nic, srq->ibv.handle);
	vb_nic_quiesce(nic);
	vb_xrc_srq_leave(srq);
}

/* Makes it part of that domain: packets find it from here on. */
static int enter_domain(struct vb_srq *srq, struct vb_xrcd *xrcd, struct ibv_cq *cq)
{
	uint32_t number;
	int err;

	srq->xrcd = xrcd;
	srq->cq = cq;
	err = vb_nic_srq_add(vb_nic_of(srq->ibv.context), srq, &number);
	if (err) {
		srq->xrcd = NULL;
		return err;
	}
	srq->ibv.handle = number;
	err = vb_xrc_srq_announce(srq);
	if (err) {
		hide(srq);
		srq->xrcd = NULL;
		return err;
	}
	atomic_fetch_add(&xrcd->users, 1);
	atomic_fetch_add(&((struct vb_cq *)cq)->users, 1);
	return 0;
}

static void leave_domain(struct vb_srq *srq)
{
	hide(srq);
	vb_xrc_srq_recall(srq);
	atomic_fetch_sub(&srq->xrcd->users, 1);
	atomic_fetch_sub(&((struct vb_cq *)srq->cq)->users, 1);
}

int vb_srq_create_ex(struct vb_ctx *ctx, struct ibv_srq_init_attr_ex *attr, struct vb_srq **out)
{
	enum ibv_srq_type type =
		attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ? attr->srq_type : IBV_SRQT_BASIC;
	struct vb_tm *tm = NULL;
	int err = check_ex(ctx, attr, type);

	if (!err && type == IBV_SRQT_TM)
		err = vb_tm_create((struct vb_cq *)attr->cq, &attr->tm_cap, &tm);
	if (!err)
		err = vb_srq_make((struct vb_pd *)attr->pd, &attr->attr, attr->srq_context, out);
	if (!err)
		(*out)->tm = tm;
	else if (tm)
		vb_tm_destroy(tm);
	if (!err && type == IBV_SRQT_XRC) {
		err = enter_domain(*out, (struct vb_xrcd *)attr->xrcd, attr->cq);
		if (err) {
			vb_srq_destroy(*out);
			vb_srq_free(*out);
		}
	}
	if (!err)
		attr->attr.max_wr = (*out)->rq.wr_max;
	return err;
}

int vb_srq_destroy(struct vb_srq *srq)
{
	if (atomic_load(&srq->users))
		return vb_refuse(EBUSY, "%u QPs still use it", (unsigned)atomic_load(&srq->users));
	if (srq->xrcd)
		leave_domain(srq);
	if (srq->tm)
		vb_tm_destroy(srq->tm);
	vb_srq_unmake(srq);
	return 0;
}
