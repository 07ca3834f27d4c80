/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_VERBS_WR_H
#define VB_ABI_VERBS_WR_H

/*
 * The builder behind ibv_wr_*(3) (wr.c) and mlx5dv_wr_*(3) (abi/mlx5/wr.c), kept in vb_qp.abi.
 * These functions are called between wr_start and wr_complete, with the builder's lock held; errors
 * are stored and reported by wr_complete.
 */

#include <errno.h>

#include "base/lent.h"
#include "nic/control/qp_dv.h"
#include "nic/data/post.h"

/* Has room for one work request more than the queue: invalid ones are written there. */
struct vb_builder {
	vb_lock lock; /* from wr_start to wr_complete or wr_abort: ibv_wr_start(3), CONCURRENCY */
	bool lone;    /* one thread posts, as the application promised: no lock is taken */
	uint64_t ops;	 /* IBV_QP_EX_WITH_* */
	uint32_t dv_ops; /* VB_QP_*, those that nic/data/qp_extra.h marks as the builder's */
	uint32_t wr_max, sge_max, inline_max, inline_stride;
	uint32_t header_max; /* of TSO */
	uint32_t count;
	uint32_t failed; /* which of the batch was refused first, from 1 on; with words */
	int error;
	struct vb_post *posts;
	int (*complete)(struct ibv_qp_ex *qp); /* when nobody measures (abi/trace/measured.h) */
	struct ibv_sge *sges; /* sge_max for each work request */
	uint8_t *inline_data; /* inline_stride for each */
	uint8_t *mkeys; /* a struct vb_mkey_request for each, if the QP configures indirect keys */
	uint32_t mkey_stride;
	void *dv; /* owned by abi/mlx5 (struct vb_mlx5_qp), freed with the builder; or NULL */
};

static inline struct vb_builder *vb_wr_builder(struct ibv_qp_ex *qp)
{
	return ((struct vb_qp *)qp)->abi;
}

static inline void vb_wr_fail(struct vb_builder *b, int error)
{
	if (b->error == 0)
		b->error = error;
}

/* The same, with the reason in words (base/refusal.h). */
VB_LENT void vb_wr_refuse(struct vb_builder *b, int error, const char *why)
	__attribute__((cold, noinline));

/* The same of the request that would be the next of the batch. */
VB_LENT void vb_wr_refuse_next(struct vb_builder *b, int error, const char *why)
	__attribute__((cold, noinline));

/* The index of the work request that setters act on. */
static inline uint32_t vb_wr_index(const struct vb_builder *b)
{
	return b->error || b->count == 0 ? b->wr_max : b->count - 1;
}

/* Begins a work request. allowed: the QP was created for it; else EINVAL. */
static inline struct vb_post *vb_wr_begin(struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode,
					  bool allowed)
{
	struct vb_builder *b = vb_wr_builder(qp);
	struct vb_post *post;
	uint32_t index;

	if (!allowed)
		vb_wr_refuse_next(b, EINVAL,
				  "the QP was created without this operation "
				  "(send_ops_flags)");
	else if (b->count == b->wr_max)
		vb_wr_refuse_next(b, ENOMEM, "the batch has more requests than max_send_wr");
	else
		b->count++;
	index = vb_wr_index(b);
	post = &b->posts[index];
	post->dc.ah = NULL;
	post->wr = (struct ibv_send_wr){
		.wr_id = qp->wr_id,
		.sg_list = b->sges + (size_t)index * b->sge_max,
		.opcode = opcode,
		.send_flags = qp->wr_flags & ~IBV_SEND_INLINE,
	};
	return post;
}

/* The work request that setters act on. Calling them before an operation is an error. */
static inline struct vb_post *vb_wr_current(struct vb_builder *b)
{
	if (b->count == 0)
		vb_wr_refuse(b, EINVAL, "a setter was called before its operation");
	return &b->posts[vb_wr_index(b)];
}

/*
 * The builder behind ibv_wr_*(3), kept in vb_qp.abi (wr.c). ops: IBV_QP_EX_WITH_*; EOPNOTSUPP if
 * the QP's type or this NIC does not support one of them. dv_ops: those of enum vb_qp_dv_flag.
 */
int vb_wr_check(enum ibv_qp_type type, const struct vb_dc_attr *dc, uint64_t ops);
uint64_t vb_wr_ops(enum ibv_qp_type type, const struct vb_dc_attr *dc); /* all that are supported */
int vb_wr_attach(struct ibv_qp *qp, const struct ibv_qp_cap *cap, uint64_t ops, uint32_t dv_ops);
void vb_wr_detach(struct ibv_qp *qp);

#endif
