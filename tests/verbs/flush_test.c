/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

/*
 * FLUSH (IBTA release 1.6), as programs see it whose headers are newer than those here: the numbers
 * are those of rdma-core from release 45 on.
 */

#define WITH_FLUSH (1ull << 11)
#define ACCESS_FLUSH_GLOBAL (1 << 8)
#define ACCESS_FLUSH_PERSISTENT (1 << 9)
#define WC_FLUSH 8

enum { GLOBAL = 1, PERSISTENT = 2 };
enum { RANGE, REGION };
enum { AT = 4096 };

/* The newer structure: one member more, which the header at hand may have or not. */
struct newer_qp_ex {
	char older[offsetof(struct ibv_qp_ex, wr_atomic_write) + sizeof(void *)];
	void (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len,
			 uint8_t type, uint8_t level);
};

struct scene {
	struct vt_pair p;
	struct ibv_qp_ex *ex;
};

static void scene_open_as(struct scene *s, int mr_access, unsigned qp_access, uint8_t rd_atomic)
{
	struct vt_options opt = { .in_reset = true, .mr_access = VT_ALL_ACCESS | mr_access,
				  .qp_access = VT_ALL_ACCESS | qp_access,
				  .rd_atomic = rd_atomic, .no_rd_atomic = !rd_atomic };
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 64, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = vt.pd,
		.send_ops_flags = WITH_FLUSH | IBV_QP_EX_WITH_RDMA_WRITE,
	};

	vt_pair_open(&s->p, &opt);
	assert_int_equal(ibv_destroy_qp(s->p.a.qp), 0);
	attr.send_cq = attr.recv_cq = s->p.a.cq;
	s->p.a.qp = vt_made(ibv_create_qp_ex(vt.ctx, &attr));
	s->ex = ibv_qp_to_qp_ex(s->p.a.qp);
	vt_pair_climb(&s->p);
}

static void scene_open(struct scene *s)
{
	scene_open_as(s, ACCESS_FLUSH_GLOBAL, ACCESS_FLUSH_GLOBAL | ACCESS_FLUSH_PERSISTENT,
		      VT_RD_ATOMIC);
}

#define scene_test(f)                                                                             \
	vt_with(vt_test, f, struct scene, s, scene_open(&s), vt_pair_close(&s.p))

static void build(struct scene *s, uint64_t wr_id, uint64_t va, size_t len, uint8_t type,
		  uint8_t level)
{
	s->ex->wr_id = wr_id;
	s->ex->wr_flags = IBV_SEND_SIGNALED;
	((struct newer_qp_ex *)s->ex)->wr_flush(s->ex, s->p.b.mr->rkey, va, len, type, level);
}

static void flush(struct scene *s, uint64_t va, size_t len, uint8_t type, uint8_t level,
		  enum ibv_wc_status status)
{
	struct ibv_wc wc;

	ibv_wr_start(s->ex);
	build(s, 10, va, len, type, level);
	assert_int_equal(ibv_wr_complete(s->ex), 0);
	wc = vt_expect(s->p.a.cq, 10, status);
	if (status == IBV_WC_SUCCESS)
		assert_int_equal((int)wc.opcode, WC_FLUSH);
}

static uint64_t there(const struct scene *s, size_t offset)
{
	return (uintptr_t)s->p.b.buf + offset;
}

scene_test(what_was_written_is_there)
{
	for (unsigned i = 0; i < 50; i++) {
		vt_fill(s->p.a.buf, 3000, i);
		ibv_wr_start(s->ex);
		s->ex->wr_id = 1;
		s->ex->wr_flags = 0;
		ibv_wr_rdma_write(s->ex, s->p.b.mr->rkey, there(s, AT));
		ibv_wr_set_sge(s->ex, s->p.a.mr->lkey, (uintptr_t)s->p.a.buf, 3000);
		build(s, 10, there(s, AT), 3000, GLOBAL, RANGE);
		assert_int_equal(ibv_wr_complete(s->ex), 0);
		vt_expect(s->p.a.cq, 10, IBV_WC_SUCCESS);
		assert_true(vt_is_filled(s->p.b.buf + AT, 3000, i));
	}
}

/* IBV_ODP_SUPPORT_FLUSH */
vt_test(paged_memory_is_flushed_too)
{
	struct scene s;

	scene_open_as(&s, ACCESS_FLUSH_GLOBAL | IBV_ACCESS_ON_DEMAND, ACCESS_FLUSH_GLOBAL,
		      VT_RD_ATOMIC);
	flush(&s, there(&s, 0), 8, GLOBAL, RANGE, IBV_WC_SUCCESS);
	flush(&s, there(&s, 0), 0, GLOBAL, REGION, IBV_WC_SUCCESS);
	vt_pair_close(&s.p);
}

