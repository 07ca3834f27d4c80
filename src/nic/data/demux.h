/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_DEMUX_H
#define VB_NIC_DEMUX_H

/*
 * Gives packets of either way to their QPs (nic/way/receive.c). A batch of packets holds the lock
 * of one QP at a time; what QPs owe is sent at the end of the batch. The caller holds the right to
 * receive (the rx right, or a lane's rx_lock).
 */

#include "nic/data/qp.h"

struct vb_batch {
	struct vb_nic *nic;
	uint64_t now_ns; /* 0: this way has no clocks */
	bool polled;	 /* by a thread that will soon poll again (vb_nic_rx_polled) */
	bool went_out;	 /* Ethernet frames were sent by our uplink, to be flushed */
	uint8_t reason;	 /* what was counted last (enum vb_stat): for way/watch/watch.c */
	struct vb_later_queue touched; /* QPs that are to be looked at when it ends */
	struct vb_qp *locked; /* kept locked over a run of its packets */
};

/* How a packet came: by the wire, in this frame; or from this ring. */
struct vb_from {
	const struct vb_frame *frame;
	struct vb_lane *lane;
	const struct vb_ring_frame *ring; /* of the lane */
};

/* Something was not as usual with a packet: counts what. */
void vb_batch_count(struct vb_batch *batch, enum vb_stat stat) __attribute__((cold, noinline));

/* Slot 0 belongs to no process: its numbers are those of receive QPs that belong to a domain. */
static inline bool vb_qpn_is_shared(uint32_t qpn)
{
	return qpn < VB_INDICES;
}

/* Did the packet come by the QP's path, in the other direction? */
static inline bool vb_qp_path_fits(const struct vb_qp *qp, const struct vb_path *came)
{
	return memcmp(came->src, qp->to.path.dst, VB_GID_BYTES) == 0 &&
	       memcmp(came->dst, qp->to.path.src, VB_GID_BYTES) == 0;
}

/* Finds the QP of a packet, which may be an XRC shadow (xrc.h); NULL: none. */
struct vb_qp *vb_batch_find(struct vb_batch *batch, uint32_t dqpn);

/* Locks this QP and unlocks any other; NULL: only unlocks. */
static inline void vb_batch_hold(struct vb_batch *batch, struct vb_qp *qp)
{
	if (batch->locked == qp)
		return;
	if (batch->locked)
		vb_lock_drop(&batch->locked->lock);
	batch->locked = qp;
	if (!qp)
		return;
	vb_lock_take(&qp->lock);
	if (batch->now_ns)
		qp->now_ns = batch->now_ns;
}

/* Marks that the QP has something to send at the end of the batch. */
void vb_batch_touch(struct vb_batch *batch, struct vb_qp *qp);

/* IBA 9.6: the header checks that do not depend on the way. QP held. */
bool vb_batch_admit(struct vb_batch *batch, struct vb_qp *qp, const struct vb_pkt *pkt,
		    const struct vb_op_info *info);

/* Gives the packet to the QP, which is held and has admitted it. frame: for a UD's GRH. */
void vb_batch_packet(struct vb_batch *batch, struct vb_qp *qp, const struct vb_frame *frame,
		     const struct vb_pkt *pkt, const struct vb_op_info *info);

/* For services: acts on the result of a request. */
void vb_batch_heed(struct vb_batch *batch, struct vb_qp *qp, struct vb_resp_result result);

/*
 * XRC, DC: completions of requests wait for the ACK until the batch ends, so that one ACK covers
 * many.
 */
void vb_batch_acknowledge(struct vb_batch *batch, struct vb_qp *qp);

/* The same for known kinds: a request of an RC QP that can receive; an answer. */
void vb_batch_rc_request(struct vb_batch *batch, struct vb_qp *qp, const struct vb_pkt *pkt,
			 const struct vb_op_info *info);
void vb_batch_answer(struct vb_batch *batch, struct vb_qp *qp, const struct vb_pkt *pkt,
		     const struct vb_op_info *info);

/*
 * The fast path for most packets of a long message. expects: is it in the middle of a message, and
 * for the held QP? middle: gives it to that QP. False: use vb_batch_admit() and vb_batch_packet();
 * nothing has changed, except perhaps octets where the packet's data belongs.
 */
bool vb_batch_expects(const struct vb_batch *batch, const struct vb_bare *bare);
bool vb_batch_middle(struct vb_batch *batch, const struct vb_bare *bare, const uint8_t *payload,
		     uint32_t bytes);

/* Sends what QPs owe, and unlocks. */
void vb_batch_end(struct vb_batch *batch);

#endif
