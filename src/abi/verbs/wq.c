/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work queues and indirection tables. The header's wrapper sets up a queue's mutex and condition.
 */
#include "nic/service/eth/wq.h"

#include "abi/verbs/abi.h"
#include "abi/verbs/event.h"
#include "abi/verbs/ops.h"
#include "tape/tape.h"

static int post_recv(struct ibv_wq *wq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	if (vb_abi_is_gone(wq->context)) {
		*bad_wr = wr;
		return EIO;
	}
	return vb_rwq_post((struct vb_rwq *)wq, wr, bad_wr);
}

struct ibv_wq *vb_abi_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *attr)
{
	struct vb_rwq *wq = NULL;
	int rc = vb_abi_is_dead(context) ? EIO : 0;

	if (rc == 0 && vb_tape_is_on())
		rc = vb_refuse(EOPNOTSUPP, "work queues are not recorded");
	if (rc == 0)
		rc = vb_rwq_create(vb_ctx_of(context), attr, &wq);
	if (rc != 0) {
		vb_abi_result(rc);
		return NULL;
	}
	wq->ibv.post_recv = post_recv;
	vb_known_add(VB_KNOWN_WQ, &wq->ibv);
	return &wq->ibv;
}

int vb_abi_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr)
{
	int rc = vb_abi_check(WQ, wq);

	return vb_abi_result(rc != 0 ? rc : vb_rwq_modify((struct vb_rwq *)wq, attr));
}

int vb_abi_destroy_wq(struct ibv_wq *ibv)
{
	struct vb_rwq *wq = (struct vb_rwq *)ibv;
	int rc = vb_known_end(VB_KNOWN_WQ, ibv);

	if (rc == 0 && vb_abi_is_gone(ibv->context))
		return 0;
	if (rc == 0)
		rc = vb_known_ended(VB_KNOWN_WQ, ibv, vb_rwq_destroy(wq));
	if (rc != 0)
		return vb_abi_result(rc);
	vb_abi_wait_acks(&ibv->mutex, &ibv->cond, &ibv->events_completed, &wq->events_delivered);
	pthread_cond_destroy(&ibv->cond);
	pthread_mutex_destroy(&ibv->mutex);
	vb_rwq_free(wq);
	return 0;
}

struct ibv_rwq_ind_table *vb_abi_create_rwq_ind_table(struct ibv_context *context,
						      struct ibv_rwq_ind_table_init_attr *attr)
{
	struct vb_rwq_table *table = NULL;
	int rc = vb_abi_is_dead(context) ? EIO
					 : vb_rwq_table_create(vb_ctx_of(context), attr, &table);

	if (rc != 0) {
		vb_abi_result(rc);
		return NULL;
	}
	vb_known_add(VB_KNOWN_TABLE, &table->ibv);
	return &table->ibv;
}

int vb_abi_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table)
{
	int rc = vb_known_end(VB_KNOWN_TABLE, table);

	if (rc == 0 && !vb_abi_is_gone(table->context))
		rc = vb_known_ended(VB_KNOWN_TABLE, table,
				    vb_rwq_table_destroy((struct vb_rwq_table *)table));
	return vb_abi_result(rc);
}
