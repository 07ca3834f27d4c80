/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/cq.h"

#include <errno.h>
#include <stdlib.h>

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
	cq = calloc(1, sizeof(*cq));
	if (cq)
		cq->ring = malloc(ring_size(cqe) * sizeof(*cq->ring));
	if (!cq || !cq->ring) {
		free(cq);
		atomic_fetch_sub(&ctx->nic->cqs, 1);
		return ENOMEM;
	}
	cq->size = ring_size(cqe);
	vb_lock_init(&cq->lock);
	cq->ibv.cq.context = &ctx->ibv.context;
	cq->ibv.cq.cq_context = cq_context;
	cq->ibv.cq.cqe = (int)cq->size;
	if (channel) {
		cq->ibv.cq.channel = &channel->ibv;
		vb_lock_take(&channel->lock);
		channel->ibv.refcnt++;
		vb_lock_drop(&channel->lock);
	}
	*out = cq;
	return 0;
}

/* The first completion in the queue that no event was given for. */
static uint32_t first_untold(const struct vb_cq *cq)
{
	return (int32_t)(cq->told - cq->head) > 0 ? cq->told : cq->head;
}

int vb_cq_resize(struct vb_cq *cq, int cqe)
{
	uint32_t size, count;
	struct vb_cqe *ring;
	int err = 0;

	if (cqe < 1 || cqe > VB_CQE_MAX)
		return EINVAL;
	size = ring_size(cqe);
	ring = malloc(size * sizeof(*ring));
	if (!ring)
		return ENOMEM;
	vb_lock_take(&cq->lock);
	count = cq->tail - cq->head;
	if (count > (uint32_t)cqe) {
		err = EINVAL;
	} else {
		struct vb_cqe *old = cq->ring;

		for (uint32_t i = 0; i < count; i++)
			ring[i] = old[(cq->head + i) & (cq->size - 1)];
		cq->ring = ring;
		cq->size = size;
		cq->told = first_untold(cq) - cq->head;
		cq->head = 0;
		cq->tail = count;
		cq->ibv.cq.cqe = (int)size;
		ring = old;
	}
	vb_lock_drop(&cq->lock);
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
	vb_lock_fini(&cq->lock);
	free(cq->ring);
	free(cq);
}

int vb_cq_poll(struct vb_cq *cq, int n, struct ibv_wc *wc)
{
	int i = 0;

	vb_lock_take(&cq->lock);
	for (; i < n && cq->head != cq->tail; i++) {
		const struct vb_cqe *cqe = &cq->ring[cq->head++ & (cq->size - 1)];

		wc[i] = cqe->wc;
		if (cqe->qp)
			vb_qp_release(cqe->qp, cqe->sq_released);
	}
	vb_lock_drop(&cq->lock);
	return i;
}

/* One event to the channel; the CQ is not armed any more. */
static void notify(struct vb_cq *cq)
{
	struct vb_channel *channel = channel_of(cq);
	struct vb_nic *nic = vb_nic_of(cq->ibv.cq.context);

	cq->arm = VB_CQ_QUIET;
	cq->told = cq->tail;
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

void vb_cq_arm_notify(struct vb_cq *cq, bool solicited_only)
{
	vb_lock_take(&cq->lock);
	/* Asking for every completion is the stronger wish: a weaker one does not undo it. */
	if (cq->arm != VB_CQ_ANY)
		cq->arm = solicited_only ? VB_CQ_SOLICITED : VB_CQ_ANY;
	for (uint32_t i = first_untold(cq); i != cq->tail; i++) {
		if (wakes(cq, &cq->ring[i & (cq->size - 1)])) {
			notify(cq);
			break;
		}
	}
	vb_lock_drop(&cq->lock);
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
	vb_lock_take(&cq->lock);
	if (cq->tail - cq->head == cq->size) {
		overrun(cq);
	} else {
		cq->ring[cq->tail++ & (cq->size - 1)] = *cqe;
		if (wakes(cq, cqe))
			notify(cq);
	}
	vb_lock_drop(&cq->lock);
}

void vb_cq_purge(struct vb_cq *cq, uint32_t qpn)
{
	uint32_t to;

	vb_lock_take(&cq->lock);
	to = cq->head;
	for (uint32_t i = cq->head; i != cq->tail; i++) {
		const struct vb_cqe *cqe = &cq->ring[i & (cq->size - 1)];

		if (cqe->wc.qp_num != qpn)
			cq->ring[to++ & (cq->size - 1)] = *cqe;
	}
	/* Fewer may be left than were told of: better an event too many than one too few. */
	cq->told = cq->head;
	cq->tail = to;
	vb_lock_drop(&cq->lock);
}
