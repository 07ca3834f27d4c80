/* SPDX-License-Identifier: BSD-2-Clause */

/* The work requests that lay out indirect keys, and memcpy: what they take, and when they act. */

#include "mkey.h"

static const struct mlx5dv_mkey_conf_attr plain_conf;

/* --- mlx5dv_create_mkey(3) --- */

vt_test(flags_are_checked)
{
	struct mlx5dv_mkey_init_attr attr = { .pd = vt.pd, .max_entries = 4 };
	static const struct {
		uint32_t flags;
		int error;
	} rows[] = {
		{ 0, EOPNOTSUPP }, /* there are indirect ones only */
		{ MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE, EOPNOTSUPP },
		{ MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT |
			  MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE,
		  EOPNOTSUPP },
		{ MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | MLX5DV_MKEY_INIT_ATTR_FLAGS_CRYPTO,
		  EOPNOTSUPP },
		{ MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | 1u << 5, EOPNOTSUPP },
		{ MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | 1u << 31, EOPNOTSUPP },
	};

	for (size_t i = 0; i < VT_COUNT(rows); i++) {
		attr.create_flags = rows[i].flags;
		vt_refused(rows[i].error, mlx5dv_create_mkey(&attr));
	}
	attr.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT;
	attr.max_entries = 0;
	vt_refused(EINVAL, mlx5dv_create_mkey(&attr));
}

/* "it will be greater than or equal to the value requested" */
vt_test(entries_are_at_least_those_asked_for)
{
	struct mlx5dv_mkey_init_attr attr = { .pd = vt.pd };
	struct mlx5dv_mkey *mkey;

	for (uint16_t n = 1; n < 2000; n = (uint16_t)(n * 3 / 2 + 1)) {
		attr.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT;
		attr.max_entries = n;
		mkey = vt_made(mlx5dv_create_mkey(&attr));
		assert_true(attr.max_entries >= n);
		assert_true(mkey->lkey && mkey->rkey);
		assert_int_equal(mlx5dv_destroy_mkey(mkey), 0);
	}
}

/* --- the builder --- */

static int complete(struct mkey_side *side)
{
	int rc = ibv_wr_complete(side->qp);

	vt_expect_none(side->end->cq);
	return rc;
}

static void configure(struct mkey_side *side, uint8_t setters)
{
	struct mlx5dv_mkey_conf_attr conf = plain_conf;

	mlx5dv_wr_mkey_configure(side->mqp, side->mkey, setters, &conf);
}

/* mlx5dv_wr_post(3): "Current implementation requires the IBV_SEND_INLINE option to be on" */
scene_test(inline_is_required)
{
	for (unsigned i = 0; i < 3; i++) {
		begin_wr(&s->a, 20);
		s->a.qp->wr_flags = IBV_SEND_SIGNALED;
		if (i == 0)
			mlx5dv_wr_mr_list(s->a.mqp, s->a.mkey, 0, 0, NULL);
		else if (i == 1)
			mlx5dv_wr_mr_interleaved(s->a.mqp, s->a.mkey, 0, 1, 0, NULL);
		else
			configure(&s->a, 0);
		assert_int_equal(complete(&s->a), EOPNOTSUPP);
	}
}

/*
 * mlx5dv_wr_mkey_configure(3): "num_setters is a number of required setters"; "Each setter can be
 * called only once per the WR builder"; "Not more than one data layout setter may follow".
 */
