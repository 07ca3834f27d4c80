/* SPDX-License-Identifier: BSD-2-Clause */
#include "peer.h"

#include <sys/mman.h>

#include "skip.h"

/* Each rule of ibv_alloc_dm(3), and what the attributes of ibv_query_device_ex(3) promise of it. */

enum { BYTES = 8192, MINIMAL = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE };

/* A device that is recorded has none. */
static size_t max_bytes(void)
{
	size_t bytes = vt_device_ex().max_dm_size;

	if (!bytes)
		SKIP("the device has no device memory");
	return bytes;
}

static struct ibv_dm *alloc(size_t bytes)
{
	struct ibv_alloc_dm_attr attr = { .length = bytes };

	max_bytes();
	return ibv_alloc_dm(vt.ctx, &attr);
}

/* --- having it --- */

vt_test(where_there_is_none_all_is_refused)
{
	struct ibv_alloc_dm_attr attr = { .length = 64 };

	if (vt_device_ex().max_dm_size)
		SKIP("the device has device memory");
	vt_refused(EOPNOTSUPP, ibv_alloc_dm(vt.ctx, &attr));
	attr.length = 0;
	vt_refused(EOPNOTSUPP, ibv_alloc_dm(vt.ctx, &attr));
}

vt_test(what_cannot_be_is_refused)
{
	const struct {
		struct ibv_alloc_dm_attr attr;
		int err;
	} rows[] = {
		{ { .length = 0 }, EINVAL },
		{ { .length = max_bytes() + 1 }, EINVAL },
		{ { .length = SIZE_MAX }, EINVAL },
		{ { .length = 64, .log_align_req = 13 }, EINVAL },
		{ { .length = 64, .log_align_req = 64 }, EINVAL },
		{ { .length = 64, .comp_mask = 1 }, EINVAL },
		{ { .length = 64, .log_align_req = 12 }, 0 },
		{ { .length = 1 }, 0 },
	};

	for (unsigned i = 0; i < VT_COUNT(rows); i++) {
		struct ibv_alloc_dm_attr attr = rows[i].attr;
		struct ibv_dm *dm;

		errno = 0;
		dm = ibv_alloc_dm(vt.ctx, &attr);
		assert_int_equal(dm ? 0 : errno, rows[i].err);
		if (dm)
			assert_int_equal(ibv_free_dm(dm), 0);
	}
}

/* NOTES: "may fail if device has no more free device memory left", of which max_dm_size tells. */
vt_test(there_is_as_much_as_is_said)
{
	struct ibv_dm *all = alloc(max_bytes()), *half, *rest;

	assert_non_null(all);
	vt_refused(ENOMEM, alloc(1));
	assert_int_equal(ibv_free_dm(all), 0);
	half = alloc(max_bytes() / 2);
	rest = alloc(max_bytes() / 2);
	assert_non_null(half);
	assert_non_null(rest);
	assert_null(alloc(1));
	assert_int_equal(ibv_free_dm(half), 0);
	half = vt_made(alloc(max_bytes() / 2));
	assert_int_equal(ibv_free_dm(half), 0);
	assert_int_equal(ibv_free_dm(rest), 0);
}

/* "the memory start address alignment": what lies between is still to be had. */
vt_test(alignment_is_kept)
{
	struct ibv_alloc_dm_attr attr = { .length = 64, .log_align_req = 12 };
	struct ibv_dm *small = alloc(4), *page = ibv_alloc_dm(vt.ctx, &attr), *between;
	struct ibv_dm *another = ibv_alloc_dm(vt.ctx, &attr);

	assert_non_null(small);
	assert_non_null(page);
	assert_non_null(another);
	between = vt_made(alloc(1024));
	assert_int_equal(ibv_free_dm(small), 0);
	assert_int_equal(ibv_free_dm(another), 0);
	assert_int_equal(ibv_free_dm(page), 0);
	assert_int_equal(ibv_free_dm(between), 0);
}

