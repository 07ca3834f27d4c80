/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_SRD_STREAM_H
#define VB_NIC_SRD_STREAM_H

/* The streams of a QP of SRD (srd.h): DC initiators whose completions are the QP's. */

#include "nic/service/srd/srd.h"

/* Beside its QP's lock it has one of its own, taken inside that. */
struct vb_srd_stream {
	struct vb_dci dci;
	struct vb_srd_stream *next;	    /* in its bucket */
	struct vb_srd_stream *older, *newer; /* by last use */
	uint32_t bucket;
	bool entered; /* in its bucket */
	bool waits;   /* in srd->waits */
	bool refused; /* the answer being handled refuses the connection */
	enum ibv_wc_status failed; /* the last failure */
	struct vb_qp qp;
};

/* Makes one more stream of the QP. NULL: no memory, or no number. */
struct vb_srd_stream *vb_srd_stream_make(struct vb_qp *owner);
void vb_srd_stream_free(struct vb_srd_stream *s);

/* It has nothing to do any more, and forgets everything. Owner locked. */
void vb_srd_stream_reset(struct vb_srd_stream *s);

/* All of a message's destination: the address, the QP, the Q_Key. post: or NULL. */
void vb_srd_to_set(const struct vb_qp *qp, struct vb_dc_to *to, const struct ibv_send_wr *wr,
		   const struct vb_post *post);

/*
 * Queues a message in a stream with room. 0, EFAULT, or as vb_qp_post_one(). send: what is queued
 * leaves. Owner locked, stream not.
 */
int vb_srd_stream_post(struct vb_srd_stream *s, const struct ibv_send_wr *wr,
		       const struct vb_post *post);
void vb_srd_stream_send(struct vb_srd_stream *s);

/* Messages in it whose completions the application has not taken. Owner locked. */
static inline uint32_t vb_srd_stream_load(const struct vb_srd_stream *s)
{
	return s->qp.req.tail -
	       atomic_load_explicit(&s->qp.user.sq_released, memory_order_acquire);
}

/* For its table. Stream locked. */
void vb_srd_stream_address(struct vb_qp *qp, struct vb_wqe *wqe, const struct ibv_send_wr *wr,
			   const struct vb_post *post);
void vb_srd_stream_take(struct vb_batch *batch, struct vb_qp *qp, const struct vb_from *from,
			const struct vb_pkt *pkt, const struct vb_op_info *info);
void vb_srd_stream_translate(struct vb_qp *qp, enum ibv_wc_status *status);
bool vb_srd_stream_isolate(struct vb_qp *qp);

#endif
