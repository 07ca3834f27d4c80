/* SPDX-License-Identifier: BSD-2-Clause */

/* Indirect keys: what data goes where, and who gets in. */

#include "mkey.h"

enum { MTU = 1024, TOTAL_MAX = 24000 };

/* Where each octet behind a key is, by the definition of its layout. */
struct map {
	uint32_t bytes;
	uint8_t *at[TOTAL_MAX];
};

static uint32_t seed;

static uint32_t draw(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)(seed >> 8) * below >> 24);
}

/* A list of pieces that lie anywhere, overlapping or not: sources may, targets may not. */
static void draw_list(struct mkey_side *side, struct map *map, bool apart)
{
	struct ibv_sge sges[ENTRIES];
	uint16_t n = (uint16_t)(1 + draw(ENTRIES));
	uint32_t slot = (uint32_t)side->end->bytes / ENTRIES;

	map->bytes = 0;
	for (unsigned i = 0; i < n; i++) {
		uint32_t bytes = draw(4) ? draw(slot / 3) : draw(4);
		uint64_t at = apart ? (n - 1 - i) * slot + draw(slot - bytes)
				    : draw((uint32_t)side->end->bytes - bytes);

		sges[i] = part(side, at, bytes);
		for (uint32_t k = 0; k < bytes; k++)
			map->at[map->bytes++] = side->end->buf + at + k;
	}
	lay_list(side, EVERYTHING, n, sges);
}

static void draw_rows(struct mkey_side *side, struct map *map)
{
	struct mlx5dv_mr_interleaved data[ENTRIES - 1];
	uint16_t n = (uint16_t)(1 + draw(6));
	uint32_t slot = (uint32_t)side->end->bytes / n, repeat = 1 + draw(200);

	map->bytes = 0;
	for (unsigned i = 0; i < n; i++) {
		uint32_t step = 1 + draw(slot / repeat);

		data[i].bytes_count = draw(step < 20 ? step + 1 : 20);
		data[i].bytes_skip = step - data[i].bytes_count;
		data[i].addr = (uintptr_t)side->end->buf + i * slot;
		data[i].lkey = side->mr->lkey;
	}
	for (uint32_t row = 0; row < repeat; row++) {
		for (unsigned i = 0; i < n; i++) {
			uint8_t *at = (uint8_t *)(uintptr_t)data[i].addr +
				      row * (data[i].bytes_count + data[i].bytes_skip);

			for (uint32_t k = 0; k < data[i].bytes_count; k++)
				map->at[map->bytes++] = at + k;
		}
	}
	lay_rows(side, EVERYTHING, repeat, n, data);
}

static void draw_layout(struct mkey_side *side, struct map *map, bool apart)
{
	do {
		if (draw(2))
			draw_list(side, map, apart);
		else
			draw_rows(side, map);
	} while (!map->bytes);
}

/* What the transfer should leave there, and nowhere else. */
static void apply(uint8_t *image, const uint8_t *buf, const struct map *to, uint32_t to_at,
		  const struct map *from, uint32_t from_at, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		image[to->at[to_at + i] - buf] = *from->at[from_at + i];
}