scene_test(setters_come_as_announced)
{
	struct mlx5dv_mr_interleaved row = { .bytes_count = 1 };
	struct ibv_sge sge = { .length = 1 };

	begin_wr(&s->a, 20);
	configure(&s->a, 1);
	assert_int_equal(complete(&s->a), EINVAL);
	begin_wr(&s->a, 20);
	configure(&s->a, 0);
	mlx5dv_wr_set_mkey_access_flags(s->a.mqp, 0);
	assert_int_equal(complete(&s->a), EINVAL);
	begin_wr(&s->a, 20);
	configure(&s->a, 3);
	mlx5dv_wr_set_mkey_access_flags(s->a.mqp, 0);
	mlx5dv_wr_set_mkey_access_flags(s->a.mqp, 0);
	assert_int_equal(complete(&s->a), EINVAL);
	begin_wr(&s->a, 20);
	configure(&s->a, 2);
	mlx5dv_wr_set_mkey_layout_list(s->a.mqp, 1, &sge);
	mlx5dv_wr_set_mkey_layout_interleaved(s->a.mqp, 1, 1, &row);
	assert_int_equal(complete(&s->a), EINVAL);
	/* And to a request that they are for. */
	begin_wr(&s->a, 20);
	mlx5dv_wr_set_mkey_access_flags(s->a.mqp, 0);
	assert_int_equal(complete(&s->a), EINVAL);
	begin_wr(&s->a, 20);
	ibv_wr_send(s->a.qp);
	mlx5dv_wr_set_mkey_layout_list(s->a.mqp, 1, &sge);
	assert_int_equal(complete(&s->a), EINVAL);
	begin_wr(&s->a, 20);
	configure(&s->a, 0);
	ibv_wr_set_sge(s->a.qp, 0, 0, 0);
	assert_int_equal(complete(&s->a), EINVAL);
	/* Before the next one, the last has to be finished. */
	begin_wr(&s->a, 20);
	configure(&s->a, 1);
	configure(&s->a, 0);
	assert_int_equal(complete(&s->a), EINVAL);
}

scene_test(signatures_and_encryption_are_refused)
{
	struct mlx5dv_mkey_conf_attr conf = { .conf_flags = 1u << 1 };

	begin_wr(&s->a, 20);
	configure(&s->a, 1);
	mlx5dv_wr_set_mkey_sig_block(s->a.mqp, NULL);
	assert_int_equal(complete(&s->a), EOPNOTSUPP);
	begin_wr(&s->a, 20);
	configure(&s->a, 1);
	mlx5dv_wr_set_mkey_crypto(s->a.mqp, NULL);
	assert_int_equal(complete(&s->a), EOPNOTSUPP);
	begin_wr(&s->a, 20);
	mlx5dv_wr_mkey_configure(s->a.mqp, s->a.mkey, 0, &conf);
	assert_int_equal(complete(&s->a), EOPNOTSUPP);
	/* "comp_mask ... must be 0 now" */
	conf = (struct mlx5dv_mkey_conf_attr){ .comp_mask = 1 };
	begin_wr(&s->a, 20);
	mlx5dv_wr_mkey_configure(s->a.mqp, s->a.mkey, 0, &conf);
	assert_int_equal(complete(&s->a), EOPNOTSUPP);
	/* To reset what is not there is easy. */
	conf = (struct mlx5dv_mkey_conf_attr){ MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR, 0 };
	begin_wr(&s->a, 20);
	mlx5dv_wr_mkey_configure(s->a.mqp, s->a.mkey, 0, &conf);
	laid_out(&s->a, IBV_WC_SUCCESS);
}

scene_test(rights_that_keys_do_not_have_are_refused)
{
	for (unsigned bit = 0; bit < 32; bit++) {
		if (1u << bit & EVERYTHING)
			continue;
		begin_wr(&s->a, 20);
		mlx5dv_wr_mr_list(s->a.mqp, s->a.mkey, 1u << bit, 0, NULL);
		assert_int_equal(ibv_wr_complete(s->a.qp), EINVAL);
	}
	vt_expect_none(s->p.a.cq);
}

/*
 * mlx5dv_wr_post(3): "To be able to have more than 3 num_interleaved entries, the QP should be
 * created with a larger WQE size ... using the max_inline_data attribute"; for a list, more than 4.
 */