vt_test(it_is_told_apart_by_its_handle)
{
	struct ibv_dm *one = alloc(64), *other = alloc(64);

	assert_int_equal(one->comp_mask, IBV_DM_MASK_HANDLE);
	assert_ptr_equal(one->context, vt.ctx);
	assert_int_not_equal(one->handle, other->handle);
	assert_int_equal(ibv_free_dm(one), 0);
	assert_int_equal(ibv_free_dm(other), 0);
}

/* --- copies --- */

vt_test(what_is_copied_to_it_is_copied_from_it)
{
	uint8_t octets[BYTES], back[BYTES];
	struct ibv_dm *dm = alloc(BYTES);

	assert_int_equal(ibv_memcpy_from_dm(back, dm, 0, BYTES), 0);
	assert_true(vt_is_octet(back, BYTES, 0));
	vt_fill(octets, BYTES, 1);
	assert_int_equal(ibv_memcpy_to_dm(dm, 0, octets, BYTES), 0);
	vt_fill(octets, 96, 2);
	assert_int_equal(ibv_memcpy_to_dm(dm, 4096, octets, 96), 0);
	assert_int_equal(ibv_memcpy_from_dm(back, dm, 4096, 96), 0);
	assert_true(vt_is_filled(back, 96, 2));
	assert_int_equal(ibv_memcpy_from_dm(back, dm, 0, 4096), 0);
	assert_true(vt_is_filled(back, 4096, 1));
	assert_int_equal(ibv_free_dm(dm), 0);
	/* Whoever has it next does not find it. */
	dm = alloc(BYTES);
	assert_int_equal(ibv_memcpy_from_dm(back, dm, 0, BYTES), 0);
	assert_true(vt_is_octet(back, BYTES, 0));
	assert_int_equal(ibv_free_dm(dm), 0);
}

vt_test(copies_keep_to_their_bounds)
{
	static const struct {
		uint64_t offset;
		size_t bytes;
		int err;
	} rows[] = {
		{ 0, 100, 0 }, { 96, 4, 0 }, { 100, 0, 0 }, { 0, 0, 0 },
		{ 0, 104, EFAULT }, { 100, 4, EFAULT }, { 104, 0, EFAULT },
		{ UINT64_MAX - 3, 4, EFAULT }, { 4, SIZE_MAX - 3, EFAULT },
		{ 2, 4, EINVAL }, { 4, 3, EINVAL },
	};
	uint8_t octets[128] = { 0 };
	struct ibv_dm *dm = alloc(100);

	for (unsigned i = 0; i < VT_COUNT(rows); i++) {
		assert_int_equal(ibv_memcpy_to_dm(dm, rows[i].offset, octets, rows[i].bytes),
				 rows[i].err);
		assert_int_equal(ibv_memcpy_from_dm(octets, dm, rows[i].offset, rows[i].bytes),
				 rows[i].err);
	}
	assert_int_equal(ibv_free_dm(dm), 0);
}

vt_test(memory_that_is_not_there_is_an_error)
{
	struct ibv_dm *dm = alloc(4096);
	void *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	vt_faults_to_library();
	assert_int_equal(ibv_memcpy_to_dm(dm, 0, page, 64), EFAULT);
	assert_int_equal(ibv_memcpy_from_dm(page, dm, 0, 4096), EFAULT);
	munmap(page, 4096);
	assert_int_equal(ibv_free_dm(dm), 0);
}

/* --- registering it --- */