/* A range is checked, to the octet; for the whole region neither address nor length matter. */
vt_test(ranges_and_regions)
{
	static const struct {
		int64_t offset;
		size_t len;
		uint8_t level;
		bool good;
	} rows[] = {
		{ 0, 65536, RANGE, true },   { 100, 0, RANGE, true },	 { -1, 0, RANGE, true },
		{ 0, 65537, RANGE, false },  { -1, 8, RANGE, false },	 { 65536, 1, RANGE, false },
		{ 0, 65537, REGION, true },  { -4096, 8, REGION, true }, { 0, 0, REGION, true },
	};
	struct scene s;

	for (unsigned i = 0; i < VT_COUNT(rows); i++) {
		scene_open(&s);
		flush(&s, there(&s, 0) + (uint64_t)rows[i].offset, rows[i].len, GLOBAL,
		      rows[i].level, rows[i].good ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
		if (!rows[i].good)
			vt_event_acked(IBV_EVENT_QP_ACCESS_ERR);
		vt_pair_close(&s.p);
	}
}

vt_test(it_needs_a_right_of_qp_and_region)
{
	static const struct {
		int mr_access;
		unsigned qp_access;
		uint8_t type;
	} rows[] = {
		{ 0, ACCESS_FLUSH_GLOBAL, GLOBAL },
		{ ACCESS_FLUSH_GLOBAL, 0, GLOBAL },
		{ ACCESS_FLUSH_GLOBAL, ACCESS_FLUSH_PERSISTENT, GLOBAL },
		{ ACCESS_FLUSH_GLOBAL, ACCESS_FLUSH_GLOBAL, PERSISTENT },
		/* No memory of ours is persistent. */
		{ ACCESS_FLUSH_GLOBAL, ACCESS_FLUSH_GLOBAL | ACCESS_FLUSH_PERSISTENT, PERSISTENT },
		{ ACCESS_FLUSH_GLOBAL, ACCESS_FLUSH_GLOBAL | ACCESS_FLUSH_PERSISTENT,
		  GLOBAL | PERSISTENT },
	};
	struct scene s;

	for (unsigned i = 0; i < VT_COUNT(rows); i++)
		for (uint8_t level = RANGE; level <= REGION; level++) {
			scene_open_as(&s, rows[i].mr_access, rows[i].qp_access, VT_RD_ATOMIC);
			flush(&s, there(&s, 0), 8, rows[i].type, level, IBV_WC_REM_ACCESS_ERR);
			vt_event_acked(IBV_EVENT_QP_ACCESS_ERR);
			vt_pair_close(&s.p);
		}
}

vt_test(persistent_regions_there_are_not)
{
	static uint8_t octets[64];

	vt_refused(EINVAL, ibv_reg_mr(vt.pd, octets, sizeof(octets),
				      IBV_ACCESS_LOCAL_WRITE | ACCESS_FLUSH_PERSISTENT));
}

scene_test(nonsense_fails_the_batch)
{
	static const uint8_t wrong[][2] = { { 0, RANGE }, { 4, RANGE }, { GLOBAL, 2 } };

	for (unsigned i = 0; i < 3; i++) {
		ibv_wr_start(s->ex);
		build(s, 10, there(s, 0), 8, GLOBAL, RANGE);
		build(s, 11, there(s, 0), 8, wrong[i][0], wrong[i][1]);
		assert_int_equal(ibv_wr_complete(s->ex), EINVAL);
	}
	ibv_wr_start(s->ex);
	build(s, 10, there(s, 0), 8, GLOBAL, RANGE);
	ibv_wr_set_sge(s->ex, s->p.a.mr->lkey, (uintptr_t)s->p.a.buf, 8);
	assert_int_equal(ibv_wr_complete(s->ex), EINVAL);
	vt_expect_none(s->p.a.cq);
}

/* It takes a place among READs and atomics. */
vt_test(where_no_reads_may_go_it_may_not)
{
	struct scene s;

	scene_open_as(&s, ACCESS_FLUSH_GLOBAL, ACCESS_FLUSH_GLOBAL, 0);
	flush(&s, there(&s, 0), 8, GLOBAL, RANGE, IBV_WC_LOC_QP_OP_ERR);
	vt_pair_close(&s.p);
	scene_open_as(&s, ACCESS_FLUSH_GLOBAL, ACCESS_FLUSH_GLOBAL, 1);
	ibv_wr_start(s.ex);
	for (unsigned i = 0; i < 40; i++)
		build(&s, i, there(&s, i), 8, GLOBAL, i % 2);
	assert_int_equal(ibv_wr_complete(s.ex), 0);
	for (unsigned i = 0; i < 40; i++)
		vt_expect(s.p.a.cq, i, IBV_WC_SUCCESS);
	vt_pair_close(&s.p);
}

vt_test(the_device_says_that_it_can)
{
	struct ibv_device_attr_ex attr = vt_device_ex();

	assert_true(attr.device_cap_flags_ex >> 38 & 1);
	assert_false(attr.device_cap_flags_ex >> 39 & 1);
	assert_true(attr.device_cap_flags_ex >> 40 & 1); /* ATOMIC_WRITE */
}