static void traffic(const struct vt_options *opt, uint32_t start)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE,
						  IBV_WR_RDMA_READ };
	struct map *from = malloc(sizeof(*from)), *to = malloc(sizeof(*to));
	struct scene s;
	uint8_t *image;

	seed = start;
	scene_open_as(&s, *opt, 0);
	image = malloc(s.p.b.bytes);
	for (unsigned i = 0; i < 120; i++) {
		enum ibv_wr_opcode op = ops[draw(3)];
		bool reads = op == IBV_WR_RDMA_READ;
		uint32_t bytes, a_at, b_at;

		draw_layout(&s.a, from, reads);
		draw_layout(&s.b, to, !reads);
		bytes = 1 + draw(from->bytes < to->bytes ? from->bytes : to->bytes);
		a_at = draw(from->bytes - bytes + 1);
		b_at = draw(to->bytes - bytes + 1);
		vt_fill(s.p.a.buf, s.p.a.bytes, start + i);
		vt_fill(s.p.b.buf, s.p.b.bytes, ~(start + i));
		if (reads) {
			memcpy(image, s.p.a.buf, s.p.a.bytes);
			apply(image, s.p.a.buf, from, a_at, to, b_at, bytes);
		} else {
			memcpy(image, s.p.b.buf, s.p.b.bytes);
			apply(image, s.p.b.buf, to, b_at, from, a_at, bytes);
		}
		expect_between(&s, op, a_at, b_at, bytes, IBV_WC_SUCCESS);
		assert_memory_equal(image, reads ? s.p.a.buf : s.p.b.buf, s.p.b.bytes);
	}
	free(image);
	scene_close(&s);
	free(from);
	free(to);
}

/* wr_post: "RDMA operations can use this mkey, the hardware will scatter the data" */
vt_test(data_goes_where_the_layouts_say)
{
	for (uint32_t start = 1; start <= 4; start++)
		traffic(&(struct vt_options){ .bytes = TOTAL_MAX }, start);
}

vt_test(data_goes_there_from_a_shared_queue)
{
	traffic(&(struct vt_options){ .bytes = TOTAL_MAX, .srq = true }, 5);
}

vt_test(data_goes_there_in_large_packets)
{
	traffic(&(struct vt_options){ .bytes = TOTAL_MAX, .mtu = IBV_MTU_4096 }, 6);
	traffic(&(struct vt_options){ .bytes = TOTAL_MAX, .mtu = IBV_MTU_256 }, 7);
}

/*
 * create_dv: "Enables the mlx5dv_wr_mr_list() work requset on this QP"
 * mlx5dv_wr_mkey_configure(3), List data layout configuration.
 */
scene_test(a_list_is_used_from_zero_on)
{
	struct ibv_sge sges[2];

	sges[0] = part(&s->b, 5000, 64);
	sges[1] = part(&s->b, 100, 4096);
	lay_list(&s->b, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE, 2, sges);
	lay_plain(&s->a, IBV_ACCESS_LOCAL_WRITE, 8192);
	vt_fill(s->p.a.buf, 4160, SEED);
	expect_between(s, IBV_WR_RDMA_WRITE, 0, 0, 4160, IBV_WC_SUCCESS);
	assert_memory_equal(s->p.b.buf + 5000, s->p.a.buf, 64);
	assert_memory_equal(s->p.b.buf + 100, s->p.a.buf + 64, 4096);
	memset(s->p.a.buf, 0, 4160);
	expect_between(s, IBV_WR_RDMA_READ, 0, 0, 4160, IBV_WC_SUCCESS);
	assert_true(vt_is_filled(s->p.a.buf, 4160, SEED));
}

/*
 * create_dv: "Enables the mlx5dv_wr_mr_interleaved() work requset on this QP"
 * mlx5dv_wr_mkey_configure(3), Interleaved data layout configuration: "The first 512 bytes will go
 * to memory referenced by mr1 at offset 0 ... The next 512 bytes ... at offset 516."
 */
