/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_ACKS_H
#define VB_NIC_ACKS_H

/*
 * ACKs that wait. An ACK that is a datagram of its own costs both sides as much as the message that
 * it is for; in one burst with the application's answer it costs next to nothing. So where an
 * application has used to answer at once, the ACK waits for that a little: until something is
 * posted, or something more is owed, or the NIC's deadline comes. Over the wire, RC only.
 *
 * Whether it is worth it is learned from what the application does, not by trying: how many times
 * in a row it posted right after a message came.
 *
 * And, of XRC and DC, completions that wait for an ACK. There the application answers by another QP
 * than the one that acknowledges, and nothing would keep the answer behind the ACK. A NIC of
 * hardware has sent the ACK before anybody can have answered, and programs rely on it: they wait
 * for their own SEND first, and for the answer then. So what was received completes when its ACK is
 * on its way, or when the link has no room for it. Both go by one lane (peer.h), and by one UDP
 * flow.
 */

#include "nic/data/qp.h"

/* The longest time that an ACK is delayed. An application that answers later does not spin. */
#define VB_ACK_WAIT_NS 10000u

/* A message came that the application learns of. QP locked. */
static inline void vb_ack_message(struct vb_qp *qp, uint64_t now_ns)
{
	qp->ack.came_ns = now_ns;
}

/* The application posted. QP locked. */
void vb_ack_posted(struct vb_qp *qp, uint64_t now_ns);

/* A batch has ended: shall the ACK that is owed wait? QP locked, rx right held. */
void vb_ack_hold(struct vb_qp *qp, uint64_t now_ns);

/* After sending: the ACK that waits still is to be remembered. QP locked, rx right held. */
void vb_ack_keep(struct vb_qp *qp);

/* Is there one that must not leave on its own yet? QP locked. */
static inline bool vb_ack_waits(struct vb_qp *qp)
{
	if (!qp->resp.ack_owed)
		qp->ack.due_ns = 0;
	return qp->ack.due_ns > qp->now_ns;
}

/* Send those whose time has come. Rx right held. */
void vb_acks_turn(struct vb_nic *nic, uint64_t now_ns);

/* The QP will not get to it: send what is owed now, if there is room for it. QP locked. */
void vb_ack_flush(struct vb_qp *qp);

/*
 * The same, and wait for room where there is none, some milliseconds at most: after that the peer
 * finds nobody. No lock held.
 */
void vb_ack_settle(struct vb_qp *qp);

/* The process ends: the same for all QPs that nobody is busy with. Never waits. */
void vb_acks_flush(struct vb_nic *nic);

/* The QP goes. Rx right held. */
void vb_ack_forget(struct vb_qp *qp);

/* --- completions that wait for an ACK: of responders of XRC and DC. QP locked --- */

/* So many messages share an ACK at most. */

#define VB_UNACKED_MAX 8

struct vb_unacked {
	unsigned count;
	struct {
		struct vb_cq *cq;
		struct vb_cqe cqe;
	} of[VB_UNACKED_MAX];
};

/* A receive is complete, but for the ACK. What fills it is given before the next one comes. */
void vb_unacked_add(struct vb_qp *qp, struct vb_cq *cq, const struct vb_cqe *cqe);

static inline bool vb_unacked_is_full(const struct vb_qp *qp)
{
	return qp->recv.unacked->count == VB_UNACKED_MAX;
}

/* All of them are the application's now. Any QP. */
void vb_unacked_give(struct vb_qp *qp);

#endif
