/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_SRD_H
#define VB_NIC_SRD_H

/*
 * SRD (README.md, docs/srd.md). Three kinds of struct vb_qp:
 *
 *  - the one that the application has (srd.c): the receiving end, a DC target with a receive queue
 *    of its own; it sends nothing itself;
 *  - its streams (srd_stream.c), DC initiators that nobody else knows: each message goes by one of
 *    them, and messages of different streams overtake each other;
 *  - the contexts of the target, one for each stream of each sender.
 */

#include "nic/core/ahn.h"
#include "nic/service/dc/dc_target.h"

struct vb_srd_stream;

enum {
	VB_SRD_SEND_BYTES_MAX = 8928,	 /* a SEND; as EFA's max_msg_sz */
	VB_SRD_RDMA_BYTES_MAX = 1 << 30, /* a READ or WRITE: max_rdma_size */
	VB_SRD_SEND_WR_MAX = 4096,
	VB_SRD_INLINE_BYTES_MAX = 32, /* SEND only */

	VB_SRD_SPREAD = 4, /* streams that the messages to one destination go by */
	/* So many are made before an idle one gets another destination. */
	VB_SRD_STREAMS_KEPT = 16,
	VB_SRD_STREAMS_MAX = 128, /* of a QP */
	/* Messages that wait in a stream, those done and not polled included. */
	VB_SRD_STREAM_PLACES = 64,
	VB_SRD_BUCKETS = 256,
};

/* Streams that a QP receives from at a time. */
#ifndef VB_SRD_CONTEXTS_MAX
#define VB_SRD_CONTEXTS_MAX 8192
#endif

_Static_assert(VB_SRD_SEND_WR_MAX < VB_SRD_STREAMS_MAX * VB_SRD_STREAM_PLACES,
	       "while the QP has room for a message, one of its streams has");

struct vb_srd {
	struct vb_dct dct;
	struct vb_srq srq; /* the contexts' view of the QP's receive queue: its PD, and a lock */
	uint64_t draws;
	uint32_t posted, released; /* released: when the send queue was last full */
	unsigned count;
	struct vb_srd_stream *stream[VB_SRD_STREAMS_MAX];
	struct vb_srd_stream *bucket[VB_SRD_BUCKETS]; /* by the destination of the last message */
	struct vb_srd_stream *oldest, *newest;
	/* Those that got messages in the present call. */
	unsigned waiting;
	struct vb_srd_stream *waits[VB_SRD_STREAMS_MAX];
};

/* srd_table.c */
extern const struct vb_service vb_service_srd, vb_service_srd_stream, vb_service_srd_context;

/* --- inside srd; QP locked unless stated otherwise --- */

static inline struct vb_srd *vb_srd_of(const struct vb_qp *qp)
{
	return (struct vb_srd *)qp->special.dc;
}

int vb_srd_make(struct vb_qp *qp, const struct vb_qp_extra *extra);
void vb_srd_leave(struct vb_qp *qp); /* not locked */
void vb_srd_unmake(struct vb_qp *qp);
void vb_srd_reset(struct vb_qp *qp);
void vb_srd_fail(struct vb_qp *qp);
void vb_srd_take(struct vb_batch *batch, struct vb_qp *qp, const struct vb_from *from,
		 const struct vb_pkt *pkt, const struct vb_op_info *info);

/* May this be posted? 0 or EINVAL. */
int vb_srd_post_check(const struct vb_qp *qp, const struct ibv_send_wr *wr,
		      const struct vb_post *post);
int vb_srd_post_list(struct vb_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int vb_srd_post_batch(struct vb_qp *qp, const struct vb_post *posts, uint32_t count,
		      uint32_t *done);

#endif
