/* SPDX-License-Identifier: BSD-2-Clause */

/* Memory windows of type 2: BIND, LOCAL_INV and SEND_WITH_INV. */

#include "windows.h"

#include <pthread.h>

/* --- type 2: work requests --- */

scene_test(what_cannot_be_bound_by_a_request_is_refused, IBV_MW_TYPE_2)
{
	struct ibv_mw *type_1 = ibv_alloc_mw(vt.pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind_info info;
	struct ibv_send_wr wr;

	info = stretch(s, AT, BYTES, REMOTE);
	wr = bind_wr(s, &info);
	wr.bind_mw.mw = type_1;
	assert_int_equal(post(s->p.b.qp, &wr), EINVAL);
	wr.bind_mw.mw = NULL;
	assert_int_equal(post(s->p.b.qp, &wr), EINVAL);
	wr = bind_wr(s, &info);
	wr.bind_mw.bind_info.mr = NULL;
	assert_int_equal(post(s->p.b.qp, &wr), EINVAL);
	wr = bind_wr(s, &info);
	wr.bind_mw.bind_info.mw_access_flags |= IBV_ACCESS_MW_BIND;
	assert_int_equal(post(s->p.b.qp, &wr), EINVAL);
	wr = bind_wr(s, &info);
	wr.send_flags |= IBV_SEND_INLINE;
	assert_int_equal(post(s->p.b.qp, &wr), EINVAL);
	vt_expect_none(s->p.b.cq);
	bind_all(s);
	assert_int_equal(ibv_dealloc_mw(type_1), 0);
}

scene_test(the_low_octet_of_the_key_is_the_application_s, IBV_MW_TYPE_2)
{
	struct ibv_mw_bind_info info;
	struct ibv_send_wr wr;
	uint32_t before;

	info = stretch(s, AT, BYTES, REMOTE);
	for (unsigned i = 0; i < 3; i++) {
		before = s->rkey;
		wr = bind_wr(s, &info);
		wr.bind_mw.rkey = s->rkey = (s->rkey & ~0xffu) | ((0xfe + i) & 0xff);
		assert_int_equal(post(s->p.b.qp, &wr), 0);
		vt_expect(s->p.b.cq, 10, IBV_WC_SUCCESS);
		write_at(s, AT, 8, true);
		vt_invalidate(&s->p.b, s->rkey, IBV_WC_SUCCESS);
	}
	bind_on(s, &s->p.b, &info);
	write_at(s, AT, 8, true);
	s->rkey = before;
	write_at(s, AT, 8, false);
}

/* Programs look there for the key, as soon as it is posted; refused, it stays what it was. */
scene_test(the_window_tells_its_key_when_it_is_posted, IBV_MW_TYPE_2)
{
	struct ibv_mw_bind_info info;
	struct ibv_send_wr wr;
	uint32_t before;

	info = stretch(s, AT, BYTES, REMOTE);
	for (unsigned i = 0; i < 3; i++) {
		before = s->mw->rkey;
		wr = bind_wr(s, &info);
		wr.bind_mw.bind_info.mw_access_flags |= IBV_ACCESS_MW_BIND;
		assert_int_equal(post(s->p.b.qp, &wr), EINVAL);
		assert_int_equal(s->mw->rkey, before);
		wr = bind_wr(s, &info);
		/* What is above the low octet is the device's, whatever is asked for. */
		wr.bind_mw.rkey = s->rkey ^ 0x12345600;
		assert_int_equal(post(s->p.b.qp, &wr), 0);
		assert_int_equal(s->mw->rkey, s->rkey);
		vt_expect(s->p.b.cq, 10, IBV_WC_SUCCESS);
		s->rkey = s->mw->rkey;
		write_at(s, AT, 8, true);
		vt_invalidate(&s->p.b, s->mw->rkey, IBV_WC_SUCCESS);
	}
}

/* 2B: the window is for the QP that it was bound by. */
scene_test(a_window_of_type_2_is_for_one_qp, IBV_MW_TYPE_2)
{
	struct vt_pair other;

	bind_all(s);
	write_at(s, AT, 8, true);
	vt_pair_open(&other, NULL);
	access_as(&other.a, &other.b, IBV_WR_RDMA_WRITE, (uintptr_t)s->p.b.buf + AT, s->rkey, 8,
		  false);
	write_at(s, AT, 8, true);
	vt_pair_close(&other);
}

scene_test(local_invalidation_takes_it_back, IBV_MW_TYPE_2)
{
	bind_all(s);
	write_at(s, AT, 8, true);
	vt_invalidate(&s->p.b, s->rkey, IBV_WC_SUCCESS);
	assert_int_equal(ibv_dereg_mr(s->mr), 0);
	s->mr = vt_mr(vt.pd, s->p.b.buf, s->p.b.bytes, REGION_ACCESS);
	write_at(s, AT + 8, 8, false);
	assert_true(vt_is_octet(s->p.b.buf + AT + 8, 8, 0));
	vt_pair_reconnect(&s->p);
	bind_all(s);
	write_at(s, AT + 8, 8, true);
}

/* Each is a QP's end: "Memory Management Operation Error" (IBA 10.10.3). */
vt_test(what_cannot_be_invalidated_is_an_error)
{
	struct ibv_mw_bind bind = { .wr_id = 10, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_mw *type_1;
	struct vt_pair other;
	struct scene s;

	for (unsigned i = 0; i < 6; i++) {
		struct vt_end *end;
		uint32_t key;

		scene_open(&s, IBV_MW_TYPE_2);
		vt_pair_open(&other, NULL);
		end = &s.p.b;
		type_1 = ibv_alloc_mw(vt.pd, IBV_MW_TYPE_1);
		bind.bind_info = stretch(&s, AT, BYTES, REMOTE);
		assert_int_equal(ibv_bind_mw(s.p.b.qp, type_1, &bind), 0);
		vt_expect(s.p.b.cq, 10, IBV_WC_SUCCESS);
		key = s.rkey;
		if (i > 0)
			bind_all(&s); /* not bound the first time */
		switch (i) {
		case 1:
			key = s.rkey ^ 1;
			break;
		case 2:
			key = type_1->rkey;
			break;
		case 3:
			key = s.mr->rkey;
			break;
		case 4: /* of another QP */
			key = s.rkey;
			end = &other.b;
			break;
		case 5: /* once already */
			key = s.rkey;
			vt_invalidate(end, key, IBV_WC_SUCCESS);
		}
		vt_invalidate(end, key, IBV_WC_MW_BIND_ERR);
		assert_int_equal(vt_state(end->qp), IBV_QPS_ERR);
		assert_int_equal(ibv_dealloc_mw(type_1), 0);
		vt_pair_close(&other);
		scene_close(&s);
	}
}

/* --- SEND with invalidate --- */

static void send_inv(struct scene *s, uint32_t rkey, uint32_t bytes)
{
	struct vt_wr w;

	vt_wr(&w, IBV_WR_SEND_WITH_INV, &s->p.a, &s->p.b, bytes);
	w.wr.invalidate_rkey = rkey;
	vt_post(&s->p.a, &w);
}

scenes_test(the_peer_s_send_takes_it_back, i, 0, 4, IBV_MW_TYPE_2)
{
	static const uint32_t sizes[] = { 0, 8, 1024, 5000 };
	struct ibv_wc wc;

	bind_all(s);
	write_at(s, AT, 8, true);
	vt_recv(&s->p.b, 2);
	send_inv(s, s->rkey, sizes[i]);
	wc = vt_expect(s->p.a.cq, 1, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_SEND);
	wc = vt_expect(s->p.b.cq, 2, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, sizes[i]);
	assert_true(wc.wc_flags & IBV_WC_WITH_INV);
	assert_false(wc.wc_flags & IBV_WC_WITH_IMM);
	assert_int_equal(wc.invalidated_rkey, s->rkey);
	/* It is free to be bound again, which shows that it is not bound. */
	bind_all(s);
	write_at(s, AT, 8, true);
	s->rkey--;
	write_at(s, AT, 8, false);
}

enum no_say { OTHER_TAG, A_REGION, NO_KEY, NOT_BOUND, TYPE_1, OTHER_QP, NO_SAYS };

/* A key that a's SEND has no say in; other is another QP than those of the scene. */
static uint32_t key_for(struct scene *s, enum no_say what, struct vt_pair *other)
{
	struct ibv_mw_bind_info info = stretch(s, AT, BYTES, REMOTE);

	if (what == OTHER_QP)
		bind_on(s, &other->b, &info);
	else if (what != NOT_BOUND)
		bind_all(s);
	switch (what) {
	case OTHER_TAG:
		return s->rkey ^ 0x80;
	case A_REGION:
		return s->mr->rkey;
	case NO_KEY:
		return 0;
	default:
		return s->rkey;
	}
}

/*
 * IBA 9.9.6.3, class J: the receive tells of it, the QP is at its end, and the peer hears nothing:
 * no NAK, so it is silence that its SEND fails by.
 */
scenes_test(a_send_that_invalidates_nothing_ends_the_receiver, i, 0, NO_SAYS,
	    i == TYPE_1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2)
{
	struct vt_pair other;
	uint32_t key;

	vt_pair_open(&other, NULL);
	key = key_for(s, (enum no_say)i, &other);
	vt_recv(&s->p.b, 2);
	vt_recv(&s->p.b, 3);
	send_inv(s, key, 8);
	vt_expect(s->p.b.cq, 2, IBV_WC_LOC_ACCESS_ERR);
	vt_expect(s->p.b.cq, 3, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(vt_state(s->p.b.qp), IBV_QPS_ERR);
	assert_int_equal(vt_state(s->p.a.qp), IBV_QPS_RTS);
	assert_true(vt_is_octet(s->p.b.buf, s->p.b.bytes, 0));
	vt_expect(s->p.a.cq, 1, IBV_WC_RETRY_EXC_ERR);
	vt_no_event();
	/* What is another's stays bound. */
	if (i == OTHER_QP)
		assert_int_equal(ibv_dereg_mr(s->mr), EBUSY);
	vt_pair_close(&other);
}

/* IBA 9.2.1 has no such packet for the others. */
vt_test(only_rc_sends_with_invalidate)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_UC, IBV_QPT_UD };

	for (unsigned i = 0; i < 2; i++) {
		struct vt_options opt = { .type = types[i] };
		struct vt_pair p;
		struct vt_wr w;

		vt_pair_open(&p, &opt);
		vt_wr(&w, IBV_WR_SEND_WITH_INV, &p.a, &p.b, 8);
		assert_int_equal(vt_try(&p.a, &w), EINVAL);
		w.wr.opcode = IBV_WR_LOCAL_INV;
		if (types[i] == IBV_QPT_UD)
			assert_int_equal(vt_try(&p.a, &w), EINVAL);
		vt_pair_close(&p);
	}
}

/* --- what the device finds wrong with a bind --- */

enum wrong {
	NO_MW_BIND,
	WRITE_WITHOUT_LOCAL_WRITE,
	ATOMIC_WITHOUT_LOCAL_WRITE,
	BEFORE_THE_REGION,
	BEYOND_THE_REGION,
	TOO_LONG,
	AROUND_THE_END_OF_TIME,
	ZERO_BASED_REGION,
	NOTHING,
	NOTHING_OF_NO_REGION,
	REGION_OF_OTHER_PD,
	WINDOW_OF_OTHER_PD,
	BOUND_ALREADY,
	WRONGS
};

static void make_wrong(struct scene *s, enum wrong wrong, struct ibv_mw_bind_info *info)
{
	switch (wrong) {
	case BEFORE_THE_REGION:
		info->addr = (uintptr_t)s->p.b.buf - 1;
		break;
	case BEYOND_THE_REGION:
		info->addr = (uintptr_t)s->p.b.buf + s->p.b.bytes - BYTES + 1;
		break;
	case TOO_LONG:
		info->length = s->p.b.bytes + 1;
		break;
	case AROUND_THE_END_OF_TIME:
		info->length = UINT64_MAX;
		break;
	case ZERO_BASED_REGION:
		info->addr = AT;
		break;
	case NOTHING_OF_NO_REGION:
		info->mr = NULL;
		info->length = 0;
		break;
	case NOTHING: /* IBA o10-37.2.40: that is for type 1 */
		info->length = 0;
		break;
	case ATOMIC_WITHOUT_LOCAL_WRITE:
		info->mw_access_flags = IBV_ACCESS_REMOTE_ATOMIC;
		break;
	case WRITE_WITHOUT_LOCAL_WRITE:
		info->mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
		break;
	default:
		break;
	}
}

static int region_access(enum wrong wrong)
{
	switch (wrong) {
	case NO_MW_BIND:
		return IBV_ACCESS_LOCAL_WRITE;
	case WRITE_WITHOUT_LOCAL_WRITE:
	case ATOMIC_WITHOUT_LOCAL_WRITE:
		return IBV_ACCESS_MW_BIND;
	case ZERO_BASED_REGION:
		return REGION_ACCESS | IBV_ACCESS_ZERO_BASED;
	default:
		return REGION_ACCESS;
	}
}

static void bind_wrongly(enum wrong wrong)
{
	struct ibv_pd *other_pd = ibv_alloc_pd(vt.ctx);
	struct ibv_mw_bind_info info;
	struct ibv_send_wr wr;
	struct scene s;

	scene_open_as(&s, IBV_QPT_RC, IBV_MW_TYPE_2, region_access(wrong));
	if (wrong == REGION_OF_OTHER_PD) {
		assert_int_equal(ibv_dereg_mr(s.mr), 0);
		s.mr = vt_mr(other_pd, s.p.b.buf, s.p.b.bytes, REGION_ACCESS);
	} else if (wrong == WINDOW_OF_OTHER_PD) {
		assert_int_equal(ibv_dealloc_mw(s.mw), 0);
		s.mw = ibv_alloc_mw(other_pd, IBV_MW_TYPE_2);
		s.rkey = s.mw->rkey;
	} else if (wrong == BOUND_ALREADY) {
		bind_all(&s);
	}
	info = stretch(&s, AT, BYTES, REMOTE);
	make_wrong(&s, wrong, &info);
	wr = bind_wr(&s, &info);
	assert_int_equal(post(s.p.b.qp, &wr), 0);
	vt_expect(s.p.b.cq, 10, IBV_WC_MW_BIND_ERR);
	assert_int_equal(vt_state(s.p.b.qp), IBV_QPS_ERR);
	if (wrong != BOUND_ALREADY)
		assert_int_equal(ibv_dereg_mr(s.mr), 0);
	else
		assert_int_equal(ibv_dereg_mr(s.mr), EBUSY);
	s.mr = wrong == BOUND_ALREADY ? s.mr : NULL;
	scene_close(&s);
	assert_int_equal(ibv_dealloc_pd(other_pd), 0);
}

vt_test(a_bind_that_breaks_a_rule_completes_with_an_error)
{
	for (int wrong = 0; wrong < WRONGS; wrong++)
		bind_wrongly((enum wrong)wrong);
}

/* A window for reading needs no LOCAL_WRITE of its region. */
scene_as_test(reading_needs_no_local_write, IBV_QPT_RC, IBV_MW_TYPE_2, IBV_ACCESS_MW_BIND)
{
	struct ibv_mw_bind_info info;

	info = stretch(s, AT, BYTES, IBV_ACCESS_REMOTE_READ);
	bind_on(s, &s->p.b, &info);
	access_as(&s->p.a, &s->p.b, IBV_WR_RDMA_READ, (uintptr_t)s->p.b.buf + AT, s->rkey, 8, true);
}

/* --- order --- */

/*
 * ibv_bind_mw(3): "The user may safely send the R_key using a send request on the same QP". Nothing
 * is waited for in between, and nothing but the SEND tells.
 */
scene_test(a_send_behind_a_bind_may_carry_the_key, IBV_MW_TYPE_2)
{
	struct ibv_mw_bind_info info;
	struct ibv_send_wr bind, *bad;
	struct vt_wr send;

	info = stretch(s, AT, BYTES, REMOTE);
	for (unsigned i = 0; i < 100; i++) {
		vt_recv(&s->p.a, 3);
		bind = bind_wr(s, &info);
		bind.send_flags = 0;
		vt_wr(&send, IBV_WR_SEND, &s->p.b, &s->p.a, 8);
		send.wr.sg_list = &send.sge;
		bind.next = &send.wr;
		assert_int_equal(ibv_post_send(s->p.b.qp, &bind, &bad), 0);
		vt_expect(s->p.a.cq, 3, IBV_WC_SUCCESS);
		write_at(s, AT, 8, true);
		vt_expect(s->p.b.cq, 1, IBV_WC_SUCCESS);
		vt_invalidate(&s->p.b, s->rkey, IBV_WC_SUCCESS);
	}
}

scene_test(completions_come_in_the_order_of_posting, IBV_MW_TYPE_2)
{
	struct ibv_mw_bind_info info;
	struct ibv_send_wr bind, inv, *bad;
	struct vt_wr write, read;

	info = stretch(s, AT, BYTES, REMOTE);
	vt_wr(&write, IBV_WR_RDMA_WRITE, &s->p.b, &s->p.a, 60000);
	write.wr.sg_list = &write.sge;
	bind = bind_wr(s, &info);
	vt_wr(&read, IBV_WR_RDMA_READ, &s->p.b, &s->p.a, 60000);
	read.wr.sg_list = &read.sge;
	read.wr.wr_id = 2;
	inv = inv_wr(IBV_WR_LOCAL_INV, s->rkey);
	inv.send_flags |= IBV_SEND_FENCE;
	write.wr.next = &bind;
	bind.next = &read.wr;
	read.wr.next = &inv;
	assert_int_equal(ibv_post_send(s->p.b.qp, &write.wr, &bad), 0);
	vt_expect(s->p.b.cq, 1, IBV_WC_SUCCESS);
	vt_expect(s->p.b.cq, 10, IBV_WC_SUCCESS);
	vt_expect(s->p.b.cq, 2, IBV_WC_SUCCESS);
	vt_expect(s->p.b.cq, 11, IBV_WC_SUCCESS);
}

scene_test(without_a_signal_it_says_nothing, IBV_MW_TYPE_2)
{
	struct ibv_mw_bind_info info;
	struct ibv_send_wr wr;

	info = stretch(s, AT, BYTES, REMOTE);
	wr = bind_wr(s, &info);
	wr.send_flags = 0;
	assert_int_equal(post(s->p.b.qp, &wr), 0);
	vt_expect_none(s->p.b.cq);
	write_at(s, AT, 8, true);
}

vt_test(a_full_queue_takes_no_bind)
{
	struct vt_options opt = { .send_wr = 4 };
	struct ibv_mw_bind bind = { .wr_id = 10, .send_flags = IBV_SEND_SIGNALED };
	struct scene s = { .mr = NULL };

	vt_pair_open(&s.p, &opt);
	s.mr = vt_mr(vt.pd, s.p.b.buf, s.p.b.bytes, REGION_ACCESS);
	s.mw = ibv_alloc_mw(vt.pd, IBV_MW_TYPE_1);
	bind.bind_info = stretch(&s, AT, BYTES, REMOTE);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(ibv_bind_mw(s.p.b.qp, s.mw, &bind), 0);
	assert_int_equal(ibv_bind_mw(s.p.b.qp, s.mw, &bind), ENOMEM);
	for (unsigned i = 0; i < 4; i++)
		vt_expect(s.p.b.cq, 10, IBV_WC_SUCCESS);
	assert_int_equal(ibv_bind_mw(s.p.b.qp, s.mw, &bind), 0);
	vt_expect(s.p.b.cq, 10, IBV_WC_SUCCESS);
	s.rkey = s.mw->rkey;
	write_at(&s, AT, 8, true);
	scene_close(&s);
}

scene_test(in_the_error_state_it_is_flushed, IBV_MW_TYPE_2)
{
	struct ibv_mw_bind_info info;
	struct ibv_send_wr wr;

	info = stretch(s, AT, BYTES, REMOTE);
	assert_int_equal(vt_modify(s->p.b.qp, IBV_QPS_ERR), 0);
	wr = bind_wr(s, &info);
	assert_int_equal(post(s->p.b.qp, &wr), 0);
	vt_expect(s->p.b.cq, 10, IBV_WC_WR_FLUSH_ERR);
	wr = inv_wr(IBV_WR_LOCAL_INV, s->rkey);
	assert_int_equal(post(s->p.b.qp, &wr), 0);
	vt_expect(s->p.b.cq, 11, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ibv_dereg_mr(s->mr), 0);
	s->mr = NULL;
}

/* --- the QP's end is the end of the bindings of type 2 --- */

scene_test(reset_unbinds, IBV_MW_TYPE_2)
{
	bind_all(s);
	vt_pair_reconnect(&s->p);
	write_at(s, AT, 8, false);
	vt_pair_reconnect(&s->p);
	bind_all(s);
	write_at(s, AT, 8, true);
}

scene_test(destroying_unbinds, IBV_MW_TYPE_2)
{
	struct vt_pair other;

	bind_all(s);
	vt_pair_open(&other, NULL);
	assert_int_equal(ibv_destroy_qp(s->p.b.qp), 0);
	s->p.b.qp = NULL;
	assert_int_equal(ibv_dereg_mr(s->mr), 0);
	s->mr = vt_mr(vt.pd, s->p.b.buf, s->p.b.bytes, REGION_ACCESS);
	s->rkey = s->mw->rkey;
	bind_on(s, &other.b, &(struct ibv_mw_bind_info){s->mr, (uintptr_t)s->p.b.buf, 64, REMOTE});
	access_as(&other.a, &other.b, IBV_WR_RDMA_WRITE, (uintptr_t)s->p.b.buf, s->rkey, 8, true);
	assert_int_equal(ibv_dealloc_mw(s->mw), 0);
	s->mw = NULL;
	vt_pair_close(&other);
}

/* --- UC --- */

scenes_as_test(windows_work_on_uc_too, i, 0, 2, IBV_QPT_UC, both_types[i], REGION_ACCESS)
{
	bind_all(s);
	write_at(s, AT, 8, true);
	for (unsigned ms = 0; ms < VT_WAIT_MS && !s->p.b.buf[AT + 7]; ms++)
		vt_sleep_ms(1);
	assert_true(vt_is_filled(s->p.b.buf + AT, 8, SEED));
	if (i)
		vt_invalidate(&s->p.b, s->rkey, IBV_WC_SUCCESS);
	else
		bind_on(s, &s->p.b, &(struct ibv_mw_bind_info){ .mr = NULL });
	/* UC says nothing about what does not arrive. */
	write_at(s, AT + 8, 8, true);
	vt_sleep_ms(VT_QUIET_MS);
	assert_true(vt_is_octet(s->p.b.buf + AT + 8, 8, 0));
}

/* A failed work request stops a UC's sending, not its receiving (IBA 10.3.1.6). */
scene_as_test(a_failed_bind_stops_uc_sending, IBV_QPT_UC, IBV_MW_TYPE_2, REGION_ACCESS)
{
	vt_invalidate(&s->p.b, s->rkey, IBV_WC_MW_BIND_ERR);
	assert_int_equal(vt_state(s->p.b.qp), IBV_QPS_SQE);
}

/* --- threads --- */

enum { THREADS = 4, ROUNDS = 300 };

struct worker {
	struct scene s;
	pthread_t thread;
	const char *wrong; /* NULL: all went well */
};

static bool done(struct vt_end *end)
{
	struct ibv_wc wc;

	return vt_poll_ms(end->cq, &wc, VT_WAIT_MS) && wc.status == IBV_WC_SUCCESS;
}

static void *worker_run(void *arg)
{
	struct worker *worker = arg;
	struct scene *s = &worker->s;
	struct ibv_mw_bind_info info = stretch(s, AT, BYTES, REMOTE);
	struct ibv_send_wr bind, inv;
	struct vt_wr w;

	for (unsigned i = 0; i < ROUNDS && !worker->wrong; i++) {
		bind = bind_wr(s, &info);
		if (post(s->p.b.qp, &bind) || !done(&s->p.b))
			worker->wrong = "a bind";
		vt_wr(&w, IBV_WR_RDMA_WRITE, &s->p.a, &s->p.b, 8);
		w.wr.wr.rdma.remote_addr = (uintptr_t)s->p.b.buf + AT;
		w.wr.wr.rdma.rkey = s->rkey;
		if (!worker->wrong && (post(s->p.a.qp, &w.wr) || !done(&s->p.a)))
			worker->wrong = "a write";
		inv = inv_wr(IBV_WR_LOCAL_INV, s->rkey);
		if (!worker->wrong && (post(s->p.b.qp, &inv) || !done(&s->p.b)))
			worker->wrong = "an invalidation";
	}
	return NULL;
}

vt_test(threads_bind_side_by_side)
{
	struct worker workers[THREADS] = { { .wrong = NULL } };

	for (unsigned i = 0; i < THREADS; i++) {
		scene_open(&workers[i].s, IBV_MW_TYPE_2);
		assert_int_equal(pthread_create(&workers[i].thread, NULL, worker_run, &workers[i]),
				 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	for (unsigned i = 0; i < THREADS; i++) {
		if (workers[i].wrong)
			fail_msg("thread %u: %s failed", i, workers[i].wrong);
		scene_close(&workers[i].s);
	}
}
