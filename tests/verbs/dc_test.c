/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dynamically connected transport, as mlx5dv_create_qp(3), mlx5dv_wr_post(3) and
 * mlx5dv_dci_stream_id_reset(3) have it: one initiator to many targets in turn, many initiators to
 * one target, within one process.
 */
#include "lib.h"

#include <infiniband/mlx5dv.h>

enum { BYTES = 1 << 20, RECVS = 16, KEY = 0x1234, TARGETS = 3 };

#define OPS                                                                                       \
	(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_SEND_WITH_INV |      \
	 IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |                         \
	 IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |                           \
	 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)

struct target {
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	uint8_t *buf;
	struct ibv_mr *mr;
};

struct initiator {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint8_t *buf;
	struct ibv_mr *mr;
	struct ibv_ah *ah;
	uint8_t timeout, rnr_retry, max_rd_atomic;
};

/* --- objects --- */

enum {
	INIT = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT,
	INIT_TARGET = INIT | IBV_QP_ACCESS_FLAGS,
	RTR = IBV_QP_STATE | IBV_QP_PATH_MTU,
	RTR_TARGET = RTR | IBV_QP_AV | IBV_QP_MIN_RNR_TIMER,
	RTS = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
	      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
};

static struct ibv_qp_attr attr_for(enum ibv_qp_state state)
{
	return (struct ibv_qp_attr){
		.qp_state = state,
		.port_num = 1,
		.qp_access_flags = VT_ALL_ACCESS,
		.path_mtu = IBV_MTU_1024,
		.min_rnr_timer = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 4,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .dgid = vt.gid, .sgid_index = (uint8_t)vt.gid_index,
				      .hop_limit = 64 } },
	};
}

static int go(struct ibv_qp *qp, enum ibv_qp_state state, int mask)
{
	struct ibv_qp_attr attr = attr_for(state);

	return ibv_modify_qp(qp, &attr, mask);
}

static struct ibv_qp *create(struct ibv_cq *cq, struct ibv_srq *srq, uint64_t ops,
			     struct mlx5dv_dc_init_attr dc, bool streams)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.srq = srq,
		.cap = { .max_send_wr = ops ? 32 : 0, .max_send_sge = ops ? 1 : 0 },
		.qp_type = IBV_QPT_DRIVER,
		.comp_mask = IBV_QP_INIT_ATTR_PD | (ops ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.pd = vt.pd,
		.send_ops_flags = ops,
		.sq_sig_all = 1,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC |
			     (streams ? MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS : 0),
		.dc_init_attr = dc,
	};

	return mlx5dv_create_qp(vt.ctx, &attr, &dv);
}

static void target_open_in(struct target *t, enum ibv_qp_state state)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = RECVS, .max_sge = 1 } };

	t->cq = vt_cq(64, NULL);
	t->srq = vt_made(ibv_create_srq(vt.pd, &srq));
	t->buf = calloc(1, BYTES);
	t->mr = vt_mr(vt.pd, t->buf, BYTES, VT_ALL_ACCESS);
	t->qp = vt_made(create(t->cq, t->srq, 0,
			       (struct mlx5dv_dc_init_attr){.dc_type = MLX5DV_DCTYPE_DCT,
							    .dct_access_key = KEY},
			       false));
	assert_int_equal(go(t->qp, IBV_QPS_INIT, INIT_TARGET), 0);
	if (state == IBV_QPS_RTR)
		assert_int_equal(go(t->qp, IBV_QPS_RTR, RTR_TARGET), 0);
}

static void target_open(struct target *t)
{
	target_open_in(t, IBV_QPS_RTR);
}

static void target_close(struct target *t)
{
	if (t->qp)
		assert_int_equal(ibv_destroy_qp(t->qp), 0);
	assert_int_equal(ibv_destroy_srq(t->srq), 0);
	assert_int_equal(ibv_dereg_mr(t->mr), 0);
	assert_int_equal(ibv_destroy_cq(t->cq), 0);
	free(t->buf);
}

#define target_test(f)                                                                            \
	vt_with(vt_test, f, struct target, t, target_open(&t), target_close(&t))

