/* SPDX-License-Identifier: BSD-2-Clause */

/* Shared receive queues: taking requests, and limit events. */

#include "nic/queue/srq.h"

#include <errno.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/refusal.h"
#include "nic/core/domain.h"
#include "nic/core/internal.h"
#include "nic/core/lowered.h"
#include "nic/queue/rq.h"

static int check_attr(const struct vb_nic *nic, const struct ibv_srq_attr *attr)
{
	uint32_t wr_most = vb_lowered(nic, VB_LIMIT_SRQ_WR);
	uint32_t sge_most = vb_lowered(nic, VB_LIMIT_SRQ_SGE);

	if (attr->max_wr > wr_most || attr->max_sge > sge_most)
		return vb_refuse(EINVAL, "max_wr is %u and max_sge %u; they may be at most %u "
					 "and %u",
				 attr->max_wr, attr->max_sge, wr_most, sge_most);
	return 0;
}

/*
 * As many as hardware gives, 2^n - 1: programs written for it post more than they asked for. A
 * request for none gets one, as from mlx5.
 */
static uint32_t granted(const struct vb_nic *nic, uint32_t wr_max)
{
	uint32_t size = 2;

	while (size - 1 < wr_max)
		size *= 2;
	return (uint32_t)vb_min_u64(size - 1, vb_lowered(nic, VB_LIMIT_SRQ_WR));
}

/* *ring is NULL if the memory is to be ours, which is allocated at the first post. */
static int ring_borrow(struct vb_pd *pd, uint32_t wr_max, uint32_t sge_max, void **ring)
{
	struct vb_rq rq;

	vb_rq_init(&rq, wr_max, sge_max);
	return vb_buffer_borrow(pd, VB_BUFFER_SRQ, vb_rq_bytes(&rq), ring);
}

static void ring_free(const struct vb_srq *srq, void *ring, bool borrowed)
{
	if (borrowed)
		vb_buffer_return((struct vb_pd *)srq->ibv.pd, VB_BUFFER_SRQ, ring);
	else
		free(ring);
}

int vb_srq_make(struct vb_pd *pd, const struct ibv_srq_attr *attr, void *context,
		struct vb_srq **out)
{
	struct vb_nic *nic = vb_nic_of(pd->ibv.context);
	struct vb_srq *srq;
	uint32_t wr_max;
	void *ring;
	int err = check_attr(nic, attr);

