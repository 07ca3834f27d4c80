/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_ACKS_H
#define VB_NIC_ACKS_H

/*
 * Delayed ACKs. An ACK in a datagram of its own costs both sides as much as the message that it
 * acknowledges; in one burst with the application's answer it costs next to nothing. So if an
 * application has usually answered at once, the ACK waits a little: until something is posted, more
 * is owed, or the NIC's deadline comes. Over the wire and for RC only.
 *
 * Whether waiting pays is learned by watching the application: how many times in a row it posted
 * right after a message arrived.
 *
 * For XRC and DC this file also delays completions until the ACK. There the application answers by
 * another QP than the one that acknowledges, so the answer could overtake the ACK. A hardware NIC
 * has sent the ACK before an answer is possible, and programs rely on it: they wait for the
 * completion of their own SEND first, then for the answer. So a receive completes when its ACK is
 * on its way, or the link has no room for it. Both go by one lane (peer.h), or by one UDP flow.
 */

#include "nic/data/qp.h"

/* The longest delay of an ACK. An application that answers later does not spin. */
#define VB_ACK_WAIT_NS 10000u

/* A message arrived that the application will notice. QP locked. */
static inline void vb_ack_message(struct vb_qp *qp, uint64_t now_ns)
{
	qp->ack.came_ns = now_ns;
}

/* The application posted. QP locked. */
void vb_ack_posted(struct vb_qp *qp, uint64_t now_ns);

/* At the end of a batch: decides whether the owed ACK waits. QP locked, rx right held. */
void vb_ack_hold(struct vb_qp *qp, uint64_t now_ns);

/* After sending: puts the QP in the list if its ACK still waits. QP locked, rx right held. */
void vb_ack_keep(struct vb_qp *qp);

/* Is there an ACK that must not leave on its own yet? QP locked. */
static inline bool vb_ack_waits(struct vb_qp *qp)
{
	if (!qp->resp.ack_owed)
		qp->ack.due_ns = 0;
	return qp->ack.due_ns > qp->now_ns;
}

/* Sends ACKs that are due. Rx right held. */
void vb_acks_turn(struct vb_nic *nic, uint64_t now_ns);

/* The QP is about to end: sends what is owed now, if there is room. QP locked. */
void vb_ack_flush(struct vb_qp *qp);

/*
 * The same, but waits for room, some milliseconds at most, since later the peer gets no answer. No
 * lock held.
 */
void vb_ack_settle(struct vb_qp *qp);

/* The process exits: the same for all QPs whose lock is free. Never waits. */
void vb_acks_flush(struct vb_nic *nic);

/* The QP is destroyed. Rx right held. */
void vb_ack_forget(struct vb_qp *qp);

/* --- completions that wait for an ACK: responders of XRC and DC; QP locked --- */

/* The most messages per ACK. */

#define VB_UNACKED_MAX 8

struct vb_unacked {
	unsigned count;
	struct {
		struct vb_cq *cq;
		struct vb_cqe cqe;
	} of[VB_UNACKED_MAX];
};

/*
 * A receive is complete except for the ACK. If this fills the list, it is given before the next one
 * comes.
 */
void vb_unacked_add(struct vb_qp *qp, struct vb_cq *cq, const struct vb_cqe *cqe);

static inline bool vb_unacked_is_full(const struct vb_qp *qp)
{
	return qp->recv.unacked->count == VB_UNACKED_MAX;
}

/* Gives all of them to the application. Any QP. */
void vb_unacked_give(struct vb_qp *qp);

#endif