static void climb(struct initiator *i)
{
	struct ibv_qp_attr attr = attr_for(IBV_QPS_RTS);

	assert_int_equal(go(i->qp, IBV_QPS_INIT, INIT), 0);
	assert_int_equal(go(i->qp, IBV_QPS_RTR, RTR), 0);
	attr.timeout = i->timeout;
	attr.rnr_retry = i->rnr_retry;
	attr.max_rd_atomic = i->max_rd_atomic;
	assert_int_equal(ibv_modify_qp(i->qp, &attr, RTS), 0);
}

/* errored_log: 0: without streams */
static void initiator_open(struct initiator *i, uint8_t errored_log)
{
	struct mlx5dv_dc_init_attr dc = { .dc_type = MLX5DV_DCTYPE_DCI };

	dc.dci_streams.log_num_concurent = errored_log ? 3 : 0;
	dc.dci_streams.log_num_errored = errored_log;
	i->timeout = 14;
	i->rnr_retry = 7;
	i->max_rd_atomic = 4;
	i->cq = vt_cq(64, NULL);
	i->buf = calloc(1, BYTES);
	i->mr = vt_mr(vt.pd, i->buf, BYTES, VT_ALL_ACCESS);
	i->ah = vt_ah();
	i->qp = vt_made(create(i->cq, NULL, OPS, dc, errored_log));
	climb(i);
}

static void initiator_close(struct initiator *i)
{
	assert_int_equal(ibv_destroy_qp(i->qp), 0);
	assert_int_equal(ibv_destroy_ah(i->ah), 0);
	assert_int_equal(ibv_dereg_mr(i->mr), 0);
	assert_int_equal(ibv_destroy_cq(i->cq), 0);
	free(i->buf);
}

static void recv_post(struct target *t, uint64_t wr_id, size_t at, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)t->buf + at, bytes, t->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_srq_recv(t->srq, &wr, &bad), 0);
}

/* --- work requests --- */

struct request {
	enum ibv_wr_opcode opcode;
	uint32_t bytes;
	size_t from, to; /* in either buffer */
	uint64_t operand, compare;
	uint32_t imm;
	uint64_t key;
	uint32_t rkey, lkey; /* 0: the right ones */
	uint16_t stream;
	uint64_t wr_id;
};

static void begin(struct ibv_qp_ex *qp, const struct request *r, const struct target *t)
{
	uint64_t at = (uintptr_t)t->buf + r->to;
	uint32_t rkey = r->rkey ? r->rkey : t->mr->rkey;

	switch (r->opcode) {
	case IBV_WR_SEND:
		ibv_wr_send(qp);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(qp, r->imm);
		break;
	case IBV_WR_SEND_WITH_INV:
		ibv_wr_send_inv(qp, r->imm);
		break;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(qp, rkey, at);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(qp, rkey, at, r->imm);
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(qp, rkey, at);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(qp, rkey, at, r->compare, r->operand);
		break;
	default:
		ibv_wr_atomic_fetch_add(qp, rkey, at, r->operand);
		break;
	}
}

static void post(struct initiator *i, const struct target *t, uint32_t dctn, struct request r)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(i->qp);
	struct mlx5dv_qp_ex *mqp = mlx5dv_qp_ex_from_ibv_qp_ex(qp);
	uint64_t key = r.key ? r.key : KEY;

	ibv_wr_start(qp);
	qp->wr_id = r.wr_id;
	qp->wr_flags = 0;
	begin(qp, &r, t);
	if (r.stream)
		mlx5dv_wr_set_dc_addr_stream(mqp, i->ah, dctn, key, r.stream);
	else
		mlx5dv_wr_set_dc_addr(mqp, i->ah, dctn, key);
	ibv_wr_set_sge(qp, r.lkey ? r.lkey : i->mr->lkey, (uintptr_t)i->buf + r.from, r.bytes);
	assert_int_equal(ibv_wr_complete(qp), 0);
}

static void post_to(struct initiator *i, const struct target *t, struct request r)
{
	post(i, t, t->qp->qp_num, r);
}

/* --- what goes --- */

