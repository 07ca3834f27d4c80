/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <malloc.h>

/*
 * ibv_create_qp(3), sentence by sentence: the words above a test are the manual's, and
 * SENTENCES.md lists them.
 */


/* What a create needs, and can be asked to be too much. */
struct fixture {
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq;
	struct ibv_device_attr device;
};

static void fixture_open(struct fixture *f)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 16, .max_sge = 2 } };

	assert_int_equal(ibv_query_device(vt.ctx, &f->device), 0);
	f->send_cq = vt_cq(64, NULL);
	f->recv_cq = vt_cq(64, NULL);
	f->srq = vt_made(ibv_create_srq(vt.pd, &srq));
}

static void fixture_close(struct fixture *f)
{
	assert_int_equal(ibv_destroy_srq(f->srq), 0);
	assert_int_equal(ibv_destroy_cq(f->send_cq), 0);
	assert_int_equal(ibv_destroy_cq(f->recv_cq), 0);
}

#define fixture_test(name) \
	vt_with(vt_test, name, struct fixture, f, fixture_open(&f), fixture_close(&f))

static struct ibv_qp_init_attr init_of(const struct fixture *f, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init;

	memset(&init, 0, sizeof(init)); /* the gaps as well: it is compared octet by octet */
	init.send_cq = f->send_cq;
	init.recv_cq = f->recv_cq;
	init.cap = (struct ibv_qp_cap){ 2, 2, 1, 1, 0 };
	init.qp_type = type;
	return init;
}

static void expect_refused(struct ibv_qp_init_attr *init, int err)
{
	struct ibv_qp_init_attr before = *init;

	vt_refused(err, ibv_create_qp(vt.pd, init));
	assert_memory_equal(init, &before, sizeof(before));
}

/* create: "creates a queue pair (QP) associated with the protection domain pd" */
/* create: "The argument qp_init_attr is an ibv_qp_init_attr struct" */
fixture_test(it_belongs_to_its_pd)
{
	for (int i = 0; i < VT_TYPES; i++) {
		struct ibv_qp_init_attr init = init_of(f, vt_types[i]);
		struct ibv_pd *pd = ibv_alloc_pd(vt.ctx);
		struct ibv_qp *qp = ibv_create_qp(pd, &init);

		assert_non_null(qp);
		assert_ptr_equal(qp->pd, pd);
		assert_ptr_equal(qp->context, vt.ctx);
		assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
		assert_int_equal(ibv_destroy_qp(qp), 0);
		assert_int_equal(ibv_dealloc_pd(pd), 0);
	}
}

/* create: "Associated context of the QP" */
fixture_test(it_carries_the_context_it_was_given)
{
	struct ibv_qp_init_attr init, told;
	struct ibv_qp_attr attr;
	struct ibv_qp *qp;
	int mine;

	init = init_of(f, IBV_QPT_RC);
	init.qp_context = &mine;
	qp = vt_made(ibv_create_qp(vt.pd, &init));
	assert_ptr_equal(qp->qp_context, &mine);
	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_CAP, &told), 0);
	assert_ptr_equal(told.qp_context, &mine);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* create: "CQ to be associated with the Send Queue (SQ)" */
