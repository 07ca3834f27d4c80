/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_VERBS_MKEY_H
#define VB_TESTS_VERBS_MKEY_H

#include "lib.h"

#include <infiniband/mlx5dv.h>

/*
 * What the tests of indirect keys share: a pair whose QPs lay them out, and a key for each end. The
 * keys lead into the ends' buffers by regions that let no peer in.
 */

enum { ENTRIES = 32, INLINE_BYTES = 16 * ENTRIES, SEED = 7 };

#define REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define EVERYTHING (REMOTE | IBV_ACCESS_LOCAL_WRITE)

struct mkey_side {
	struct vt_end *end;
	struct ibv_mr *mr; /* of its buffer, without remote rights */
	struct mlx5dv_mkey *mkey;
	struct ibv_qp_ex *qp;
	struct mlx5dv_qp_ex *mqp;
};

struct scene {
	struct vt_pair p;
	struct mkey_side a, b;
};

static uint32_t mkey_inline_bytes;
static uint64_t mkey_dv_ops, mkey_ops;

static inline struct ibv_qp *make_mkey_qp(struct ibv_qp_init_attr *attr)
{
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS |
			     MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
		.create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE,
		.send_ops_flags = mkey_dv_ops,
	};
	struct ibv_qp_init_attr_ex ex = {
		.send_cq = attr->send_cq, .recv_cq = attr->recv_cq, .srq = attr->srq,
		.cap = attr->cap, .qp_type = attr->qp_type, .sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, .pd = vt.pd,
		.send_ops_flags = mkey_ops,
	};

	ex.cap.max_inline_data = mkey_inline_bytes;
	return mlx5dv_create_qp(vt.ctx, &ex, &dv);
}

static inline struct mlx5dv_mkey *make_mkey(uint32_t flags, uint16_t entries)
{
	struct mlx5dv_mkey_init_attr attr = {
		.pd = vt.pd, .create_flags = flags | MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
		.max_entries = entries,
	};
	struct mlx5dv_mkey *mkey = vt_made(mlx5dv_create_mkey(&attr));

	assert_true(attr.max_entries >= entries);
	return mkey;
}

static inline void side_open(struct mkey_side *side, struct vt_end *end, uint32_t flags)
{
	side->end = end;
	side->mr = vt_mr(vt.pd, end->buf, end->bytes, IBV_ACCESS_LOCAL_WRITE);
	side->mkey = make_mkey(flags, ENTRIES);
	side->qp = ibv_qp_to_qp_ex(end->qp);
	side->mqp = vt_made(mlx5dv_qp_ex_from_ibv_qp_ex(side->qp));
}

static inline void scene_open_as(struct scene *s, struct vt_options opt, uint32_t flags)
{
	mkey_inline_bytes = INLINE_BYTES;
	mkey_ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ;
	mkey_dv_ops = MLX5DV_QP_EX_WITH_MR_INTERLEAVED | MLX5DV_QP_EX_WITH_MR_LIST |
		      MLX5DV_QP_EX_WITH_MKEY_CONFIGURE | MLX5DV_QP_EX_WITH_MEMCPY;
	opt.make_qp = make_mkey_qp;
	vt_pair_open(&s->p, &opt);
	side_open(&s->a, &s->p.a, flags);
	side_open(&s->b, &s->p.b, flags);
}

static inline void scene_open(struct scene *s)
{
	scene_open_as(s, (struct vt_options){ .type = IBV_QPT_RC }, 0);
}

static inline void side_close(struct mkey_side *side)
{
	if (side->mkey)
		assert_int_equal(mlx5dv_destroy_mkey(side->mkey), 0);
	if (side->mr)
		assert_int_equal(ibv_dereg_mr(side->mr), 0);
}

static inline void scene_close(struct scene *s)
{
	side_close(&s->a);
	side_close(&s->b);
	vt_pair_close(&s->p);
}

