/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_RQ_H
#define VB_NIC_RQ_H

/* The queue of every receive queue, shared or not. Inside nic. */

#include "engine/recv.h"
#include "engine/verdict.h"
#include "nic/queue/srq.h"

/* The memory for requests is allocated at the first post: an unused queue has none. */
void vb_rq_init(struct vb_rq *rq, uint32_t wr_max, uint32_t sge_max);
void vb_rq_fini(struct vb_rq *rq);

/* The size of that memory. A caller with memory from elsewhere sets rq->ring, and resets it. */
size_t vb_rq_bytes(const struct vb_rq *rq);

/* EINVAL, ENOMEM: as ibv_post_recv(3); *bad is the first request not queued. Any thread. */
int vb_rq_post(struct vb_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* The same if a single thread posts and resizes; vb_rq_await_posts() does not cover it. */
int vb_rq_post_alone(struct vb_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/*
 * After this, posts that were under way are in the queue, and later posters see what the caller
 * wrote before.
 */
void vb_rq_await_posts(struct vb_rq *rq);

/* Takes the oldest request. Returns false if there is none. One thread at a time (struct vb_rq). */
bool vb_rq_take(struct vb_rq *rq, struct vb_recv *recv);

/*
 * Is there a request, with room for this many octets? OK, NO_RECV, TOO_LONG. One thread at a time,
 * as vb_rq_take().
 */
enum vb_verdict vb_rq_look(const struct vb_rq *rq, uint32_t bytes);

/* Drops all requests. One thread at a time, as vb_rq_take(). */
void vb_rq_empty(struct vb_rq *rq);

/*
 * Changes the queue's size; no thread may post or take meanwhile. EINVAL: 0, beyond the device's
 * limit, or less than what is queued. *ring: memory for it, or NULL: allocated here, if there is
 * any yet. After success it is the previous memory, which the caller frees.
 */
int vb_rq_resize(struct vb_rq *rq, uint32_t wr_max, void **ring);

/* How many are queued. Exact for the thread that takes, unless others post meanwhile. */
static inline uint32_t vb_rq_count(const struct vb_rq *rq)
{
	uint32_t head = atomic_load_explicit(&rq->head, memory_order_relaxed);

	return atomic_load_explicit(&rq->tail, memory_order_acquire) - head;
}

/*
 * How many packets of a SEND there is room for, counting only the VB_CREDIT_RECVS_MAX oldest
 * requests: promising too little is harmless. One thread at a time, as vb_rq_take().
 */
uint32_t vb_rq_packets(const struct vb_rq *rq, uint32_t mtu);

#endif
