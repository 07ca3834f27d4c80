/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/cq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "nic/internal.h"
#include "nic/qp.h"

static uint32_t ring_size(int cqe)
{
	uint32_t size = 1;

	while (size < (uint32_t)cqe)
		size *= 2;
	return size;
}

static struct vb_channel *channel_of(const struct vb_cq *cq)
{
	return (struct vb_channel *)cq->ibv.cq.channel;
}

static struct vb_cqe *ring_make(uint32_t size)
{
	return aligned_alloc(sizeof(struct vb_cqe), size * sizeof(struct vb_cqe));
}

static struct vb_cq *cq_alloc(uint32_t size)
{
	struct vb_cq *cq = aligned_alloc(_Alignof(struct vb_cq), sizeof(*cq));

	if (!cq)
		return NULL;
	memset(cq, 0, sizeof(*cq));
	cq->ring = ring_make(size);
	if (!cq->ring) {
		free(cq);
		return NULL;
	}
	cq->mask = size - 1;
	cq->ibv.cq.cqe = (int)size;
	vb_lock_init(&cq->poll_lock);
	vb_lock_init(&cq->push_lock);
	return cq;
}

int vb_cq_create(struct vb_ctx *ctx, int cqe, struct vb_channel *channel, int vector,
		 void *cq_context, struct vb_cq **out)
{
	struct vb_cq *cq;
	int err;

	if (cqe < 1 || cqe > VB_CQE_MAX || vector < 0 || vector >= VB_COMP_VECTORS)
		return EINVAL;
	err = vb_nic_count_up(&ctx->nic->cqs, VB_CQS_MAX);
	if (err)
		return err;
	cq = cq_alloc(ring_size(cqe));
	if (!cq) {
		atomic_fetch_sub(&ctx->nic->cqs, 1);
		return ENOMEM;
	}
	cq->ibv.cq.context = &ctx->ibv.context;
	cq->ibv.cq.cq_context = cq_context;
	if (channel) {
		cq->ibv.cq.channel = &channel->ibv;
		vb_lock_take(&channel->lock);
		channel->ibv.refcnt++;
		vb_lock_drop(&channel->lock);
	}
	*out = cq;
	return 0;
}

static struct vb_cqe *at(const struct vb_cq *cq, uint64_t place)
{
	return &cq->ring[place & cq->mask];
}

/* Whoever reads tail so may read the completions before it; who reads head, write there. */
static uint64_t head_of(const struct vb_cq *cq)
{
	return atomic_load_explicit(&cq->head, memory_order_acquire);
}

static uint64_t tail_of(const struct vb_cq *cq)
{
	return atomic_load_explicit(&cq->tail, memory_order_acquire);
}

static void lock_both(struct vb_cq *cq)
{
	vb_lock_take(&cq->poll_lock);
	vb_lock_take(&cq->push_lock);
}

static void drop_both(struct vb_cq *cq)
{
	vb_lock_drop(&cq->push_lock);
	vb_lock_drop(&cq->poll_lock);
}

int vb_cq_resize(struct vb_cq *cq, int cqe)
{
	struct vb_cqe *ring, *old;
	uint32_t size;
	int err = 0;

	if (cqe < 1 || cqe > VB_CQE_MAX)
		return EINVAL;
	size = ring_size(cqe);
	ring = ring_make(size);
	if (!ring)
		return ENOMEM;
	lock_both(cq);
	if (tail_of(cq) - head_of(cq) > (uint64_t)cqe) {
		err = EINVAL;
	} else {
		/* The places stay what they are, so who looks without a lock sees no change. */
		for (uint64_t i = head_of(cq); i != tail_of(cq); i++)
			ring[i & (size - 1)] = *at(cq, i);
		old = cq->ring;
		cq->ring = ring;
		cq->mask = size - 1;
		cq->ibv.cq.cqe = (int)size;
		ring = old;
	}
	drop_both(cq);
	free(ring);
	return err;
}

/* Take what is still queued for the application off its channel. */
static void channel_leave(struct vb_cq *cq)
{
	struct vb_channel *channel = channel_of(cq);
	struct vb_nic *nic = vb_nic_of(cq->ibv.cq.context);

	vb_lock_take(&channel->lock);
	if (cq->channel_pending) {
		struct vb_cq **at = &channel->head;

		while (*at != cq)
			at = &(*at)->channel_next;
		*at = cq->channel_next;
		if (channel->tail == &cq->channel_next)
			channel->tail = at;
		for (; cq->channel_pending; cq->channel_pending--)
			nic->host.unsignal(nic->host.arg, channel->ibv.fd);
	}
	channel->ibv.refcnt--;
	vb_lock_drop(&channel->lock);
}

