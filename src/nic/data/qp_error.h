/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_QP_ERROR_H
#define VB_NIC_QP_ERROR_H

/* How a QP fails, and what follows a step of its engine. QP locked unless stated otherwise. */

#include <infiniband/verbs.h>
#include <stdint.h>

#include "engine/req.h"

struct vb_qp;

/* Moves it to the error state: flushes everything. */
void vb_qp_fail_locked(struct vb_qp *qp);
void vb_qp_flush_recv_locked(struct vb_qp *qp);
void vb_qp_event(struct vb_qp *qp, enum ibv_event_type type);

/* Acts on the outcome of a requester's step, and sets the timer. */
void vb_qp_after_locked(struct vb_qp *qp, enum vb_req_outcome outcome);

/* The QP's timer has expired. Rx right held, QP not locked. */
void vb_qp_on_time(struct vb_qp *qp, uint64_t now_ns);

#endif
