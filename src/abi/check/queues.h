/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_CHECK_QUEUES_H
#define VB_ABI_CHECK_QUEUES_H

/* QPs, SRQs and CQs: what is posted, what can complete, what was not taken. Inside abi/check. */

#include "abi/check/state.h"

/* --- locked --- */

/* A QP was made: its CQs may get completions of its SRQ. */
void vb_check_queues_attach(struct vb_check_object *qp);

/* It was destroyed. */
void vb_check_queues_detach(const struct vb_check_object *qp);

/* The queue (of one of these) that receives of this QP or SRQ are posted to. */
struct vb_check_queue *vb_check_recv_queue(struct vb_check_object *object);

/* A request was posted: is there room for all that can complete? site: of the post. */
void vb_check_room(struct vb_check_object *qp_or_srq, bool is_recv);

/* It was refused. */
void vb_check_room_back(struct vb_check_object *qp_or_srq, bool is_recv);

/* An unsignaled request may have been the last that the queue has room for. */
void vb_check_unsignaled(struct vb_check_object *qp, const struct vb_check_request *request);

/*
 * Did messages come before receives? Said at the place where receives were posted, just now; NULL:
 * the QP ends.
 */
void vb_check_late(struct vb_check_object *qp, const void *site);

/* The same of all QPs that receive from it. */
void vb_check_srq_late(const struct vb_check_object *srq, const void *site);

/* A QP's requests end: it is about to be destroyed, or reset, at this place. */
void vb_check_queues_end(struct vb_check_object *object, const void *site, const char *how);

/* The records of an object's requests go. */
void vb_check_queues_forget(struct vb_check_object *object);

/* A completion that the application is about to get. */
void vb_check_completed(const struct ibv_cq *cq, const struct ibv_wc *wc);

/* At the end of the program. */
void vb_check_queues_left(void);

#endif
