/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_SRQ_H
#define VB_NIC_SRQ_H

/* Receive queues: a QP's own, and shared ones. */

#include "engine/recv.h"
#include "engine/verdict.h"
#include "nic/core/ctx.h"

/*
 * Posting takes the lock; taking requests does not. Taking is one thread at a time by other means:
 * the QP's lock if the queue is its own, take_lock if it is shared.
 */
struct vb_rq {
	vb_lock lock;
	uint8_t *ring; /* mask + 1 entries of stride octets: a vb_recv truncated after sge_max */
	uint32_t mask, wr_max, sge_max, stride;
	/*
	 * Count up. Entries between head and tail were written before tail moved, and stay until
	 * head does.
	 */
	_Atomic uint32_t tail; /* written when posting */
	_Atomic uint32_t head; /* written when taking */
};

struct vb_tm;
struct vb_xrcd;

struct vb_srq {
	struct ibv_srq ibv;
	struct vb_rq rq;
	struct vb_tm *tm;  /* IBV_SRQT_TM, or NULL: see tm.h */
	struct vb_xrcd *xrcd; /* IBV_SRQT_XRC: its domain, or NULL ... */
	struct ibv_cq *cq;    /* ... and its CQ */
	vb_lock take_lock; /* taken before rq.lock */
	uint32_t limit;	   /* 0: not armed; take_lock */
	uint32_t events_delivered;
	_Atomic uint32_t users; /* QPs */
	bool lone;     /* the application promised that one thread posts (domain.h) */
	bool borrowed; /* the ring belongs to the parent domain */
	uint32_t xrc_place; /* its entry in the memory that the hub reads (xrc_notes.h) */
};

/*
 * ibv_modify_srq(3). EINVAL: an unknown bit in mask, a limit beyond the queue's size, a size too
 * small for what is posted.
 */
int vb_srq_modify(struct vb_srq *srq, const struct ibv_srq_attr *attr, int mask);
int vb_srq_query(struct vb_srq *srq, struct ibv_srq_attr *attr);

/* After vb_srq_destroy() (control/srq.h) and the acknowledgement of events_delivered. */
void vb_srq_free(struct vb_srq *srq);

/* EINVAL: too many SGEs or octets; ENOMEM: full. *bad is the first request not queued. */
int vb_srq_post(struct vb_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* --- inside nic --- */

/*
 * Makes an SRQ without a type; vb_srq_create() describes the errors. unmake: frees it when it is no
 * longer used.
 */
int vb_srq_make(struct vb_pd *pd, const struct ibv_srq_attr *attr, void *context,
		struct vb_srq **srq);
void vb_srq_unmake(struct vb_srq *srq);

/* Takes a request from a shared queue; any thread. Gives an event when the limit is reached. */
bool vb_srq_take(struct vb_srq *srq, struct vb_recv *recv);

/* The same, if it has room for this many octets: OK, NO_RECV, TOO_LONG. */
enum vb_verdict vb_srq_take_for(struct vb_srq *srq, struct vb_recv *recv, uint32_t bytes);

#endif
