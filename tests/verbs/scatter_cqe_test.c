/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <infiniband/mlx5dv.h>
#include <unistd.h>

/*
 * mlx5dv_create_qp(3), DISABLE_SCATTER_TO_CQE and ALLOW_SCATTER_TO_CQE: small data that came is in
 * the completion, and reaches memory when that is polled. docs/mlx5dv.md.
 */

enum { SMALL = 32, LARGE = 64, FILL = 7 };

/* --- what QPs and CQs are made by --- */

static struct ibv_qp *try_dv(struct ibv_qp_init_attr *init, uint32_t flags)
{
	struct ibv_qp_init_attr_ex attr = { .send_cq = init->send_cq,
					    .recv_cq = init->recv_cq,
					    .srq = init->srq,
					    .cap = init->cap,
					    .qp_type = init->qp_type,
					    .sq_sig_all = init->sq_sig_all,
					    .comp_mask = IBV_QP_INIT_ATTR_PD,
					    .pd = vt.pd };
	struct mlx5dv_qp_init_attr dv = { .create_flags = flags };

	if (flags)
		dv.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS;
	return mlx5dv_create_qp(vt.ctx, &attr, &dv);
}

static struct ibv_qp *by_default(struct ibv_qp_init_attr *init)
{
	return try_dv(init, 0);
}

static struct ibv_qp *disabled(struct ibv_qp_init_attr *init)
{
	return try_dv(init, MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE);
}

static struct ibv_qp *allowed(struct ibv_qp_init_attr *init)
{
	return try_dv(init, MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE);
}

static struct ibv_cq *wide_cq(int cqe)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = (uint32_t)cqe };
	struct mlx5dv_cq_init_attr dv = { .comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE,
					  .cqe_size = 128 };
	struct ibv_cq_ex *cq = vt_made(mlx5dv_create_cq(vt.ctx, &attr, &dv));

	return ibv_cq_ex_to_cq(cq);
}

/* --- a SEND --- */

/* Octets of a, told apart from those of b. */
static void open_pair(struct vt_pair *p, struct vt_options opt)
{
	vt_pair_open(p, &opt);
	vt_fill(p->a.buf, p->a.bytes, FILL);
	memset(p->b.buf, 0, p->b.bytes);
}

static void send_bytes(struct vt_pair *p, uint32_t bytes)
{
	vt_start(IBV_WR_SEND, &p->a, &p->b, bytes);
}

/* It has been acknowledged, so it has come. */
static void send_and_wait(struct vt_pair *p, uint32_t bytes)
{
	send_bytes(p, bytes);
	vt_expect(p->a.cq, 1, IBV_WC_SUCCESS);
}

/* Does a SEND of so many octets stay in the completion until that is polled? */
static bool stays(struct vt_pair *p, uint32_t bytes)
{
	bool early;
	struct ibv_wc wc;

	memset(p->b.buf, 0, p->b.bytes);
	vt_recv(&p->b, 2);
	send_and_wait(p, bytes);
	early = vt_is_filled(p->b.buf, bytes, FILL);
	if (!early)
		assert_true(vt_is_octet(p->b.buf, bytes, 0));
	wc = vt_expect(p->b.cq, 2, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, bytes);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.qp_num, p->b.qp->qp_num);
	assert_true(vt_is_filled(p->b.buf, bytes, FILL));
	assert_int_equal(p->b.buf[bytes], 0);
	return !early;
}

vt_test(a_small_receive_is_in_the_completion)
{
	struct vt_pair p;

	open_pair(&p, (struct vt_options){ .make_qp = by_default });
	for (unsigned i = 0; i < 300; i++) /* round the CQ */
		assert_true(stays(&p, 1 + i % SMALL));
	assert_true(stays(&p, SMALL));
	assert_false(stays(&p, SMALL + 1));
	assert_false(stays(&p, LARGE));
	assert_false(stays(&p, 3000));
	vt_pair_close(&p);
}