scene_test(a_row_is_repeated_with_its_gaps)
{
	struct mlx5dv_mr_interleaved data[2];
	struct ibv_sge one, two;

	one = part(&s->b, 0, 0);
	two = part(&s->b, 9000, 0);
	data[0] = (struct mlx5dv_mr_interleaved){ one.addr, 512, 4, one.lkey };
	data[1] = (struct mlx5dv_mr_interleaved){ two.addr, 8, 0, two.lkey };
	lay_rows(&s->b, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE, 2, 2, data);
	lay_plain(&s->a, IBV_ACCESS_LOCAL_WRITE, 8192);
	vt_fill(s->p.a.buf, 1040, SEED);
	memset(s->p.b.buf, 0xee, s->p.b.bytes);
	expect_between(s, IBV_WR_RDMA_WRITE, 0, 0, 1040, IBV_WC_SUCCESS);
	assert_memory_equal(s->p.b.buf, s->p.a.buf, 512);
	assert_memory_equal(s->p.b.buf + 9000, s->p.a.buf + 512, 8);
	assert_memory_equal(s->p.b.buf + 516, s->p.a.buf + 520, 512);
	assert_memory_equal(s->p.b.buf + 9008, s->p.a.buf + 1032, 8);
	assert_true(vt_is_octet(s->p.b.buf + 512, 4, 0xee));
	assert_true(vt_is_octet(s->p.b.buf + 1028, 9000 - 1028, 0xee));
	/* Not one octet further. */
	expect_between(s, IBV_WR_RDMA_WRITE, 0, 1, 1040, IBV_WC_REM_ACCESS_ERR);
	expect_between(s, IBV_WR_RDMA_WRITE, 0, 1039, 1, IBV_WC_SUCCESS);
	expect_between(s, IBV_WR_RDMA_WRITE, 0, 1040, 1, IBV_WC_REM_ACCESS_ERR);
}

scene_test(nothing_beyond_the_end_is_touched)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE,
						  IBV_WR_RDMA_READ };
	struct ibv_sge sges[2];

	for (unsigned i = 0; i < 2; i++)
		sges[i] = part(&s->a, 4096 * i, 1500);
	lay_list(&s->a, EVERYTHING, 2, sges);
	lay_plain(&s->b, EVERYTHING, 5000);
	for (unsigned i = 0; i < 3; i++) {
		expect_between(s, ops[i], 0, 0, 3000, IBV_WC_SUCCESS);
		expect_between(s, ops[i], 1, 0, 3000, IBV_WC_LOC_PROT_ERR);
		expect_between(s, ops[i], UINT64_MAX, 0, 2, IBV_WC_LOC_PROT_ERR);
	}
	for (unsigned i = 0; i < 2; i++)
		sges[i] = part(&s->b, 4096 * i, 1500);
	lay_list(&s->b, EVERYTHING, 2, sges);
	for (unsigned i = 1; i < 3; i++) {
		expect_between(s, ops[i], 0, 0, 3000, IBV_WC_SUCCESS);
		expect_between(s, ops[i], 0, 1, 3000, IBV_WC_REM_ACCESS_ERR);
		expect_between(s, ops[i], 0, UINT64_MAX, 2, IBV_WC_REM_ACCESS_ERR);
	}
	/* A receive request is another's fault. */
	post_recv(s, 1, 3000);
	post_between(s, IBV_WR_SEND, 0, 0, 3000);
	vt_expect(s->p.b.cq, 2, IBV_WC_LOC_PROT_ERR);
	vt_expect(s->p.a.cq, 1, IBV_WC_REM_OP_ERR);
}

/* --- rights --- */

scene_test(each_right_is_asked_for)
{
	static const struct {
		enum ibv_wr_opcode op;
		unsigned right;
	} rows[] = {
		{ IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_WRITE },
		{ IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_ACCESS_REMOTE_ATOMIC },
	};

	lay_plain(&s->a, EVERYTHING, 64);
	for (unsigned i = 0; i < 3; i++) {
		lay_plain(&s->b, rows[i].right, 64);
		expect_between(s, rows[i].op, 8, 8, 8, IBV_WC_SUCCESS);
		lay_plain(&s->b, EVERYTHING & ~rows[i].right, 64);
		expect_between(s, rows[i].op, 8, 8, 8, IBV_WC_REM_ACCESS_ERR);
	}
	lay_plain(&s->a, REMOTE, 64);
	lay_plain(&s->b, EVERYTHING, 64);
	expect_between(s, IBV_WR_RDMA_WRITE, 0, 0, 64, IBV_WC_SUCCESS);
	expect_between(s, IBV_WR_RDMA_READ, 0, 0, 64, IBV_WC_LOC_PROT_ERR);
	lay_plain(&s->b, REMOTE, 64);
	post_recv(s, 0, 64);
	post_between(s, IBV_WR_SEND, 0, 0, 64);
	vt_expect(s->p.b.cq, 2, IBV_WC_LOC_PROT_ERR);
	vt_expect(s->p.a.cq, 1, IBV_WC_REM_OP_ERR);
}

