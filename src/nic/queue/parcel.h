/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_PARCEL_H
#define VB_NIC_PARCEL_H

/*
 * Small data that travels inside a completion (mlx5's scatter to CQE): it reaches the application's
 * memory when the completion is polled, and is lost with it. Inside nic; docs/mlx5dv.md says what
 * the application sees.
 *
 * A QP has it or not (qp->has_parcels); the others pay for it with that one look. What is in hand
 * waits in the QP, under its lock, from the packet to the completion that follows at once; from
 * there on it lies beside the completion, at the same place of the CQ.
 */

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	VB_PARCEL_SGES_MAX = 4,		 /* what takes more pieces goes the ordinary way */
	VB_CQE_BYTES = 64,		 /* a completion, as mlx5 has it: half of it is free */
	VB_CQE_BYTES_MAX = 128,		 /* the other size that there is */
	VB_PARCEL_BYTES_MAX = VB_CQE_BYTES_MAX / 2,
};

struct vb_qp;
struct vb_wqe;
struct vb_payload;

struct vb_parcel {
	struct ibv_pd *pd; /* by which the keys are judged */
	uint32_t bytes, sge_count;
	struct ibv_sge sge[VB_PARCEL_SGES_MAX];
	uint8_t data[VB_PARCEL_BYTES_MAX];
};

/* Of a QP. */
struct vb_parcels {
	uint32_t recv_bytes;  /* SENDs of so many octets at most; 0: none */
	uint32_t fetch_bytes; /* ... and answers to READs and atomics */
	bool full;	      /* `in_hand` is for the completion that comes next */
	struct vb_parcel in_hand;
	atomic_bool failed;   /* one could not be delivered: the QP is to fail */
	bool waiting;	      /* answers may be waiting in the send CQ */
	bool fenced;
	uint32_t fence_at;    /* the last work request with a fence that was posted */
};

/*
 * Give a QP that nobody uses yet its parcels: SENDs of RC and UC that come in, and answers to what
 * RC and initiators of DC ask for, if each work request completes or, with `always`, to those that
 * do. A type that has neither is left alone: 0. ENOMEM.
 */
int vb_parcels_make(struct vb_qp *qp, bool always);
void vb_parcels_free(struct vb_qp *qp);

/*
 * Take these octets of resp->recv, or of the answer to this work request, in hand: false if they
 * go the ordinary way, which then also finds out what may be wrong with them. QP locked.
 */
bool vb_parcel_take_recv(struct vb_qp *qp, uint32_t offset, const void *data, uint32_t bytes);
bool vb_parcel_take_fetch(struct vb_qp *qp, const struct vb_wqe *wqe, uint32_t offset,
			  const void *data, uint32_t bytes);

/*
 * The same for an answer that is fetched without a packet: *to becomes the place for it. Whoever
 * does not fetch it then drops it.
 */
bool vb_parcel_aim_fetch(struct vb_qp *qp, const struct vb_wqe *wqe, struct vb_payload *to);
void vb_parcel_drop(struct vb_qp *qp);

/* A completion is made: is it to take what is in hand along? Then nothing is in hand any more. */
bool vb_parcel_goes(struct vb_qp *qp);

/*
 * Put the octets where they belong. Keys are checked anew: the application may have let the memory
 * go since. False: it has, and the QP fails when the NIC is turned next. CQ's lock for taking held.
 */
bool vb_parcel_deliver(struct vb_qp *qp, const struct vb_parcel *parcel);

/*
 * Answers that wait in the send CQ are delivered now: what comes next in the send queue may be
 * about the memory that they belong in, or about the key of it. QP locked.
 */
void vb_parcels_settle(struct vb_qp *qp);

/* A work request with a fence stands at the tail; and: something is about to be sent. QP locked. */
void vb_parcels_fence(struct vb_qp *qp);
void vb_parcels_before_send(struct vb_qp *qp);

/* The QP was reset: nothing of it is in a CQ any more. QP locked. */
void vb_parcels_reset(struct vb_qp *qp);

/* Has one of its parcels met no memory? */
bool vb_parcels_failed(const struct vb_qp *qp);

#endif