	if (!err)
		err = vb_lowered_count_up(nic, &nic->counts.srqs, VB_LIMIT_SRQ);
	if (err)
		return err;
	wr_max = granted(nic, attr->max_wr);
	srq = calloc(1, sizeof(*srq));
	if (!srq) {
		atomic_fetch_sub(&nic->counts.srqs, 1);
		return ENOMEM;
	}
	err = ring_borrow(pd, wr_max, attr->max_sge, &ring);
	if (err) {
		free(srq);
		atomic_fetch_sub(&nic->counts.srqs, 1);
		return err;
	}
	vb_rq_init(&srq->rq, wr_max, attr->max_sge);
	srq->rq.ring = ring;
	srq->borrowed = ring != NULL;
	srq->lone = vb_pd_is_lone(pd);
	vb_lock_init(&srq->take_lock, VB_RANK_SRQ);
	srq->ibv.context = pd->ibv.context;
	srq->ibv.srq_context = context;
	srq->ibv.pd = &pd->ibv;
	/* From 1 on: 0 is what a program has that never asked. */
	srq->ibv.handle = 1 + atomic_fetch_add(&nic->ids.srq_last, 1) % VB_SRQ_NUMBER_MAX;
	atomic_fetch_add(&pd->users, 1);
	/* ibv_create_srq(3): srq_limit is for modify, not for create. */
	*out = srq;
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

/* A new size and its memory, which is requested before taking any lock. */
struct resize {
	void *ring;
	bool borrowed;
};

static int resize_begin(struct vb_srq *srq, uint32_t wr_max, struct resize *resize)
{
	const struct vb_nic *nic = vb_nic_of(srq->ibv.context);
	uint32_t most = vb_lowered(nic, VB_LIMIT_SRQ_WR);
	int err;

	if (!wr_max || wr_max > most)
		return vb_refuse(EINVAL, "max_wr is %u; it may be 1 to %u", wr_max, most);
	err = ring_borrow((struct vb_pd *)srq->ibv.pd, granted(nic, wr_max), srq->rq.sge_max,
			  &resize->ring);
	resize->borrowed = resize->ring != NULL;
	return err;
}

/* Afterwards *resize has the memory that is no longer used, to be freed. */
static int resize_locked(struct vb_srq *srq, uint32_t wr_max, struct resize *resize)
{
	bool borrowed = resize->borrowed;
	uint32_t size = granted(vb_nic_of(srq->ibv.context), wr_max);
	int err = vb_rq_resize(&srq->rq, size, &resize->ring);

	if (err == EINVAL)
		return vb_refuse(err, "max_wr is %u, but %u receive requests wait", wr_max,
				 vb_rq_count(&srq->rq));

	if (!err) {
		resize->borrowed = srq->borrowed;
		srq->borrowed = borrowed;
	}
	return err;
}

int vb_srq_modify(struct vb_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
	struct resize resize = { .ring = NULL };
	struct vb_rq *rq = &srq->rq;
	bool reached = false;
	uint32_t wr_max;
	int err = 0;

	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return vb_refuse(EINVAL,
				 "srq_attr_mask is 0x%x; it may have IBV_SRQ_MAX_WR and "
				 "IBV_SRQ_LIMIT",
				 (unsigned)mask);
	if (mask & IBV_SRQ_MAX_WR)
		err = resize_begin(srq, attr->max_wr, &resize);
	if (err)
		return err;
	vb_lock_take(&srq->take_lock);
	vb_lock_take(&rq->lock);
	wr_max = mask & IBV_SRQ_MAX_WR ? attr->max_wr : rq->wr_max;
	if ((mask & IBV_SRQ_LIMIT) && attr->srq_limit > wr_max)
		err = vb_refuse(EINVAL, "srq_limit is %u; max_wr is %u", attr->srq_limit, wr_max);
	if (!err && (mask & IBV_SRQ_MAX_WR))
		err = resize_locked(srq, wr_max, &resize);
	if (!err && (mask & IBV_SRQ_LIMIT)) {
		/*
		 * IBA 11.2.3.3: if the number is below the limit when armed, the event comes at
		 * once.
		 */
		reached = attr->srq_limit && vb_rq_count(rq) < attr->srq_limit;
		srq->limit = reached ? 0 : attr->srq_limit;
	}
	vb_lock_drop(&rq->lock);
	vb_lock_drop(&srq->take_lock);
	ring_free(srq, resize.ring, resize.borrowed);
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

enum vb_verdict vb_srq_take_for(struct vb_srq *srq, struct vb_recv *recv, uint32_t bytes)
{
	enum vb_verdict verdict;
	bool reached = false;

	vb_lock_take(&srq->take_lock);
	verdict = vb_rq_look(&srq->rq, bytes);
	if (verdict == VB_OK) {
		vb_rq_take(&srq->rq, recv);
		reached = srq->limit && vb_rq_count(&srq->rq) < srq->limit;
		if (reached)
			srq->limit = 0; /* once for each time it is armed */
	}
	vb_lock_drop(&srq->take_lock);
	if (reached)
		limit_event(srq);
	return verdict;
}

bool vb_srq_take(struct vb_srq *srq, struct vb_recv *recv)
{
	return vb_srq_take_for(srq, recv, 0) == VB_OK;
}

void vb_srq_unmake(struct vb_srq *srq)
{
	struct vb_ctx *ctx = vb_ctx_of(srq->ibv.context);

	vb_ctx_events_cancel(ctx, &srq->events_delivered);
	ring_free(srq, srq->rq.ring, srq->borrowed);
	srq->rq.ring = NULL;
	atomic_fetch_sub(&((struct vb_pd *)srq->ibv.pd)->users, 1);
	atomic_fetch_sub(&ctx->nic->counts.srqs, 1);
}

void vb_srq_free(struct vb_srq *srq)
{
	vb_lock_fini(&srq->take_lock);
	vb_rq_fini(&srq->rq);
	free(srq);
}

int vb_srq_post(struct vb_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return srq->lone ? vb_rq_post_alone(&srq->rq, wr, bad) : vb_rq_post(&srq->rq, wr, bad);
}