/* create_dv: "Disable scatter to CQE feature which is enabled by default." */
vt_test(disabled_it_is_not)
{
	struct vt_pair p;

	open_pair(&p, (struct vt_options){ .make_qp = disabled, .sq_sig_all = 1 });
	assert_false(stays(&p, 1));
	assert_false(stays(&p, SMALL));
	vt_pair_close(&p);
}

vt_test(a_completion_of_128_octets_has_room_for_64)
{
	struct vt_pair p;

	open_pair(&p, (struct vt_options){ .make_qp = by_default, .make_cq = wide_cq });
	assert_true(stays(&p, SMALL));
	assert_true(stays(&p, LARGE));
	assert_false(stays(&p, LARGE + 1));
	vt_pair_close(&p);
}

vt_test(a_shared_receive_queue_makes_no_difference)
{
	struct vt_pair p;

	open_pair(&p, (struct vt_options){ .make_qp = by_default, .srq = true });
	assert_true(stays(&p, SMALL));
	assert_false(stays(&p, SMALL + 1));
	vt_pair_close(&p);
}

static void mark(struct vt_pair *p, size_t at)
{
	struct vt_wr w;

	vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, 1);
	w.wr.wr.rdma.remote_addr += at;
	w.wr.wr_id = 9;
	vt_post(&p->a, &w);
	vt_expect(p->a.cq, 9, IBV_WC_SUCCESS);
	for (int ms = 0; ms < VT_WAIT_MS && !*(volatile uint8_t *)&p->b.buf[at]; ms++)
		vt_sleep_ms(1);
	assert_int_equal(p->b.buf[at], p->a.buf[0]);
}

/* UC has no acknowledgement: what is written after the message says that it has come. */
vt_test(it_is_the_same_for_uc)
{
	struct vt_pair p;

	open_pair(&p, (struct vt_options){ .make_qp = by_default, .type = IBV_QPT_UC });
	p.a.buf[0] = 0x5a;
	vt_recv(&p.b, 2);
	send_and_wait(&p, SMALL);
	mark(&p, 1000);
	assert_true(vt_is_octet(p.b.buf, SMALL, 0));
	vt_expect(p.b.cq, 2, IBV_WC_SUCCESS);
	assert_memory_equal(p.b.buf, p.a.buf, SMALL);
	vt_pair_close(&p);
}

vt_test(data_is_scattered_over_the_pieces_of_the_request)
{
	struct vt_pair p;
	struct ibv_sge sge[6];
	struct ibv_recv_wr wr = { .wr_id = 2, .sg_list = sge }, *bad;

	open_pair(&p, (struct vt_options){ .make_qp = by_default, .sge = 6 });
	for (int pieces = 1; pieces <= 6; pieces++) {
		memset(p.b.buf, 0, 4096);
		for (int i = 0; i < pieces; i++)
			sge[i] = (struct ibv_sge){ (uintptr_t)p.b.buf + 100u * (unsigned)i, 5,
						   p.b.mr->lkey };
		wr.num_sge = pieces;
		assert_int_equal(ibv_post_recv(p.b.qp, &wr, &bad), 0);
		send_and_wait(&p, 5 * (uint32_t)pieces);
		/* More than four go the ordinary way. */
		assert_int_equal(vt_is_octet(p.b.buf, 5, 0), pieces <= 4);
		vt_expect(p.b.cq, 2, IBV_WC_SUCCESS);
		for (unsigned i = 0; i < (unsigned)pieces; i++) {
			assert_memory_equal(p.b.buf + 100 * i, p.a.buf + 5 * i, 5);
			assert_true(vt_is_octet(p.b.buf + 100 * i + 5, 95, 0));
		}
	}
	vt_pair_close(&p);
}

/* --- answers --- */

