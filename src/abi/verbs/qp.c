/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/verbs/qp.h"

#include <stdlib.h>
#include <string.h>

#include "abi/check/check.h"
#include "abi/verbs/abi.h"
#include "abi/verbs/ah.h"
#include "abi/verbs/event.h"
#include "abi/verbs/ops.h"
#include "abi/verbs/wr.h"
#include "nic/control/nic.h"
#include "nic/control/qp.h"
#include "nic/control/qp_modify.h"
#include "nic/service/xrc/xrc.h"
#include "tape/calls.h"

static struct ibv_qp *created(const char *function, int rc, struct vb_qp *qp)
{
	if (rc != 0) {
		vb_abi_end(function, rc);
		return NULL;
	}
	pthread_mutex_init(&qp->ibv.qp.mutex, NULL);
	pthread_cond_init(&qp->ibv.qp.cond, NULL);
	vb_known_add(VB_KNOWN_QP, &qp->ibv.qp);
	return &qp->ibv.qp;
}

/*
 * Scatter to CQE is a feature of mlx5, enabled on all QPs if its setting allows. So it is here if
 * the persona is mlx5. For other personas a plain call does not enable it.
 */
static uint32_t plain_flags(struct ibv_context *context)
{
	const char *set = secure_getenv("MLX5_SCATTER_TO_CQE");

	if (!vb_nic_persona(vb_ctx_of(context)->nic)->has_parcels || (set && !strcmp(set, "0")))
		return VB_QP_SCATTER_TO_CQE_OFF;
	return 0;
}

/* Are the queues that it is to be made with known objects? */
static int queues_known(const struct ibv_cq *send_cq, const struct ibv_cq *recv_cq,
			const struct ibv_srq *srq)
{
	int rc = vb_known_or_null(VB_KNOWN_CQ, send_cq);

	if (rc == 0)
		rc = vb_known_or_null(VB_KNOWN_CQ, recv_cq);
	return rc != 0 ? rc : vb_known_or_null(VB_KNOWN_SRQ, srq);
}

static int create_plain(struct vb_pd *pd, struct ibv_qp_init_attr *attr, struct vb_qp **qp)
{
	int rc = vb_taped_qp_create(pd, attr, qp);

	if (rc != 0 || plain_flags(pd->ibv.context))
		return rc;
	rc = vb_taped_parcels_make(*qp, false);
	if (rc != 0) {
		vb_taped_qp_destroy(*qp);
		vb_taped_qp_free(*qp);
	}
	return rc;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct vb_qp *qp = NULL;
	int rc;

	/* ibv_create_qp_ex() calls this if only a PD is given, which may be NULL. */
	rc = pd ? vb_abi_check(PD, pd) : vb_refuse(EINVAL, "pd is NULL");
	if (rc == 0)
		rc = queues_known(attr->send_cq, attr->recv_cq, attr->srq);
	if (rc == 0)
		rc = create_plain((struct vb_pd *)pd, attr, &qp);
	return created(__func__, rc, qp);
}

static int create_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
		     const struct vb_qp_dv_attr *dv, struct vb_qp **qp)
{
	uint64_t ops = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS ? attr->send_ops_flags : 0;
	uint32_t dv_ops = dv->flags & VB_QP_DV_BUILDER;
	bool builds = (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) || dv_ops;
	const struct ibv_qp_cap wanted = attr->cap;
	int rc = 0;

	if (vb_abi_is_dead(context))
		return EIO;
	if (attr->qp_type == IBV_QPT_XRC_RECV && (attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) &&
	    attr->xrcd && attr->xrcd->context != context)
		return vb_refuse(EINVAL, "xrcd is of another context");
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_PD) && attr->pd && attr->pd->context != context)
		return vb_refuse(EINVAL, "pd is of another context");
	if (builds)
		rc = vb_wr_check(attr->qp_type, dv->dc, ops);
	if (rc == 0)
		rc = queues_known(attr->send_cq, attr->recv_cq, attr->srq);
	if (rc == 0)
		rc = vb_taped_qp_create_dv(attr, dv, qp);
	if (rc != 0 || !builds)
		return rc;
	/*
	 * An operation that configures keys also invalidates them; on mlx5 a builder has all
	 * operations.
	 */
	if (dv_ops & VB_QP_MKEYS)
		ops |= IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_SEND_WITH_INV;
	rc = vb_wr_attach(&(*qp)->ibv.qp, &attr->cap, ops, dv_ops);
	if (rc != 0) {
		attr->cap = wanted;
		vb_taped_qp_destroy(*qp);
		vb_taped_qp_free(*qp);
	}
	return rc;
}

