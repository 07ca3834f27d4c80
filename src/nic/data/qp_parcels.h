/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_QP_PARCELS_H
#define VB_NIC_QP_PARCELS_H

/* A QP's current parcel: small data that travels inside completions (queue/parcel.h). */

#include <stdbool.h>
#include <stdint.h>

struct vb_payload;
struct vb_qp;
struct vb_wqe;

/*
 * Gives a new QP its parcels: for SENDs that RC and UC receive, and for answers to RC QPs and DC
 * initiators, if all work requests complete or, with `always`, for those that do. Other types get
 * none and 0. ENOMEM.
 */
int vb_parcels_make(struct vb_qp *qp, bool always);
void vb_parcels_free(struct vb_qp *qp);

/*
 * Takes these octets of resp->recv, or of the answer to this work request, into the current parcel.
 * Returns false if they have to be written at once, which also finds any error. QP locked.
 */
bool vb_parcel_take_recv(struct vb_qp *qp, uint32_t offset, const void *data, uint32_t bytes);
bool vb_parcel_take_fetch(struct vb_qp *qp, const struct vb_wqe *wqe, uint32_t offset,
			  const void *data, uint32_t bytes);

/*
 * The same for an answer that is fetched without a packet: *to becomes its destination. A caller
 * that does not fetch it then calls drop.
 */
bool vb_parcel_aim_fetch(struct vb_qp *qp, const struct vb_wqe *wqe, struct vb_payload *to);
void vb_parcel_drop(struct vb_qp *qp);

/* At a completion: does it take the current parcel along? The parcel is then no longer current. */
bool vb_parcel_goes(struct vb_qp *qp);

/*
 * Delivers answers that wait in the send CQ now: the next work request may use the memory that they
 * belong in, or its key. QP locked.
 */
void vb_parcels_settle(struct vb_qp *qp);

/* A work request with a fence is at the tail; and: something is about to be sent. QP locked. */
void vb_parcels_fence(struct vb_qp *qp);
void vb_parcels_before_send(struct vb_qp *qp);

/* The QP was reset: no CQ has parcels of it any more. QP locked. */
void vb_parcels_reset(struct vb_qp *qp);

/* Could one of its parcels not be delivered? */
bool vb_parcels_failed(const struct vb_qp *qp);

#endif