scene_test(room_for_entries_is_inline_room)
{
	struct mlx5dv_mr_interleaved rows[ENTRIES + 1];
	static const uint32_t inlines[] = { 0, 64, 96, INLINE_BYTES };
	struct ibv_sge sges[ENTRIES + 1];

	for (unsigned i = 0; i <= ENTRIES; i++) {
		sges[i] = part(&s->b, i, 1);
		rows[i] = (struct mlx5dv_mr_interleaved){ sges[i].addr, 1, 1, sges[i].lkey };
	}
	for (size_t i = 0; i < VT_COUNT(inlines); i++) {
		struct vt_options opt = s->p.opt;
		struct mkey_side side = s->b;
		uint16_t room = (uint16_t)(inlines[i] < 64 ? 4 : (inlines[i] + 4) / 16);
		struct vt_pair p;

		mkey_inline_bytes = inlines[i];
		vt_pair_open(&p, &opt);
		side.end = &p.b;
		side.qp = ibv_qp_to_qp_ex(p.b.qp);
		side.mqp = mlx5dv_qp_ex_from_ibv_qp_ex(side.qp);
		lay_list(&side, EVERYTHING, room, sges);
		lay_rows(&side, EVERYTHING, 1, (uint16_t)(room - 1), rows);
		begin_wr(&side, 20);
		mlx5dv_wr_mr_list(side.mqp, side.mkey, 0, (uint16_t)(room + 1), sges);
		assert_int_equal(complete(&side), ENOMEM);
		begin_wr(&side, 20);
		mlx5dv_wr_mr_interleaved(side.mqp, side.mkey, 0, 1, room, rows);
		assert_int_equal(complete(&side), ENOMEM);
		vt_pair_close(&p);
	}
}

/* "the mkey should be created with one more entry than the required num_interleaved" */
scene_test(a_row_takes_an_entry_more)
{
	struct mlx5dv_mkey_init_attr attr = {
		.pd = vt.pd, .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
		.max_entries = 5,
	};
	struct mlx5dv_mr_interleaved rows[ENTRIES] = { { .bytes_count = 1 } };
	struct ibv_sge sges[ENTRIES] = { { .length = 1 } };
	struct mkey_side side;

	side = s->a;
	side.mkey = vt_made(mlx5dv_create_mkey(&attr));
	assert_true(attr.max_entries < ENTRIES);
	lay_list(&side, 0, attr.max_entries, sges);
	lay_rows(&side, 0, 1, (uint16_t)(attr.max_entries - 1), rows);
	begin_wr(&side, 20);
	mlx5dv_wr_mr_list(side.mqp, side.mkey, 0, (uint16_t)(attr.max_entries + 1), sges);
	assert_int_equal(complete(&side), ENOMEM);
	begin_wr(&side, 20);
	mlx5dv_wr_mr_interleaved(side.mqp, side.mkey, 0, 1, attr.max_entries, rows);
	assert_int_equal(complete(&side), ENOMEM);
	assert_int_equal(mlx5dv_destroy_mkey(side.mkey), 0);
}

/* create_dv: one that the QP was not created for fails its batch */
scene_test(each_operation_is_asked_for)
{
	for (unsigned bit = 0; bit < 3; bit++) {
		struct vt_options opt = s->p.opt;
		struct mkey_side side = s->a;
		struct vt_pair p;

		mkey_dv_ops = 1u << bit;
		vt_pair_open(&p, &opt);
		side.end = &p.a;
		side.qp = ibv_qp_to_qp_ex(p.a.qp);
		side.mqp = mlx5dv_qp_ex_from_ibv_qp_ex(side.qp);
		for (unsigned op = 0; op < 4; op++) {
			begin_wr(&side, 20);
			if (op == 0)
				mlx5dv_wr_mr_interleaved(side.mqp, side.mkey, 0, 1, 0, NULL);
			else if (op == 1)
				mlx5dv_wr_mr_list(side.mqp, side.mkey, 0, 0, NULL);
			else if (op == 2)
				configure(&side, 0);
			else
				mlx5dv_wr_memcpy(side.mqp, 1, 2, 3, 4, 5);
			if (op == bit)
				laid_out(&side, IBV_WC_SUCCESS);
			else
				assert_int_equal(complete(&side), EINVAL);
		}
		vt_pair_close(&p);
	}
}

