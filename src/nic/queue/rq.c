/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/queue/rq.h"

#include <errno.h>
#include <stdlib.h>

#include "base/check.h"
#include "nic/core/internal.h"

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
	vb_lock_init(&rq->lock, VB_RANK_RQ);
}

void vb_rq_fini(struct vb_rq *rq)
{
	vb_lock_fini(&rq->lock);
	free(rq->ring);
	rq->ring = NULL;
}

/* Whole cache lines, as some allocators require. */
size_t vb_rq_bytes(const struct vb_rq *rq)
{
	return ((rq->mask + (size_t)1) * rq->stride + 63) & ~(size_t)63;
}

static struct vb_recv *at(const struct vb_rq *rq, uint32_t index)
{
	return (struct vb_recv *)(rq->ring + (size_t)(index & rq->mask) * rq->stride);
}

/* Decodes a request into its place, which is not visible yet. Returns 0, or why it is invalid. */
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

static int post_one(struct vb_rq *rq, const struct ibv_recv_wr *wr)
{
	uint32_t tail = atomic_load_explicit(&rq->tail, memory_order_relaxed);
	int err;

	/* Places taken out are free: they were read before head was moved. */
	if (tail - atomic_load_explicit(&rq->head, memory_order_acquire) == rq->wr_max)
		return ENOMEM;
	if (!rq->ring) {
		rq->ring = malloc(vb_rq_bytes(rq));
		if (!rq->ring)
			return ENOMEM;
	}
	err = decode(rq, at(rq, tail), wr);
	if (!err)
		atomic_store_explicit(&rq->tail, tail + 1, memory_order_release);
	return err;
}

int vb_rq_post_alone(struct vb_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int err = 0;

	for (; wr; wr = wr->next) {
		err = post_one(rq, wr);
		if (err) {
			*bad = wr;
			break;
		}
	}
	return err;
}

int vb_rq_post(struct vb_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int err;

	vb_lock_take(&rq->lock);
	err = vb_rq_post_alone(rq, wr, bad);
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

enum vb_verdict vb_rq_look(const struct vb_rq *rq, uint32_t bytes)
{
	uint32_t head = atomic_load_explicit(&rq->head, memory_order_relaxed);

	if (head == atomic_load_explicit(&rq->tail, memory_order_acquire))
		return VB_NO_RECV;
	return at(rq, head)->bytes < bytes ? VB_TOO_LONG : VB_OK;
}

uint32_t vb_rq_packets(const struct vb_rq *rq, uint32_t mtu)
{
	uint32_t head = atomic_load_explicit(&rq->head, memory_order_relaxed);
	uint32_t count = (uint32_t)vb_min_u64(vb_rq_count(rq), VB_CREDIT_RECVS_MAX), packets = 0;

	for (uint32_t i = 0; i < count; i++)
		packets += vb_packets(at(rq, head + i)->bytes, mtu);
	return packets;
}

void vb_rq_empty(struct vb_rq *rq)
{
	uint32_t tail = atomic_load_explicit(&rq->tail, memory_order_acquire);

	atomic_store_explicit(&rq->head, tail, memory_order_release);
}

int vb_rq_resize(struct vb_rq *rq, uint32_t wr_max, void **ring)
{
	uint32_t head = atomic_load(&rq->head), tail = atomic_load(&rq->tail);
	struct vb_rq resized;
	void *old = rq->ring;

	if (!wr_max || wr_max > VB_SRQ_WR_MAX || wr_max < tail - head)
		return EINVAL;
	vb_rq_init(&resized, wr_max, rq->sge_max);
	resized.ring = *ring;
	if (old && !resized.ring) {
		resized.ring = malloc(vb_rq_bytes(&resized));
		if (!resized.ring)
			return ENOMEM;
	}
	for (uint32_t i = head; i != tail; i++)
		memcpy(at(&resized, i), at(rq, i), rq->stride);
	rq->ring = resized.ring;
	rq->mask = resized.mask;
	rq->wr_max = wr_max;
	*ring = old;
	return 0;
}
