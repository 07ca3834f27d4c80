/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/rq.h"

#include <errno.h>
#include <stdlib.h>

#include "nic/internal.h"
#include "nic/srq.h"

int vb_rq_init(struct vb_rq *rq, uint32_t wr_max, uint32_t sge_max)
{
	uint32_t size = 1;

	while (size < wr_max)
		size *= 2;
	*rq = (struct vb_rq){
		.size = size,
		.wr_max = wr_max,
		.sge_max = sge_max,
		.stride = (uint32_t)(offsetof(struct vb_recv, sge) +
				     (sge_max ? sge_max : 1) * sizeof(struct ibv_sge)),
	};
	rq->ring = malloc((size_t)size * rq->stride);
	if (!rq->ring)
		return ENOMEM;
	vb_lock_init(&rq->lock);
	return 0;
}

void vb_rq_fini(struct vb_rq *rq)
{
	if (!rq->ring)
		return;
	vb_lock_fini(&rq->lock);
	free(rq->ring);
	rq->ring = NULL;
}

static struct vb_recv *at(const struct vb_rq *rq, uint32_t index)
{
	return (struct vb_recv *)(rq->ring + (size_t)(index & (rq->size - 1)) * rq->stride);
}

/* Decode one request into its place: 0, or why it cannot be queued. */
static int decode(struct vb_rq *rq, const struct ibv_recv_wr *wr)
{
	uint64_t bytes = 0;
	struct vb_recv *recv;

	if (rq->tail - rq->head == rq->wr_max)
		return ENOMEM;
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->sge_max)
		return EINVAL;
	for (int i = 0; i < wr->num_sge; i++)
		bytes += wr->sg_list[i].length;
	if (bytes > VB_MESSAGE_BYTES_MAX)
		return EINVAL;
	recv = at(rq, rq->tail);
	recv->wr_id = wr->wr_id;
	recv->sge_count = (uint32_t)wr->num_sge;
	recv->bytes = (uint32_t)bytes;
	if (recv->sge_count) /* with none, the list may be NULL */
		memcpy(recv->sge, wr->sg_list, recv->sge_count * sizeof(recv->sge[0]));
	return 0;
}

int vb_rq_post(struct vb_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int err = 0;

	vb_lock_take(&rq->lock);
	for (; wr && !err; wr = wr->next) {
		err = decode(rq, wr);
		if (err) {
			*bad = wr;
			break;
		}
		rq->tail++;
	}
	vb_lock_drop(&rq->lock);
	return err;
}

bool vb_rq_take(struct vb_rq *rq, struct vb_recv *recv, uint32_t *left)
{
	const struct vb_recv *first;
	bool any;

	vb_lock_take(&rq->lock);
	any = rq->head != rq->tail;
	if (any) {
		first = at(rq, rq->head++);
		memcpy(recv, first,
		       offsetof(struct vb_recv, sge) + first->sge_count * sizeof(first->sge[0]));
	}
	*left = rq->tail - rq->head;
	vb_lock_drop(&rq->lock);
	return any;
}

uint32_t vb_rq_count(struct vb_rq *rq)
{
	uint32_t count;

	vb_lock_take(&rq->lock);
	count = rq->tail - rq->head;
	vb_lock_drop(&rq->lock);
	return count;
}

void vb_rq_empty(struct vb_rq *rq)
{
	vb_lock_take(&rq->lock);
	rq->head = rq->tail;
	vb_lock_drop(&rq->lock);
}

/* --- shared receive queues --- */

int vb_srq_create(struct vb_pd *pd, struct ibv_srq_init_attr *attr, struct vb_srq **out)
{
	struct vb_nic *nic = vb_nic_of(pd->ibv.context);
	struct vb_srq *srq;
	int err;

	if (!attr->attr.max_wr || attr->attr.max_wr > VB_SRQ_WR_MAX ||
	    attr->attr.max_sge > VB_SGE_MAX)
		return EINVAL;
	err = vb_nic_count_up(&nic->srqs, VB_SRQS_MAX);
	if (err)
		return err;
	srq = calloc(1, sizeof(*srq));
	if (!srq || vb_rq_init(&srq->rq, attr->attr.max_wr, attr->attr.max_sge)) {
		free(srq);
		atomic_fetch_sub(&nic->srqs, 1);
		return ENOMEM;
	}
	srq->ibv.context = pd->ibv.context;
	srq->ibv.srq_context = attr->srq_context;
	srq->ibv.pd = &pd->ibv;
	atomic_fetch_add(&pd->users, 1);
	/* ibv_create_srq(3): srq_limit is for modify, not for create. */
	*out = srq;
	return 0;
}