static void fetch(struct vt_pair *p, enum ibv_wr_opcode op, uint32_t bytes, unsigned flags)
{
	struct vt_wr w;

	vt_wr(&w, op, &p->a, &p->b, bytes);
	w.wr.send_flags = flags;
	vt_post(&p->a, &w);
}

static bool fetch_stays(struct vt_pair *p, enum ibv_wr_opcode op, uint32_t bytes)
{
	struct ibv_wc wc;
	bool early = false;

	memset(p->a.buf, 0, p->a.bytes);
	vt_fill(p->b.buf, p->b.bytes, FILL);
	fetch(p, op, bytes, IBV_SEND_SIGNALED);
	/* Whoever asked may be asked for nothing, or it would be polled: so this is time. */
	for (int ms = 0; ms < VT_QUIET_MS && !early; ms++) {
		early = !vt_is_octet(p->a.buf, bytes, 0);
		vt_sleep_ms(1);
	}
	wc = vt_expect(p->a.cq, 1, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, bytes);
	assert_false(vt_is_octet(p->a.buf, bytes, 0));
	assert_true(op != IBV_WR_RDMA_READ || vt_is_filled(p->a.buf, bytes, FILL));
	return !early;
}

static void expect_fetches(struct ibv_qp *(*make)(struct ibv_qp_init_attr *), bool all, bool stay)
{
	struct vt_pair p;

	open_pair(&p, (struct vt_options){ .make_qp = make, .sq_sig_all = all });
	assert_int_equal(fetch_stays(&p, IBV_WR_RDMA_READ, SMALL), stay);
	assert_int_equal(fetch_stays(&p, IBV_WR_RDMA_READ, 1), stay);
	assert_int_equal(fetch_stays(&p, IBV_WR_ATOMIC_FETCH_AND_ADD, 8), stay);
	assert_int_equal(fetch_stays(&p, IBV_WR_ATOMIC_CMP_AND_SWP, 8), stay);
	assert_false(fetch_stays(&p, IBV_WR_RDMA_READ, SMALL + 1));
	vt_pair_close(&p);
}

/*
 * create_dv: "Allow scatter to CQE for requester even if the qp was not configured to signal all
 * WRs."
 */
vt_test(answers_stay_if_all_is_signaled_or_it_was_allowed)
{
	expect_fetches(by_default, false, false);
	expect_fetches(by_default, true, true);
	expect_fetches(allowed, false, true);
	expect_fetches(disabled, true, false);
}

/* ibv_post_send(3), IBV_SEND_FENCE: what was read is there before what comes behind is sent. */
vt_test(a_fence_waits_for_memory)
{
	struct vt_pair p;
	struct vt_wr w;

	open_pair(&p, (struct vt_options){ .make_qp = by_default, .sq_sig_all = 1 });
	for (unsigned polled = 0; polled < 2; polled++) {
		memset(p.a.buf, 0, p.a.bytes);
		vt_fill(p.b.buf, p.b.bytes, FILL + polled);
		fetch(&p, IBV_WR_RDMA_READ, 16, 0);
		/* With the answer under way, and with the answer in the CQ. */
		if (polled)
			vt_sleep_ms(20);
		vt_wr(&w, IBV_WR_RDMA_WRITE, &p.a, &p.b, 16);
		w.wr.send_flags = IBV_SEND_FENCE;
		w.wr.wr.rdma.remote_addr += 1000;
		memset(p.b.buf + 1000, 0, 16);
		vt_done(&p.a, &w, IBV_WC_SUCCESS);
		vt_expect(p.a.cq, 1, IBV_WC_SUCCESS);
		assert_memory_equal(p.b.buf + 1000, p.b.buf, 16);
	}
	vt_pair_close(&p);
}