/* mlx5dv_create_qp(3), mlx5dv_wr_set_dc_addr(3): everything an RC does, to whom each WR says. */
target_test(every_operation_arrives)
{
	struct initiator i;
	struct ibv_wc wc;
	uint64_t *word;

	initiator_open(&i, 0);
	vt_fill(i.buf, BYTES / 2, 7);
	recv_post(t, 1, 0, BYTES / 4);
	post_to(&i, t, (struct request){ .opcode = IBV_WR_SEND, .bytes = 100000, .wr_id = 10 });
	vt_expect(i.cq, 10, IBV_WC_SUCCESS);
	wc = vt_expect(t->cq, 1, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, 100000);
	assert_int_equal(wc.qp_num, t->qp->qp_num);
	assert_int_equal(wc.src_qp, i.qp->qp_num);
	assert_true(vt_is_filled(t->buf, 100000, 7));
	recv_post(t, 2, 0, 100);
	post_to(&i, t, (struct request){ .opcode = IBV_WR_SEND_WITH_IMM, .bytes = 3,
					  .imm = htobe32(77), .wr_id = 11 });
	vt_expect(i.cq, 11, IBV_WC_SUCCESS);
	wc = vt_expect(t->cq, 2, IBV_WC_SUCCESS);
	assert_int_equal(wc.imm_data, htobe32(77));
	post_to(&i, t, (struct request){ .opcode = IBV_WR_RDMA_WRITE, .bytes = 300000,
					  .to = BYTES / 2, .wr_id = 12 });
	vt_expect(i.cq, 12, IBV_WC_SUCCESS);
	assert_true(vt_is_filled(t->buf + BYTES / 2, 300000, 7));
	recv_post(t, 3, 0, 0);
	post_to(&i, t, (struct request){ .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .bytes = 5000,
					  .to = 1000, .imm = 5, .wr_id = 13 });
	vt_expect(i.cq, 13, IBV_WC_SUCCESS);
	wc = vt_expect(t->cq, 3, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_true(vt_is_filled(t->buf + 1000, 5000, 7));
	vt_fill(t->buf, BYTES / 4, 9);
	post_to(&i, t, (struct request){ .opcode = IBV_WR_RDMA_READ, .bytes = 200001,
					  .from = BYTES / 2, .wr_id = 14 });
	vt_expect(i.cq, 14, IBV_WC_SUCCESS);
	assert_true(vt_is_filled(i.buf + BYTES / 2, 200001, 9));
	word = (uint64_t *)(t->buf + 4096);
	*word = 40;
	post_to(&i, t, (struct request){ .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .bytes = 8,
					  .to = 4096, .operand = 2, .wr_id = 15 });
	vt_expect(i.cq, 15, IBV_WC_SUCCESS);
	assert_int_equal(*(uint64_t *)i.buf, 40);
	post_to(&i, t, (struct request){ .opcode = IBV_WR_ATOMIC_CMP_AND_SWP, .bytes = 8,
					  .to = 4096, .compare = 42, .operand = 5, .wr_id = 16 });
	vt_expect(i.cq, 16, IBV_WC_SUCCESS);
	assert_int_equal(*(uint64_t *)i.buf, 42);
	assert_int_equal(*word, 5);
	initiator_close(&i);
}

/* From each initiator one message, in whatever order: requests of an SRQ serve many connections. */
static void expect_from_all(struct target *t, const struct initiator i[TARGETS])
{
	unsigned from = 0, into = 0;
	struct ibv_wc wc;

	for (unsigned k = 0; k < TARGETS; k++) {
		if (!vt_poll_ms(t->cq, &wc, VT_WAIT_MS))
			fail_msg("message %u does not come", k);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_in_range(wc.imm_data, 0, TARGETS - 1);
		assert_int_equal(wc.src_qp, i[wc.imm_data].qp->qp_num);
		assert_true(vt_is_filled(t->buf + wc.wr_id * 1000, 1000, wc.imm_data));
		from |= 1u << wc.imm_data;
		into |= 1u << wc.wr_id / TARGETS;
	}
	assert_int_equal(from, (1u << TARGETS) - 1);
	assert_int_equal(into, (1u << TARGETS) - 1);
}

/* One initiator to many targets in turn, and many initiators to one target. */
/* create_dv: "MLX5DV_DCTYPE_DCT QP type: Target DC." */
/* create_dv: "MLX5DV_DCTYPE_DCI QP type: Initiator DC." */
vt_test(whoever_is_named_gets_it)
{
	struct target t[TARGETS];
	struct initiator i[TARGETS];

	for (unsigned k = 0; k < TARGETS; k++) {
		target_open(&t[k]);
		initiator_open(&i[k], 0);
		vt_fill(i[k].buf, 1000, k);
	}
	for (unsigned round = 0; round < 5; round++) {
		for (unsigned k = 0; k < TARGETS * TARGETS; k++) {
			recv_post(&t[k % TARGETS], k, k * 1000, 1000);
			post_to(&i[k / TARGETS], &t[k % TARGETS],
				(struct request){ .opcode = IBV_WR_SEND_WITH_IMM, .bytes = 1000,
						  .imm = k / TARGETS, .wr_id = k });
		}
		for (unsigned k = 0; k < TARGETS * TARGETS; k++)
			vt_expect(i[k / TARGETS].cq, k, IBV_WC_SUCCESS);
		for (unsigned k = 0; k < TARGETS; k++)
			expect_from_all(&t[k], i);
	}
	for (unsigned k = 0; k < TARGETS; k++) {
		initiator_close(&i[k]);
		target_close(&t[k]);
	}
}

static void expect_it_works(struct initiator *i, struct target *t, uint16_t stream)
{
	recv_post(t, 99, 0, 8);
	post_to(i, t, (struct request){ .opcode = IBV_WR_SEND, .bytes = 8, .wr_id = 98,
					.stream = stream });
	vt_expect(i->cq, 98, IBV_WC_SUCCESS);
	vt_expect(t->cq, 99, IBV_WC_SUCCESS);
}

/* perftest names nobody, or what malloc() left there: a target is connected to nobody anyway. */
vt_test(it_does_not_matter_whom_a_target_names)
{
	static const uint8_t gids[][16] = { { 0 }, { 0xff, 0xff, 4 }, { 0xfd, 0x79 },
					    { [10] = 0xff, [11] = 0xff, [12] = 10 } };
	struct ibv_qp_attr attr = attr_for(IBV_QPS_RTR);
	struct initiator i;
	struct target t;

	initiator_open(&i, 0);
	for (size_t k = 0; k < VT_COUNT(gids); k++) {
		target_open_in(&t, IBV_QPS_INIT);
		memcpy(attr.ah_attr.grh.dgid.raw, gids[k], sizeof(gids[k]));
		assert_int_equal(ibv_modify_qp(t.qp, &attr, RTR_TARGET), 0);
		expect_it_works(&i, &t, 0);
		target_close(&t);
	}
	initiator_close(&i);
}

/* pyverbs's tests of rdma-core 56 say 0 READs and atomics, and begin one. */
target_test(of_no_reads_and_atomics_one_is_allowed)
{
	struct initiator i;

	initiator_open(&i, 0);
	assert_int_equal(go(i.qp, IBV_QPS_RESET, IBV_QP_STATE), 0);
	i.max_rd_atomic = 0;
	climb(&i);
	for (uint64_t k = 0; k < 3; k++)
		post_to(&i, t, (struct request){ .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
						  .bytes = 8, .operand = 2, .wr_id = k });
	for (uint64_t k = 0; k < 3; k++)
		vt_expect(i.cq, k, IBV_WC_SUCCESS);
	assert_int_equal(*(uint64_t *)t->buf, 6);
	initiator_close(&i);
}

/* --- what does not --- */

static void recover(struct initiator *i)
{
	assert_int_equal(vt_state(i->qp), IBV_QPS_ERR);
	assert_int_equal(go(i->qp, IBV_QPS_RESET, IBV_QP_STATE), 0);
	climb(i);
}

/* docs/dc.md: REM_ACCESS_ERR for a wrong key of either kind; and the initiator recovers. */
/* create_dv: "dct_access_key: used to create a DCT QP." */
target_test(a_wrong_key_is_refused)
{
	struct initiator i;

	initiator_open(&i, 0);
	recv_post(t, 1, 0, 100);
	post_to(&i, t, (struct request){ .opcode = IBV_WR_SEND, .bytes = 8, .key = KEY + 1,
					  .wr_id = 1 });
	post_to(&i, t, (struct request){ .opcode = IBV_WR_SEND, .bytes = 8, .wr_id = 2 });
	vt_expect(i.cq, 1, IBV_WC_REM_ACCESS_ERR);
	vt_expect(i.cq, 2, IBV_WC_WR_FLUSH_ERR);
	vt_expect_none(t->cq);
	recover(&i);
	post_to(&i, t, (struct request){ .opcode = IBV_WR_SEND, .bytes = 8, .wr_id = 3 });
	vt_expect(i.cq, 3, IBV_WC_SUCCESS);
	vt_expect(t->cq, 1, IBV_WC_SUCCESS);
	initiator_close(&i);
}

target_test(a_wrong_rkey_hurts_the_initiator_alone)
{
	struct initiator i, other;

	initiator_open(&i, 0);
	initiator_open(&other, 0);
	post_to(&i, t, (struct request){ .opcode = IBV_WR_RDMA_WRITE, .bytes = 8,
					  .rkey = t->mr->rkey + 1, .wr_id = 1 });
	vt_expect(i.cq, 1, IBV_WC_REM_ACCESS_ERR);
	/* What is no window of the target's cannot be invalidated. */
	recover(&i);
	recv_post(t, 5, 0, 8);
	post_to(&i, t, (struct request){ .opcode = IBV_WR_SEND_WITH_INV, .bytes = 8,
					  .imm = t->mr->rkey, .wr_id = 2 });
	vt_expect(t->cq, 5, IBV_WC_LOC_ACCESS_ERR);
	vt_expect(i.cq, 2, IBV_WC_RETRY_EXC_ERR); /* IBA 9.9.6.3: no NAK */
	assert_int_equal(vt_state(t->qp), IBV_QPS_RTR);
	expect_it_works(&other, t, 0);
	recover(&i);
	expect_it_works(&i, t, 0);
	vt_no_event();
	initiator_close(&i);
	initiator_close(&other);
}

vt_test(a_target_that_is_gone_is_told)
{
	struct initiator i;
	struct target t, gone;
	uint32_t dctn;

	target_open(&t);
	target_open(&gone);
	initiator_open(&i, 0);
	dctn = gone.qp->qp_num;
	expect_it_works(&i, &gone, 0);
	assert_int_equal(ibv_destroy_qp(gone.qp), 0);
	gone.qp = NULL;
	post(&i, &gone, dctn, (struct request){ .opcode = IBV_WR_SEND, .bytes = 8, .wr_id = 1 });
	vt_expect(i.cq, 1, IBV_WC_RETRY_EXC_ERR);
	recover(&i);
	expect_it_works(&i, &t, 0);
	initiator_close(&i);
	target_close(&gone);
	target_close(&t);
}

target_test(without_a_receive_it_waits_or_fails)
{
	struct initiator i;

	initiator_open(&i, 0);
	post_to(&i, t, (struct request){ .opcode = IBV_WR_SEND, .bytes = 8, .wr_id = 1 });
	vt_expect_none(i.cq);
	recv_post(t, 1, 0, 8);
	vt_expect(i.cq, 1, IBV_WC_SUCCESS);
	vt_expect(t->cq, 1, IBV_WC_SUCCESS);
	i.rnr_retry = 1;
	assert_int_equal(go(i.qp, IBV_QPS_RESET, IBV_QP_STATE), 0);
	climb(&i);
	post_to(&i, t, (struct request){ .opcode = IBV_WR_SEND, .bytes = 8, .wr_id = 2 });
	vt_expect(i.cq, 2, IBV_WC_RNR_RETRY_EXC_ERR);
	initiator_close(&i);
}

/* mlx5dv_wr_post(3): a setter has to say where it goes. */
vt_test(who_says_no_address_is_refused)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;
	struct ibv_pd *pd = ibv_alloc_pd(vt.ctx);
	struct ibv_ah_attr av = attr_for(IBV_QPS_RTS).ah_attr;
	struct ibv_ah *ah = ibv_create_ah(pd, &av), *own;
	struct ibv_qp_ex *qp;
	struct initiator i;
	struct target t;

	assert_non_null(ah);
	target_open(&t);
	initiator_open(&i, 0);
	qp = ibv_qp_to_qp_ex(i.qp);
	sge = (struct ibv_sge){ (uintptr_t)i.buf, 8, i.mr->lkey };
	assert_int_equal(ibv_post_send(i.qp, &wr, &bad), EINVAL);
	ibv_wr_start(qp);
	ibv_wr_send(qp);
	ibv_wr_set_sge(qp, i.mr->lkey, (uintptr_t)i.buf, 8);
	assert_int_equal(ibv_wr_complete(qp), EINVAL);
	/* An address handle of another PD. */
	own = i.ah;
	ibv_wr_start(qp);
	ibv_wr_send(qp);
	mlx5dv_wr_set_dc_addr(mlx5dv_qp_ex_from_ibv_qp_ex(qp), ah, t.qp->qp_num, KEY);
	ibv_wr_set_sge(qp, i.mr->lkey, (uintptr_t)i.buf, 8);
	assert_int_equal(ibv_wr_complete(qp), EINVAL);
	assert_ptr_equal(own, i.ah);
	/* A target sends nothing. */
	assert_int_equal(ibv_post_send(t.qp, &wr, &bad), EINVAL);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	expect_it_works(&i, &t, 0);
	initiator_close(&i);
	target_close(&t);
}

