/* SPDX-License-Identifier: BSD-2-Clause */

/* Memory windows: what they grant, and ibv_bind_mw(3). */

#include "windows.h"

/* --- ibv_alloc_mw(3) --- */

/* "associated with the protection domain pd. The MW's type (1 or 2A/2B) is type." */
vt_test(a_window_belongs_to_its_pd)
{
	for (unsigned i = 0; i < 2; i++) {
		struct ibv_mw *mw = ibv_alloc_mw(vt.pd, both_types[i]);
		struct ibv_mw *other = ibv_alloc_mw(vt.pd, both_types[i]);

		assert_non_null(mw);
		assert_non_null(other);
		assert_ptr_equal(mw->pd, vt.pd);
		assert_ptr_equal(mw->context, vt.ctx);
		assert_int_equal(mw->type, both_types[i]);
		assert_int_not_equal(mw->rkey >> 8, other->rkey >> 8);
		assert_int_equal(ibv_dealloc_pd(vt.pd), EBUSY);
		assert_int_equal(ibv_dealloc_mw(mw), 0);
		assert_int_equal(ibv_dealloc_mw(other), 0);
	}
}

vt_test(other_types_there_are_not)
{
	static const int types[] = { 0, 3, -1, 1000 };

	for (unsigned i = 0; i < 4; i++) {
		vt_refused(EINVAL, ibv_alloc_mw(vt.pd, (enum ibv_mw_type)types[i]));
	}
}

