/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_QP_ERROR_H
#define VB_NIC_QP_ERROR_H

/*
 * What fails a QP, and what follows from a step of its engine. QP locked, unless it says otherwise.
 */

#include <infiniband/verbs.h>
#include <stdint.h>

#include "engine/req.h"

struct vb_qp;

/* To the error state: flush everything. */
void vb_qp_fail_locked(struct vb_qp *qp);
void vb_qp_flush_recv_locked(struct vb_qp *qp);
void vb_qp_event(struct vb_qp *qp, enum ibv_event_type type);

/* Carry out what the requester's step asks for, and set the clock. */
void vb_qp_after_locked(struct vb_qp *qp, enum vb_req_outcome outcome);

/* Time has come for this QP. Rx right held, QP not locked. */
void vb_qp_on_time(struct vb_qp *qp, uint64_t now_ns);

#endif