vt_test(regions_of_it_have_rules)
{
	static const struct {
		uint64_t offset;
		size_t bytes;
		unsigned access;
		int err;
	} rows[] = {
		{ 0, 100, MINIMAL, 0 },
		{ 100, 0, MINIMAL, 0 },
		{ 60, 40, IBV_ACCESS_ZERO_BASED, 0 },
		{ 0, 100, MINIMAL | VT_ALL_ACCESS | IBV_ACCESS_RELAXED_ORDERING, 0 },
		/* "For this type of registration, user must set the IBV_ACCESS_ZERO_BASED flag." */
		{ 0, 100, IBV_ACCESS_LOCAL_WRITE, EINVAL },
		{ 0, 104, MINIMAL, EINVAL },
		{ 61, 40, MINIMAL, EINVAL },
		{ 101, 0, MINIMAL, EINVAL },
		{ UINT64_MAX, 2, MINIMAL, EINVAL },
		{ 0, SIZE_MAX, MINIMAL, EINVAL },
		{ 0, 100, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_WRITE, EINVAL },
		{ 0, 100, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_ATOMIC, EINVAL },
		{ 0, 100, MINIMAL | IBV_ACCESS_MW_BIND, EINVAL },
		{ 0, 100, MINIMAL | IBV_ACCESS_ON_DEMAND, EINVAL },
		{ 0, 100, MINIMAL | IBV_ACCESS_HUGETLB, EINVAL },
		{ 0, 100, MINIMAL | 1 << 12, EINVAL },
	};
	struct ibv_dm *dm = alloc(100);

	for (unsigned i = 0; i < VT_COUNT(rows); i++) {
		struct ibv_mr *mr;

		errno = 0;
		mr = ibv_reg_dm_mr(vt.pd, dm, rows[i].offset, rows[i].bytes, rows[i].access);
		assert_int_equal(mr ? 0 : errno, rows[i].err);
		if (!mr)
			continue;
		assert_null(mr->addr);
		assert_int_equal(mr->length, rows[i].bytes);
		assert_ptr_equal(mr->pd, vt.pd);
		/* NOTES: free may fail if an MR "is still associated with the DM being freed". */
		assert_int_equal(ibv_free_dm(dm), EBUSY);
		assert_int_equal(ibv_dereg_mr(mr), 0);
	}
	assert_int_equal(ibv_free_dm(dm), 0);
}

/* Neither its place nor its rights can be changed: it is made anew instead. */
vt_test(a_region_of_it_stays_as_it_is)
{
	struct ibv_dm *dm = alloc(100);
	struct ibv_mr *mr = ibv_reg_dm_mr(vt.pd, dm, 0, 100, MINIMAL);

	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
}

/* --- using it --- */

/* It is copied by four octets. */
static size_t whole(size_t bytes)
{
	return (bytes + 3) & ~(size_t)3;
}

static void dm_fill(struct vt_end *end, size_t bytes, unsigned seed)
{
	uint8_t octets[BYTES];

	vt_fill(octets, whole(bytes), seed);
	assert_int_equal(ibv_memcpy_to_dm(end->dm, 0, octets, whole(bytes)), 0);
}

static bool dm_is_filled(struct vt_end *end, size_t offset, size_t bytes, unsigned seed)
{
	uint8_t octets[BYTES];

	assert_int_equal(ibv_memcpy_from_dm(octets, end->dm, offset, whole(bytes)), 0);
	return vt_is_filled(octets, bytes, seed);
}

/* "any reference to it (specifically in sge) is done with a byte offset from the beginning" */
vt_test(messages_go_from_it_and_to_it)
{
	for (unsigned i = 0; i < VT_TYPES; i++) {
		struct vt_options opt = { .type = vt_types[i], .memory = VT_DM, .bytes = BYTES };
		size_t grh = vt_types[i] == IBV_QPT_UD ? sizeof(struct ibv_grh) : 0;
		struct vt_pair p;

		vt_pair_open(&p, &opt);
		dm_fill(&p.a, 1000, i);
		vt_recv(&p.b, 2);
		vt_do(IBV_WR_SEND, &p.a, &p.b, 1000, IBV_WC_SUCCESS);
		vt_expect(p.b.cq, 2, IBV_WC_SUCCESS);
		assert_true(dm_is_filled(&p.b, grh, 1000, i));
		vt_pair_close(&p);
	}
}

/* One region in the midst of it, whose first octet has address 0. */
vt_pair_test(offsets_count_from_the_region, .memory = VT_DM, .bytes = BYTES)
{
	struct ibv_mr *mr;
	struct vt_wr w;

	mr = vt_made(ibv_reg_dm_mr(vt.pd, p->b.dm, 4096, 1024, MINIMAL | IBV_ACCESS_REMOTE_WRITE));
	dm_fill(&p->a, 64, 5);
	vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, 64);
	w.wr.wr.rdma.remote_addr = 960;
	w.wr.wr.rdma.rkey = mr->rkey;
	vt_done(&p->a, &w, IBV_WC_SUCCESS);
	assert_true(dm_is_filled(&p->b, 4096 + 960, 64, 5));
	/* One octet more is beyond it. */
	w.wr.wr.rdma.remote_addr = 961;
	vt_done(&p->a, &w, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

vt_pair_test(local_bounds_are_checked, .memory = VT_DM, .bytes = BYTES)
{
	struct vt_wr w;

	vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, 65);
	w.sge.addr = BYTES - 64;
	vt_done(&p->a, &w, IBV_WC_LOC_PROT_ERR);
}

