/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/srq.h"

#include "abi/verbs/abi.h"

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct vb_srq *srq;
	int rc = EIO;

	if (!vb_abi_is_gone(pd->context))
		rc = vb_srq_create((struct vb_pd *)pd, attr, &srq);
	if (rc != 0) {
		errno = rc;
		return NULL;
	}
	pthread_mutex_init(&srq->ibv.mutex, NULL);
	pthread_cond_init(&srq->ibv.cond, NULL);
	return &srq->ibv;
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int attr_mask)
{
	return vb_abi_is_gone(srq->context) ? EIO
					    : vb_srq_modify((struct vb_srq *)srq, attr, attr_mask);
}

int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	return vb_abi_is_gone(srq->context) ? EIO : vb_srq_query((struct vb_srq *)srq, attr);
}

int ibv_destroy_srq(struct ibv_srq *ibv)
{
	struct vb_srq *srq = (struct vb_srq *)ibv;
	int rc;

	if (vb_abi_is_gone(ibv->context))
		return 0;
	rc = vb_srq_destroy(srq);
	if (rc != 0)
		return rc;
	vb_abi_wait_acks(&ibv->mutex, &ibv->cond, &ibv->events_completed, &srq->events_delivered);
	pthread_cond_destroy(&ibv->cond);
	pthread_mutex_destroy(&ibv->mutex);
	vb_srq_free(srq);
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
