/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_QP_ERROR_H
#define VB_NIC_QP_ERROR_H

/*
 * How a QP fails, or all QPs of a context or NIC; and what follows a step of its engine. QP locked
 * unless stated otherwise.
 */

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lent.h"
#include "engine/req.h"

struct vb_ctx;
struct vb_nic;
struct vb_qp;

/* Moves it to the error state: flushes everything. */
void vb_qp_fail_locked(struct vb_qp *qp);
void vb_qp_flush_recv_locked(struct vb_qp *qp);
void vb_qp_flush_one_recv(struct vb_qp *qp, uint64_t wr_id);
void vb_qp_event(struct vb_qp *qp, enum ibv_event_type type);

/* Acts on the outcome of a requester's step, and sets the timer. */
void vb_qp_after_locked(struct vb_qp *qp, enum vb_req_outcome outcome);

/* The QP's timer has expired. Rx right held, QP not locked. */
void vb_qp_on_time(struct vb_qp *qp, uint64_t now_ns);

/* Does what is due (retransmissions, waits after RNR ...). Any thread. */
void vb_nic_turn(struct vb_nic *nic);

/*
 * The device fails for good: every QP goes to the error state, so that outstanding work completes,
 * and contexts get IBV_EVENT_DEVICE_FATAL. Completions can be polled and objects destroyed. Callers
 * of anything else ask has_failed first, and return EIO. Any thread.
 */
void vb_nic_fail(struct vb_nic *nic);
VB_LENT bool vb_nic_has_failed(const struct vb_nic *nic);

/*
 * The application has closed a context and left objects in it: moves its QPs and WQs to the error
 * state, so that the application's memory is no longer read or written. Returns false if a peer
 * still does so (vb_direct_settle). Any thread.
 */
bool vb_ctx_fail(struct vb_ctx *ctx);

#endif
