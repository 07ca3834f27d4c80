/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_SRQ_H
#define VB_NIC_SRQ_H

/* Receive queues: a QP's own, and shared ones. */

#include "engine/recv.h"
#include "engine/verdict.h"
#include "nic/core/ctx.h"

/*
 * Whoever posts takes the lock; whoever takes requests out does not. Those are one at a time by
 * other means: the QP's lock if the queue is its own, take_lock if it is shared.
 */
struct vb_rq {
	vb_lock lock;
	uint8_t *ring; /* mask + 1 entries of stride octets: a vb_recv cut off after sge_max */
	uint32_t mask, wr_max, sge_max, stride;
	/* Count on. What lies between was written before tail passed, and stays till head does. */
	_Atomic uint32_t tail; /* written by who posts */
	_Atomic uint32_t head; /* written by who takes */
};

struct vb_tm;
struct vb_xrcd;

struct vb_srq {
	struct ibv_srq ibv;
	struct vb_rq rq;
	struct vb_tm *tm;  /* IBV_SRQT_TM, or NULL: see tm.h */
	struct vb_xrcd *xrcd; /* IBV_SRQT_XRC: its domain, or NULL ... */
	struct ibv_cq *cq;    /* ... and where completions go */
	vb_lock take_lock; /* comes before rq.lock */
	uint32_t limit;	   /* 0: not armed; take_lock */
	uint32_t events_delivered;
	_Atomic uint32_t users; /* QPs */
	bool lone;     /* one thread posts, so its author promised (domain.h) */
	bool borrowed; /* the ring is the parent domain's */
	uint32_t xrc_place; /* where the hub reads of it (xrc_notes.h) */
};

/*
 * ibv_modify_srq(3). EINVAL: something unknown in mask, a limit beyond the queue's size, a size
 * that does not hold what is posted.
 */
int vb_srq_modify(struct vb_srq *srq, const struct ibv_srq_attr *attr, int mask);
int vb_srq_query(struct vb_srq *srq, struct ibv_srq_attr *attr);

/* After vb_srq_destroy() (control/srq.h), and acks of events_delivered. */
void vb_srq_free(struct vb_srq *srq);

/* EINVAL: too many SGEs or octets; ENOMEM: full. *bad is the first request not queued. */
int vb_srq_post(struct vb_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* --- inside nic --- */

/* One of no particular type: what vb_srq_create() says. unmake: nobody uses it; then free it. */
int vb_srq_make(struct vb_pd *pd, const struct ibv_srq_attr *attr, void *context,
		struct vb_srq **srq);
void vb_srq_unmake(struct vb_srq *srq);

/* Take from a shared queue; any thread. Tells when the limit is reached. */
bool vb_srq_take(struct vb_srq *srq, struct vb_recv *recv);

/* The same, if it has room for so many octets: OK, NO_RECV, TOO_LONG. */
enum vb_verdict vb_srq_take_for(struct vb_srq *srq, struct vb_recv *recv, uint32_t bytes);

#endif
