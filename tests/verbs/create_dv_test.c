/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <infiniband/mlx5dv.h>

/*
 * mlx5dv_create_qp(3): what it may be asked for, together and alone. What each flag does has its
 * own tests: scatter_cqe, credits, dc, mkey.
 */

static struct ibv_cq *cq;

static struct ibv_qp_init_attr_ex attr_of(enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr_ex){
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 4, .max_recv_wr = type == IBV_QPT_DRIVER ? 0 : 4,
			 .max_send_sge = 1, .max_recv_sge = type == IBV_QPT_DRIVER ? 0 : 1 },
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = vt.pd,
	};
}

static struct ibv_qp *create(struct ibv_qp_init_attr_ex attr, const struct mlx5dv_qp_init_attr *dv)
{
	struct mlx5dv_qp_init_attr copy = *dv;

	errno = 0;
	return mlx5dv_create_qp(vt.ctx, &attr, &copy);
}

static void expect_refused(struct ibv_qp_init_attr_ex attr, const struct mlx5dv_qp_init_attr *dv,
			   int error)
{
	vt_refused(error, create(attr, dv));
}

static void expect_made(struct ibv_qp_init_attr_ex attr, const struct mlx5dv_qp_init_attr *dv)
{
	struct ibv_qp *qp = vt_made(create(attr, dv));

	assert_int_equal(qp->qp_type, attr.qp_type);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static int setup(void **state)
{
	int rc = vt_setup(state);

	if (rc == 0)
		cq = vt_cq(16, NULL);
	return rc;
}

static int teardown(void **state)
{
	assert_int_equal(ibv_destroy_cq(cq), 0);
	return vt_teardown(state);
}

#define dv_test(f) vt_case(f, setup, teardown, NULL)

/* create_dv: "creates a queue pair (QP) with specific driver properties" */
/* create_dv: "Please see ibv_create_qp_ex(3) man page for context and qp_attr" */
/* create_dv: "returns a pointer to the created QP" */
dv_test(it_is_created_like_any_other)
{
	static const struct mlx5dv_qp_init_attr nothing;
	struct ibv_qp_init_attr_ex attr;
	struct ibv_qp *qp;

	for (int i = 0; i < 3; i++) {
		attr = attr_of(vt_types[i]);
		expect_made(attr, &nothing);
		qp = vt_made(mlx5dv_create_qp(vt.ctx, &attr, NULL));
		assert_ptr_equal(qp->context, vt.ctx);
		assert_ptr_equal(qp->pd, vt.pd);
		assert_int_equal(qp->state, IBV_QPS_RESET);
		assert_true(attr.cap.max_send_wr >= 4);
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
}

/* create_dv: "on error NULL will be returned and errno will be set" */
dv_test(what_ibv_create_qp_ex_refuses_is_refused)
{
	static const struct mlx5dv_qp_init_attr nothing;
	struct ibv_qp_init_attr_ex attr = attr_of(IBV_QPT_RC);

	attr.comp_mask = 0;
	expect_refused(attr, &nothing, EINVAL);
	attr = attr_of(IBV_QPT_RC);
	attr.cap.max_send_wr = 1u << 30;
	expect_refused(attr, &nothing, EINVAL);
	attr = attr_of(IBV_QPT_RC);
	attr.send_cq = NULL;
	expect_refused(attr, &nothing, EINVAL);
	attr = attr_of((enum ibv_qp_type)77);
	expect_refused(attr, &nothing, EOPNOTSUPP);
}

/* create_dv: "Bitmask specifying what fields in the structure are valid" */
/* create_dv: "valid values in create_flags" */
/* create_dv: "valid values in dc_init_attr" */
/* create_dv: "valid values in send_ops_flags" */
dv_test(fields_without_their_bit_are_not_looked_at)
{
	struct mlx5dv_qp_init_attr dv = {
		.create_flags = ~0u,
		.dc_init_attr = { .dc_type = (enum mlx5dv_dc_type)9, .dct_access_key = 1 },
		.send_ops_flags = ~0ull,
	};

	expect_made(attr_of(IBV_QPT_RC), &dv);
	dv.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS;
	expect_refused(attr_of(IBV_QPT_RC), &dv, EINVAL);
	dv.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS;
	expect_refused(attr_of(IBV_QPT_RC), &dv, EOPNOTSUPP);
	dv.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC;
	expect_refused(attr_of(IBV_QPT_DRIVER), &dv, EINVAL);
	for (unsigned bit = 4; bit < 64; bit++) {
		dv.comp_mask = 1ull << bit;
		expect_refused(attr_of(IBV_QPT_RC), &dv, EINVAL);
	}
}

/* create_dv: "create_flags: A bitwise OR of the various values described below" */
dv_test(flags_that_contradict_or_that_nobody_knows_are_refused)
{
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
	};
	static const uint32_t of_frames[] = { MLX5DV_QP_CREATE_TUNNEL_OFFLOADS,
					      MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_UC,
					      MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_MC };

	expect_made(attr_of(IBV_QPT_RC), &dv);
	dv.create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE |
			  MLX5DV_QP_CREATE_PACKET_BASED_CREDIT_MODE;
	expect_made(attr_of(IBV_QPT_RC), &dv);
	dv.create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE |
			  MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE;
	expect_refused(attr_of(IBV_QPT_RC), &dv, EINVAL);
	/* Credits are in the acknowledgements of RC. */
	dv.create_flags = MLX5DV_QP_CREATE_PACKET_BASED_CREDIT_MODE;
	expect_refused(attr_of(IBV_QPT_UC), &dv, EINVAL);
	expect_refused(attr_of(IBV_QPT_UD), &dv, EINVAL);
	/* A permission of newer headers, MLX5DV_QP_CREATE_OOO_DP: to take receives in any order. */
	dv.create_flags = 1 << 7;
	expect_made(attr_of(IBV_QPT_RC), &dv);
	expect_made(attr_of(IBV_QPT_UD), &dv);
	expect_refused(attr_of(IBV_QPT_RAW_PACKET), &dv, EOPNOTSUPP);
	/* These are about Ethernet frames. */
	for (int i = 0; i < 3; i++) {
		dv.create_flags = of_frames[i];
		expect_refused(attr_of(IBV_QPT_RC), &dv, EINVAL);
		expect_refused(attr_of(IBV_QPT_UD), &dv, EINVAL);
	}
	/* Signatures, which the page did not have yet. */
	dv.create_flags = MLX5DV_QP_CREATE_SIG_PIPELINING;
	expect_refused(attr_of(IBV_QPT_RC), &dv, EOPNOTSUPP);
	for (unsigned bit = 8; bit < 32; bit++) {
		dv.create_flags = 1u << bit;
		expect_refused(attr_of(IBV_QPT_RC), &dv, EINVAL);
	}
}

/* create_dv: "DC init attributes" */
dv_test(dc_goes_with_a_driver_qp_only)
{
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
		.dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCI },
	};
	struct mlx5dv_qp_init_attr none = { .comp_mask = 0 };
	struct ibv_qp_init_attr_ex attr;

	expect_refused(attr_of(IBV_QPT_RC), &dv, EINVAL);
	expect_refused(attr_of(IBV_QPT_DRIVER), &none, EINVAL);
	dv.dc_init_attr.dc_type = (enum mlx5dv_dc_type)0;
	expect_refused(attr_of(IBV_QPT_DRIVER), &dv, EINVAL);
	dv.dc_init_attr.dc_type = (enum mlx5dv_dc_type)3;
	expect_refused(attr_of(IBV_QPT_DRIVER), &dv, EINVAL);
	/* An initiator receives nothing. */
	dv.dc_init_attr.dc_type = MLX5DV_DCTYPE_DCI;
	attr = attr_of(IBV_QPT_DRIVER);
	attr.cap.max_recv_wr = 1;
	expect_refused(attr, &dv, EINVAL);
	/* A target has an SRQ, and sends nothing. */
	dv.dc_init_attr.dc_type = MLX5DV_DCTYPE_DCT;
	expect_refused(attr_of(IBV_QPT_DRIVER), &dv, EINVAL);
	/* Streams are an initiator's. */
	dv.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC | MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS;
	expect_refused(attr_of(IBV_QPT_DRIVER), &dv, EINVAL);
	dv.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS;
	expect_refused(attr_of(IBV_QPT_RC), &dv, EINVAL);
	/* The ordinary call has no way to say which end. */
	attr = attr_of(IBV_QPT_DRIVER);
	vt_refused(EOPNOTSUPP, ibv_create_qp_ex(vt.ctx, &attr));
}

