/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_PARCEL_H
#define VB_NIC_PARCEL_H

/*
 * Small data that travels inside a completion (mlx5's scatter to CQE): it is written to the
 * application's memory when the completion is polled, and lost with the completion. Inside nic;
 * docs/mlx5dv.md says what the application sees.
 *
 * A QP has it or not (data/qp_parcels.h); for other QPs it costs that one check. The current parcel
 * waits in the QP, under its lock, from the packet to the completion that follows at once; then it
 * is beside the completion, at the same position of the CQ.
 */

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	VB_PARCEL_SGES_MAX = 4,		 /* data with more pieces is written at once */
	VB_CQE_BYTES = 64,		 /* a completion of mlx5: half of it is free */
	VB_CQE_BYTES_MAX = 128,		 /* the other size */
	VB_PARCEL_BYTES_MAX = VB_CQE_BYTES_MAX / 2,
};

struct vb_parcel {
	struct ibv_pd *pd; /* the PD that its keys must be of */
	uint32_t bytes, sge_count;
	struct ibv_sge sge[VB_PARCEL_SGES_MAX];
	uint8_t data[VB_PARCEL_BYTES_MAX];
};

/* Of a QP. */
struct vb_parcels {
	uint32_t qpn;
	uint32_t recv_bytes;  /* for SENDs of at most this size; 0: none */
	uint32_t fetch_bytes; /* ... for answers to READs and atomics */
	bool full;	      /* `in_hand` is for the next completion */
	struct vb_parcel in_hand;
	atomic_bool failed;   /* one could not be delivered: the QP is to fail */
	bool waiting;	      /* answers may be waiting in the send CQ */
	bool fenced;
	uint32_t fence_at;    /* the last posted work request with a fence */
};

/*
 * Writes the octets to their destination. Keys are checked again, since the application may have
 * deregistered the memory. Returns false if it has, and the QP fails when the NIC is turned next.
 * The CQ's lock for taking is held.
 */
bool vb_parcel_deliver(struct vb_parcels *parcels, const struct vb_parcel *parcel);

#endif