/* A large answer does not lie in a completion: it does not come before an earlier small one. */
vt_test(answers_reach_memory_in_their_order)
{
	struct vt_pair p;

	open_pair(&p, (struct vt_options){ .make_qp = by_default, .sq_sig_all = 1 });
	vt_fill(p.b.buf, p.b.bytes, FILL);
	fetch(&p, IBV_WR_RDMA_READ, 16, 0);
	vt_sleep_ms(20);
	vt_fill(p.b.buf, p.b.bytes, FILL + 1);
	fetch(&p, IBV_WR_RDMA_READ, 100, 0);
	vt_expect(p.a.cq, 1, IBV_WC_SUCCESS);
	vt_expect(p.a.cq, 1, IBV_WC_SUCCESS);
	assert_true(vt_is_filled(p.a.buf, 100, FILL + 1));
	vt_pair_close(&p);
}

vt_test(an_answer_without_a_completion_goes_to_memory)
{
	struct vt_pair p;

	open_pair(&p, (struct vt_options){ .make_qp = allowed });
	memset(p.a.buf, 0, p.a.bytes);
	vt_fill(p.b.buf, p.b.bytes, FILL);
	fetch(&p, IBV_WR_RDMA_READ, SMALL, 0);
	fetch(&p, IBV_WR_RDMA_WRITE, 0, IBV_SEND_SIGNALED);
	vt_expect(p.a.cq, 1, IBV_WC_SUCCESS);
	assert_true(vt_is_filled(p.a.buf, SMALL, FILL));
	vt_pair_close(&p);
}

/* --- DC --- */

enum { DC_KEY = 0x1234 };

struct dc {
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *target, *initiator;
	struct ibv_ah *ah;
	struct ibv_mr *mr;
	uint8_t buf[4096];
};

static struct ibv_qp *dc_make(struct dc *dc, struct mlx5dv_qp_init_attr *dv)
{
	bool target = dv->dc_init_attr.dc_type == MLX5DV_DCTYPE_DCT;
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = dc->cq,
		.recv_cq = dc->cq,
		.srq = target ? dc->srq : NULL,
		.cap = { .max_send_wr = target ? 0 : 8, .max_send_sge = target ? 0 : 1 },
		.qp_type = IBV_QPT_DRIVER,
		.comp_mask = IBV_QP_INIT_ATTR_PD | (target ? 0 : IBV_QP_INIT_ATTR_SEND_OPS_FLAGS),
		.pd = vt.pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_READ,
	};

	dv->comp_mask |= MLX5DV_QP_INIT_ATTR_MASK_DC;
	return vt_made(mlx5dv_create_qp(vt.ctx, &attr, dv));
}

/* A target is connected to nobody: its address vector need not name anybody. */
static void dc_climb(struct dc *dc)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_READ };
	int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	int rtr = IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_AV;

	assert_int_equal(ibv_modify_qp(dc->initiator, &attr, init), 0);
	assert_int_equal(ibv_modify_qp(dc->target, &attr, init | IBV_QP_ACCESS_FLAGS), 0);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
				     .path_mtu = IBV_MTU_1024,
				     .min_rnr_timer = 1,
				     .ah_attr = { .is_global = 1, .port_num = 1,
						  .grh.hop_limit = 64 } };
	attr.ah_attr.grh.sgid_index = (uint8_t)vt.gid_index;
	assert_int_equal(ibv_modify_qp(dc->target, &attr, rtr | IBV_QP_MIN_RNR_TIMER), 0);
	attr.ah_attr.grh.dgid = vt.gid;
	assert_int_equal(ibv_modify_qp(dc->initiator, &attr, rtr), 0);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7,
				     .rnr_retry = 7, .max_rd_atomic = 4 };
	assert_int_equal(ibv_modify_qp(dc->initiator, &attr,
				       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					       IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |
					       IBV_QP_SQ_PSN),
			 0);
}

