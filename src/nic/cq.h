/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_CQ_H
#define VB_NIC_CQ_H

/* Completion queues. */

#include "nic/ctx.h"

/* A completion, and what is to be given back when the application takes it. */
struct vb_cqe {
	struct ibv_wc wc;
	struct vb_qp *qp;     /* whose send queue gets room back when this is polled, or NULL */
	uint32_t sq_released; /* ... up to this place */
	bool solicited;
};

_Static_assert(sizeof(struct vb_cqe) == 64, "a completion is a cache line");

enum vb_cq_arm { VB_CQ_QUIET, VB_CQ_SOLICITED, VB_CQ_ANY };

/*
 * Whoever adds completions and whoever takes them have a lock each, so the two do not wait for one
 * another, and that there is nothing to take is seen without any. Who changes the ring as a whole
 * takes both, poll_lock first.
 */
struct vb_cq {
	union {
		struct ibv_cq cq;
		struct ibv_cq_ex cq_ex;
	} ibv;
	struct vb_cqe *ring; /* mask + 1 entries; changed with both locks held */
	uint32_t mask;

	/* Places count on; 64 bits never come round. Between head and tail is what waits. */
	_Alignas(64) vb_lock poll_lock;
	_Atomic uint64_t head; /* written with poll_lock held */

	_Alignas(64) vb_lock push_lock;
	_Atomic uint64_t tail; /* written with push_lock held, as all up to `overrun` */
	uint64_t told;	       /* an event was given for the completions before this place */
	enum vb_cq_arm arm;
	bool overrun;

	_Alignas(64) _Atomic uint32_t users; /* QPs */

	struct vb_cq *channel_next; /* in the channel's queue */
	uint32_t channel_pending;   /* events queued there */
	uint32_t comp_delivered;    /* events the application has read: it must ack as many */
	uint32_t async_delivered;
	void *abi; /* belongs to abi */
};

/* cqe: wanted, 1..VB_CQE_MAX; ibv.cq.cqe is what came out. channel may be NULL. EINVAL. */
int vb_cq_create(struct vb_ctx *ctx, int cqe, struct vb_channel *channel, int vector,
		 void *cq_context, struct vb_cq **cq);

/* EINVAL if what it holds does not fit or cqe is out of range. */
int vb_cq_resize(struct vb_cq *cq, int cqe);

/* EBUSY while QPs use it. After success the object is dead but not freed: see vb_cq_free(). */
int vb_cq_destroy(struct vb_cq *cq);

/* After the application has acknowledged comp_delivered and async_delivered events. */
void vb_cq_free(struct vb_cq *cq);

/* Take up to n completions: their number. Does not turn the NIC. Any thread. */
int vb_cq_poll(struct vb_cq *cq, int n, struct ibv_wc *wc);

/*
 * Ask for one event at the next completion; at once if completions wait that came after the last
 * event. (ibv_req_notify_cq(3) leaves that open; hardware does it, and it closes a race.)
 */
void vb_cq_arm_notify(struct vb_cq *cq, bool solicited_only);

/* --- for the rest of the NIC --- */

/* Add a completion; on overrun the CQ is broken, and an event says so. */
void vb_cq_push(struct vb_cq *cq, const struct vb_cqe *cqe);

/* Remove the completions of a QP number (it is being destroyed or reset). */
void vb_cq_purge(struct vb_cq *cq, uint32_t qpn);

#endif