/* --- between processes --- */

static void write_far(struct vp_pair *p, size_t to, uint32_t bytes, unsigned seed)
{
	struct vt_wr w;

	dm_fill(&p->a, bytes, seed);
	vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, bytes);
	w.wr.wr.rdma.remote_addr = to;
	vt_done(&p->a, &w, IBV_WC_SUCCESS);
}

static bool far_is_filled(struct vp_pair *p, size_t from, uint32_t bytes, unsigned seed)
{
	struct vt_wr w;

	dm_fill(&p->a, bytes, seed + 1);
	vt_wr(&w, IBV_WR_RDMA_READ, &p->a, &p->b, bytes);
	w.wr.wr.rdma.remote_addr = from;
	vt_done(&p->a, &w, IBV_WC_SUCCESS);
	return dm_is_filled(&p->a, 0, bytes, seed);
}

static uint64_t far_atomic(struct vp_pair *p, enum ibv_wr_opcode op, uint64_t at, uint64_t one,
			   uint64_t other)
{
	uint64_t before;
	struct vt_wr w;

	vt_wr(&w, op, &p->a, &p->b, 8);
	w.wr.wr.atomic.remote_addr = at;
	w.wr.wr.atomic.compare_add = one;
	w.wr.wr.atomic.swap = other;
	vt_done(&p->a, &w, IBV_WC_SUCCESS);
	assert_int_equal(ibv_memcpy_from_dm(&before, p->a.dm, 0, 8), 0);
	return before;
}

static const struct vt_options patient = {
	.memory = VT_DM, .bytes = BYTES, .for_ever = true, .rnr_retry = 7,
};

/* Through shared memory it takes a store: the other process may be stopped. */
vp_pair_test(another_process_reaches_it, NULL, &patient)
{
	static const uint32_t lengths[] = { 1, 2, 8, 64, 100, 4096, 8100 };

	/* When this is done it has taken our ring, and heeds who reaches into its memory. */
	write_far(p, 0, 8, 1);
	if (!vt_by_udp())
		vp_stop(p->peer);
	for (unsigned i = 0; i < VT_COUNT(lengths); i++) {
		write_far(p, 4, lengths[i], i);
		assert_true(far_is_filled(p, 4, lengths[i], i));
	}
	vp_go_on(p->peer);
}

vp_pair_test(atomics_work_on_it, NULL, &patient)
{
	write_far(p, 0, 8, 1); /* as above */
	if (!vt_by_udp())
		vp_stop(p->peer);
	assert_int_equal(far_atomic(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 64, 5, 0), 0);
	assert_int_equal(far_atomic(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 64, 7, 0), 5);
	assert_int_equal(far_atomic(p, IBV_WR_ATOMIC_CMP_AND_SWP, 64, 11, 99), 12);
	assert_int_equal(far_atomic(p, IBV_WR_ATOMIC_CMP_AND_SWP, 64, 12, 99), 12);
	assert_int_equal(far_atomic(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 64, 0, 0), 99);
	vp_go_on(p->peer);
}

/* What was deregistered is out of reach, though others have it mapped. */
vp_pair_test(who_deregisters_it_has_it_alone, NULL, &patient)
{
	struct vp_order dereg = { .what = VP_DEREG };

	write_far(p, 0, 64, 1);
	dereg.end = p->end;
	assert_int_equal(vp_do(p->peer, &dereg).rc, 0);
	vt_do(IBV_WR_RDMA_WRITE, &p->a, &p->b, 64, IBV_WC_REM_ACCESS_ERR);
}