/* create: "CQ to be associated with the Receive Queue (RQ)" */
vt_end_test(each_queue_completes_on_its_cq)
{
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp_init_attr init;
	struct ibv_qp *own;

	send_cq = vt_cq(8, NULL);
	recv_cq = vt_cq(8, NULL);
	init = (struct ibv_qp_init_attr){ .send_cq = send_cq, .recv_cq = recv_cq,
					  .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	own = end->qp;
	end->qp = vt_made(ibv_create_qp(vt.pd, &init));
	/* A QP may be its own peer. */
	vt_climb(end->qp, &end->opt, IBV_QPS_RTS, end->qp->qp_num);
	vt_recv(end, 7);
	vt_send(end, end, 8);
	vt_expect(recv_cq, 7, IBV_WC_SUCCESS);
	vt_expect(send_cq, 8, IBV_WC_SUCCESS);
	vt_expect_none(send_cq);
	vt_expect_none(recv_cq);
	assert_int_equal(ibv_destroy_cq(send_cq), EBUSY);
	assert_int_equal(ibv_destroy_cq(recv_cq), EBUSY);
	assert_int_equal(ibv_destroy_qp(end->qp), 0);
	assert_int_equal(ibv_destroy_cq(send_cq), 0);
	assert_int_equal(ibv_destroy_cq(recv_cq), 0);
	end->qp = own;
}

/* A CQ is needed on both sides, and of the same device. */
fixture_test(without_a_cq_it_is_refused)
{
	struct ibv_qp_init_attr init;

	init = init_of(f, IBV_QPT_RC);
	init.send_cq = NULL;
	expect_refused(&init, EINVAL);
	init = init_of(f, IBV_QPT_UD);
	init.recv_cq = NULL;
	expect_refused(&init, EINVAL);
}

vt_test(what_belongs_to_another_context_is_refused)
{
	struct ibv_context *other = vt_made(ibv_open_device(vt.ctx->device));
	struct ibv_cq *cq;
	struct ibv_qp_init_attr init;
	struct fixture f;

	cq = vt_made(ibv_create_cq(other, 4, NULL, NULL, 0));
	fixture_open(&f);
	init = init_of(&f, IBV_QPT_RC);
	init.recv_cq = cq;
	expect_refused(&init, EINVAL);
	init = init_of(&f, IBV_QPT_RC);
	init.send_cq = cq;
	expect_refused(&init, EINVAL);
	fixture_close(&f);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_close_device(other), 0);
}

/* create: "SRQ handle if QP is to be associated with an SRQ, otherwise NULL" */
vt_pair_test(it_receives_from_the_srq_it_was_given, .srq = true)
{
	struct ibv_recv_wr wr = { .wr_id = 3 }, *bad = NULL;

	assert_null(p->a.qp->srq);
	assert_ptr_equal(p->b.qp->srq, p->b.srq);
	assert_int_equal(ibv_destroy_srq(p->b.srq), EBUSY);
	/* Its own receive queue is not used then (ibv_post_recv(3)). */
	assert_int_equal(ibv_post_recv(p->b.qp, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	vt_exchange(&p->a, &p->b);
}

/* create: "QP Transport Service Type: IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_RAW_PACKET" */
/* create: "returns a pointer to the created QP" */
fixture_test(it_has_the_type_it_was_asked_for)
{
	struct ibv_qp_init_attr told, init;
	struct ibv_qp_attr attr;

	for (int i = 0; i < VT_TYPES; i++) {
		struct ibv_qp *qp;

		init = init_of(f, vt_types[i]);
		qp = vt_made(ibv_create_qp(vt.pd, &init));
		assert_int_equal(qp->qp_type, vt_types[i]);
		assert_int_equal(qp->state, IBV_QPS_RESET);
		assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &told), 0);
		assert_int_equal(told.qp_type, vt_types[i]);
		assert_int_equal(attr.qp_state, IBV_QPS_RESET);
		assert_ptr_equal(told.send_cq, f->send_cq);
		assert_ptr_equal(told.recv_cq, f->recv_cq);
		assert_null(told.srq);
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
	init = init_of(f, IBV_QPT_RAW_PACKET);
	if (!vt_by_udp()) {
		struct ibv_qp *qp = ibv_create_qp(vt.pd, &init);

		assert_non_null(qp);
		assert_int_equal(qp->qp_type, IBV_QPT_RAW_PACKET);
		assert_int_equal(ibv_destroy_qp(qp), 0);
	} else {
		expect_refused(&init, EOPNOTSUPP);
	}
}

/* create: "IBV_QPT_DRIVER does not represent a specific service" */
fixture_test(types_that_there_are_not_are_refused)
{
	static const enum ibv_qp_type none[] = { IBV_QPT_DRIVER, 0, 77, -1 };

	for (unsigned i = 0; i < VT_COUNT(none); i++) {
		struct ibv_qp_init_attr init = init_of(f, none[i]);

		expect_refused(&init, EOPNOTSUPP);
	}
}

static void post_unsignaled_then_signaled(struct vt_pair *p)
{
	struct vt_wr w;

	vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, 8);
	w.wr.send_flags = 0;
	w.wr.wr_id = 21;
	vt_post(&p->a, &w);
	w.wr.send_flags = IBV_SEND_SIGNALED;
	w.wr.wr_id = 22;
	vt_post(&p->a, &w);
}

