/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive queues: ibv_create_srq_ex(3), ibv_modify_srq(3), ibv_get_srq_num(3), and what
 * IBA 10.2.9 says of QPs that share one. queues_test.c has the rest of what one queue does.
 */
#include "lib.h"

#include <pthread.h>
#include <stdatomic.h>

/* --- ibv_create_srq_ex(3) --- */

static struct ibv_srq_init_attr_ex basic(void)
{
	return (struct ibv_srq_init_attr_ex){
		.srq_context = &vt,
		.attr = { .max_wr = 20, .max_sge = 3, .srq_limit = 7 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_BASIC,
		.pd = vt.pd,
	};
}

static void expect_refused(struct ibv_srq_init_attr_ex attr, int err)
{
	struct ibv_srq_init_attr_ex before;

	memcpy(&before, &attr, sizeof(before)); /* its padding, too */
	vt_refused(err, ibv_create_srq_ex(vt.ctx, &attr));
	assert_memory_equal(&attr, &before, sizeof(attr));
}

/* The basic type with its PD is what ibv_create_srq() makes: the header itself turns to that. */
vt_test(a_basic_one_is_like_any)
{
	for (int with_type = 0; with_type < 2; with_type++) {
		struct ibv_srq_init_attr_ex attr = basic();
		struct ibv_srq_attr now;
		struct ibv_srq *srq;

		if (!with_type)
			attr.comp_mask = IBV_SRQ_INIT_ATTR_PD;
		srq = vt_made(ibv_create_srq_ex(vt.ctx, &attr));
		assert_ptr_equal(srq->context, vt.ctx);
		assert_ptr_equal(srq->srq_context, &vt);
		assert_ptr_equal(srq->pd, vt.pd);
		/* "the values of max_wr and max_sge will be greater than or equal" */
		assert_true(attr.attr.max_wr >= 20);
		assert_true(attr.attr.max_sge >= 3);
		assert_int_equal(ibv_query_srq(srq, &now), 0);
		assert_int_equal(now.max_wr, attr.attr.max_wr);
		assert_int_equal(now.max_sge, attr.attr.max_sge);
		assert_int_equal(now.srq_limit, 0);
		assert_int_equal(ibv_destroy_srq(srq), 0);
	}
}

/* Other devices take a CQ and pass over it: it is not even in use. */
vt_test(the_cq_of_a_basic_one_is_passed_over)
{
	struct ibv_srq_init_attr_ex attr = basic();
	struct ibv_cq *cq = vt_cq(8, NULL);
	struct ibv_srq *srq;

	attr.comp_mask |= IBV_SRQ_INIT_ATTR_CQ;
	attr.cq = cq;
	srq = vt_made(ibv_create_srq_ex(vt.ctx, &attr));
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	attr.cq = NULL;
	srq = vt_made(ibv_create_srq_ex(vt.ctx, &attr));
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

vt_test(what_does_not_go_with_the_type_is_refused)
{
	struct ibv_context *other = ibv_open_device(vt.ctx->device);
	struct ibv_pd *elsewhere = vt_made(ibv_alloc_pd(other));
	struct ibv_srq_init_attr_ex attr = basic();
	struct ibv_cq *cq = vt_cq(8, NULL);

	attr.comp_mask = 0;
	expect_refused(attr, EINVAL);
	attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE;
	expect_refused(attr, EINVAL);
	attr = basic();
	attr.srq_type = (enum ibv_srq_type)(IBV_SRQT_TM + 1);
	expect_refused(attr, EINVAL);
	/* Tags or a domain do nothing for a basic one, and nobody shall believe they do. */
	attr = basic();
	attr.tm_cap = (struct ibv_tm_cap){ .max_num_tags = 4, .max_ops = 4 };
	attr.comp_mask |= IBV_SRQ_INIT_ATTR_TM;
	expect_refused(attr, EINVAL);
	attr = basic();
	attr.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD;
	expect_refused(attr, EINVAL);
	/* Bits that no header had when this was written. */
	attr = basic();
	attr.comp_mask |= IBV_SRQ_INIT_ATTR_RESERVED;
	expect_refused(attr, EOPNOTSUPP);
	attr.comp_mask = 1u << 31 | IBV_SRQ_INIT_ATTR_PD;
	expect_refused(attr, EOPNOTSUPP);
	/* The PD is the context's. Through the header's wrapper it says which context it is. */
	attr = basic();
	attr.srq_type = IBV_SRQT_TM;
	attr.cq = cq;
	attr.tm_cap = (struct ibv_tm_cap){ .max_num_tags = 4, .max_ops = 4 };
	attr.comp_mask |= IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
	attr.pd = elsewhere;
	expect_refused(attr, EINVAL);
	attr.pd = NULL;
	expect_refused(attr, EINVAL);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(elsewhere), 0);
	assert_int_equal(ibv_close_device(other), 0);
}

vt_cq_test(xrc_needs_a_domain, 8)
{
	struct ibv_srq_init_attr_ex attr = basic();

	attr.srq_type = IBV_SRQT_XRC;
	attr.cq = cq;
	attr.comp_mask |= IBV_SRQ_INIT_ATTR_CQ;
	expect_refused(attr, EINVAL);
	attr.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD;
	expect_refused(attr, EINVAL);
}

vt_test(sizes_go_up_to_what_the_device_says)
{
	struct ibv_srq_init_attr_ex attr = basic();
	struct ibv_device_attr device = vt_device();
	struct ibv_srq *srq;

	attr.attr.max_wr = (uint32_t)device.max_srq_wr + 1;
	expect_refused(attr, EINVAL);
	attr = basic();
	attr.attr.max_sge = (uint32_t)device.max_srq_sge + 1;
	expect_refused(attr, EINVAL);
	attr = basic();
	attr.attr.max_wr = (uint32_t)device.max_srq_wr;
	attr.attr.max_sge = (uint32_t)device.max_srq_sge;
	srq = vt_made(ibv_create_srq_ex(vt.ctx, &attr));
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

vt_test(each_has_a_number)
{
	enum { COUNT = 50 };
	struct ibv_srq *srq[COUNT];
	uint32_t number[COUNT];

	for (int i = 0; i < COUNT; i++) {
		struct ibv_srq_init_attr_ex attr = basic();

		srq[i] = vt_made(ibv_create_srq_ex(vt.ctx, &attr));
		assert_int_equal(ibv_get_srq_num(srq[i], &number[i]), 0);
		assert_in_range(number[i], 1, 0xffffff);
		for (int k = 0; k < i; k++)
			assert_int_not_equal(number[i], number[k]);
	}
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(ibv_destroy_srq(srq[i]), 0);
}

/* ibv_post_srq_ops(3) is for special types. */
vt_test(a_basic_one_has_no_tags)
{
	struct ibv_srq_init_attr_ex attr = basic();
	struct ibv_srq *srq = vt_made(ibv_create_srq_ex(vt.ctx, &attr));
	struct ibv_ops_wr wr = { .opcode = IBV_WR_TAG_SYNC }, *bad = NULL;

	assert_int_equal(ibv_post_srq_ops(srq, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

/* --- ibv_modify_srq(3) --- */

/* "The argument is either 0 or the bitwise OR": nothing to be done is done. */
vt_test(a_mask_of_nothing_changes_nothing)
{
	struct ibv_srq_init_attr_ex init = basic();
	struct ibv_srq *srq = vt_made(ibv_create_srq_ex(vt.ctx, &init));
	struct ibv_srq_attr attr = { .max_wr = 1, .srq_limit = 9 }, now;

	assert_int_equal(ibv_modify_srq(srq, &attr, 0), 0);
	assert_int_equal(ibv_query_srq(srq, &now), 0);
	assert_int_equal(now.max_wr, init.attr.max_wr);
	assert_int_equal(now.srq_limit, 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	vt_no_event();
}

/* --- QPs that share one --- */

enum { QPS = 4 };

/* One queue, one CQ and one region; QPs that receive from it, and each has one that sends. */
struct crowd {
	struct vt_options opt;
	struct vt_end common; /* has no QP */
	struct vt_end from[QPS], to[QPS];
};

static void crowd_open(struct crowd *c, const enum ibv_qp_type types[QPS])
{
	struct vt_options opt = { .recv_wr = 256, .cqe = 1024, .srq = true };
	struct ibv_qp *unused;

	vt_end_open(&c->common, &opt);
	opt.srq = false;
	unused = c->common.qp;
	assert_int_equal(ibv_destroy_qp(unused), 0);
	c->common.qp = NULL;
	for (int i = 0; i < QPS; i++) {
		struct ibv_qp_init_attr init = {
			.send_cq = c->common.cq, .recv_cq = c->common.cq, .srq = c->common.srq,
			.cap = { .max_send_wr = 64, .max_send_sge = 1 }, .qp_type = types[i],
		};

		opt.type = types[i];
		vt_end_open(&c->from[i], &opt);
		c->to[i] = c->common;
		c->to[i].qp = vt_made(ibv_create_qp(vt.pd, &init));
		vt_climb(c->from[i].qp, &opt, IBV_QPS_RTS, c->to[i].qp->qp_num);
		vt_climb(c->to[i].qp, &opt, IBV_QPS_RTS, c->from[i].qp->qp_num);
	}
	c->opt = opt;
}

static void crowd_close(struct crowd *c)
{
	for (int i = 0; i < QPS; i++) {
		/* EBUSY as long as one is left. */
		assert_int_equal(ibv_destroy_srq(c->common.srq), EBUSY);
		assert_int_equal(ibv_destroy_qp(c->to[i].qp), 0);
		vt_end_close(&c->from[i]);
	}
	vt_end_close(&c->common);
}

static const enum ibv_qp_type all_rc[QPS] = { IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_RC };

/* IBA 10.2.9.1: of whatever service; a datagram brings its GRH along. */
vt_test(services_share_a_queue)
{
	const enum ibv_qp_type types[QPS] = { IBV_QPT_RC, IBV_QPT_UD, IBV_QPT_RC, IBV_QPT_UD };
	struct crowd c;

	crowd_open(&c, types);
	for (int round = 0; round < 20; round++) {
		int i = round % QPS;
		uint32_t head = types[i] == IBV_QPT_UD ? 40 : 0;
		struct ibv_wc wc;

		memset(c.common.buf, 0, c.common.bytes);
		vt_recv(&c.common, (uint64_t)round);
		vt_fill(c.from[i].buf, 100, (unsigned)round);
		vt_start(IBV_WR_SEND, &c.from[i], &c.to[i], 100);
		wc = vt_expect(c.common.cq, (uint64_t)round, IBV_WC_SUCCESS);
		assert_int_equal(wc.qp_num, c.to[i].qp->qp_num);
		assert_int_equal(wc.byte_len, 100 + head);
		assert_int_equal(!!(wc.wc_flags & IBV_WC_GRH), head != 0);
		assert_true(vt_is_filled(c.common.buf + head, 100, (unsigned)round));
		vt_expect(c.from[i].cq, 1, IBV_WC_SUCCESS);
	}
	crowd_close(&c);
}

static void post_with_lkey(struct crowd *c, uint64_t wr_id, uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)c->common.buf, 64, lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_srq_recv(c->common.srq, &wr, &bad), 0);
}

/* IBA 10.2.9.4: the QP that takes it fails; the queue, and who else takes from it, do not. */
vt_test(a_bad_request_is_the_fault_of_who_takes_it)
{
	struct crowd c;
	struct ibv_async_event event;

	crowd_open(&c, all_rc);
	post_with_lkey(&c, 1, c.common.mr->lkey);
	post_with_lkey(&c, 2, c.common.mr->lkey ^ 0x100);
	post_with_lkey(&c, 3, c.common.mr->lkey);
	vt_send(&c.from[0], &c.to[0], 10);
	vt_expect(c.common.cq, 1, IBV_WC_SUCCESS);
	vt_send(&c.from[1], &c.to[1], 11);
	vt_expect(c.common.cq, 2, IBV_WC_LOC_PROT_ERR);
	vt_expect(c.from[1].cq, 11, IBV_WC_REM_OP_ERR);
	event = vt_event(IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_ptr_equal(event.element.qp, c.to[1].qp);
	ibv_ack_async_event(&event);
	vt_send(&c.from[2], &c.to[2], 12);
	vt_expect(c.common.cq, 3, IBV_WC_SUCCESS);
	assert_int_equal(vt_state(c.to[1].qp), IBV_QPS_ERR);
	assert_int_equal(vt_state(c.to[0].qp), IBV_QPS_RTS);
	assert_int_equal(vt_state(c.to[2].qp), IBV_QPS_RTS);
	vt_no_event(); /* no IBV_EVENT_SRQ_ERR */
	crowd_close(&c);
}

/* What one leaves behind, the others take: nothing is lost with a QP but what it had in hand. */
vt_test(requests_outlive_the_qps)
{
	struct crowd c;

	crowd_open(&c, all_rc);
	for (uint64_t i = 0; i < 6; i++)
		vt_recv(&c.common, i);
	vt_send(&c.from[0], &c.to[0], 1);
	vt_expect(c.common.cq, 0, IBV_WC_SUCCESS);
	assert_int_equal(vt_modify(c.to[0].qp, IBV_QPS_ERR), 0);
	vt_event_acked(IBV_EVENT_QP_LAST_WQE_REACHED);
	vt_expect_none(c.common.cq); /* nothing of the queue is flushed */
	assert_int_equal(vt_modify(c.to[1].qp, IBV_QPS_RESET), 0);
	for (uint64_t i = 1; i < 6; i++) {
		vt_send(&c.from[2 + i % 2], &c.to[2 + i % 2], 1);
		vt_expect(c.common.cq, i, IBV_WC_SUCCESS);
	}
	crowd_close(&c);
}

/* The limit is the queue's: whoever takes the request that falls below it. */
vt_test(the_limit_counts_what_all_take)
{
	struct ibv_srq_attr attr = { .srq_limit = 3 };
	struct ibv_async_event event;
	struct crowd c;

	crowd_open(&c, all_rc);
	for (uint64_t i = 0; i < 6; i++)
		vt_recv(&c.common, i);
	assert_int_equal(ibv_modify_srq(c.common.srq, &attr, IBV_SRQ_LIMIT), 0);
	for (int i = 0; i < 3; i++) {
		vt_send(&c.from[i], &c.to[i], 1);
		vt_expect(c.from[i].cq, 1, IBV_WC_SUCCESS);
	}
	vt_no_event();
	vt_send(&c.from[3], &c.to[3], 1);
	event = vt_event(IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_ptr_equal(event.element.srq, c.common.srq);
	ibv_ack_async_event(&event);
	vt_send(&c.from[0], &c.to[0], 1);
	vt_expect(c.from[3].cq, 1, IBV_WC_SUCCESS);
	vt_expect(c.from[0].cq, 1, IBV_WC_SUCCESS);
	vt_no_event();
	crowd_close(&c);
}

/* --- many threads post, while many QPs take --- */

enum { POSTERS = 3, EACH = 400 };

struct poster {
	struct vt_end *common;
	uint64_t first;
	_Atomic int *stop;
};

static void *post_each(void *arg)
{
	struct poster *poster = arg;

	for (uint64_t i = 0; i < EACH; i++) {
		while (vt_recv_at(poster->common, poster->first + i, 0, 64) == ENOMEM) {
			if (atomic_load(poster->stop))
				return NULL;
			sched_yield();
		}
	}
	return NULL;
}

/* Each request is taken once, and what one thread posted comes in its order (IBA 10.2.9.1). */
vt_test(many_threads_post)
{
	struct poster posters[POSTERS];
	pthread_t threads[POSTERS];
	_Atomic int stop = 0;
	uint64_t next[POSTERS];
	struct crowd c;
	int sent = 0, received = 0, returned = 0;

	crowd_open(&c, all_rc);
	for (int i = 0; i < POSTERS; i++) {
		next[i] = (uint64_t)i * EACH;
		posters[i] = (struct poster){ &c.common, next[i], &stop };
		assert_int_equal(pthread_create(&threads[i], NULL, post_each, &posters[i]), 0);
	}
	while (received < POSTERS * EACH) {
		struct ibv_wc wc;
		int i = sent % QPS;

		/* All by one QP in turn, so that completions come in the order of taking. */
		if (sent < POSTERS * EACH && sent == returned) {
			vt_send(&c.from[i], &c.to[i], 1);
			sent++;
		}
		i = (sent - 1) % QPS;
		if (ibv_poll_cq(c.from[i].cq, 1, &wc) == 1) {
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			returned++;
		}
		while (ibv_poll_cq(c.common.cq, 1, &wc) == 1) {
			uint64_t who = wc.wr_id / EACH;

			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			assert_true(who < POSTERS);
			assert_int_equal(wc.wr_id, next[who]);
			next[who]++;
			received++;
		}
	}
	atomic_store(&stop, 1);
	for (int i = 0; i < POSTERS; i++)
		pthread_join(threads[i], NULL);
	crowd_close(&c);
}

struct resizer {
	struct ibv_srq *srq;
	_Atomic int stop, tried, done;
};

static void *resize_on(void *arg)
{
	struct resizer *r = arg;

	for (uint32_t i = 0; !atomic_load(&r->stop); i++) {
		struct ibv_srq_attr attr = { .max_wr = i % 2 ? 16 : 200, .srq_limit = 0 };
		int err = ibv_modify_srq(r->srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT);

		/* EINVAL: more are posted just now than would fit. */
		assert_true(err == 0 || err == EINVAL);
		atomic_fetch_add(&r->done, !err);
		atomic_fetch_add(&r->tried, 1);
	}
	return NULL;
}

/* While the queue changes its size, no request is lost, none comes twice, and none out of order. */
vt_test(resizing_does_not_disturb)
{
	enum { COUNT = 1500, AT_A_TIME = 20 };
	uint64_t posted = 0, taken = 0;
	struct resizer resizer = { 0 };
	int sent = 0, returned = 0, tried;
	pthread_t thread;
	struct crowd c;

	crowd_open(&c, all_rc);
	resizer.srq = c.common.srq;
	assert_int_equal(pthread_create(&thread, NULL, resize_on, &resizer), 0);
	while (taken < COUNT) {
		struct ibv_wc wc;
		int err = 0;

		/* In step with the other thread, however slow either is. */
		tried = atomic_load(&resizer.tried);
		while (taken % AT_A_TIME == 0 && atomic_load(&resizer.tried) == tried)
			sched_yield();
		for (int i = 0; i < 30 && posted < COUNT && !err; i++) {
			err = vt_recv_at(&c.common, posted, 0, 64);
			assert_true(err == 0 || err == ENOMEM);
			posted += !err;
		}
		if (sent < COUNT && sent == returned) {
			vt_send(&c.from[sent % QPS], &c.to[sent % QPS], 1);
			sent++;
		}
		if (ibv_poll_cq(c.from[(sent - 1) % QPS].cq, 1, &wc) == 1) {
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			returned++;
		}
		while (ibv_poll_cq(c.common.cq, 1, &wc) == 1) {
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			assert_int_equal(wc.wr_id, taken);
			taken++;
		}
	}
	atomic_store(&resizer.stop, 1);
	pthread_join(thread, NULL);
	assert_true(resizer.done > COUNT / AT_A_TIME / 10);
	crowd_close(&c);
}