static void dc_open(struct dc *dc, uint32_t flags)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct mlx5dv_qp_init_attr target = { .dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCT,
								.dct_access_key = DC_KEY } };
	struct mlx5dv_qp_init_attr initiator = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
		.create_flags = flags,
		.dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCI },
	};

	memset(dc, 0, sizeof(*dc));
	dc->cq = vt_cq(16, NULL);
	dc->srq = vt_made(ibv_create_srq(vt.pd, &srq));
	dc->mr = vt_mr(vt.pd, dc->buf, sizeof(dc->buf), VT_ALL_ACCESS);
	dc->ah = vt_ah();
	dc->target = dc_make(dc, &target);
	dc->initiator = dc_make(dc, &initiator);
	dc_climb(dc);
}

static void dc_close(struct dc *dc)
{
	assert_int_equal(ibv_destroy_qp(dc->initiator), 0);
	assert_int_equal(ibv_destroy_qp(dc->target), 0);
	assert_int_equal(ibv_destroy_ah(dc->ah), 0);
	assert_int_equal(ibv_dereg_mr(dc->mr), 0);
	assert_int_equal(ibv_destroy_srq(dc->srq), 0);
	assert_int_equal(ibv_destroy_cq(dc->cq), 0);
}

static bool dc_read_stays(struct dc *dc, uint32_t bytes)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(dc->initiator);
	uint8_t *to = dc->buf + 2048;
	bool early = false;

	vt_fill(dc->buf, 1024, FILL);
	memset(to, 0, 1024);
	ibv_wr_start(qp);
	qp->wr_id = 5;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_read(qp, dc->mr->rkey, (uintptr_t)dc->buf);
	mlx5dv_wr_set_dc_addr(mlx5dv_qp_ex_from_ibv_qp_ex(qp), dc->ah, dc->target->qp_num, DC_KEY);
	ibv_wr_set_sge(qp, dc->mr->lkey, (uintptr_t)to, bytes);
	assert_int_equal(ibv_wr_complete(qp), 0);
	for (int ms = 0; ms < VT_QUIET_MS && !early; ms++) {
		early = !vt_is_octet(to, bytes, 0);
		vt_sleep_ms(1);
	}
	vt_expect(dc->cq, 5, IBV_WC_SUCCESS);
	assert_memory_equal(to, dc->buf, bytes);
	return !early;
}

vt_test(initiators_of_dc_have_it_for_what_they_read)
{
	static struct dc dc;

	dc_open(&dc, MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE);
	assert_true(dc_read_stays(&dc, SMALL));
	assert_true(dc_read_stays(&dc, 1));
	assert_false(dc_read_stays(&dc, SMALL + 1));
	dc_close(&dc);
	dc_open(&dc, MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE);
	assert_false(dc_read_stays(&dc, SMALL));
	dc_close(&dc);
}

/* --- between its coming and the poll --- */

vt_test(the_other_way_of_polling_delivers_as_well)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_poll_cq_attr none = { 0 };
	struct ibv_cq_ex *cq;
	struct vt_pair p;

	open_pair(&p, (struct vt_options){ .make_qp = by_default, .cq_attr = &attr });
	cq = (struct ibv_cq_ex *)p.b.cq;
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(vt_recv_at(&p.b, i, 100 * i, 100), 0);
	for (unsigned i = 0; i < 3; i++)
		send_and_wait(&p, SMALL);
	assert_true(vt_is_octet(p.b.buf, 300, 0));
	assert_int_equal(ibv_start_poll(cq, &none), 0);
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(cq->wr_id, i);
		assert_int_equal(cq->status, IBV_WC_SUCCESS);
		assert_int_equal(ibv_wc_read_byte_len(cq), SMALL);
		assert_true(vt_is_filled(p.b.buf + 100 * i, SMALL, FILL));
		assert_true(vt_is_octet(p.b.buf + 100 * (i + 1), 100, 0));
		assert_int_equal(ibv_next_poll(cq), i < 2 ? 0 : ENOENT);
	}
	ibv_end_poll(cq);
	vt_pair_close(&p);
}

