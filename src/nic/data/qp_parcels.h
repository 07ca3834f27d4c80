/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_QP_PARCELS_H
#define VB_NIC_QP_PARCELS_H

/* What a QP takes in hand of small data that travels inside completions (queue/parcel.h). */

#include <stdbool.h>
#include <stdint.h>

struct vb_payload;
struct vb_qp;
struct vb_wqe;

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