/* --- streams --- */

/*
 * mlx5dv_dci_stream_id_reset(3): "Errors which are stream related will cause only that stream_id's
 * work request to be flushed as they are handled in order in the send queue."
 */
target_test(a_stream_s_error_is_its_own)
{
	struct initiator i;

	initiator_open(&i, 2);
	for (unsigned k = 0; k < 3; k++)
		recv_post(t, k, 0, 100);
	for (uint16_t k = 0; k < 6; k++)
		post_to(&i, t, (struct request){ .opcode = IBV_WR_SEND, .bytes = 8, .wr_id = k,
						  .stream = (uint16_t)(1 + k % 2),
						  .lkey = k == 0 ? i.mr->lkey + 1 : 0 });
	for (unsigned k = 0; k < 6; k++)
		vt_expect(i.cq, k, k == 0 ? IBV_WC_LOC_PROT_ERR
				   : k % 2 ? IBV_WC_SUCCESS
					   : IBV_WC_WR_FLUSH_ERR);
	for (unsigned k = 0; k < 3; k++)
		vt_expect(t->cq, k, IBV_WC_SUCCESS);
	assert_int_equal(vt_state(i.qp), IBV_QPS_RTS);
	/* "Returns 0 on success, or the value of errno on failure" */
	assert_int_equal(mlx5dv_dci_stream_id_reset(i.qp, 2), EINVAL);
	assert_int_equal(mlx5dv_dci_stream_id_reset(i.qp, 1), 0);
	assert_int_equal(mlx5dv_dci_stream_id_reset(i.qp, 1), EINVAL);
	assert_int_equal(mlx5dv_dci_stream_id_reset(t->qp, 1), EINVAL);
	expect_it_works(&i, t, 1);
	initiator_close(&i);
}