/* create: "If set, each Work Request (WR) submitted to the SQ generates a completion entry" */
vt_pairs_test(sq_sig_all_makes_every_send_complete, all, 0, 2, .type = IBV_QPT_RC,
	      .sq_sig_all = all)
{
	struct ibv_qp_init_attr told;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(p->a.qp, &attr, IBV_QP_CAP, &told), 0);
	assert_int_equal(told.sq_sig_all, all);
	post_unsignaled_then_signaled(p);
	if (all)
		vt_expect(p->a.cq, 21, IBV_WC_SUCCESS);
	vt_expect(p->a.cq, 22, IBV_WC_SUCCESS);
	vt_expect_none(p->a.cq);
}

/* create: "Requested max number of outstanding WRs in the SQ" */
vt_pair_test(the_send_queue_holds_what_was_granted, .send_wr = 5,
	     .state = IBV_QPS_RTS)
{
	struct ibv_qp_attr attr;
	struct vt_wr w;

	attr = vt_query(p->a.qp, IBV_QP_CAP);
	assert_true(attr.cap.max_send_wr >= 5);
	vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, 8);
	/* An unpolled completion keeps its place: nothing comes free without a poll. */
	for (uint32_t i = 0; i < attr.cap.max_send_wr; i++) {
		w.wr.wr_id = i;
		vt_post(&p->a, &w);
	}
	assert_int_equal(vt_try(&p->a, &w), ENOMEM);
	for (uint32_t i = 0; i < attr.cap.max_send_wr; i++)
		vt_expect(p->a.cq, i, IBV_WC_SUCCESS);
	w.wr.wr_id = 99;
	vt_post(&p->a, &w);
	vt_expect(p->a.cq, 99, IBV_WC_SUCCESS);
}

/* create: "Requested max number of outstanding WRs in the RQ" */
vt_pair_test(the_receive_queue_holds_what_was_granted, .type = IBV_QPT_UD, .recv_wr = 5)
{
	struct ibv_qp_attr attr;

	attr = vt_query(p->b.qp, IBV_QP_CAP);
	assert_true(attr.cap.max_recv_wr >= 5);
	for (uint32_t i = 0; i < attr.cap.max_recv_wr; i++)
		assert_int_equal(vt_recv_at(&p->b, i, 0, 64), 0);
	assert_int_equal(vt_recv_at(&p->b, 77, 0, 64), ENOMEM);
	vt_send(&p->a, &p->b, 1);
	vt_expect(p->b.cq, 0, IBV_WC_SUCCESS);
	assert_int_equal(vt_recv_at(&p->b, 78, 0, 64), 0);
	vt_expect(p->a.cq, 1, IBV_WC_SUCCESS);
}

