/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/queue/cq.h"

#include <stdlib.h>

#include "abi/verbs/abi.h"
#include "abi/verbs/context.h"
#include "abi/verbs/event.h"
#include "abi/verbs/ops.h"
#include "tape/calls.h"

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe > 0 ? cqe : 0,
		.cq_context = cq_context,
		.channel = channel,
		.comp_vector = comp_vector,
	};

	return ibv_cq_ex_to_cq(vb_abi_create_cq_ex(context, &attr));
}

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	int rc = vb_abi_check(CQ, cq);

	return vb_abi_result(rc != 0 ? rc : vb_taped_cq_resize((struct vb_cq *)cq, cqe));
}

int vb_abi_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	int rc = vb_abi_check(CQ, cq);

	if (rc == 0 && !attr->attr_mask)
		rc = vb_refuse(EINVAL, "attr_mask is 0");
	if (rc == 0 && (attr->attr_mask & ~(uint32_t)IBV_CQ_ATTR_MODERATE))
		rc = vb_refuse(EOPNOTSUPP, "attr_mask 0x%x has more than IBV_CQ_ATTR_MODERATE",
			       attr->attr_mask);
	if (rc == 0)
		rc = vb_taped_cq_moderate((struct vb_cq *)cq, attr->moderate.cq_count,
				    attr->moderate.cq_period);
	return vb_report_refused(__func__, rc);
}

int ibv_destroy_cq(struct ibv_cq *ibv)
{
	struct vb_cq *cq = (struct vb_cq *)ibv;
	struct ibv_context *context;
	int rc = vb_known_end(VB_KNOWN_CQ, ibv);

	if (rc != 0)
		return vb_abi_result(rc);
	context = ibv->context;
	if (vb_abi_is_gone(context))
		return 0;
	rc = vb_known_ended(VB_KNOWN_CQ, ibv, vb_taped_cq_destroy(cq));
	if (rc != 0)
		return vb_abi_result(rc);
	vb_abi_wait_acks(&ibv->mutex, &ibv->cond, &ibv->comp_events_completed,
			 &cq->events.comp);
	vb_abi_wait_acks(&ibv->mutex, &ibv->cond, &ibv->async_events_completed,
			 &cq->events.async);
	pthread_cond_destroy(&ibv->cond);
	pthread_mutex_destroy(&ibv->mutex);
	vb_abi_cq_ex_free(cq);
	vb_taped_cq_free(cq);
	return vb_abi_ended(context, 0);
}

int vb_abi_poll_cq(struct ibv_cq *ibv, int num_entries, struct ibv_wc *wc)
{
	struct vb_cq *cq = (struct vb_cq *)ibv;
	struct vb_device *dev = vb_device_of(ibv->context);
	int got;

	if (vb_device_is_gone(dev))
		return -EIO;
	got = vb_cq_poll(cq, num_entries, wc);
	if (got == 0) {
		vb_progress_poll(dev);
		got = vb_cq_poll(cq, num_entries, wc);
	}
	return got;
}

int vb_abi_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	if (vb_abi_is_gone(cq->context))
		return EIO;
	vb_cq_arm_notify((struct vb_cq *)cq, solicited_only != 0);
	vb_progress_app_waits(vb_device_of(cq->context));
	return 0;
}