/* "The DCI QP will move to an error state ... once the number ... reaches ... log_num_errored" */
target_test(so_many_errored_streams_are_the_end)
{
	struct initiator i;

	initiator_open(&i, 2);
	for (uint16_t k = 1; k <= 4; k++) {
		assert_int_equal(vt_state(i.qp), IBV_QPS_RTS);
		post_to(&i, t, (struct request){ .opcode = IBV_WR_SEND, .bytes = 8, .wr_id = k,
						  .stream = k, .key = KEY + 1 });
		vt_expect(i.cq, k, IBV_WC_REM_ACCESS_ERR);
	}
	recover(&i);
	expect_it_works(&i, t, 1);
	initiator_close(&i);
}

/* --- states --- */

static const int every_bit[] = {
	IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_ACCESS_FLAGS, IBV_QP_PKEY_INDEX, IBV_QP_PORT,
	IBV_QP_QKEY, IBV_QP_AV, IBV_QP_PATH_MTU, IBV_QP_TIMEOUT, IBV_QP_RETRY_CNT,
	IBV_QP_RNR_RETRY, IBV_QP_RQ_PSN, IBV_QP_MAX_QP_RD_ATOMIC, IBV_QP_MIN_RNR_TIMER,
	IBV_QP_SQ_PSN, IBV_QP_MAX_DEST_RD_ATOMIC, IBV_QP_DEST_QPN,
};