struct ibv_qp *vb_abi_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	const struct vb_qp_dv_attr dv = { .flags = plain_flags(context) };
	struct vb_qp *qp = NULL;
	int rc = EOPNOTSUPP;

	/* Driver QPs have to be created by mlx5dv_create_qp(). */
	if (attr->qp_type != IBV_QPT_DRIVER)
		rc = create_ex(context, attr, &dv, &qp);
	return created(__func__, rc, qp);
}

struct ibv_qp *vb_abi_create_qp_dv(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
				   const struct vb_qp_dv_attr *dv, void *part)
{
	struct vb_qp *qp = NULL;
	int rc = create_ex(context, attr, dv, &qp);

	struct vb_builder *b = rc == 0 ? qp->abi : NULL;

	if (b) {
		/* mlx5 checks only what was asked for at creation, and programs rely on that. */
		b->ops = vb_wr_ops(attr->qp_type, dv->dc);
		b->dv = part;
	} else {
		free(part);
	}
	return created(__func__, rc, qp);
}

struct ibv_qp *vb_abi_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	struct vb_qp *qp = NULL;
	int rc = vb_abi_is_dead(context) ? EIO : vb_xrc_qp_open(vb_ctx_of(context), attr, &qp);

	return created(__func__, rc, qp);
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *ibv)
{
	struct vb_qp *qp = (struct vb_qp *)ibv;

	return qp->abi ? &qp->ibv.qp_ex : NULL;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
	int rc = vb_abi_check(QP, qp);

	if (rc != 0)
		return vb_abi_result(rc);
	/* The address vector has a GID index, which may be that of a new address. */
	if (attr_mask & IBV_QP_AV)
		vb_device_gids_refresh(vb_device_of(qp->context));
	/*
	 * What has arrived before still counts (vb_qp_modify), even if no thread has taken it in
	 * yet.
	 */
	if ((attr_mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_ERR)
		vb_progress_take_in(vb_device_of(qp->context));
	if (vb_check_is_on())
		vb_check_modifies(qp, attr, attr_mask);
	rc = vb_taped_qp_modify((struct vb_qp *)qp, attr, attr_mask);
	if (rc == 0 && vb_check_is_on())
		vb_check_modified(qp, attr, attr_mask);
	if (rc != 0 && (attr_mask & IBV_QP_AV))
		vb_abi_look_at_gids("ibv_modify_qp", vb_abi_nic(qp->context), &attr->ah_attr);
	return vb_abi_result(rc);
}

int vb_abi_modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr)
{
	int rc = vb_abi_check(QP, qp);

	return vb_abi_result(rc != 0 ? rc : vb_taped_qp_rate_limit((struct vb_qp *)qp, attr));
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		 struct ibv_qp_init_attr *init_attr)
{
	int rc = vb_abi_check(QP, qp);

	if (rc == 0)
		rc = vb_qp_query((struct vb_qp *)qp, attr, init_attr);
	/* A failed send may have changed the state without telling the application. */
	if (rc == 0 && (attr_mask & IBV_QP_STATE))
		qp->state = attr->qp_state;
	return vb_abi_result(rc);
}

/*
 * A retransmission may write the same octets again, so no order can be promised: not of all octets,
 * nor of those of an aligned block of 128, whichever of the two the flags ask for.
 */
int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	return 0;
}

int ibv_destroy_qp(struct ibv_qp *ibv)
{
	struct vb_qp *qp = (struct vb_qp *)ibv;
	int rc = vb_known_end(VB_KNOWN_QP, ibv);

	if (rc == 0 && vb_abi_is_gone(ibv->context))
		return 0;
	if (rc == 0)
		rc = vb_known_ended(VB_KNOWN_QP, ibv, vb_taped_qp_destroy(qp));
	if (rc != 0)
		return vb_abi_result(rc);
	vb_abi_wait_acks(&ibv->mutex, &ibv->cond, &ibv->events_completed, &qp->events.delivered);
	pthread_cond_destroy(&ibv->cond);
	pthread_mutex_destroy(&ibv->mutex);
	vb_wr_detach(ibv);
	vb_taped_qp_fini(qp);
	if (vb_check_is_on())
		vb_check_keep(qp);
	else
		free(qp);
	return 0;
}

int vb_abi_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	if (vb_abi_is_gone(qp->context)) {
		*bad_wr = wr;
		return EIO;
	}
	return vb_qp_post_send((struct vb_qp *)qp, wr, bad_wr);
}

int vb_abi_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	if (vb_abi_is_gone(qp->context)) {
		*bad_wr = wr;
		return EIO;
	}
	return vb_qp_post_recv((struct vb_qp *)qp, wr, bad_wr);
}