/* create: "Requested max number of scatter/gather (s/g) elements in a WR in the SQ" */
/* create: "Requested max number of s/g elements in a WR in the SQ" */
vt_pair_test(as_many_pieces_as_granted_can_be_posted, .sge = 7)
{
	struct ibv_recv_wr recv = { .wr_id = 2 }, *bad_recv = NULL;
	struct ibv_qp_attr attr;
	struct ibv_sge sge[64];
	struct vt_wr w;

	attr = vt_query(p->a.qp, IBV_QP_CAP);
	assert_in_range(attr.cap.max_send_sge, 7, 63);
	assert_in_range(attr.cap.max_recv_sge, 7, 63);
	/* Every second octet of b, from every third of a. */
	for (uint32_t i = 0; i < 64; i++)
		sge[i] = (struct ibv_sge){ (uintptr_t)p->b.buf + 2 * i, 1, p->b.mr->lkey };
	recv.sg_list = sge;
	recv.num_sge = (int)attr.cap.max_recv_sge;
	assert_int_equal(ibv_post_recv(p->b.qp, &recv, &bad_recv), 0);
	recv.num_sge++;
	assert_int_equal(ibv_post_recv(p->b.qp, &recv, &bad_recv), EINVAL);
	vt_fill(p->a.buf, 200, 3);
	for (uint32_t i = 0; i < 64; i++)
		sge[i] = (struct ibv_sge){ (uintptr_t)p->a.buf + 3 * i, 1, p->a.mr->lkey };
	vt_wr(&w, IBV_WR_SEND, &p->a, &p->b, 0);
	w.wr.sg_list = sge;
	w.wr.num_sge = (int)attr.cap.max_send_sge + 1;
	assert_int_equal(ibv_post_send(p->a.qp, &w.wr, &(struct ibv_send_wr *){ NULL }), EINVAL);
	w.wr.num_sge--;
	assert_int_equal(ibv_post_send(p->a.qp, &w.wr, &(struct ibv_send_wr *){ NULL }), 0);
	assert_int_equal(vt_expect(p->b.cq, 2, IBV_WC_SUCCESS).byte_len, attr.cap.max_send_sge);
	vt_expect(p->a.cq, 1, IBV_WC_SUCCESS);
	for (uint32_t i = 0; i < attr.cap.max_send_sge; i++) {
		assert_int_equal(p->b.buf[2 * i], p->a.buf[3 * i]);
		assert_int_equal(p->b.buf[2 * i + 1], 0);
	}
}

static void send_inline(enum ibv_qp_type type, uint32_t bytes)
{
	struct vt_options opt = { .type = type, .inline_bytes = bytes };
	uint32_t head = type == IBV_QPT_UD ? 40 : 0;
	struct ibv_qp_attr attr;
	struct vt_pair p;
	struct vt_wr w;

	vt_pair_open(&p, &opt);
	attr = vt_query(p.a.qp, IBV_QP_CAP);
	assert_true(attr.cap.max_inline_data >= bytes);
	vt_recv(&p.b, 2);
	vt_fill(p.a.buf, attr.cap.max_inline_data, 9);
	vt_wr(&w, IBV_WR_SEND, &p.a, &p.b, attr.cap.max_inline_data + 1);
	w.wr.send_flags |= IBV_SEND_INLINE;
	assert_int_equal(vt_try(&p.a, &w), EINVAL);
	w.sge.length--;
	w.sge.lkey = 0; /* not looked at (ibv_post_send(3)) */
	vt_post(&p.a, &w);
	memset(p.a.buf, 0, attr.cap.max_inline_data);
	assert_int_equal(vt_expect(p.b.cq, 2, IBV_WC_SUCCESS).byte_len,
			 attr.cap.max_inline_data + head);
	assert_true(vt_is_filled(p.b.buf + head, attr.cap.max_inline_data, 9));
	vt_expect(p.a.cq, 1, IBV_WC_SUCCESS);
	vt_pair_close(&p);
}

/*
 * create: "Requested max number of data (bytes) that can be posted inline to the SQ, otherwise 0"
 */
vt_test(as_much_inline_as_granted_can_be_posted)
{
	for (int i = 0; i < VT_TYPES; i++) {
		send_inline(vt_types[i], 1);
		send_inline(vt_types[i], 220);
	}
}