/* What is behind a key may be less than it promises: that is found when the data moves. */
scene_test(regions_have_their_say)
{
	struct ibv_sge sges[2];
	struct ibv_mr *read_only;

	read_only = vt_mr(vt.pd, s->p.b.buf + 8192, 4096, 0);
	sges[0] = part(&s->b, 0, 1000);
	sges[1] = (struct ibv_sge){ (uintptr_t)s->p.b.buf + 8192, 4096, read_only->lkey };
	lay_list(&s->b, EVERYTHING, 2, sges);
	lay_plain(&s->a, EVERYTHING, 8192);
	expect_between(s, IBV_WR_RDMA_READ, 0, 0, 5096, IBV_WC_SUCCESS);
	expect_between(s, IBV_WR_RDMA_WRITE, 0, 0, 1000, IBV_WC_SUCCESS);
	expect_between(s, IBV_WR_RDMA_WRITE, 0, 0, 1001, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(read_only), 0);
	expect_between(s, IBV_WR_RDMA_WRITE, 0, 0, 1000, IBV_WC_SUCCESS);
	post_between(s, IBV_WR_RDMA_READ, 0, 999, 2);
	vt_expect(s->p.a.cq, 1, IBV_WC_REM_OP_ERR);
}

/* An atomic is of eight octets in one place. */
scene_test(atomics_need_one_piece)
{
	struct ibv_sge sges[3];
	uint64_t found;

	sges[0] = part(&s->b, 64, 8);
	sges[1] = part(&s->b, 512, 4);
	sges[2] = part(&s->b, 516 + 8, 4);
	lay_list(&s->b, EVERYTHING, 3, sges);
	lay_plain(&s->a, EVERYTHING, 64);
	found = 41;
	memcpy(s->p.b.buf + 64, &found, 8);
	expect_between(s, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 0, 8, IBV_WC_SUCCESS);
	memcpy(&found, s->p.a.buf + 8, 8);
	assert_int_equal(found, 41);
	memcpy(&found, s->p.b.buf + 64, 8);
	assert_int_equal(found, 42);
	expect_between(s, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 8, 8, IBV_WC_REM_ACCESS_ERR);
	memcpy(&found, s->p.b.buf + 64, 8);
	assert_int_equal(found, 42);
	/* What was found there goes to as many as there are. */
	sges[0] = part(&s->a, 100, 3);
	sges[1] = part(&s->a, 200, 5);
	lay_list(&s->a, EVERYTHING, 2, sges);
	expect_between(s, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0, 8, IBV_WC_SUCCESS);
	memcpy(&found, s->p.a.buf + 100, 3);
	memcpy((uint8_t *)&found + 3, s->p.a.buf + 200, 5);
	assert_int_equal(found, 42);
}

scene_test(a_key_of_another_pd_is_none)
{
	struct mlx5dv_mkey_init_attr attr = {
		.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT, .max_entries = 4 };
	struct mlx5dv_mkey *own;

	own = s->a.mkey;
	attr.pd = ibv_alloc_pd(vt.ctx);
	s->a.mkey = vt_made(mlx5dv_create_mkey(&attr));
	assert_int_equal(ibv_dealloc_pd(attr.pd), EBUSY);
	begin_wr(&s->a, 20);
	mlx5dv_wr_mr_list(s->a.mqp, s->a.mkey, 0, 0, NULL);
	laid_out(&s->a, IBV_WC_MW_BIND_ERR);
	vt_pair_reconnect(&s->p);
	assert_int_equal(mlx5dv_destroy_mkey(s->a.mkey), 0);
	assert_int_equal(ibv_dealloc_pd(attr.pd), 0);
	s->a.mkey = own;
}