int vb_cq_destroy(struct vb_cq *cq)
{
	struct vb_ctx *ctx = vb_ctx_of(cq->ibv.cq.context);

	if (atomic_load(&cq->users))
		return EBUSY;
	if (cq->ibv.cq.channel)
		channel_leave(cq);
	vb_ctx_events_cancel(ctx, &cq->async_delivered);
	atomic_fetch_sub(&ctx->nic->cqs, 1);
	return 0;
}

void vb_cq_free(struct vb_cq *cq)
{
	vb_lock_fini(&cq->push_lock);
	vb_lock_fini(&cq->poll_lock);
	free(cq->ring);
	free(cq);
}

int vb_cq_poll(struct vb_cq *cq, int n, struct ibv_wc *wc)
{
	uint64_t head, tail;
	int i = 0;

	if (head_of(cq) == tail_of(cq))
		return 0;
	vb_lock_take(&cq->poll_lock);
	head = head_of(cq);
	tail = tail_of(cq);
	for (; i < n && head != tail; i++) {
		const struct vb_cqe *cqe = at(cq, head++);

		wc[i] = cqe->wc;
		if (cqe->qp)
			vb_qp_release(cqe->qp, cqe->sq_released);
	}
	atomic_store_explicit(&cq->head, head, memory_order_release);
	vb_lock_drop(&cq->poll_lock);
	return i;
}

/* One event to the channel; the CQ is not armed any more. push_lock held. */
static void notify(struct vb_cq *cq)
{
	struct vb_channel *channel = channel_of(cq);
	struct vb_nic *nic = vb_nic_of(cq->ibv.cq.context);

	cq->arm = VB_CQ_QUIET;
	cq->told = tail_of(cq);
	if (!channel)
		return;
	vb_lock_take(&channel->lock);
	if (!cq->channel_pending++) {
		*channel->tail = cq;
		channel->tail = &cq->channel_next;
	}
	vb_lock_drop(&channel->lock);
	nic->host.signal(nic->host.arg, channel->ibv.fd);
}

static bool wakes(const struct vb_cq *cq, const struct vb_cqe *cqe)
{
	return cq->arm == VB_CQ_ANY || (cq->arm == VB_CQ_SOLICITED && cqe->solicited);
}

/*
 * Both this and vb_cq_push() hold push_lock: what is pushed before is found here, what comes later
 * finds the CQ armed. Others may take completions meanwhile, so that there is an event for one that
 * is gone already: one too many does no harm.
 */
void vb_cq_arm_notify(struct vb_cq *cq, bool solicited_only)
{
	uint64_t place;

	vb_lock_take(&cq->push_lock);
	/* Asking for every completion is the stronger wish: a weaker one does not undo it. */
	if (cq->arm != VB_CQ_ANY)
		cq->arm = solicited_only ? VB_CQ_SOLICITED : VB_CQ_ANY;
	for (place = vb_max_u64(cq->told, head_of(cq)); place < tail_of(cq); place++) {
		if (wakes(cq, at(cq, place))) {
			notify(cq);
			break;
		}
	}
	vb_lock_drop(&cq->push_lock);
}

static void overrun(struct vb_cq *cq)
{
	struct vb_ctx *ctx = vb_ctx_of(cq->ibv.cq.context);
	struct ibv_async_event event = {
		.element.cq = &cq->ibv.cq,
		.event_type = IBV_EVENT_CQ_ERR,
	};

	vb_stat_add(&ctx->nic->stats, VB_STAT_CQ_OVERRUNS, 1);
	if (cq->overrun)
		return;
	cq->overrun = true;
	vb_ctx_event_push(ctx, &event, &cq->async_delivered);
}

void vb_cq_push(struct vb_cq *cq, const struct vb_cqe *cqe)
{
	uint64_t tail;

	vb_lock_take(&cq->push_lock);
	tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
	if (tail - head_of(cq) > cq->mask) {
		overrun(cq);
	} else {
		*at(cq, tail) = *cqe;
		atomic_store_explicit(&cq->tail, tail + 1, memory_order_release);
		if (wakes(cq, cqe))
			notify(cq);
	}
	vb_lock_drop(&cq->push_lock);
}

void vb_cq_purge(struct vb_cq *cq, uint32_t qpn)
{
	uint64_t to;

	lock_both(cq);
	to = head_of(cq);
	for (uint64_t i = to; i != tail_of(cq); i++) {
		if (at(cq, i)->wc.qp_num != qpn)
			*at(cq, to++) = *at(cq, i);
	}
	/* Fewer may be left than were told of: better an event too many than one too few. */
	cq->told = head_of(cq);
	atomic_store_explicit(&cq->tail, to, memory_order_release);
	drop_both(cq);
}