vt_test(a_resized_cq_keeps_it)
{
	struct vt_pair p;

	open_pair(&p, (struct vt_options){ .make_qp = by_default, .cqe = 4 });
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(vt_recv_at(&p.b, i, 100 * i, 100), 0);
	for (unsigned i = 0; i < 3; i++)
		send_and_wait(&p, SMALL);
	assert_int_equal(ibv_resize_cq(p.b.cq, 1000), 0);
	vt_expect(p.b.cq, 0, IBV_WC_SUCCESS);
	assert_int_equal(ibv_resize_cq(p.b.cq, 2), 0);
	for (uint64_t i = 0; i < 3; i++) {
		if (i)
			vt_expect(p.b.cq, i, IBV_WC_SUCCESS);
		assert_true(vt_is_filled(p.b.buf + 100 * i, SMALL, FILL));
	}
	vt_pair_close(&p);
}

static void expect_failed(struct ibv_qp *qp)
{
	for (int ms = 0; ms < VT_WAIT_MS && vt_state(qp) != IBV_QPS_ERR; ms++)
		vt_sleep_ms(1);
	assert_int_equal(vt_state(qp), IBV_QPS_ERR);
}

/* The keys are those of the moment at which memory is touched. */
vt_test(a_region_that_is_gone_fails_the_request)
{
	struct vt_pair p;

	open_pair(&p, (struct vt_options){ .make_qp = by_default });
	vt_recv(&p.b, 2);
	vt_recv(&p.b, 3);
	send_and_wait(&p, SMALL);
	assert_int_equal(ibv_dereg_mr(p.b.mr), 0);
	p.b.mr = NULL;
	vt_expect(p.b.cq, 2, IBV_WC_LOC_PROT_ERR);
	assert_true(vt_is_octet(p.b.buf, p.b.bytes, 0));
	vt_expect(p.b.cq, 3, IBV_WC_WR_FLUSH_ERR);
	expect_failed(p.b.qp);
	vt_pair_close(&p);
}

/* An error of the life before is none of the new one. */
vt_test(a_reset_forgets_that_it_was_to_fail)
{
	struct vt_options opt = { .make_qp = by_default };
	struct vt_pair p;

	open_pair(&p, opt);
	for (unsigned i = 0; i < 20; i++) {
		vt_recv(&p.b, 2);
		send_and_wait(&p, SMALL);
		assert_int_equal(ibv_dereg_mr(p.b.mr), 0);
		vt_expect(p.b.cq, 2, IBV_WC_LOC_PROT_ERR);
		vt_modify(p.b.qp, IBV_QPS_RESET);
		vt_climb(p.b.qp, &p.opt, IBV_QPS_RTS, p.a.qp->qp_num);
		vt_sleep_ms(2);
		assert_int_equal(vt_state(p.b.qp), IBV_QPS_RTS);
		vt_modify(p.a.qp, IBV_QPS_RESET);
		vt_climb(p.a.qp, &p.opt, IBV_QPS_RTS, p.b.qp->qp_num);
		p.b.mr = vt_made(ibv_reg_mr(vt.pd, p.b.buf, p.b.bytes, VT_ALL_ACCESS));
	}
	vt_pair_close(&p);
}

vt_test(memory_that_is_gone_fails_the_request)
{
	struct vt_pair p;

	vt_faults_to_library();
	open_pair(&p, (struct vt_options){ .make_qp = by_default, .memory = VT_PAGES });
	vt_recv(&p.b, 2);
	vt_recv(&p.b, 3);
	send_and_wait(&p, SMALL);
	vt_hole(p.b.buf, p.b.bytes);
	vt_expect(p.b.cq, 2, IBV_WC_LOC_PROT_ERR);
	vt_expect(p.b.cq, 3, IBV_WC_WR_FLUSH_ERR);
	expect_failed(p.b.qp);
	vt_hole_mend(p.b.buf, p.b.bytes);
	assert_true(vt_is_octet(p.b.buf, p.b.bytes, 0));
	vt_pair_close(&p);
}