static const struct row {
	bool target;
	enum ibv_qp_state from, to;
	int required, optional; /* without IBV_QP_STATE */
} rows[] = {
	{ false, IBV_QPS_RESET, IBV_QPS_INIT, INIT & ~IBV_QP_STATE, 0 },
	{ false, IBV_QPS_INIT, IBV_QPS_INIT, 0, INIT & ~IBV_QP_STATE },
	{ false, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_PATH_MTU, IBV_QP_PKEY_INDEX | IBV_QP_AV },
	{ false, IBV_QPS_RTR, IBV_QPS_RTS, RTS & ~IBV_QP_STATE, IBV_QP_MIN_RNR_TIMER },
	{ false, IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_MIN_RNR_TIMER },
	{ false, IBV_QPS_RTS, IBV_QPS_RESET, 0, 0 },
	{ false, IBV_QPS_RTS, IBV_QPS_ERR, 0, 0 },
	{ false, IBV_QPS_INIT, IBV_QPS_ERR, 0, 0 },
	{ true, IBV_QPS_RESET, IBV_QPS_INIT, INIT_TARGET & ~IBV_QP_STATE, 0 },
	{ true, IBV_QPS_INIT, IBV_QPS_RTR, RTR_TARGET & ~IBV_QP_STATE, 0 },
};

