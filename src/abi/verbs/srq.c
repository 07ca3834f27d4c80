/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/control/srq.h"

#include "abi/verbs/abi.h"
#include "abi/verbs/event.h"
#include "abi/verbs/ops.h"
#include "nic/service/tm/tm.h"
#include "tape/calls.h"

/* The SRQ for the application, or NULL with errno. */
static struct ibv_srq *hand_out(const char *function, int rc, struct vb_srq **srq)
{
	if (rc != 0) {
		vb_abi_end(function, rc);
		return NULL;
	}
	pthread_mutex_init(&(*srq)->ibv.mutex, NULL);
	pthread_cond_init(&(*srq)->ibv.cond, NULL);
	vb_known_add(VB_KNOWN_SRQ, &(*srq)->ibv);
	return &(*srq)->ibv;
}

static int create(struct ibv_pd *pd, struct ibv_srq_init_attr *attr, struct vb_srq **srq)
{
	int rc = vb_abi_check(PD, pd);

	return rc != 0 ? rc : vb_taped_srq_create((struct vb_pd *)pd, attr, srq);
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct vb_srq *srq;

	return hand_out(__func__, create(pd, attr, &srq), &srq);
}

static int create_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr,
		     struct vb_srq **srq)
{
	int rc = vb_abi_is_dead(context) ? EIO : 0;

	if (rc == 0 && (attr->comp_mask & IBV_SRQ_INIT_ATTR_PD))
		rc = vb_known_or_null(VB_KNOWN_PD, attr->pd);
	return rc != 0 ? rc : vb_taped_srq_create_ex(vb_ctx_of(context), attr, srq);
}

/* The header's wrapper calls ibv_create_srq() if only a PD and the basic type are given. */
struct ibv_srq *vb_abi_create_srq_ex(struct ibv_context *context,
				     struct ibv_srq_init_attr_ex *attr)
{
	struct vb_srq *srq;

	return hand_out(__func__, create_ex(context, attr, &srq), &srq);
}

int vb_abi_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad_wr)
{
	if (vb_abi_is_gone(srq->context)) {
		*bad_wr = wr;
		return EIO;
	}
	return vb_report_refused(__func__, vb_tm_post((struct vb_srq *)srq, wr, bad_wr));
}

int vb_abi_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num)
{
	*srq_num = srq->handle;
	return 0;
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int attr_mask)
{
	int rc = vb_abi_check(SRQ, srq);

	return vb_abi_result(rc != 0 ? rc
				     : vb_taped_srq_modify((struct vb_srq *)srq, attr, attr_mask));
}

int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	int rc = vb_abi_check(SRQ, srq);

	return vb_abi_result(rc != 0 ? rc : vb_srq_query((struct vb_srq *)srq, attr));
}

int ibv_destroy_srq(struct ibv_srq *ibv)
{
	struct vb_srq *srq = (struct vb_srq *)ibv;
	int rc = vb_known_end(VB_KNOWN_SRQ, ibv);

	if (rc == 0 && vb_abi_is_gone(ibv->context))
		return 0;
	if (rc == 0)
		rc = vb_known_ended(VB_KNOWN_SRQ, ibv, vb_taped_srq_destroy(srq));
	if (rc != 0)
		return vb_abi_result(rc);
	vb_abi_wait_acks(&ibv->mutex, &ibv->cond, &ibv->events_completed, &srq->events_delivered);
	pthread_cond_destroy(&ibv->cond);
	pthread_mutex_destroy(&ibv->mutex);
	vb_taped_srq_free(srq);
	return 0;
}

int vb_abi_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	if (vb_abi_is_gone(srq->context)) {
		*bad_wr = wr;
		return EIO;
	}
	return vb_srq_post((struct vb_srq *)srq, wr, bad_wr);
}