/* --- when it is a key at all --- */

/* mlx5dv_wr_mkey_configure(3): "it must be configured with a layout" */
scene_test(without_a_layout_it_is_of_no_use)
{
	struct mlx5dv_mkey_conf_attr conf = { 0 };

	lay_plain(&s->a, EVERYTHING, 64);
	expect_between(s, IBV_WR_RDMA_WRITE, 0, 0, 8, IBV_WC_REM_ACCESS_ERR);
	begin_wr(&s->b, 20);
	mlx5dv_wr_mkey_configure(s->b.mqp, s->b.mkey, 1, &conf);
	mlx5dv_wr_set_mkey_access_flags(s->b.mqp, EVERYTHING);
	laid_out(&s->b, IBV_WC_SUCCESS);
	expect_between(s, IBV_WR_RDMA_WRITE, 0, 0, 8, IBV_WC_REM_ACCESS_ERR);
	lay_plain(&s->b, EVERYTHING, 64);
	expect_between(s, IBV_WR_RDMA_WRITE, 0, 0, 8, IBV_WC_SUCCESS);
}

/*
 * mlx5dv_wr_post(3): "Unregister the mkey to enable another pattern registration should be done via
 * ibv_post_send with IBV_WR_LOCAL_INV opcode."
 */
scene_test(it_is_cleared_and_laid_out_again)
{
	lay_plain(&s->a, EVERYTHING, 128);
	for (unsigned i = 0; i < 3; i++) {
		lay_plain(&s->b, EVERYTHING, 64 + i);
		expect_between(s, IBV_WR_RDMA_WRITE, 0, 0, 64 + i, IBV_WC_SUCCESS);
		vt_invalidate(s->b.end, s->b.mkey->lkey, IBV_WC_SUCCESS);
		expect_between(s, IBV_WR_RDMA_WRITE, 0, 0, 8, IBV_WC_REM_ACCESS_ERR);
	}
	vt_invalidate(s->a.end, s->a.mkey->lkey, IBV_WC_SUCCESS);
	expect_between(s, IBV_WR_SEND, 0, 0, 8, IBV_WC_LOC_PROT_ERR);
	/* What is cleared already cannot be cleared. */
	vt_invalidate(s->a.end, s->a.mkey->lkey, IBV_WC_MW_BIND_ERR);
}

/* What is under way, and may have to be sent again, still finds its data. */
scene_test(clearing_waits_for_what_is_under_way)
{
	struct ibv_sge sges[4];
	struct ibv_send_wr *bad, inv = { .opcode = IBV_WR_LOCAL_INV, .wr_id = 11,
					 .send_flags = IBV_SEND_SIGNALED };
	static const enum ibv_wr_opcode ops[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };

	lay_plain(&s->b, EVERYTHING, 60000);
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < 4; i++)
			sges[i] = part(&s->a, i * 15000, 14999 - round);
		lay_list(&s->a, EVERYTHING, 4, sges);
		inv.invalidate_rkey = s->a.mkey->lkey;
		post_between(s, ops[round % 2], 0, 0, 59000);
		assert_int_equal(ibv_post_send(s->p.a.qp, &inv, &bad), 0);
		vt_expect(s->p.a.cq, 1, IBV_WC_SUCCESS);
		vt_expect(s->p.a.cq, 11, IBV_WC_SUCCESS);
	}
}

/*
 * mlx5dv_create_mkey(3), REMOTE_INVALIDATE: "Enable remote invalidation support for mkey." Without
 * it, the peer has no say.
 */