/* mlx5dv_wr_mkey_configure(3): "the setter overrides the previous value" */
scene_test(what_is_set_again_is_overridden_and_the_rest_stays)
{
	struct ibv_sge sge;

	lay_plain(&s->a, EVERYTHING, 64);
	lay_plain(&s->b, IBV_ACCESS_REMOTE_READ, 64);
	vt_fill(s->p.b.buf, 64, SEED);
	expect_between(s, IBV_WR_RDMA_READ, 0, 0, 64, IBV_WC_SUCCESS);
	assert_true(vt_is_filled(s->p.a.buf, 64, SEED));
	/* Rights; the layout stays. */
	begin_wr(&s->b, 20);
	configure(&s->b, 1);
	mlx5dv_wr_set_mkey_access_flags(s->b.mqp, IBV_ACCESS_REMOTE_WRITE);
	laid_out(&s->b, IBV_WC_SUCCESS);
	expect_between(s, IBV_WR_RDMA_READ, 0, 0, 8, IBV_WC_REM_ACCESS_ERR);
	expect_between(s, IBV_WR_RDMA_WRITE, 0, 56, 8, IBV_WC_SUCCESS);
	assert_memory_equal(s->p.b.buf + 56, s->p.a.buf, 8);
	/* The layout; rights stay. */
	sge = part(&s->b, 1000, 8);
	begin_wr(&s->b, 20);
	configure(&s->b, 1);
	mlx5dv_wr_set_mkey_layout_list(s->b.mqp, 1, &sge);
	laid_out(&s->b, IBV_WC_SUCCESS);
	expect_between(s, IBV_WR_RDMA_WRITE, 0, 0, 8, IBV_WC_SUCCESS);
	assert_memory_equal(s->p.b.buf + 1000, s->p.a.buf, 8);
	expect_between(s, IBV_WR_RDMA_WRITE, 0, 1, 8, IBV_WC_REM_ACCESS_ERR);
	/* Neither: it is as it was. */
	begin_wr(&s->b, 20);
	configure(&s->b, 0);
	laid_out(&s->b, IBV_WC_SUCCESS);
	expect_between(s, IBV_WR_RDMA_WRITE, 0, 0, 8, IBV_WC_SUCCESS);
}

/*
 * mlx5dv_wr_mkey_configure(3): "there is no need to wait for completion of MKEY configuration work
 * request. They can be posted immediately after the last setter"; "Usually there is no need to even
 * request a completion".
 */
scene_test(it_is_used_at_once_and_laid_out_again_at_once)
{
	lay_plain(&s->b, EVERYTHING, 60000);
	vt_fill(s->p.a.buf, s->p.a.bytes, SEED);
	ibv_wr_start(s->a.qp);
	for (unsigned i = 0; i < 10; i++) {
		struct ibv_sge sges[2] = { part(&s->a, 40000 - i * 700, 3000),
					   part(&s->a, i * 900, 2000) };

		s->a.qp->wr_flags = IBV_SEND_INLINE;
		mlx5dv_wr_mr_list(s->a.mqp, s->a.mkey, 0, 2, sges);
		s->a.qp->wr_id = i;
		s->a.qp->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_rdma_write(s->a.qp, s->b.mkey->rkey, i * 5000);
		ibv_wr_set_sge(s->a.qp, s->a.mkey->lkey, 0, 5000);
	}
	assert_int_equal(ibv_wr_complete(s->a.qp), 0);
	for (unsigned i = 0; i < 10; i++) {
		uint8_t *to = s->p.b.buf + i * 5000;

		vt_expect(s->p.a.cq, i, IBV_WC_SUCCESS);
		assert_memory_equal(to, s->p.a.buf + 40000 - i * 700, 3000);
		assert_memory_equal(to + 3000, s->p.a.buf + i * 900, 2000);
	}
	vt_expect_none(s->p.a.cq);
}