/* create: "QP capabilities" */
/* create: "will update the qp_init_attr->cap struct with the actual QP values" */
/* create: "the values will be greater than or equal to the values requested" */
fixture_test(caps_come_back_as_they_are)
{
	static const struct ibv_qp_cap wanted[] = {
		{ 1, 1, 1, 1, 0 }, { 2, 2, 1, 1, 0 },	 { 3, 5, 2, 3, 17 },
		{ 100, 0, 1, 0, 0 }, { 0, 100, 0, 1, 0 }, { 1000, 999, 16, 30, 236 },
	};

	for (unsigned i = 0; i < VT_TYPES * VT_COUNT(wanted); i++) {
		struct ibv_qp_init_attr init = init_of(f, vt_types[i % VT_TYPES]), told;
		const struct ibv_qp_cap *w = &wanted[i / VT_TYPES];
		struct ibv_qp_attr attr;
		struct ibv_qp *qp;

		init.cap = *w;
		qp = vt_made(ibv_create_qp(vt.pd, &init));
		assert_true(init.cap.max_send_wr >= w->max_send_wr);
		assert_true(init.cap.max_recv_wr >= w->max_recv_wr);
		assert_true(init.cap.max_send_sge >= w->max_send_sge);
		assert_true(init.cap.max_recv_sge >= w->max_recv_sge);
		assert_true(init.cap.max_inline_data >= w->max_inline_data);
		assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_CAP, &told), 0);
		assert_memory_equal(&attr.cap, &init.cap, sizeof(attr.cap));
		assert_memory_equal(&told.cap, &init.cap, sizeof(attr.cap));
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
}