vt_test(a_peer_clears_what_it_may)
{
	struct ibv_send_wr *bad, wr = { .wr_id = 1, .opcode = IBV_WR_SEND_WITH_INV,
					.send_flags = IBV_SEND_SIGNALED };
	struct ibv_wc wc;
	struct scene s;

	for (unsigned may = 0; may < 2; may++) {
		scene_open_as(&s, (struct vt_options){ .type = IBV_QPT_RC },
			      may ? MLX5DV_MKEY_INIT_ATTR_FLAGS_REMOTE_INVALIDATE : 0);
		lay_plain(&s.a, EVERYTHING, 64);
		lay_plain(&s.b, EVERYTHING, 64);
		vt_recv(&s.p.b, 2);
		wr.invalidate_rkey = s.b.mkey->rkey;
		assert_int_equal(ibv_post_send(s.p.a.qp, &wr, &bad), 0);
		if (may) {
			vt_expect(s.p.a.cq, 1, IBV_WC_SUCCESS);
			wc = vt_expect(s.p.b.cq, 2, IBV_WC_SUCCESS);
			assert_int_equal(wc.invalidated_rkey, s.b.mkey->rkey);
			expect_between(&s, IBV_WR_RDMA_WRITE, 0, 0, 8, IBV_WC_REM_ACCESS_ERR);
			lay_plain(&s.b, EVERYTHING, 64);
		} else {
			vt_expect(s.p.b.cq, 2, IBV_WC_LOC_ACCESS_ERR);
			vt_expect(s.p.a.cq, 1, IBV_WC_RETRY_EXC_ERR); /* no NAK: class J */
			vt_pair_reconnect(&s.p);
		}
		expect_between(&s, IBV_WR_RDMA_WRITE, 0, 0, 8, IBV_WC_SUCCESS);
		scene_close(&s);
	}
}

/*
 * mlx5dv_create_mkey(3), UPDATE_TAG: "allows an application to set the mkey tag post of creating
 * the mkey"
 */
vt_test(the_tag_is_the_applications_if_it_asked)
{
	struct scene s;
	uint32_t before;

	scene_open_as(&s, (struct vt_options){ .type = IBV_QPT_RC },
		      MLX5DV_MKEY_INIT_ATTR_FLAGS_UPDATE_TAG);
	lay_plain(&s.a, EVERYTHING, 64);
	lay_plain(&s.b, EVERYTHING, 64);
	expect_between(&s, IBV_WR_RDMA_WRITE, 0, 0, 8, IBV_WC_SUCCESS);
	before = s.b.mkey->rkey;
	s.b.mkey->lkey = s.b.mkey->rkey = ibv_inc_rkey(before);
	expect_between(&s, IBV_WR_RDMA_WRITE, 0, 0, 8, IBV_WC_REM_ACCESS_ERR);
	lay_plain(&s.b, EVERYTHING, 64);
	expect_between(&s, IBV_WR_RDMA_WRITE, 0, 0, 8, IBV_WC_SUCCESS);
	s.b.mkey->rkey = before;
	expect_between(&s, IBV_WR_RDMA_WRITE, 0, 0, 8, IBV_WC_REM_ACCESS_ERR);
	scene_close(&s);
	scene_open(&s);
	s.b.mkey->lkey ^= 1;
	begin_wr(&s.b, 20);
	mlx5dv_wr_mr_list(s.b.mqp, s.b.mkey, 0, 0, NULL);
	assert_int_equal(ibv_wr_complete(s.b.qp), EOPNOTSUPP);
	scene_close(&s);
}

scene_test(destroyed_it_is_no_key)
{
	struct mlx5dv_mkey gone;

	lay_plain(&s->a, EVERYTHING, 64);
	lay_plain(&s->b, EVERYTHING, 64);
	gone = *s->b.mkey;
	assert_int_equal(mlx5dv_destroy_mkey(s->b.mkey), 0);
	s->b.mkey = &gone;
	expect_between(s, IBV_WR_RDMA_WRITE, 0, 0, 8, IBV_WC_REM_ACCESS_ERR);
	vt_invalidate(s->b.end, gone.lkey, IBV_WC_MW_BIND_ERR);
	s->b.mkey = NULL;
}