#define scene_test(f)                                                                             \
	vt_with(vt_test, f, struct scene, s, scene_open(&s), scene_close(&s))

/* --- work requests that lay out keys --- */

static inline void begin_wr(struct mkey_side *side, uint64_t wr_id)
{
	ibv_wr_start(side->qp);
	side->qp->wr_id = wr_id;
	side->qp->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
}

static inline struct ibv_wc laid_out(struct mkey_side *side, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_wr_complete(side->qp), 0);
	wc = vt_expect(side->end->cq, 20, status);
	if (status == IBV_WC_SUCCESS)
		assert_int_equal(wc.opcode, MLX5DV_WC_UMR);
	return wc;
}

static inline void lay_list(struct mkey_side *side, unsigned access, uint16_t n,
			    struct ibv_sge *sges)
{
	begin_wr(side, 20);
	mlx5dv_wr_mr_list(side->mqp, side->mkey, access, n, sges);
	laid_out(side, IBV_WC_SUCCESS);
}

static inline void lay_rows(struct mkey_side *side, unsigned access, uint32_t repeat, uint16_t n,
			    struct mlx5dv_mr_interleaved *data)
{
	begin_wr(side, 20);
	mlx5dv_wr_mr_interleaved(side->mqp, side->mkey, access, repeat, n, data);
	laid_out(side, IBV_WC_SUCCESS);
}

/* So many octets of the buffer, from here on. */
static inline struct ibv_sge part(const struct mkey_side *side, uint64_t at, uint32_t bytes)
{
	return (struct ibv_sge){ (uintptr_t)side->end->buf + at, bytes, side->mr->lkey };
}

/* The first so many octets in one piece. */
static inline void lay_plain(struct mkey_side *side, unsigned access, uint32_t bytes)
{
	struct ibv_sge sge = part(side, 0, bytes);

	lay_list(side, access, 1, &sge);
}

/* --- traffic from a's key to b's --- */

/* From and to these addresses; the keys are the mkeys'. */
static inline void post_between(struct scene *s, enum ibv_wr_opcode op, uint64_t from, uint64_t to,
				uint32_t bytes)
{
	struct vt_wr w;

	vt_wr(&w, op, &s->p.a, &s->p.b, bytes);
	w.sge = (struct ibv_sge){ from, bytes, s->a.mkey->lkey };
	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		w.wr.wr.atomic.remote_addr = to;
		w.wr.wr.atomic.rkey = s->b.mkey->rkey;
		w.wr.wr.atomic.compare_add = 1;
	} else {
		w.wr.wr.rdma.remote_addr = to;
		w.wr.wr.rdma.rkey = s->b.mkey->rkey;
	}
	vt_post(&s->p.a, &w);
}

static inline void post_recv(struct scene *s, uint64_t at, uint32_t bytes)
{
	struct ibv_sge sge = { at, bytes, s->b.mkey->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 };

	if (s->p.b.srq)
		assert_int_equal(ibv_post_srq_recv(s->p.b.srq, &wr, &bad), 0);
	else
		assert_int_equal(ibv_post_recv(s->p.b.qp, &wr, &bad), 0);
}

/* One that succeeds, or breaks both QPs. */
static inline void expect_between(struct scene *s, enum ibv_wr_opcode op, uint64_t from,
				  uint64_t to, uint32_t bytes, enum ibv_wc_status status)
{
	bool sends = op == IBV_WR_SEND;

	if (sends)
		post_recv(s, to, bytes);
	post_between(s, op, from, to, bytes);
	vt_expect(s->p.a.cq, 1, status);
	if (sends && status == IBV_WC_SUCCESS)
		vt_expect(s->p.b.cq, 2, IBV_WC_SUCCESS);
	if (status == IBV_WC_SUCCESS)
		return;
	if (status == IBV_WC_REM_ACCESS_ERR)
		vt_event_acked(IBV_EVENT_QP_ACCESS_ERR);
	vt_pair_reconnect(&s->p);
}

#endif
