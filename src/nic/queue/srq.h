/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_SRQ_H
#define VB_NIC_SRQ_H

/* Receive queues: a QP's own, and shared ones. */

#include "engine/recv.h"
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
 * ibv_create_srq(3): attr has what is wanted, and what came out, which is the same. EINVAL beyond
 * the device's limits. ibv.handle is its number, as ibv_get_srq_num(3) has it.
 */
int vb_srq_create(struct vb_pd *pd, struct ibv_srq_init_attr *attr, struct vb_srq **srq);

/*
 * ibv_create_srq_ex(3). EINVAL: a bit of comp_mask that the type needs is missing, or one that it
 * has no use for is set, or objects of another context, or more tags than the device has.
 * EOPNOTSUPP: bits that we do not know. The number of an XRC SRQ is one of the NIC's, as QPNs are.
 */
int vb_srq_create_ex(struct vb_ctx *ctx, struct ibv_srq_init_attr_ex *attr, struct vb_srq **srq);

/*
 * ibv_modify_srq(3). EINVAL: something unknown in mask, a limit beyond the queue's size, a size
 * that does not hold what is posted.
 */
int vb_srq_modify(struct vb_srq *srq, const struct ibv_srq_attr *attr, int mask);
int vb_srq_query(struct vb_srq *srq, struct ibv_srq_attr *attr);

/* EBUSY while QPs use it. Dead but not freed after that: the caller waits for acks of
 * events_delivered, then calls vb_srq_free(). */
int vb_srq_destroy(struct vb_srq *srq);
void vb_srq_free(struct vb_srq *srq);

/* EINVAL: too many SGEs or octets; ENOMEM: full. *bad is the first request not queued. */
int vb_srq_post(struct vb_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

#endif