/* What has come has come: only requests that wait are flushed. */
vt_test(what_came_before_an_error_is_delivered)
{
	struct vt_pair p;

	open_pair(&p, (struct vt_options){ .make_qp = by_default });
	vt_recv(&p.b, 2);
	vt_recv(&p.b, 3);
	send_and_wait(&p, SMALL);
	assert_int_equal(vt_modify(p.b.qp, IBV_QPS_ERR), 0);
	assert_true(vt_is_octet(p.b.buf, SMALL, 0));
	vt_expect(p.b.cq, 2, IBV_WC_SUCCESS);
	assert_true(vt_is_filled(p.b.buf, SMALL, FILL));
	vt_expect(p.b.cq, 3, IBV_WC_WR_FLUSH_ERR);
	vt_pair_close(&p);
}

/* Its completions leave the CQ, when it is destroyed or reset, and what they bring with them. */
vt_test(it_vanishes_with_the_completion)
{
	struct vt_pair p, q;

	open_pair(&p, (struct vt_options){ .make_qp = by_default });
	vt_recv(&p.b, 2);
	send_and_wait(&p, SMALL);
	assert_int_equal(vt_modify(p.b.qp, IBV_QPS_RESET), 0);
	vt_expect_none(p.b.cq);
	vt_pair_close(&p);

	open_pair(&q, (struct vt_options){ .make_qp = by_default });
	vt_recv(&q.b, 2);
	send_and_wait(&q, SMALL);
	assert_int_equal(ibv_destroy_qp(q.b.qp), 0);
	q.b.qp = NULL;
	vt_expect_none(q.b.cq);
	assert_true(vt_is_octet(q.b.buf, q.b.bytes, 0));
	vt_pair_close(&q);
}

/* Of several QPs on one CQ, those that stay keep what is theirs. */
vt_test(another_qps_completions_stay_whole)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };
	struct vt_options opt = vt_options(&(struct vt_options){ .make_qp = by_default });
	struct ibv_qp *from, *to;
	struct ibv_recv_wr recv = { .wr_id = 1, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;
	struct ibv_sge sge;
	struct vt_pair p;

	open_pair(&p, opt);
	init.send_cq = init.recv_cq = p.b.cq;
	from = by_default(&init);
	to = by_default(&init);
	vt_climb(from, &opt, IBV_QPS_RTS, to->qp_num);
	vt_climb(to, &opt, IBV_QPS_RTS, from->qp_num);
	sge = (struct ibv_sge){ (uintptr_t)p.b.buf + 4096, 8, p.b.mr->lkey };
	recv.sg_list = send.sg_list = &sge;
	assert_int_equal(ibv_post_recv(to, &recv, &bad_recv), 0);
	assert_int_equal(ibv_post_send(from, &send, &bad), 0);
	vt_recv(&p.b, 2);
	send_and_wait(&p, SMALL);
	assert_int_equal(ibv_destroy_qp(to), 0);
	assert_int_equal(ibv_destroy_qp(from), 0);
	vt_expect(p.b.cq, 2, IBV_WC_SUCCESS);
	assert_true(vt_is_filled(p.b.buf, SMALL, FILL));
	vt_pair_close(&p);
}

/* A wrong key is found out when the message comes, as ever: the sender hears of it. */
vt_test(a_wrong_key_is_the_senders_news)
{
	struct vt_pair p;
	struct ibv_sge sge;
	struct ibv_recv_wr wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 }, *bad;

	open_pair(&p, (struct vt_options){ .make_qp = by_default });
	sge = (struct ibv_sge){ (uintptr_t)p.b.buf, 100, p.b.mr->lkey ^ 0x100 };
	assert_int_equal(ibv_post_recv(p.b.qp, &wr, &bad), 0);
	send_bytes(&p, SMALL);
	vt_expect(p.a.cq, 1, IBV_WC_REM_OP_ERR);
	vt_expect(p.b.cq, 2, IBV_WC_LOC_PROT_ERR);
	vt_pair_close(&p);
}

