/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_TM_H
#define VB_NIC_TM_H

/*
 * Tag matching (ibv_post_srq_ops(3)): an SRQ with a list of tagged buffers beside its ordinary
 * receive requests. A SEND that begins with a TMH goes to the first buffer that its tag matches,
 * without the header; the request of a rendezvous has us READ the data that it names, and tell the
 * sender with a FIN. What matches nothing is for software, as are messages without a tag: those go
 * to the ordinary requests, with everything in front of them.
 *
 * Software takes its time to look at those, and may meanwhile add the very buffer that one of them
 * is for. So both sides count them: a buffer that was added while the counts differed takes nothing
 * until they agree again, at the next operation that brings software's count.
 *
 * All that concerns one queue happens under its lock, which comes after a QP's and before the
 * SRQ's own ones and the CQ's. Completions go to the SRQ's CQ, whatever CQ a QP receives with.
 */

#include "nic/data/qp.h"
#include "nic/queue/srq.h"
#include "wire/tmh.h"

/*
 * What became of the message in hand, kept in vb_resp.mark from vb_tm_take() to vb_tm_done(). Zero
 * is for QPs that have nothing to do with tags.
 */
enum vb_tm_mark {
	VB_TM_NOTHING,
	VB_TM_OTHER,	  /* no SEND: a WRITE with immediate data */
	VB_TM_NO_TAG,	  /* no tag to be matched, or no header at all */
	VB_TM_UNEXPECTED, /* matched nothing */
	VB_TM_EAGER,	  /* matched: the data is here */
	VB_TM_RNDV,	  /* matched: we read the data */
	VB_TM_SW_RNDV,	  /* matched, but software has to read the data: the RVH is for it */
	VB_TM_MARKS
};

/* What a QP keeps for it, beside its queues. */
struct vb_tm_qp {
	struct vb_tmh tmh; /* of the message in hand, if it matched */
};

/* cap: wanted. EINVAL: no tag, or more than the device has. Counts as a user of the CQ. */
int vb_tm_create(struct vb_cq *cq, const struct ibv_tm_cap *cap, struct vb_tm **tm);
void vb_tm_destroy(struct vb_tm *tm); /* tags that nobody used vanish without a completion */

/* ibv_query_device_ex(3). */
void vb_tm_query(struct ibv_tm_caps *caps);

/*
 * ibv_post_srq_ops(3). EINVAL: no queue for tags, an operation, flag or handle that there is not,
 * too many SGEs or octets; ENOMEM: no room for a tag. *bad is the first that was not carried out.
 * Never busy: each is done when this returns, and more than max_ops may wait to be polled.
 */
int vb_tm_post(struct vb_srq *srq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad);

/* --- for a QP whose SRQ has tags; its lock is held --- */

/* A message begins: take what it is for into resp->recv and resp->mark. False: not now. */
bool vb_tm_take(struct vb_qp *qp, const struct vb_pkt *pkt, const struct vb_op_info *info);

/* Where a piece of it goes, of which the header is cut off; false: nothing of it goes anywhere. */
bool vb_tm_place(const struct vb_resp *resp, uint32_t *offset, const void **data, uint32_t *bytes);

/*
 * It has come, or failed: the completion, of which all is filled in that does not depend on tags.
 * A rendezvous begins with it.
 */
void vb_tm_done(struct vb_qp *qp, struct vb_cqe *cqe);

/* A work request of ours is done: the READ of a rendezvous, or its FIN. */
void vb_tm_sent(struct vb_qp *qp, const struct vb_wqe *wqe, enum ibv_wc_status status);

/*
 * The QP is about to forget all it was about. What it has in hand of the queue's is flushed: tags
 * and receive requests are not the QP's to lose. Nothing happens to a QP without tags.
 */
void vb_tm_leave(struct vb_qp *qp);

/* Where the queue's completions go; NULL for a QP without tags. */
struct ibv_cq *vb_tm_cq(const struct vb_qp *qp);

/*
 * Work requests of ours have an opcode of a receive, which no other in a send queue has (those
 * of a driver's own come behind them).
 */
static inline bool vb_tm_is_own(const struct vb_wqe *wqe)
{
	return wqe->wc_opcode >= IBV_WC_RECV && wqe->wc_opcode < IBV_WC_DRIVER1;
}

#endif
