/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_PARCEL_H
#define VB_NIC_PARCEL_H

/*
 * Small data that travels inside a completion (mlx5's scatter to CQE): it reaches the application's
 * memory when the completion is polled, and is lost with it. Inside nic; docs/mlx5dv.md says what
 * the application sees.
 *
 * A QP has it or not (data/qp_parcels.h); the others pay for it with that one look. What is in hand
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

struct vb_parcel {
	struct ibv_pd *pd; /* by which the keys are judged */
	uint32_t bytes, sge_count;
	struct ibv_sge sge[VB_PARCEL_SGES_MAX];
	uint8_t data[VB_PARCEL_BYTES_MAX];
};

/* Of a QP. */
struct vb_parcels {
	uint32_t qpn;
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
 * Put the octets where they belong. Keys are checked anew: the application may have let the memory
 * go since. False: it has, and the QP fails when the NIC is turned next. CQ's lock for taking held.
 */
bool vb_parcel_deliver(struct vb_parcels *parcels, const struct vb_parcel *parcel);

#endif
