/* SPDX-License-Identifier: BSD-2-Clause */
#include "peer.h"

/*
 * Memory windows between processes: the peer could reach our memory by itself, if it found a way
 * in; through a window it has to ask us. What the window grants is the same.
 */

enum { AT = 8192, BYTES = 16384, SEED = 5 };

struct scene {
	struct vp *peer;
	struct vp_pair p;
	struct ibv_mw *mw;
	struct ibv_mr *mr; /* nothing but windows gets in */
	uint32_t rkey;
};

static void scene_open(struct scene *s)
{
	const struct vt_options opt = { .type = IBV_QPT_RC };

	s->peer = vp_start(NULL);
	vp_pair_open(&s->p, s->peer, &opt);
	s->mr = vt_mr(vt.pd, s->p.a.buf, s->p.a.bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	s->mw = vt_made(ibv_alloc_mw(vt.pd, IBV_MW_TYPE_2));
	s->rkey = s->mw->rkey;
	vp_fill(&s->p, BYTES, SEED);
}

static void scene_close(struct scene *s)
{
	assert_int_equal(ibv_dealloc_mw(s->mw), 0);
	assert_int_equal(ibv_dereg_mr(s->mr), 0);
	vp_pair_close(&s->p);
	vp_end(s->peer);
}

static void bind(struct scene *s, unsigned access)
{
	struct ibv_send_wr *bad, wr = {
		.wr_id = 10,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { .mw = s->mw, .rkey = s->rkey = ibv_inc_rkey(s->rkey),
			     .bind_info = { s->mr, (uintptr_t)s->p.a.buf + AT, BYTES, access } },
	};

	assert_int_equal(ibv_post_send(s->p.a.qp, &wr, &bad), 0);
	vt_expect(s->p.a.cq, 10, IBV_WC_SUCCESS);
}

static void local_inv(struct scene *s)
{
	struct ibv_send_wr *bad, wr = { .wr_id = 11, .opcode = IBV_WR_LOCAL_INV,
					.invalidate_rkey = s->rkey,
					.send_flags = IBV_SEND_SIGNALED };

	assert_int_equal(ibv_post_send(s->p.a.qp, &wr, &bad), 0);
	vt_expect(s->p.a.cq, 11, IBV_WC_SUCCESS);
}

/* The peer's request, for the window; wr_id 1. */
static void far_post(struct scene *s, enum ibv_wr_opcode op, uint32_t bytes)
{
	struct vp_order order = { .what = VP_SEND, .end = s->p.end, .op = op, .wr_id = 1,
				  .bytes = bytes, .rkey = s->rkey, .imm_be = s->rkey,
				  .addr = (uintptr_t)s->p.a.buf + AT };

	assert_int_equal(vp_do(s->peer, &order).rc, 0);
}

vp_test(a_window_lets_another_process_in)
{
	static const uint32_t sizes[] = { 8, 64, 4096, BYTES };
	struct scene s;

	scene_open(&s);
	for (unsigned i = 0; i < 4; i++) {
		memset(s.p.a.buf, 0, s.p.a.bytes);
		bind(&s, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				 IBV_ACCESS_REMOTE_ATOMIC);
		far_post(&s, IBV_WR_RDMA_WRITE, sizes[i]);
		vp_expect(&s.p, 1, IBV_WC_SUCCESS);
		assert_true(vt_is_filled(s.p.a.buf + AT, sizes[i], SEED));
		assert_true(vt_is_octet(s.p.a.buf, AT, 0));
		far_post(&s, IBV_WR_RDMA_READ, sizes[i]);
		vp_expect(&s.p, 1, IBV_WC_SUCCESS);
		assert_true(vp_is_filled(&s.p, 0, sizes[i], SEED));
		local_inv(&s);
	}
	scene_close(&s);
}

vp_test(the_atomic_one_as_well)
{
	struct vp_order add = { .what = VP_ADD, .count = 100 };
	struct scene s;
	uint64_t *word;

	scene_open(&s);
	word = (uint64_t *)(s.p.a.buf + AT);
	bind(&s, IBV_ACCESS_REMOTE_ATOMIC);
	add.end = s.p.end;
	add.rkey = s.rkey;
	add.addr = (uintptr_t)word;
	assert_int_equal(vp_do(s.peer, &add).rc, 0);
	assert_int_equal(*word, add.count);
	local_inv(&s);
	bind(&s, IBV_ACCESS_REMOTE_WRITE);
	vp_fill(&s.p, 8, SEED);
	far_post(&s, IBV_WR_ATOMIC_WRITE, 8);
	vp_expect(&s.p, 1, IBV_WC_SUCCESS);
	assert_true(vt_is_filled(s.p.a.buf + AT, 8, SEED));
	scene_close(&s);
}

vp_test(what_was_taken_back_keeps_it_out)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						  IBV_WR_ATOMIC_WRITE };
	struct scene s;

	for (unsigned i = 0; i < 3; i++) {
		scene_open(&s);
		bind(&s, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
		far_post(&s, ops[i], 8);
		vp_expect(&s.p, 1, IBV_WC_SUCCESS);
		memset(s.p.a.buf, 0, s.p.a.bytes);
		local_inv(&s);
		far_post(&s, ops[i], 8);
		vp_expect(&s.p, 1, IBV_WC_REM_ACCESS_ERR);
		vt_event_acked(IBV_EVENT_QP_ACCESS_ERR);
		assert_true(vt_is_octet(s.p.a.buf, s.p.a.bytes, 0));
		scene_close(&s);
	}
}

vp_test(it_gives_back_what_it_was_lent)
{
	struct scene s;
	struct ibv_wc wc;

	scene_open(&s);
	for (unsigned i = 0; i < 20; i++) {
		bind(&s, IBV_ACCESS_REMOTE_WRITE);
		far_post(&s, IBV_WR_RDMA_WRITE, 64);
		vp_expect(&s.p, 1, IBV_WC_SUCCESS);
		vt_recv(&s.p.a, 2);
		far_post(&s, IBV_WR_SEND_WITH_INV, 32);
		vp_expect(&s.p, 1, IBV_WC_SUCCESS);
		wc = vt_expect(s.p.a.cq, 2, IBV_WC_SUCCESS);
		assert_true(wc.wc_flags & IBV_WC_WITH_INV);
		assert_int_equal(wc.invalidated_rkey, s.rkey);
	}
	/* Nothing is bound any more. */
	assert_int_equal(ibv_dereg_mr(s.mr), 0);
	s.mr = vt_mr(vt.pd, s.p.a.buf, s.p.a.bytes, 0);
	scene_close(&s);
}

/* What needs nobody is done though nobody is there; what does need somebody fails behind it. */
vp_test(a_bind_needs_no_peer)
{
	struct scene s;

	scene_open(&s);
	vp_kill(s.peer);
	bind(&s, IBV_ACCESS_REMOTE_WRITE);
	local_inv(&s);
	bind(&s, IBV_ACCESS_REMOTE_READ);
	vt_send(&s.p.a, &s.p.b, 3);
	vt_expect(s.p.a.cq, 3, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(ibv_dereg_mr(s.mr), EBUSY);
	assert_int_equal(ibv_dealloc_mw(s.mw), 0);
	assert_int_equal(ibv_dereg_mr(s.mr), 0);
	vp_pair_close(&s.p);
}