/* The octets of the request are the QP's from the call on. */
scene_test(what_is_told_is_copied)
{
	struct ibv_sge sge;

	sge = part(&s->a, 128, 64);
	begin_wr(&s->a, 20);
	mlx5dv_wr_mr_list(s->a.mqp, s->a.mkey, EVERYTHING, 1, &sge);
	memset(&sge, 0xff, sizeof(sge));
	laid_out(&s->a, IBV_WC_SUCCESS);
	lay_plain(&s->b, EVERYTHING, 64);
	vt_fill(s->p.a.buf, 256, SEED);
	expect_between(s, IBV_WR_RDMA_WRITE, 0, 0, 64, IBV_WC_SUCCESS);
	assert_memory_equal(s->p.b.buf, s->p.a.buf + 128, 64);
}

/* --- mlx5dv_wr_memcpy(3) --- */

static void copy(struct scene *s, uint64_t to, uint64_t from, size_t bytes)
{
	uint8_t *buf = s->p.a.buf;

	begin_wr(&s->a, 30);
	s->a.qp->wr_flags = IBV_SEND_SIGNALED;
	mlx5dv_wr_memcpy(s->a.mqp, s->a.mr->lkey, (uintptr_t)buf + to, s->a.mr->lkey,
			 (uintptr_t)buf + from, bytes);
}

static size_t copy_max(void)
{
	struct mlx5dv_context attrs = { .comp_mask = MLX5DV_CONTEXT_MASK_WR_MEMCPY_LENGTH };

	assert_int_equal(mlx5dv_query_device(vt.ctx, &attrs), 0);
	assert_true(attrs.comp_mask & MLX5DV_CONTEXT_MASK_WR_MEMCPY_LENGTH);
	return attrs.max_wr_memcpy_length;
}

/* "the reported WC opcode will be MLX5DV_WC_MEMCPY" */
scene_test(memory_is_copied)
{
	struct ibv_wc wc;

	for (size_t bytes = 1; bytes < 30000; bytes = bytes * 5 / 2 + 1) {
		vt_fill(s->p.a.buf, s->p.a.bytes, (unsigned)bytes);
		memset(s->p.a.buf + 31000, 0xee, 30001);
		copy(s, 31000, 7, bytes);
		assert_int_equal(ibv_wr_complete(s->a.qp), 0);
		wc = vt_expect(s->p.a.cq, 30, IBV_WC_SUCCESS);
		assert_int_equal(wc.opcode, MLX5DV_WC_MEMCPY);
		assert_memory_equal(s->p.a.buf + 31000, s->p.a.buf + 7, bytes);
		assert_int_equal(s->p.a.buf[31000 + bytes], 0xee);
	}
}

/* "The maximum memcpy length that is supported by the device is reported" */
vt_test(lengths_are_limited)
{
	struct ibv_mr *mr;
	struct scene s;
	uint8_t *memory;
	size_t max = copy_max();

	assert_true(max >= 65536);
	memory = malloc(2 * max);
	vt_fill(memory, max, SEED);
	mr = vt_mr(vt.pd, memory, 2 * max, IBV_ACCESS_LOCAL_WRITE);
	scene_open(&s);
	for (unsigned i = 0; i < 3; i++) {
		static const size_t past[] = { 0, 1, 0 };
		size_t bytes = i == 2 ? 0 : max + past[i];

		begin_wr(&s.a, 30);
		mlx5dv_wr_memcpy(s.a.mqp, mr->lkey, (uintptr_t)memory + max - past[i], mr->lkey,
				 (uintptr_t)memory, bytes);
		assert_int_equal(ibv_wr_complete(s.a.qp), i ? EINVAL : 0);
		if (i == 0)
			vt_expect(s.p.a.cq, 30, IBV_WC_SUCCESS);
	}
	assert_memory_equal(memory + max, memory, max);
	vt_expect_none(s.p.a.cq);
	scene_close(&s);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	free(memory);
}

