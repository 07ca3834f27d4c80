/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/rq.h"

#include <errno.h>
#include <stdlib.h>

#include "nic/internal.h"
#include "nic/srq.h"

void vb_rq_init(struct vb_rq *rq, uint32_t wr_max, uint32_t sge_max)
{
	uint32_t size = 1;

	while (size < wr_max)
		size *= 2;
	*rq = (struct vb_rq){
		.mask = size - 1,
		.wr_max = wr_max,
		.sge_max = sge_max,
		.stride = (uint32_t)(offsetof(struct vb_recv, sge) +
				     (sge_max ? sge_max : 1) * sizeof(struct ibv_sge)),
	};
	vb_lock_init(&rq->lock);
}

void vb_rq_fini(struct vb_rq *rq)
{
	vb_lock_fini(&rq->lock);
	free(rq->ring);
	rq->ring = NULL;
}

static uint8_t *ring_make(const struct vb_rq *rq)
{
	return malloc((rq->mask + (size_t)1) * rq->stride);
}

static struct vb_recv *at(const struct vb_rq *rq, uint32_t index)
{
	return (struct vb_recv *)(rq->ring + (size_t)(index & rq->mask) * rq->stride);
}

/* Decode one request into its place, which nobody looks at yet: 0, or why it cannot be queued. */
static int decode(const struct vb_rq *rq, struct vb_recv *recv, const struct ibv_recv_wr *wr)
{
	uint64_t bytes = 0;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->sge_max)
		return EINVAL;
	for (int i = 0; i < wr->num_sge; i++) {
		bytes += wr->sg_list[i].length;
		recv->sge[i] = wr->sg_list[i];
	}
	if (bytes > VB_MESSAGE_BYTES_MAX)
		return EINVAL;
	recv->wr_id = wr->wr_id;
	recv->sge_count = (uint32_t)wr->num_sge;
	recv->bytes = (uint32_t)bytes;
	return 0;
}

static int post_locked(struct vb_rq *rq, const struct ibv_recv_wr *wr)
{
	uint32_t tail = atomic_load_explicit(&rq->tail, memory_order_relaxed);
	int err;

	/* Whatever was taken out is free again: its taker has read it before it moved head. */
	if (tail - atomic_load_explicit(&rq->head, memory_order_acquire) == rq->wr_max)
		return ENOMEM;
	if (!rq->ring) {
		rq->ring = ring_make(rq);
		if (!rq->ring)
			return ENOMEM;
	}
	err = decode(rq, at(rq, tail), wr);
	if (!err)
		atomic_store_explicit(&rq->tail, tail + 1, memory_order_release);
	return err;
}

int vb_rq_post(struct vb_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int err = 0;

	vb_lock_take(&rq->lock);
	for (; wr; wr = wr->next) {
		err = post_locked(rq, wr);
		if (err) {
			*bad = wr;
			break;
		}
	}
	vb_lock_drop(&rq->lock);
	return err;
}

void vb_rq_await_posts(struct vb_rq *rq)
{
	vb_lock_take(&rq->lock);
	vb_lock_drop(&rq->lock);
}

bool vb_rq_take(struct vb_rq *rq, struct vb_recv *recv)
{
	uint32_t head = atomic_load_explicit(&rq->head, memory_order_relaxed);
	const struct vb_recv *first;

	if (head == atomic_load_explicit(&rq->tail, memory_order_acquire))
		return false;
	first = at(rq, head);
	recv->wr_id = first->wr_id;
	recv->sge_count = first->sge_count;
	recv->bytes = first->bytes;
	for (uint32_t i = 0; i < first->sge_count; i++)
		recv->sge[i] = first->sge[i];
	atomic_store_explicit(&rq->head, head + 1, memory_order_release);
	return true;
}

void vb_rq_empty(struct vb_rq *rq)
{
	uint32_t tail = atomic_load_explicit(&rq->tail, memory_order_acquire);

	atomic_store_explicit(&rq->head, tail, memory_order_release);
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
	if (!srq) {
		atomic_fetch_sub(&nic->srqs, 1);
		return ENOMEM;
	}
	vb_rq_init(&srq->rq, attr->attr.max_wr, attr->attr.max_sge);
	vb_lock_init(&srq->take_lock);
	srq->ibv.context = pd->ibv.context;
	srq->ibv.srq_context = attr->srq_context;
	srq->ibv.pd = &pd->ibv;
	atomic_fetch_add(&pd->users, 1);
	/* ibv_create_srq(3): srq_limit is for modify, not for create. */
	*out = srq;
	return 0;
}

/* Give the queue another size; nobody posts or takes meanwhile. */
static int resize_locked(struct vb_rq *rq, uint32_t wr_max)
{
	uint32_t head = atomic_load(&rq->head), tail = atomic_load(&rq->tail);
	struct vb_rq resized;

	if (!wr_max || wr_max > VB_SRQ_WR_MAX || wr_max < tail - head)
		return EINVAL;
	vb_rq_init(&resized, wr_max, rq->sge_max);
	if (rq->ring) {
		resized.ring = ring_make(&resized);
		if (!resized.ring)
			return ENOMEM;
		for (uint32_t i = head; i != tail; i++)
			memcpy(at(&resized, i), at(rq, i), rq->stride);
		free(rq->ring);
	}
	rq->ring = resized.ring;
	rq->mask = resized.mask;
	rq->wr_max = wr_max;
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
	bool reached = false;
	uint32_t wr_max;
	int err = 0;

	if (!mask || (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)))
		return EINVAL;
	vb_lock_take(&srq->take_lock);
	vb_lock_take(&rq->lock);
	wr_max = mask & IBV_SRQ_MAX_WR ? attr->max_wr : rq->wr_max;
	if ((mask & IBV_SRQ_LIMIT) && attr->srq_limit > wr_max)
		err = EINVAL;
	if (!err && (mask & IBV_SRQ_MAX_WR))
		err = resize_locked(rq, wr_max);
	if (!err && (mask & IBV_SRQ_LIMIT)) {
		/* IBA 11.2.3.3: armed below the limit already, it fires at once. */
		reached = attr->srq_limit && vb_rq_count(rq) < attr->srq_limit;
		srq->limit = reached ? 0 : attr->srq_limit;
	}
	vb_lock_drop(&rq->lock);
	vb_lock_drop(&srq->take_lock);
	if (reached)
		limit_event(srq);
	return err;
}

int vb_srq_query(struct vb_srq *srq, struct ibv_srq_attr *attr)
{
	vb_lock_take(&srq->take_lock);
	attr->max_wr = srq->rq.wr_max;
	attr->max_sge = srq->rq.sge_max;
	attr->srq_limit = srq->limit;
	vb_lock_drop(&srq->take_lock);
	return 0;
}

bool vb_srq_take(struct vb_srq *srq, struct vb_recv *recv)
{
	bool any, reached;

	vb_lock_take(&srq->take_lock);
	any = vb_rq_take(&srq->rq, recv);
	reached = srq->limit && vb_rq_count(&srq->rq) < srq->limit;
	if (reached)
		srq->limit = 0; /* once for each time it is armed */
	vb_lock_drop(&srq->take_lock);
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
	vb_lock_fini(&srq->take_lock);
	vb_rq_fini(&srq->rq);
	free(srq);
}

int vb_srq_post(struct vb_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return vb_rq_post(&srq->rq, wr, bad);
}
