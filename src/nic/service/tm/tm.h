/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_TM_H
#define VB_NIC_TM_H

/*
 * Tag matching (ibv_post_srq_ops(3)): an SRQ with a list of tagged buffers beside its ordinary
 * receive requests. A SEND that begins with a TMH goes to the first buffer that its tag matches,
 * without the header. A rendezvous request makes us READ the data that it names and then send a FIN
 * to the sender. Unmatched messages and messages without a tag are for software: they go to
 * ordinary requests, with all headers.
 *
 * Software handles those later, and may meanwhile add the very buffer that one of them is for. So
 * both sides count them: a buffer that was added while the counts differed is not used until they
 * agree, at the next operation that reports software's count.
 *
 * The queue's lock guards all of this; it comes after a QP's and before those of the SRQ and the
 * CQ. Completions go to the SRQ's CQ, whatever receive CQ a QP has.
 */

#include "nic/data/qp.h"
#include "nic/queue/srq.h"
#include "wire/tmh.h"

/*
 * The result for the current message, kept in vb_resp.mark from vb_tm_take() to vb_tm_done(). Zero
 * is for QPs without tags.
 */
enum vb_tm_mark {
	VB_TM_NOTHING,
	VB_TM_OTHER,	  /* not a SEND: a WRITE with immediate data */
	VB_TM_NO_TAG,	  /* no tag to match, or no header */
	VB_TM_UNEXPECTED, /* matched nothing */
	VB_TM_EAGER,	  /* matched: the data is here */
	VB_TM_RNDV,	  /* matched: we read the data */
	VB_TM_SW_RNDV,	  /* matched, but software has to read the data, and gets the RVH */
	VB_TM_MARKS
};

/* The part of a QP with tags. */
struct vb_tm_qp {
	struct vb_tmh tmh; /* of the current message, if it matched */
};

/* cap: requested. EINVAL: no tag, or more than the device has. Counts as a user of the CQ. */
int vb_tm_create(struct vb_cq *cq, const struct ibv_tm_cap *cap, struct vb_tm **tm);
void vb_tm_destroy(struct vb_tm *tm); /* unused tags vanish without a completion */

/* ibv_query_device_ex(3). */
void vb_tm_query(struct ibv_tm_caps *caps);

/*
 * ibv_post_srq_ops(3). EINVAL: no queue for tags, an invalid operation, flag or handle, too many
 * SGEs or octets; ENOMEM: no room for a tag. *bad is the first that was not carried out. Never
 * busy: each is done on return, and more than max_ops completions may wait to be polled.
 */
int vb_tm_post(struct vb_srq *srq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad);

/* --- for a QP whose SRQ has tags; its lock is held --- */

/*
 * A message begins: sets its buffer in resp->recv, and resp->mark. Returns false if it cannot be
 * taken now.
 */
bool vb_tm_take(struct vb_qp *qp, const struct vb_pkt *pkt, const struct vb_op_info *info);

/* Where a piece of it goes, without the header. Returns false if nothing of it is written. */
bool vb_tm_place(const struct vb_resp *resp, uint32_t *offset, const void **data, uint32_t *bytes);

/*
 * The message is complete, or failed: finishes its completion, whose other members are set. Starts
 * the READ of a rendezvous.
 */
void vb_tm_done(struct vb_qp *qp, struct vb_cqe *cqe);

/* A work request of ours is done: the READ of a rendezvous, or its FIN. */
void vb_tm_sent(struct vb_qp *qp, const struct vb_wqe *wqe, enum ibv_wc_status status);

/*
 * The QP is about to be reset. Flushes what it has taken from the queue, since tags and receive
 * requests are not the QP's to lose. Does nothing to a QP without tags.
 */
void vb_tm_leave(struct vb_qp *qp);

/* The CQ of the queue's completions; NULL for a QP without tags. */
struct ibv_cq *vb_tm_cq(const struct vb_qp *qp);

/*
 * Our own work requests have a receive opcode, which no other in a send queue has (those of drivers
 * have higher values).
 */
static inline bool vb_tm_is_own(const struct vb_wqe *wqe)
{
	return wqe->wc_opcode >= IBV_WC_RECV && wqe->wc_opcode < IBV_WC_DRIVER1;
}

#endif