/* All that the device says it can be, at once, and not one more of anything. */
fixture_test(the_advertised_limits_are_the_limits)
{
	for (int i = 0; i < VT_TYPES; i++) {
		struct ibv_qp_init_attr init = init_of(f, vt_types[i]), over;
		struct ibv_qp *qp;

		init.cap = (struct ibv_qp_cap){
			.max_send_wr = (uint32_t)f->device.max_qp_wr,
			.max_recv_wr = (uint32_t)f->device.max_qp_wr,
			.max_send_sge = (uint32_t)f->device.max_sge,
			.max_recv_sge = (uint32_t)f->device.max_sge,
		};
		over = init;
		over.cap.max_send_wr++;
		expect_refused(&over, EINVAL);
		over = init;
		over.cap.max_recv_wr++;
		expect_refused(&over, EINVAL);
		over = init;
		over.cap.max_send_sge++;
		expect_refused(&over, EINVAL);
		over = init;
		over.cap.max_recv_sge++;
		expect_refused(&over, EINVAL);
		qp = vt_made(ibv_create_qp(vt.pd, &init));
		assert_true(init.cap.max_send_wr >= (uint32_t)f->device.max_qp_wr);
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
}

/* create: "or NULL if the request fails" */
fixture_test(too_much_is_refused_and_leaves_no_trace)
{
	static const struct ibv_qp_cap too_much[] = {
		{ 1u << 20, 1, 1, 1, 0 },  { 1, 1u << 20, 1, 1, 0 },
		{ 1, 1, 1000, 1, 0 },	   { 1, 1, 1, 1000, 0 },
		{ 1, 1, 1, 1, 1u << 20 },  { UINT32_MAX, 1, 1, 1, 0 },
		{ 1, UINT32_MAX, 1, 1, 0 }, { 1, 1, UINT32_MAX, 1, 0 },
		{ 1, 1, 1, UINT32_MAX, 0 }, { 1, 1, 1, 1, UINT32_MAX },
	};
	size_t before = 0;

	for (int round = 0; round < 2000; round++) {
		for (unsigned i = 0; i < VT_COUNT(too_much); i++) {
			struct ibv_qp_init_attr init = init_of(f, vt_types[i % VT_TYPES]);

			init.cap = too_much[i];
			expect_refused(&init, EINVAL);
		}
		if (!round)
			before = mallinfo2().uordblks;
	}
	/* 20000 refusals that left a queue pair each would be 40 MB; a link's buffers are 1 MB. */
	assert_true(mallinfo2().uordblks < before + (4u << 20));
}

/* libfabric doubles until refused, Open MPI comes down from a megabyte: both find the same. */
fixture_test(the_inline_limit_can_be_searched)
{
	struct ibv_qp_init_attr init;
	uint32_t up = 0, down = 0;

	for (uint32_t want = 1; want <= 1u << 20; want *= 2) {
		struct ibv_qp *qp;

		init = init_of(f, IBV_QPT_RC);
		init.cap.max_inline_data = want;
		qp = ibv_create_qp(vt.pd, &init);
		if (!qp)
			break;
		up = want;
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
	for (uint32_t want = 1u << 20; want && !down; want /= 2) {
		struct ibv_qp *qp;

		init = init_of(f, IBV_QPT_RC);
		init.cap.max_inline_data = want;
		qp = ibv_create_qp(vt.pd, &init);
		if (!qp)
			continue;
		down = want;
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
	assert_int_equal(up, down);
	assert_in_range(up, 64, 4096);
}

static int by_number(const void *a, const void *b)
{
	const struct ibv_qp *const *x = a, *const *y = b;

	return (*x)->qp_num < (*y)->qp_num ? -1 : (*x)->qp_num > (*y)->qp_num;
}

/* create: "Check the QP number (qp_num) in the returned QP" */
fixture_test(every_qp_has_a_number_of_its_own)
{
	enum { COUNT = 1000 };
	static struct ibv_qp *qps[COUNT];

	for (int i = 0; i < COUNT; i++) {
		struct ibv_qp_init_attr init = init_of(f, vt_types[i % VT_TYPES]);

		qps[i] = vt_made(ibv_create_qp(vt.pd, &init));
		assert_in_range(qps[i]->qp_num, 2, 0xfffffe); /* 0 and 1 are special */
	}
	qsort(qps, COUNT, sizeof(qps[0]), by_number);
	for (int i = 1; i < COUNT; i++)
		assert_true(qps[i - 1]->qp_num < qps[i]->qp_num);
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(ibv_destroy_qp(qps[i]), 0);
}

/* A packet that is still under way must not meet a stranger. */
fixture_test(a_number_is_not_given_again_at_once)
{
	uint32_t last = 0;

	for (int i = 0; i < 100; i++) {
		struct ibv_qp_init_attr init = init_of(f, IBV_QPT_RC);
		struct ibv_qp *qp = ibv_create_qp(vt.pd, &init);

		assert_non_null(qp);
		assert_int_not_equal(qp->qp_num, last);
		last = qp->qp_num;
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
}

/* As many as max_qp says, and the next is refused; afterwards all can be had again. */
fixture_test(max_qp_is_true)
{
	struct ibv_qp **qps;

	qps = vt_made(calloc((size_t)f->device.max_qp, sizeof(struct ibv_qp *)));
	for (int round = 0; round < 2; round++) {
		struct ibv_qp_init_attr init = init_of(f, IBV_QPT_UC);

		for (int i = 0; i < f->device.max_qp; i++) {
			qps[i] = ibv_create_qp(vt.pd, &init);
			if (!qps[i])
				fail_msg("QP %d of %d: %s", i, f->device.max_qp, strerror(errno));
		}
		expect_refused(&init, ENOMEM);
		for (int i = 0; i < f->device.max_qp; i++)
			assert_int_equal(ibv_destroy_qp(qps[i]), 0);
	}
	free(qps);
}

/*
 * create: "will fail if a it is asked to create QP of a type other than IBV_QPT_RC or IBV_QPT_UD"
 */
fixture_test(an_srq_goes_with_rc_and_ud_only)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp *qp;

	init = init_of(f, IBV_QPT_UC);
	init.srq = f->srq;
	expect_refused(&init, EINVAL);
	for (int i = 0; i < VT_TYPES; i++) {
		if (vt_types[i] == IBV_QPT_UC)
			continue;
		init = init_of(f, vt_types[i]);
		init.srq = f->srq;
		qp = vt_made(ibv_create_qp(vt.pd, &init));
		assert_ptr_equal(qp->srq, f->srq);
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
}

/* create: "The attributes max_recv_wr and max_recv_sge are ignored" */
fixture_test(with_an_srq_receive_caps_do_not_matter)
{
	static const uint32_t values[] = { 0, 1, 1u << 20, UINT32_MAX };

	for (unsigned i = 0; i < 2 * 4 * 4; i++) {
		struct ibv_qp_init_attr init = init_of(f, i & 1 ? IBV_QPT_RC : IBV_QPT_UD);
		struct ibv_qp *qp;

		init.srq = f->srq;
		init.cap.max_recv_wr = values[i / 2 % 4];
		init.cap.max_recv_sge = values[i / 8];
		qp = vt_made(ibv_create_qp(vt.pd, &init));
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
}