/* --- who decides --- */

static struct ibv_qp *by_ibv_create_qp_ex(struct ibv_qp_init_attr *init)
{
	struct ibv_qp_init_attr_ex attr;

	memset(&attr, 0, sizeof(attr));
	memcpy(&attr, init, sizeof(*init));
	attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
	attr.pd = vt.pd;
	return ibv_create_qp_ex(vt.ctx, &attr);
}

/* What other calls than mlx5's own make is plain, unless the device passes for mlx5's. */
vt_test(qps_of_other_calls_are_what_the_device_says)
{
	struct ibv_qp *(*const make[])(struct ibv_qp_init_attr *) = { NULL, by_ibv_create_qp_ex };
	const char *persona = getenv("VERBATIM_PERSONA");
	bool mlx5 = persona && *persona;
	struct vt_pair p;

	for (int i = 0; i < 2; i++) {
		open_pair(&p, (struct vt_options){ .make_qp = make[i], .sq_sig_all = 1 });
		assert_int_equal(stays(&p, 1), mlx5);
		assert_int_equal(stays(&p, SMALL), mlx5);
		assert_int_equal(fetch_stays(&p, IBV_WR_RDMA_READ, SMALL), mlx5);
		vt_pair_close(&p);
		setenv("MLX5_SCATTER_TO_CQE", "0", 1);
		open_pair(&p, (struct vt_options){ .make_qp = make[i] });
		assert_false(stays(&p, 1));
		vt_pair_close(&p);
		unsetenv("MLX5_SCATTER_TO_CQE");
	}
}

vt_cq_test(both_flags_at_once_are_refused, 4)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq };

	vt_refused(EINVAL, try_dv(&init, MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE |
						 MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE));
}

/* MLX5_SCATTER_TO_CQE=0 is for QPs that do not say themselves; each asks when it is made. */
vt_test(the_environment_decides_where_flags_do_not)
{
	static const struct {
		const char *value;
		struct ibv_qp *(*make)(struct ibv_qp_init_attr *init);
		bool stays;
	} rows[] = {
		{ "0", by_default, false }, { "1", by_default, true }, { "0", allowed, true },
		{ "1", disabled, false },   { "0", disabled, false },
	};
	struct vt_pair p;

	for (unsigned i = 0; i < VT_COUNT(rows); i++) {
		setenv("MLX5_SCATTER_TO_CQE", rows[i].value, 1);
		open_pair(&p, (struct vt_options){ .make_qp = rows[i].make });
		assert_int_equal(stays(&p, 8), rows[i].stays);
		vt_pair_close(&p);
	}
	unsetenv("MLX5_SCATTER_TO_CQE");
}

static struct ibv_cq *cq_of_environment(int cqe)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = (uint32_t)cqe };
	struct mlx5dv_cq_init_attr dv = { 0 };
	struct ibv_cq_ex *cq = mlx5dv_create_cq(vt.ctx, &attr, &dv);

	return cq ? ibv_cq_ex_to_cq(cq) : NULL;
}

vt_test(the_environment_says_how_large_a_completion_is)
{
	struct vt_pair p;

	setenv("MLX5_CQE_SIZE", "128", 1);
	open_pair(&p, (struct vt_options){ .make_qp = by_default, .make_cq = cq_of_environment });
	assert_true(stays(&p, LARGE));
	vt_pair_close(&p);
	setenv("MLX5_CQE_SIZE", "96", 1);
	vt_refused(EINVAL, cq_of_environment(4));
	unsetenv("MLX5_CQE_SIZE");
	open_pair(&p, (struct vt_options){ .make_qp = by_default, .make_cq = cq_of_environment });
	assert_false(stays(&p, LARGE));
	vt_pair_close(&p);
}