/* Give the queue another size; the caller holds its lock. */
static int resize_locked(struct vb_rq *rq, uint32_t wr_max)
{
	uint32_t count = rq->tail - rq->head;
	struct vb_rq bigger;

	if (!wr_max || wr_max > VB_SRQ_WR_MAX || wr_max < count)
		return EINVAL;
	if (vb_rq_init(&bigger, wr_max, rq->sge_max))
		return ENOMEM;
	vb_lock_fini(&bigger.lock);
	for (uint32_t i = 0; i < count; i++)
		memcpy(bigger.ring + (size_t)i * bigger.stride, at(rq, rq->head + i), rq->stride);
	free(rq->ring);
	rq->ring = bigger.ring;
	rq->size = bigger.size;
	rq->wr_max = wr_max;
	rq->head = 0;
	rq->tail = count;
	return 0;
}

static void limit_event(struct vb_srq *srq)
{
	struct ibv_async_event event = {
		.element.srq = &srq->ibv,
		.event_type = IBV_EVENT_SRQ_LIMIT_REACHED,
	};

	vb_ctx_event_push(vb_ctx_of(srq->ibv.context), &event, &srq->events_delivered);
}

int vb_srq_modify(struct vb_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
	struct vb_rq *rq = &srq->rq;
	uint32_t wr_max = mask & IBV_SRQ_MAX_WR ? attr->max_wr : rq->wr_max;
	bool reached = false;
	int err = 0;

	if (!mask || (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)))
		return EINVAL;
	vb_lock_take(&rq->lock);
	if ((mask & IBV_SRQ_LIMIT) && attr->srq_limit > wr_max)
		err = EINVAL;
	if (!err && (mask & IBV_SRQ_MAX_WR))
		err = resize_locked(rq, wr_max);
	if (!err && (mask & IBV_SRQ_LIMIT)) {
		/* IBA 11.2.3.3: armed below the limit already, it fires at once. */
		reached = attr->srq_limit && rq->tail - rq->head < attr->srq_limit;
		srq->limit = reached ? 0 : attr->srq_limit;
	}
	vb_lock_drop(&rq->lock);
	if (reached)
		limit_event(srq);
	return err;
}

int vb_srq_query(struct vb_srq *srq, struct ibv_srq_attr *attr)
{
	vb_lock_take(&srq->rq.lock);
	attr->max_wr = srq->rq.wr_max;
	attr->max_sge = srq->rq.sge_max;
	attr->srq_limit = srq->limit;
	vb_lock_drop(&srq->rq.lock);
	return 0;
}

bool vb_srq_take(struct vb_srq *srq, struct vb_recv *recv)
{
	uint32_t left;
	bool reached = false;
	bool any = vb_rq_take(&srq->rq, recv, &left);

	if (srq->limit) {
		vb_lock_take(&srq->rq.lock);
		reached = srq->limit && left < srq->limit;
		if (reached)
			srq->limit = 0; /* once for each time it is armed */
		vb_lock_drop(&srq->rq.lock);
	}
	if (reached)
		limit_event(srq);
	return any;
}

int vb_srq_destroy(struct vb_srq *srq)
{
	struct vb_ctx *ctx = vb_ctx_of(srq->ibv.context);

	if (atomic_load(&srq->users))
		return EBUSY;
	vb_ctx_events_cancel(ctx, &srq->events_delivered);
	atomic_fetch_sub(&((struct vb_pd *)srq->ibv.pd)->users, 1);
	atomic_fetch_sub(&ctx->nic->srqs, 1);
	return 0;
}

void vb_srq_free(struct vb_srq *srq)
{
	vb_rq_fini(&srq->rq);
	free(srq);
}

int vb_srq_post(struct vb_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return vb_rq_post(&srq->rq, wr, bad);
}
