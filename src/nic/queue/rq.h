/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_RQ_H
#define VB_NIC_RQ_H

/* The queue under every receive queue, shared or not. Inside nic. */

#include "engine/recv.h"
#include "engine/verdict.h"
#include "nic/queue/srq.h"

/* The memory for the requests comes with the first post: a queue that is not used has none. */
void vb_rq_init(struct vb_rq *rq, uint32_t wr_max, uint32_t sge_max);
void vb_rq_fini(struct vb_rq *rq);

/* How much memory that is. Who has it from elsewhere sets rq->ring, and takes it away again. */
size_t vb_rq_bytes(const struct vb_rq *rq);

/* EINVAL, ENOMEM: as ibv_post_recv(3); *bad is the first request not queued. Any thread. */
int vb_rq_post(struct vb_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* The same where one thread does all the posting, and resizing; it does not serve await_posts(). */
int vb_rq_post_alone(struct vb_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/*
 * What is being posted in this moment is in the queue after this; and whoever posts later sees
 * what the caller wrote before.
 */
void vb_rq_await_posts(struct vb_rq *rq);

/* Take the oldest request: false if there is none. One thread at a time (struct vb_rq). */
bool vb_rq_take(struct vb_rq *rq, struct vb_recv *recv);

/* Is there one, with room for so many octets? OK, NO_RECV, TOO_LONG. Counts as taking. */
enum vb_verdict vb_rq_look(const struct vb_rq *rq, uint32_t bytes);

/* Drop all that are queued. Counts as taking. */
void vb_rq_empty(struct vb_rq *rq);

/*
 * Give the queue another size; nobody posts or takes meanwhile. EINVAL: 0, beyond the device's
 * limit, or less than what is queued. *ring: memory for it, or NULL: our own, if it has any yet.
 * After success it is what was used before, for the caller to free.
 */
int vb_rq_resize(struct vb_rq *rq, uint32_t wr_max, void **ring);

/* How many are queued. Exact for who takes, as far as others do not post meanwhile. */
static inline uint32_t vb_rq_count(const struct vb_rq *rq)
{
	uint32_t head = atomic_load_explicit(&rq->head, memory_order_relaxed);

	return atomic_load_explicit(&rq->tail, memory_order_acquire) - head;
}

/*
 * For how many packets of a SEND there is room, counting no more than the VB_CREDIT_RECVS_MAX
 * oldest requests: a promise may be short. As vb_rq_take(), one thread at a time.
 */
uint32_t vb_rq_packets(const struct vb_rq *rq, uint32_t mtu);

#endif