static const struct row *row_of(bool target, enum ibv_qp_state from, enum ibv_qp_state to)
{
	for (size_t n = 0; n < VT_COUNT(rows); n++) {
		if (rows[n].target == target && rows[n].from == from && rows[n].to == to)
			return &rows[n];
	}
	return NULL;
}

static struct ibv_qp *end_in(struct target *t, bool target, enum ibv_qp_state state)
{
	struct mlx5dv_dc_init_attr dc = { .dc_type = target ? MLX5DV_DCTYPE_DCT
							    : MLX5DV_DCTYPE_DCI };
	struct ibv_qp *qp =
		vt_made(create(t->cq, target ? t->srq : NULL, target ? 0 : OPS, dc, false));

	if (state >= IBV_QPS_INIT)
		assert_int_equal(go(qp, IBV_QPS_INIT, target ? INIT_TARGET : INIT), 0);
	if (state >= IBV_QPS_RTR)
		assert_int_equal(go(qp, IBV_QPS_RTR, target ? RTR_TARGET : RTR), 0);
	if (state >= IBV_QPS_RTS)
		assert_int_equal(go(qp, IBV_QPS_RTS, RTS), 0);
	return qp;
}

static void expect_move(struct target *t, bool target, enum ibv_qp_state from,
			enum ibv_qp_state to, int mask, int err)
{
	struct ibv_qp *qp = end_in(t, target, from);

	assert_int_equal(go(qp, to, IBV_QP_STATE | mask), err);
	assert_int_equal(vt_state(qp), err ? from : to);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* Each state and each other: with what is required, without a bit of it, and with one too many. */
static void check_end(struct target *t, bool target)
{
	enum ibv_qp_state top = target ? IBV_QPS_RTR : IBV_QPS_RTS;

	for (int from = IBV_QPS_RESET; from <= (int)top; from++) {
		for (int to = IBV_QPS_RESET; to <= IBV_QPS_ERR; to++) {
			const struct row *row = row_of(target, from, to);

			/* From anywhere. */
			if (!target && (to == IBV_QPS_RESET || to == IBV_QPS_ERR))
				row = row_of(false, IBV_QPS_RTS, to);
			expect_move(t, target, from, to, row ? row->required : 0,
				    row ? 0 : EINVAL);
			for (size_t n = 0; row && n < sizeof(every_bit) / sizeof(int); n++) {
				int bit = every_bit[n];
				int known = row->required | row->optional;

				if (row->required & bit)
					expect_move(t, target, from, to, row->required & ~bit,
						    EINVAL);
				else
					expect_move(t, target, from, to, row->required | bit,
						    known & bit ? 0 : EINVAL);
			}
		}
	}
}

target_test(the_tables_of_states_hold)
{
	check_end(t, false);
	check_end(t, true);
}
