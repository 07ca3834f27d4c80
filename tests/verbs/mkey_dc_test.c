/* SPDX-License-Identifier: BSD-2-Clause */

/* Indirect keys and memcpy on an initiator of DC: "available builders ... the same as RC QP". */

#include "mkey.h"

enum { KEY = 0x1234, BYTES = 65536 };

static struct {
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *dct, *dci;
	struct vt_end end; /* the initiator's */
	struct mkey_side side;
	struct ibv_mr *target;
	uint8_t *memory;
	struct ibv_ah *ah;
} d;

static struct ibv_qp *make(enum mlx5dv_dc_type type)
{
	bool target = type == MLX5DV_DCTYPE_DCT;
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = d.cq, .recv_cq = d.cq, .srq = target ? d.srq : NULL,
		.qp_type = IBV_QPT_DRIVER, .pd = vt.pd,
		.cap = { .max_send_wr = target ? 0 : 32, .max_send_sge = target ? 0 : 1,
			 .max_inline_data = target ? 0 : INLINE_BYTES },
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     (target ? 0 : IBV_QP_INIT_ATTR_SEND_OPS_FLAGS),
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC |
			     (target ? 0 : MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS),
		.dc_init_attr = { .dc_type = type, .dct_access_key = KEY },
		.send_ops_flags = MLX5DV_QP_EX_WITH_MR_INTERLEAVED | MLX5DV_QP_EX_WITH_MR_LIST |
				  MLX5DV_QP_EX_WITH_MKEY_CONFIGURE | MLX5DV_QP_EX_WITH_MEMCPY,
	};
	return vt_made(mlx5dv_create_qp(vt.ctx, &attr, &dv));
}

static void bring(struct ibv_qp *qp, bool target)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024, .min_rnr_timer = 1, .timeout = 14, .retry_cnt = 7,
		.rnr_retry = 7, .max_rd_atomic = 1,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .dgid = vt.gid, .hop_limit = 64,
				      .sgid_index = (uint8_t)vt.gid_index } },
	};
	int common = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	assert_int_equal(ibv_modify_qp(qp, &attr, common | (target ? IBV_QP_ACCESS_FLAGS : 0)), 0);
	attr.qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_PATH_MTU |
					       (target ? IBV_QP_MIN_RNR_TIMER | IBV_QP_AV : 0)),
			 0);
	if (target)
		return;
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
							  IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
							  IBV_QP_MAX_QP_RD_ATOMIC),
			 0);
}

static int setup(void **state)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 4, .max_sge = 1 } };
	int rc = vt_setup(state);

	if (rc != 0)
		return rc;
	memset(&d, 0, sizeof(d));
	d.cq = vt_cq(64, NULL);
	d.srq = ibv_create_srq(vt.pd, &srq);
	d.dct = make(MLX5DV_DCTYPE_DCT);
	d.dci = make(MLX5DV_DCTYPE_DCI);
	bring(d.dct, true);
	bring(d.dci, false);
	d.ah = vt_ah();
	d.memory = malloc(BYTES);
	d.target = vt_mr(vt.pd, d.memory, BYTES, VT_ALL_ACCESS);
	d.end = (struct vt_end){ .qp = d.dci, .cq = d.cq, .buf = malloc(BYTES), .bytes = BYTES };
	side_open(&d.side, &d.end, 0);
	return 0;
}

static int teardown(void **state)
{
	side_close(&d.side);
	assert_int_equal(ibv_dereg_mr(d.target), 0);
	assert_int_equal(ibv_destroy_ah(d.ah), 0);
	assert_int_equal(ibv_destroy_qp(d.dci), 0);
	assert_int_equal(ibv_destroy_qp(d.dct), 0);
	assert_int_equal(ibv_destroy_srq(d.srq), 0);
	assert_int_equal(ibv_destroy_cq(d.cq), 0);
	free(d.memory);
	free(d.end.buf);
	return vt_teardown(state);
}

#define dc_test(f) vt_case(f, setup, teardown, NULL)

/* From behind the key, to an offset of the target's memory. */
static void add_write(uint64_t wr_id, uint64_t to, uint32_t bytes)
{
	d.side.qp->wr_id = wr_id;
	d.side.qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(d.side.qp, d.target->rkey, (uintptr_t)d.memory + to);
	ibv_wr_set_sge(d.side.qp, d.side.mkey->lkey, 0, bytes);
	mlx5dv_wr_set_dc_addr(d.side.mqp, d.ah, d.dct->qp_num, KEY);
}

dc_test(it_lays_out_keys_and_sends_from_behind_them)
{
	vt_fill(d.end.buf, BYTES, SEED);
	ibv_wr_start(d.side.qp);
	for (unsigned i = 0; i < 10; i++) {
		struct ibv_sge sges[2] = { part(&d.side, 40000 - i * 700, 3000),
					   part(&d.side, i * 900, 2000) };

		d.side.qp->wr_flags = IBV_SEND_INLINE;
		mlx5dv_wr_mr_list(d.side.mqp, d.side.mkey, 0, 2, sges);
		add_write(i, i * 5000, 5000);
	}
	d.side.qp->wr_id = 10;
	ibv_wr_local_inv(d.side.qp, d.side.mkey->lkey);
	assert_int_equal(ibv_wr_complete(d.side.qp), 0);
	for (unsigned i = 0; i < 10; i++) {
		vt_expect(d.cq, i, IBV_WC_SUCCESS);
		assert_memory_equal(d.memory + i * 5000, d.end.buf + 40000 - i * 700, 3000);
		assert_memory_equal(d.memory + i * 5000 + 3000, d.end.buf + i * 900, 2000);
	}
	vt_expect(d.cq, 10, IBV_WC_SUCCESS);
	vt_expect_none(d.cq);
}

/* There need not be any target yet, nor any later. */
dc_test(what_goes_nowhere_needs_no_target)
{
	struct ibv_wc wc;

	vt_fill(d.end.buf, 4096, SEED);
	for (unsigned i = 0; i < 3; i++) {
		begin_wr(&d.side, 30);
		d.side.qp->wr_flags = IBV_SEND_SIGNALED;
		mlx5dv_wr_memcpy(d.side.mqp, d.side.mr->lkey, (uintptr_t)d.end.buf + 8192 * (i + 1),
				 d.side.mr->lkey, (uintptr_t)d.end.buf, 4096);
		assert_int_equal(ibv_wr_complete(d.side.qp), 0);
		wc = vt_expect(d.cq, 30, IBV_WC_SUCCESS);
		assert_int_equal(wc.opcode, MLX5DV_WC_MEMCPY);
		assert_true(vt_is_filled(d.end.buf + 8192 * (i + 1), 4096, SEED));
		lay_plain(&d.side, EVERYTHING, 4096);
		vt_invalidate(d.side.end, d.side.mkey->lkey, IBV_WC_SUCCESS);
	}
}

dc_test(what_fails_ends_the_queue)
{
	lay_plain(&d.side, 0, 4096);
	ibv_wr_start(d.side.qp);
	add_write(1, 0, 4096);
	d.side.qp->wr_id = 2;
	mlx5dv_wr_memcpy(d.side.mqp, d.side.mkey->lkey, 0, d.side.mr->lkey,
			 (uintptr_t)d.end.buf, 8);
	add_write(3, 0, 4096);
	assert_int_equal(ibv_wr_complete(d.side.qp), 0);
	vt_expect(d.cq, 1, IBV_WC_SUCCESS);
	vt_expect(d.cq, 2, IBV_WC_LOC_PROT_ERR);
	vt_expect(d.cq, 3, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(vt_state(d.dci), IBV_QPS_ERR);
}