scene_test(keys_protect_memory_from_being_copied)
{
	struct ibv_pd *other = ibv_alloc_pd(vt.ctx);
	struct ibv_mr *mr[2];

	mr[0] = vt_mr(vt.pd, s->p.b.buf, 4096, 0);
	mr[1] = vt_mr(other, s->p.b.buf, 4096, EVERYTHING);
	for (unsigned i = 0; i < 5; i++) {
		uint64_t at = (uintptr_t)s->p.b.buf, own = (uintptr_t)s->p.a.buf;
		uint32_t key = s->a.mr->lkey;

		memset(s->p.b.buf, 0xee, 4096);
		begin_wr(&s->a, 30);
		if (i < 2)
			mlx5dv_wr_memcpy(s->a.mqp, mr[i]->lkey, at, key, own, 8);
		else if (i == 2)
			mlx5dv_wr_memcpy(s->a.mqp, key, own, mr[1]->lkey, at, 8);
		else
			mlx5dv_wr_memcpy(s->a.mqp, key, own, mr[0]->lkey, at + 4089,
					 i == 3 ? 8 : 7);
		assert_int_equal(ibv_wr_complete(s->a.qp), 0);
		vt_expect(s->p.a.cq, 30, i == 4 ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR);
		assert_true(vt_is_octet(s->p.b.buf, 4096, 0xee));
		vt_pair_reconnect(&s->p);
	}
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(ibv_dereg_mr(mr[i]), 0);
	assert_int_equal(ibv_dealloc_pd(other), 0);
}

/*
 * "IBV_SEND_FENCE indicator should be used on a following send request which is dependent on
 * dest_addr"; and a copy that depends on a READ has to wait for it with the same.
 */
scene_test(what_depends_on_a_copy_is_sent_after_it)
{
	vt_fill(s->p.b.buf, 4096, SEED);
	for (unsigned i = 0; i < 20; i++) {
		memset(s->p.a.buf, 0, 16384);
		ibv_wr_start(s->a.qp);
		s->a.qp->wr_id = 1;
		s->a.qp->wr_flags = 0;
		ibv_wr_rdma_read(s->a.qp, s->p.b.mr->rkey, (uintptr_t)s->p.b.buf);
		ibv_wr_set_sge(s->a.qp, s->a.mr->lkey, (uintptr_t)s->p.a.buf, 4096);
		s->a.qp->wr_flags = IBV_SEND_FENCE;
		mlx5dv_wr_memcpy(s->a.mqp, s->a.mr->lkey, (uintptr_t)s->p.a.buf + 8192,
				 s->a.mr->lkey, (uintptr_t)s->p.a.buf, 4096);
		s->a.qp->wr_flags = IBV_SEND_FENCE | IBV_SEND_SIGNALED;
		ibv_wr_rdma_write(s->a.qp, s->p.b.mr->rkey, (uintptr_t)s->p.b.buf + 8192);
		ibv_wr_set_sge(s->a.qp, s->a.mr->lkey, (uintptr_t)s->p.a.buf + 8192, 4096);
		assert_int_equal(ibv_wr_complete(s->a.qp), 0);
		vt_expect(s->p.a.cq, 1, IBV_WC_SUCCESS);
		assert_true(vt_is_filled(s->p.b.buf + 8192, 4096, SEED));
		memset(s->p.b.buf + 8192, 0, 4096);
	}
}

scene_test(a_copy_goes_through_indirect_keys)
{
	struct mlx5dv_mr_interleaved row;

	row = (struct mlx5dv_mr_interleaved){ (uintptr_t)s->p.a.buf, 3, 2, s->a.mr->lkey };
	lay_rows(&s->a, IBV_ACCESS_LOCAL_WRITE, 1000, 1, &row);
	memset(s->p.a.buf, 0, s->p.a.bytes);
	vt_fill(s->p.a.buf + 8192, 3000, SEED);
	begin_wr(&s->a, 30);
	mlx5dv_wr_memcpy(s->a.mqp, s->a.mkey->lkey, 0, s->a.mr->lkey,
			 (uintptr_t)s->p.a.buf + 8192, 3000);
	assert_int_equal(ibv_wr_complete(s->a.qp), 0);
	vt_expect(s->p.a.cq, 30, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < 3000; i++)
		assert_int_equal(s->p.a.buf[i / 3 * 5 + i % 3], s->p.a.buf[8192 + i]);
	assert_int_equal(s->p.a.buf[3], 0);
}