vt_test(the_device_says_what_it_has)
{
	struct ibv_device_attr attr = vt_device();
	struct ibv_mw **mws;
	int n = 0;

	assert_true(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW);
	assert_true(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
	assert_false(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2A);
	assert_true(attr.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS);
	assert_true(attr.max_mw > 0);
	mws = vt_made(calloc((size_t)attr.max_mw + 1, sizeof(*mws)));
	while (n <= attr.max_mw && (mws[n] = ibv_alloc_mw(vt.pd, IBV_MW_TYPE_2)))
		n++;
	assert_int_equal(n, attr.max_mw);
	assert_int_equal(errno, ENOMEM);
	while (n)
		assert_int_equal(ibv_dealloc_mw(mws[--n]), 0);
	free(mws);
}

/* "The MW is created not bound." */
scenes_test(a_window_that_is_not_bound_grants_nothing, i, 0, 2, both_types[i])
{
	write_at(s, AT, 8, false);
	assert_true(vt_is_octet(s->p.b.buf, s->p.b.bytes, 0));
}

/* "Once bound, the memory window allows RDMA (remote) access to a subset of the MR". */
vt_test(a_bound_window_grants_exactly_its_rights)
{
	static const struct {
		enum ibv_wr_opcode op;
		unsigned right;
	} ops[] = { { IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_WRITE },
		    { IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ },
		    { IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_ACCESS_REMOTE_ATOMIC } };
	struct ibv_mw_bind_info info;
	struct scene s;

	for (unsigned i = 0; i < 2 * 8; i++) {
		unsigned access = 0;

		for (unsigned k = 0; k < 3; k++)
			access |= i / 2 >> k & 1 ? ops[k].right : 0;
		scene_open(&s, both_types[i % 2]);
		info = stretch(&s, AT, BYTES, access | IBV_ACCESS_LOCAL_WRITE);
		bind_on(&s, &s.p.b, &info);
		for (unsigned k = 0; k < 3; k++) {
			bool good = access & ops[k].right;

			access_as(&s.p.a, &s.p.b, ops[k].op, (uintptr_t)s.p.b.buf + AT, s.rkey, 8,
				  good);
			if (good)
				continue;
			vt_pair_reconnect(&s.p);
			if (s.mw->type == IBV_MW_TYPE_2)
				bind_on(&s, &s.p.b, &info);
		}
		scene_close(&s);
	}
}

scenes_test(the_bounds_of_a_window_are_exact, i, 0, 2 * 8, both_types[i % 2])
{
	static const struct {
		int64_t offset;
		uint32_t bytes;
		bool good;
	} rows[] = { { 0, BYTES, true },	 { 1, BYTES - 1, true },  { BYTES - 1, 1, true },
		     { -1, 1, false },		 { 0, BYTES + 1, false }, { 1, BYTES, false },
		     { BYTES, 1, false },	 { -8, 8, false } };

	bind_all(s);
	write_at(s, (uint64_t)(AT + rows[i / 2].offset), rows[i / 2].bytes,
		 rows[i / 2].good);
	assert_true(vt_is_octet(s->p.b.buf, AT, 0));
	assert_true(vt_is_octet(s->p.b.buf + AT + BYTES, s->p.b.bytes - AT - BYTES, 0));
}

/* "the address set on the 'remote_addr' field on the WR will be an offset from the MW's start" */
scenes_test(a_zero_based_window_begins_at_zero, i, 0, 2, both_types[i])
{
	struct ibv_mw_bind_info info;

	info = stretch(s, AT, BYTES, REMOTE | IBV_ACCESS_ZERO_BASED);
	bind_on(s, &s->p.b, &info);
	access_as(&s->p.a, &s->p.b, IBV_WR_RDMA_WRITE, 16, s->rkey, 8, true);
	assert_true(vt_is_filled(s->p.b.buf + AT + 16, 8, SEED));
	access_as(&s->p.a, &s->p.b, IBV_WR_RDMA_READ, BYTES - 8, s->rkey, 8, true);
	write_at(s, AT, 8, false);
}

scene_test(windows_on_one_region_have_rights_of_their_own, IBV_MW_TYPE_2)
{
	struct ibv_mw_bind_info info;
	struct ibv_mw *first;
	uint32_t first_key;

	info = stretch(s, AT, BYTES, IBV_ACCESS_REMOTE_READ);
	bind_on(s, &s->p.b, &info);
	first = s->mw;
	first_key = s->rkey;
	s->mw = vt_made(ibv_alloc_mw(vt.pd, IBV_MW_TYPE_2));
	s->rkey = s->mw->rkey;
	info = stretch(s, AT + 64, BYTES, IBV_ACCESS_REMOTE_WRITE);
	bind_on(s, &s->p.b, &info);
	write_at(s, AT + 64, 8, true);
	access_as(&s->p.a, &s->p.b, IBV_WR_RDMA_READ, (uintptr_t)s->p.b.buf + AT + 64, first_key, 8,
		  true);
	assert_true(vt_is_filled(s->p.a.buf, 8, SEED));
	access_as(&s->p.a, &s->p.b, IBV_WR_RDMA_WRITE, (uintptr_t)s->p.b.buf + AT + 64, first_key,
		  8, false);
	assert_int_equal(ibv_dealloc_mw(first), 0);
}

/* "ibv_dealloc_mw() Unbinds in case was previously bound and deallocates the MW mw." */
scenes_test(a_window_that_is_gone_grants_nothing, i, 0, 2, both_types[i])
{
	bind_all(s);
	write_at(s, AT, 8, true);
	assert_int_equal(ibv_dealloc_mw(s->mw), 0);
	s->mw = NULL;
	write_at(s, AT + 8, 8, false);
	assert_true(vt_is_octet(s->p.b.buf + AT + 8, 8, 0));
}

/* "ibv_dereg_mr() fails if any memory window is still bound to this MR." */
scenes_test(a_region_with_windows_stays, i, 0, 2, both_types[i])
{
	bind_all(s);
	assert_int_equal(ibv_dereg_mr(s->mr), EBUSY);
	errno = 0;
	assert_int_equal(ibv_rereg_mr(s->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EBUSY);
	write_at(s, AT, 8, true);
	assert_int_equal(ibv_dealloc_mw(s->mw), 0);
	s->mw = NULL;
	assert_int_equal(ibv_dereg_mr(s->mr), 0);
	s->mr = NULL;
}

/* --- type 1: ibv_bind_mw(3) --- */

/* "the R_key of the memory window after the bind is returned in the mw_bind->mw->rkey field" */
scene_test(each_bind_of_type_1_has_a_new_key, IBV_MW_TYPE_1)
{
	uint32_t first, second;

	first = s->mw->rkey;
	bind_all(s);
	second = s->mw->rkey;
	assert_int_not_equal(first, second);
	write_at(s, AT, 8, true);
	bind_all(s);
	assert_int_not_equal(s->mw->rkey, second);
	write_at(s, AT + 8, 8, true);
	s->rkey = second;
	write_at(s, AT + 16, 8, false);
	assert_true(vt_is_octet(s->p.b.buf + AT + 16, 8, 0));
}

vt_test(zero_length_unbinds_type_1)
{
	struct ibv_mw_bind bind = { .wr_id = 10, .send_flags = IBV_SEND_SIGNALED };
	struct scene s;

	for (unsigned i = 0; i < 2; i++) {
		scene_open(&s, IBV_MW_TYPE_1);
		bind_all(&s);
		/* With a region or without. */
		bind.bind_info = stretch(&s, AT, 0, 0);
		if (i)
			bind.bind_info = (struct ibv_mw_bind_info){ .mr = NULL };
		assert_int_equal(ibv_bind_mw(s.p.b.qp, s.mw, &bind), 0);
		vt_expect(s.p.b.cq, 10, IBV_WC_SUCCESS);
		write_at(&s, AT, 8, false);
		assert_int_equal(ibv_dereg_mr(s.mr), 0);
		s.mr = NULL;
		scene_close(&s);
	}
}

scene_test(a_window_of_type_1_is_for_all_of_its_pd, IBV_MW_TYPE_1)
{
	struct vt_pair other;

	bind_all(s);
	vt_pair_open(&other, NULL);
	access_as(&other.a, &other.b, IBV_WR_RDMA_WRITE, (uintptr_t)s->p.b.buf + AT, s->rkey, 8,
		  true);
	write_at(s, AT, 8, true);
	/* It outlives the QP that it was bound by. */
	vt_pair_reconnect(&s->p);
	write_at(s, AT, 8, true);
	vt_pair_close(&other);
}

scene_test(what_cannot_be_bound_by_the_verb_is_refused, IBV_MW_TYPE_1)
{
	struct vt_options ud = { .type = IBV_QPT_UD }, young = { .state = IBV_QPS_INIT };
	struct ibv_pd *other_pd = ibv_alloc_pd(vt.ctx);
	struct ibv_mr *own_mr, *zero_based, *foreign;
	struct ibv_mw *type_2 = ibv_alloc_mw(vt.pd, IBV_MW_TYPE_2);
	struct vt_pair datagrams, beginners;
	struct ibv_mw_bind bind = { .wr_id = 10 };
	uint32_t key;

	key = s->mw->rkey;
	own_mr = s->mr;
	foreign = vt_mr(other_pd, s->p.b.buf, s->p.b.bytes, REGION_ACCESS);
	zero_based = vt_mr(vt.pd, s->p.b.buf, s->p.b.bytes, REGION_ACCESS | IBV_ACCESS_ZERO_BASED);
	vt_pair_open(&datagrams, &ud);
	vt_pair_open(&beginners, &young);

	bind.bind_info = stretch(s, AT, BYTES, REMOTE);
	assert_int_equal(ibv_bind_mw(s->p.b.qp, type_2, &bind), EINVAL);
	assert_int_equal(ibv_bind_mw(datagrams.b.qp, s->mw, &bind), EINVAL);
	assert_int_equal(ibv_bind_mw(beginners.b.qp, s->mw, &bind), EINVAL);
	bind.send_flags = IBV_SEND_INLINE;
	assert_int_equal(ibv_bind_mw(s->p.b.qp, s->mw, &bind), EINVAL);
	bind.send_flags = 0;
	bind.bind_info.mw_access_flags = IBV_ACCESS_HUGETLB;
	assert_int_equal(ibv_bind_mw(s->p.b.qp, s->mw, &bind), EINVAL);
	s->mr = foreign;
	bind.bind_info = stretch(s, AT, BYTES, REMOTE);
	assert_int_equal(ibv_bind_mw(s->p.b.qp, s->mw, &bind), EPERM);
	s->mr = zero_based;
	bind.bind_info = stretch(s, AT, BYTES, REMOTE);
	assert_int_equal(ibv_bind_mw(s->p.b.qp, s->mw, &bind), EINVAL);
	bind.bind_info.mr = NULL;
	assert_int_equal(ibv_bind_mw(s->p.b.qp, s->mw, &bind), EINVAL);
	assert_int_equal(s->mw->rkey, key);

	s->mr = own_mr;
	vt_expect_none(s->p.b.cq);
	bind_all(s);
	vt_pair_close(&datagrams);
	vt_pair_close(&beginners);
	assert_int_equal(ibv_dealloc_mw(type_2), 0);
	assert_int_equal(ibv_dereg_mr(foreign), 0);
	assert_int_equal(ibv_dereg_mr(zero_based), 0);
	assert_int_equal(ibv_dealloc_pd(other_pd), 0);
}