/* create_dv: "send_ops_flags: A bitwise OR of the various values described below" */
dv_test(operations_are_those_of_the_type)
{
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
	};

	expect_made(attr_of(IBV_QPT_RC), &dv);
	for (unsigned bit = 0; bit < 5; bit++) {
		dv.send_ops_flags = 1u << bit;
		expect_refused(attr_of(IBV_QPT_UD), &dv, EINVAL);
		expect_refused(attr_of(IBV_QPT_UC), &dv, EINVAL);
	}
	for (unsigned bit = 5; bit < 64; bit++) {
		dv.send_ops_flags = 1ull << bit;
		expect_refused(attr_of(IBV_QPT_RC), &dv, EOPNOTSUPP);
	}
}

/*
 * create_dv: "mlx5dv_qp_ex_from_ibv_qp_ex() is used to get struct mlx5dv_qp_ex for accessing the
 * send ops interfaces when IBV_QP_INIT_ATTR_SEND_OPS_FLAGS is used"
 */
dv_test(the_builder_has_a_second_face)
{
	struct ibv_qp_init_attr_ex attr = attr_of(IBV_QPT_RC);
	struct vt_options opt = vt_options(&(struct vt_options){ .type = IBV_QPT_RC });
	struct mlx5dv_qp_init_attr dv = { .comp_mask = 0 };
	struct mlx5dv_qp_ex *mqp;
	struct ibv_qp *qp;
	struct ibv_qp_ex *ex;

	attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
	qp = vt_made(create(attr, &dv));
	ex = vt_made(ibv_qp_to_qp_ex(qp));
	mqp = vt_made(mlx5dv_qp_ex_from_ibv_qp_ex(ex));
	vt_climb(qp, &opt, IBV_QPS_RTS, qp->qp_num);
	/* What the QP was not created for fails the batch, and nothing of it is posted. */
	ibv_wr_start(ex);
	ex->wr_id = 1;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	mlx5dv_wr_set_dc_addr(mqp, NULL, 1, 2);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	mlx5dv_wr_memcpy(mqp, 1, 2, 3, 4, 5);
	assert_int_not_equal(ibv_wr_complete(ex), 0);
	/* Operations of ibv_wr_*() need not have been asked for, as with mlx5. */
	ibv_wr_start(ex);
	ex->wr_id = 2;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_local_inv(ex, 0x1234);
	assert_int_equal(ibv_wr_complete(ex), 0);
	vt_expect(cq, 2, IBV_WC_MW_BIND_ERR);
	assert_int_equal(vt_modify(qp, IBV_QPS_RESET), 0);
	vt_climb(qp, &opt, IBV_QPS_RTS, qp->qp_num);
	/* Signatures and encryption are nowhere. */
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	mlx5dv_wr_set_mkey_sig_block(mqp, NULL);
	assert_int_equal(ibv_wr_complete(ex), EOPNOTSUPP);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	mlx5dv_wr_set_mkey_crypto(mqp, NULL);
	assert_int_equal(ibv_wr_complete(ex), EOPNOTSUPP);
	vt_expect_none(cq);
	assert_int_equal(ibv_destroy_qp(qp), 0);

	/* One that was created otherwise has none. */
	qp = vt_made(ibv_create_qp_ex(vt.ctx, &attr));
	assert_null(mlx5dv_qp_ex_from_ibv_qp_ex(ibv_qp_to_qp_ex(qp)));
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* --- both ends --- */

/* By turns: the first of a pair counts packets, the second does not. */
static struct ibv_qp *make_unlike(struct ibv_qp_init_attr *init)
{
	static unsigned count;
	struct ibv_qp_init_attr_ex attr = { .send_cq = init->send_cq,
					    .recv_cq = init->recv_cq,
					    .cap = init->cap,
					    .qp_type = init->qp_type,
					    .comp_mask = IBV_QP_INIT_ATTR_PD,
					    .pd = vt.pd };
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
		.create_flags = count++ % 2 ? 0 : MLX5DV_QP_CREATE_PACKET_BASED_CREDIT_MODE,
	};

	return mlx5dv_create_qp(vt.ctx, &attr, &dv);
}

/*
 * create_dv: "It is the applications responsibility to make sure that the peer QP is configured
 * with same mode" Who does not only waits longer than he would have to: what is sent, comes.
 */
dv_test(ends_of_different_modes_lose_nothing)
{
	struct vt_options opt = { .make_qp = make_unlike };
	struct vt_wr w;
	struct vt_pair p;

	vt_pair_open(&p, &opt);
	for (int way = 0; way < 2; way++) {
		struct vt_end *from = way ? &p.b : &p.a, *to = way ? &p.a : &p.b;

		for (uint32_t n = 0; n < 8; n++) {
			uint32_t bytes = 1 + n * 1500;

			vt_fill(from->buf, bytes, n);
			vt_recv(to, n);
			vt_wr(&w, IBV_WR_SEND, from, to, bytes);
			vt_post(from, &w);
			assert_int_equal(vt_expect(to->cq, n, IBV_WC_SUCCESS).byte_len, bytes);
			vt_expect(from->cq, w.wr.wr_id, IBV_WC_SUCCESS);
			assert_true(vt_is_filled(to->buf, bytes, n));
		}
	}
	vt_pair_close(&p);
}
