/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>

/* Completion queues and their channels, shared receive queues, and asynchronous events of both. */

static struct ibv_comp_channel *channel_open(void)
{
	return vt_made(ibv_create_comp_channel(vt.ctx));
}

/* --- creating --- */

vt_test(a_cq_has_at_least_the_size_it_was_asked_for)
{
	static const int sizes[] = { 1, 2, 3, 100, 1000, 4096, 5000 };
	struct ibv_comp_channel *channel = channel_open();
	int mine;

	for (unsigned i = 0; i < VT_COUNT(sizes); i++) {
		struct ibv_cq *cq = ibv_create_cq(vt.ctx, sizes[i], &mine, channel,
						  (int)i % vt.ctx->num_comp_vectors);

		assert_non_null(cq);
		assert_true(cq->cqe >= sizes[i]);
		assert_ptr_equal(cq->cq_context, &mine);
		assert_ptr_equal(cq->channel, channel);
		assert_ptr_equal(cq->context, vt.ctx);
		assert_int_equal(ibv_destroy_comp_channel(channel), EBUSY);
		assert_int_equal(ibv_destroy_cq(cq), 0);
	}
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

vt_test(a_cq_of_nonsense_is_refused)
{
	static const struct {
		int cqe, vector;
	} bad[] = { { 0, 0 }, { -1, 0 }, { INT32_MIN, 0 }, { INT32_MAX, 0 }, { 8, -1 },
		    { 8, 1000 } };

	assert_true(vt.ctx->num_comp_vectors > 0);
	for (unsigned i = 0; i < VT_COUNT(bad); i++) {
		vt_refused(EINVAL, ibv_create_cq(vt.ctx, bad[i].cqe, NULL, NULL, bad[i].vector));
	}
	assert_null(ibv_create_cq(vt.ctx, 8, NULL, NULL, vt.ctx->num_comp_vectors));
}

/* --- completion events --- */

/* A SEND from a to b, complete on both sides. */
static void exchange(struct vt_pair *p, unsigned flags)
{
	struct vt_wr w;

	vt_recv(&p->b, 2);
	vt_wr(&w, IBV_WR_SEND, &p->a, &p->b, 8);
	w.wr.send_flags |= flags;
	vt_done(&p->a, &w, IBV_WC_SUCCESS);
}

/* The channel of b only; a polls. */
struct scene {
	struct ibv_comp_channel *channel;
	struct vt_pair p;
};

static void scene_open(struct scene *s, enum ibv_qp_type type)
{
	struct vt_options opt = { .type = type };
	struct ibv_qp_init_attr init;

	s->channel = channel_open();
	vt_pair_open(&s->p, &opt);
	/* Give b a CQ with a channel, and a QP on it. */
	assert_int_equal(ibv_destroy_qp(s->p.b.qp), 0);
	assert_int_equal(ibv_destroy_cq(s->p.b.cq), 0);
	s->p.b.cq = vt_made(ibv_create_cq(vt.ctx, 64, s, s->channel, 0));
	init = (struct ibv_qp_init_attr){ .send_cq = s->p.b.cq, .recv_cq = s->p.b.cq,
					  .cap = { 64, 64, 1, 1, 0 }, .qp_type = type };
	s->p.b.qp = vt_made(ibv_create_qp(vt.pd, &init));
	vt_climb(s->p.b.qp, &s->p.opt, IBV_QPS_RTS, s->p.a.qp->qp_num);
	assert_int_equal(vt_modify(s->p.a.qp, IBV_QPS_RESET), 0);
	vt_climb(s->p.a.qp, &s->p.opt, IBV_QPS_RTS, s->p.b.qp->qp_num);
}

static void scene_close(struct scene *s)
{
	vt_pair_close(&s->p);
	assert_int_equal(ibv_destroy_comp_channel(s->channel), 0);
}

#define scene_test(f, ...)                                                                        \
	vt_with(vt_test, f, struct scene, s, scene_open(&s, __VA_ARGS__), scene_close(&s))
#define scenes_test(f, i, from, to, ...)                                                          \
	vt_with_each(vt_test, f, i, from, to, struct scene, s, scene_open(&s, __VA_ARGS__),       \
		     scene_close(&s))

/* "one shot": readable exactly while an event waits. */
scenes_test(one_event_for_each_request_to_be_notified, i, 0, 3, vt_types[i])
{
	exchange(&s->p, 0);
	assert_false(vt_readable(s->channel->fd, VT_QUIET_MS)); /* nobody asked */
	vt_expect(s->p.b.cq, 2, IBV_WC_SUCCESS);
	assert_int_equal(ibv_req_notify_cq(s->p.b.cq, 0), 0);
	assert_false(vt_readable(s->channel->fd, VT_QUIET_MS));
	exchange(&s->p, 0);
	exchange(&s->p, 0);
	vt_take_event(s->channel, s->p.b.cq);
	vt_expect(s->p.b.cq, 2, IBV_WC_SUCCESS);
	vt_expect(s->p.b.cq, 2, IBV_WC_SUCCESS);
	assert_false(vt_readable(s->channel->fd, VT_QUIET_MS));
	exchange(&s->p, 0);
	assert_false(vt_readable(s->channel->fd, VT_QUIET_MS));
	vt_expect(s->p.b.cq, 2, IBV_WC_SUCCESS);
}

/* The race that everybody has: it came after the event was read, and before the next request. */
scene_test(a_completion_between_event_and_request_is_told, IBV_QPT_RC)
{
	for (int i = 0; i < 10; i++) {
		assert_int_equal(ibv_req_notify_cq(s->p.b.cq, 0), 0);
		exchange(&s->p, 0);
		vt_take_event(s->channel, s->p.b.cq);
		exchange(&s->p, 0);
		assert_int_equal(ibv_req_notify_cq(s->p.b.cq, 0), 0);
		vt_take_event(s->channel, s->p.b.cq);
		vt_expect(s->p.b.cq, 2, IBV_WC_SUCCESS);
		vt_expect(s->p.b.cq, 2, IBV_WC_SUCCESS);
		vt_expect_none(s->p.b.cq);
	}
}

scene_test(solicited_only_waits_for_a_solicited_one, IBV_QPT_RC)
{
	struct vt_wr w;

	assert_int_equal(ibv_req_notify_cq(s->p.b.cq, 1), 0);
	exchange(&s->p, 0);
	vt_recv(&s->p.b, 2);
	vt_wr(&w, IBV_WR_RDMA_WRITE_WITH_IMM, &s->p.a, &s->p.b, 8);
	vt_done(&s->p.a, &w, IBV_WC_SUCCESS);
	assert_false(vt_readable(s->channel->fd, VT_QUIET_MS));
	exchange(&s->p, IBV_SEND_SOLICITED);
	vt_take_event(s->channel, s->p.b.cq);
	for (int i = 0; i < 3; i++)
		vt_expect(s->p.b.cq, 2, IBV_WC_SUCCESS);
	/* A WRITE with immediate may ask as well. */
	assert_int_equal(ibv_req_notify_cq(s->p.b.cq, 1), 0);
	vt_recv(&s->p.b, 2);
	w.wr.send_flags |= IBV_SEND_SOLICITED;
	vt_post(&s->p.a, &w);
	vt_take_event(s->channel, s->p.b.cq);
	vt_expect(s->p.b.cq, 2, IBV_WC_SUCCESS);
	/* Asking for every one is the stronger wish, whichever comes last. */
	assert_int_equal(ibv_req_notify_cq(s->p.b.cq, 0), 0);
	assert_int_equal(ibv_req_notify_cq(s->p.b.cq, 1), 0);
	exchange(&s->p, 0);
	vt_take_event(s->channel, s->p.b.cq);
}

/* IBA 11.4.2.2: what ends in an error is told like what is solicited. */
scene_test(an_error_counts_as_solicited, IBV_QPT_RC)
{
	vt_recv(&s->p.b, 9);
	assert_int_equal(ibv_req_notify_cq(s->p.b.cq, 1), 0);
	assert_int_equal(vt_modify(s->p.b.qp, IBV_QPS_ERR), 0);
	vt_take_event(s->channel, s->p.b.cq);
	vt_expect(s->p.b.cq, 9, IBV_WC_WR_FLUSH_ERR);
}

scene_test(a_channel_may_be_read_without_waiting, IBV_QPT_RC)
{
	struct ibv_cq *cq = NULL;
	void *context;
	int flags;

	flags = fcntl(s->channel->fd, F_GETFL);
	assert_int_equal(fcntl(s->channel->fd, F_SETFL, flags | O_NONBLOCK), 0);
	errno = 0;
	assert_int_equal(ibv_get_cq_event(s->channel, &cq, &context), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(ibv_req_notify_cq(s->p.b.cq, 0), 0);
	exchange(&s->p, 0);
	vt_take_event(s->channel, s->p.b.cq);
	assert_int_equal(ibv_get_cq_event(s->channel, &cq, &context), -1);
}

vt_test(cqs_of_one_channel_are_told_apart)
{
	struct ibv_comp_channel *channel = channel_open();
	struct vt_options opt = { .type = IBV_QPT_RC, .channel = channel };
	struct ibv_cq *first, *second;
	struct vt_pair p;
	void *context;

	vt_pair_open(&p, &opt);
	assert_int_equal(ibv_req_notify_cq(p.a.cq, 0), 0);
	assert_int_equal(ibv_req_notify_cq(p.b.cq, 0), 0);
	vt_recv(&p.b, 2);
	vt_send(&p.a, &p.b, 1);
	assert_int_equal(ibv_get_cq_event(channel, &first, &context), 0);
	assert_int_equal(ibv_get_cq_event(channel, &second, &context), 0);
	assert_true(first == p.a.cq ? second == p.b.cq : first == p.b.cq && second == p.a.cq);
	assert_false(vt_readable(channel->fd, VT_QUIET_MS));
	ibv_ack_cq_events(first, 1);
	ibv_ack_cq_events(second, 1);
	vt_pair_close(&p);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

struct destroyer {
	struct ibv_cq *cq;
	_Atomic bool done;
	int err;
};

static void *destroy_in_thread(void *arg)
{
	struct destroyer *d = arg;

	d->err = ibv_destroy_cq(d->cq);
	atomic_store(&d->done, true);
	return NULL;
}

/* "destroying a CQ will wait for all completion events to be acknowledged" */
scene_test(destroying_a_cq_waits_for_the_acknowledgement, IBV_QPT_RC)
{
	struct destroyer d = { .done = false };
	struct ibv_cq *cq;
	pthread_t thread;
	void *context;

	for (int i = 0; i < 3; i++) {
		assert_int_equal(ibv_req_notify_cq(s->p.b.cq, 0), 0);
		exchange(&s->p, 0);
		assert_int_equal(ibv_get_cq_event(s->channel, &cq, &context), 0);
	}
	assert_int_equal(ibv_destroy_qp(s->p.b.qp), 0);
	s->p.b.qp = NULL;
	d.cq = s->p.b.cq;
	s->p.b.cq = NULL;
	assert_int_equal(pthread_create(&thread, NULL, destroy_in_thread, &d), 0);
	vt_sleep_ms(50);
	assert_false(atomic_load(&d.done));
	ibv_ack_cq_events(cq, 2);
	vt_sleep_ms(50);
	assert_false(atomic_load(&d.done));
	ibv_ack_cq_events(cq, 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(d.err, 0);
}

/* An event that nobody read goes with its CQ. */
scene_test(an_unread_event_does_not_hold_a_cq, IBV_QPT_RC)
{
	assert_int_equal(ibv_req_notify_cq(s->p.b.cq, 0), 0);
	exchange(&s->p, 0);
	assert_true(vt_readable(s->channel->fd, VT_WAIT_MS));
	assert_int_equal(ibv_destroy_qp(s->p.b.qp), 0);
	s->p.b.qp = NULL;
	assert_int_equal(ibv_destroy_cq(s->p.b.cq), 0);
	s->p.b.cq = NULL;
	assert_false(vt_readable(s->channel->fd, VT_QUIET_MS));
}

/* A thread that sleeps in ibv_get_cq_event() wakes; nobody polls meanwhile. */
static void *wait_for_event(void *arg)
{
	struct scene *s = arg;
	struct ibv_cq *cq = NULL;
	void *context;

	if (ibv_get_cq_event(s->channel, &cq, &context))
		return NULL;
	ibv_ack_cq_events(cq, 1);
	return cq;
}

scene_test(a_sleeper_is_woken, IBV_QPT_RC)
{
	pthread_t thread;
	void *woken;

	assert_int_equal(ibv_req_notify_cq(s->p.b.cq, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_event, s), 0);
	vt_sleep_ms(20);
	vt_recv(&s->p.b, 2);
	vt_send(&s->p.a, &s->p.b, 1);
	assert_int_equal(pthread_join(thread, &woken), 0);
	assert_ptr_equal(woken, s->p.b.cq);
}

/* --- resizing and overrunning --- */

vt_pair_test(a_resized_cq_keeps_its_completions, .cqe = 16)
{
	static const int sizes[] = { 100, 12, 1000, 10, 64 };

	for (uint64_t i = 0; i < 10; i++) {
		vt_recv(&p->b, i);
		vt_send(&p->a, &p->b, i);
	}
	for (uint64_t i = 0; i < 10; i++)
		vt_expect(p->a.cq, i, IBV_WC_SUCCESS);
	vt_sleep_ms(10);
	for (unsigned i = 0; i < VT_COUNT(sizes); i++) {
		assert_int_equal(ibv_resize_cq(p->b.cq, sizes[i]), 0);
		assert_true(p->b.cq->cqe >= sizes[i]);
	}
	/* Too small for what is in it, or no size at all: refused, and nothing lost. */
	assert_int_equal(ibv_resize_cq(p->b.cq, 9), EINVAL);
	assert_int_equal(ibv_resize_cq(p->b.cq, 0), EINVAL);
	assert_int_equal(ibv_resize_cq(p->b.cq, -5), EINVAL);
	assert_int_equal(ibv_resize_cq(p->b.cq, INT32_MAX), EINVAL);
	for (uint64_t i = 0; i < 10; i++)
		vt_expect(p->b.cq, i, IBV_WC_SUCCESS);
	vt_expect_none(p->b.cq);
}

/* "In case of a CQ overrun, the async event IBV_EVENT_CQ_ERR will be triggered" */
vt_pair_test(an_overrun_is_told_once, .type = IBV_QPT_UD, .cqe = 4)
{
	struct ibv_async_event event;
	struct ibv_wc wc;

	for (uint64_t i = 0; i < 40; i++)
		vt_send(&p->a, &p->b, i);
	event = vt_event(IBV_EVENT_CQ_ERR);
	assert_ptr_equal(event.element.cq, p->a.cq);
	ibv_ack_async_event(&event);
	/* IBA 11.6.3.1: and its QPs, of whose completions some are lost, are in error. */
	event = vt_event(IBV_EVENT_QP_FATAL);
	assert_ptr_equal(event.element.qp, p->a.qp);
	ibv_ack_async_event(&event);
	assert_int_equal(vt_state(p->a.qp), IBV_QPS_ERR);
	assert_int_equal(vt_state(p->b.qp), IBV_QPS_RTS);
	vt_no_event();
	/* "and the CQ cannot be used": what came before is there, and nothing after it. */
	for (int i = 0; i < 4; i++)
		assert_int_equal(ibv_poll_cq(p->a.cq, 1, &wc), 1);
	vt_send(&p->a, &p->b, 40);
	vt_expect_none(p->a.cq);
	assert_int_equal(ibv_resize_cq(p->a.cq, 100), EINVAL);
}

vt_pair_test(polling_takes_at_most_what_was_asked_for)
{
	struct ibv_wc wc[12];

	assert_int_equal(ibv_poll_cq(p->a.cq, 0, wc), 0);
	for (uint64_t i = 0; i < 10; i++) {
		vt_recv(&p->b, i);
		vt_send(&p->a, &p->b, i);
	}
	vt_expect(p->a.cq, 0, IBV_WC_SUCCESS);
	for (uint64_t i = 1; i < 10; i++)
		vt_expect(p->a.cq, i, IBV_WC_SUCCESS);
	memset(wc, 0xee, sizeof(wc));
	assert_int_equal(ibv_poll_cq(p->b.cq, 3, wc), 3);
	assert_true(vt_is_octet((uint8_t *)&wc[3], sizeof(wc[3]), 0xee));
	assert_int_equal(ibv_poll_cq(p->b.cq, 12, wc), 7);
	for (uint64_t i = 0; i < 7; i++)
		assert_int_equal(wc[i].wr_id, 3 + i);
	assert_int_equal(ibv_poll_cq(p->b.cq, 12, wc), 0);
}

/* --- shared receive queues --- */

vt_test(an_srq_is_what_it_was_asked_to_be)
{
	struct ibv_srq_init_attr init = { .srq_context = &init,
					  .attr = { .max_wr = 20, .max_sge = 3,
						    .srq_limit = 7 } };
	struct ibv_srq_attr attr;
	struct ibv_srq *srq = vt_made(ibv_create_srq(vt.pd, &init));

	assert_ptr_equal(srq->srq_context, &init);
	assert_ptr_equal(srq->pd, vt.pd);
	assert_ptr_equal(srq->context, vt.ctx);
	assert_true(init.attr.max_wr >= 20);
	assert_true(init.attr.max_sge >= 3);
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.max_wr, init.attr.max_wr);
	assert_int_equal(attr.max_sge, init.attr.max_sge);
	assert_int_equal(attr.srq_limit, 0); /* ibv_create_srq(3): irrelevant there */
	assert_int_equal(ibv_dealloc_pd(vt.pd), EBUSY);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	/* ibv_create_srq(3): "greater than or equal to the values requested" */
	init.attr.max_wr = 0;
	srq = vt_made(ibv_create_srq(vt.pd, &init));
	assert_int_equal(init.attr.max_wr, 1);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

/* 2^n - 1, as with hardware: there are programs that ask for 128 and post 161. */
vt_test(an_srq_holds_what_hardware_would)
{
	static const struct {
		uint32_t asked, granted;
	} rows[] = { { 1, 1 }, { 2, 3 }, { 3, 3 }, { 127, 127 }, { 128, 255 }, { 161, 255 } };
	struct ibv_device_attr device = vt_device();
	struct ibv_srq_attr now;

	for (unsigned i = 0; i <= VT_COUNT(rows); i++) {
		bool last = i == VT_COUNT(rows);
		uint32_t asked = last ? (uint32_t)device.max_srq_wr : rows[i].asked;
		uint32_t granted = last ? asked : rows[i].granted;
		struct ibv_srq_init_attr init = { .attr = { .max_wr = asked, .max_sge = 1 } };
		struct ibv_srq *srq = ibv_create_srq(vt.pd, &init);
		struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;

		assert_non_null(srq);
		assert_int_equal(init.attr.max_wr, granted);
		assert_int_equal(ibv_query_srq(srq, &now), 0);
		assert_int_equal(now.max_wr, granted);
		for (uint32_t k = 0; k < granted; k++)
			assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
		assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), ENOMEM);
		assert_int_equal(ibv_destroy_srq(srq), 0);
	}
}

static void consume(struct vt_pair *p, int count)
{
	while (count--) {
		vt_send(&p->a, &p->b, 1);
		vt_expect(p->a.cq, 1, IBV_WC_SUCCESS);
	}
}

static uint32_t limit_of(struct ibv_srq *srq)
{
	struct ibv_srq_attr attr;

	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	return attr.srq_limit;
}

/* "once the number of WRs in the SRQ drops below srq_limit", and then not again until armed. */
vt_pair_test(the_limit_is_told_once, .srq = true)
{
	struct ibv_srq_attr attr = { .srq_limit = 4 };
	struct ibv_async_event event;

	for (uint64_t i = 0; i < 8; i++)
		vt_recv(&p->b, i);
	assert_int_equal(ibv_modify_srq(p->b.srq, &attr, IBV_SRQ_LIMIT), 0);
	assert_int_equal(limit_of(p->b.srq), 4);
	consume(p, 4);
	vt_no_event();
	consume(p, 1);
	event = vt_event(IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_ptr_equal(event.element.srq, p->b.srq);
	ibv_ack_async_event(&event);
	assert_int_equal(limit_of(p->b.srq), 0);
	consume(p, 3);
	vt_no_event();
	/* Armed when there is less already: at once. */
	attr.srq_limit = 1;
	assert_int_equal(ibv_modify_srq(p->b.srq, &attr, IBV_SRQ_LIMIT), 0);
	vt_event_acked(IBV_EVENT_SRQ_LIMIT_REACHED);
}

vt_pair_test(an_srq_can_be_resized, .srq = true, .recv_wr = 16)
{
	struct ibv_srq_attr attr = { .max_wr = 5 }, after;

	for (uint64_t i = 0; i < 10; i++)
		vt_recv(&p->b, i);
	consume(p, 2);
	/* "If any of the modify attributes is invalid, none of the attributes will be modified." */
	attr.srq_limit = 3;
	assert_int_equal(ibv_modify_srq(p->b.srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
	attr.max_wr = 1 << 20;
	assert_int_equal(ibv_modify_srq(p->b.srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
	attr.max_wr = 100;
	attr.srq_limit = 101;
	assert_int_equal(ibv_modify_srq(p->b.srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
	assert_int_equal(ibv_modify_srq(p->b.srq, &attr, 1 << 7), EINVAL);
	assert_int_equal(ibv_query_srq(p->b.srq, &after), 0);
	assert_int_equal(after.srq_limit, 0);
	assert_in_range(after.max_wr, 16, 64);
	assert_int_equal(ibv_modify_srq(p->b.srq, &attr, IBV_SRQ_MAX_WR), 0);
	assert_int_equal(ibv_query_srq(p->b.srq, &after), 0);
	assert_int_equal(after.max_wr, 127);
	for (uint64_t i = 10; i < 10 + 92; i++)
		vt_recv(&p->b, i);
	consume(p, 60);
	for (uint64_t i = 0; i < 62; i++)
		vt_expect(p->b.cq, i, IBV_WC_SUCCESS);
}

/* Several QPs take from one queue, each request exactly once; qp_num tells who. */
vt_test(qps_share_a_queue)
{
	enum { QPS = 4, EACH = 10 };
	struct vt_options opt = { .type = IBV_QPT_RC, .srq = true };
	struct vt_pair p, more[QPS - 1];
	int seen[QPS * EACH] = { 0 };

	vt_pair_open(&p, &opt);
	for (uint64_t i = 0; i < QPS * EACH; i++)
		vt_recv(&p.b, i);
	for (int i = 0; i < QPS - 1; i++) {
		struct ibv_qp_init_attr init = { .send_cq = p.b.cq, .recv_cq = p.b.cq,
						 .srq = p.b.srq, .cap = { 4, 0, 1, 0, 0 },
						 .qp_type = IBV_QPT_RC };

		more[i].opt = p.opt;
		vt_end_open(&more[i].a, &more[i].opt);
		more[i].b = p.b;
		more[i].b.qp = vt_made(ibv_create_qp(vt.pd, &init));
		vt_climb(more[i].a.qp, &p.opt, IBV_QPS_RTS, more[i].b.qp->qp_num);
		vt_climb(more[i].b.qp, &p.opt, IBV_QPS_RTS, more[i].a.qp->qp_num);
	}
	for (int n = 0; n < EACH; n++) {
		vt_send(&p.a, &p.b, 1);
		for (int i = 0; i < QPS - 1; i++)
			vt_send(&more[i].a, &more[i].b, 1);
	}
	for (int n = 0; n < QPS * EACH; n++) {
		struct ibv_wc wc;

		assert_true(vt_poll_ms(p.b.cq, &wc, VT_WAIT_MS));
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_true(wc.wr_id < QPS * EACH);
		assert_int_equal(seen[wc.wr_id]++, 0);
	}
	for (int i = 0; i < QPS - 1; i++) {
		assert_int_equal(ibv_destroy_qp(more[i].b.qp), 0);
		vt_end_close(&more[i].a);
	}
	vt_pair_close(&p);
}

/* The keys of its requests are looked up in the PD of the queue, not of the QP (IBA 10.2.9.1). */
vt_test(an_srq_may_be_of_another_pd)
{
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_pd *other = ibv_alloc_pd(vt.ctx);
	struct vt_options opt = { .type = IBV_QPT_RC };
	struct ibv_recv_wr wr = { .wr_id = 4, .num_sge = 1 }, *bad;
	struct ibv_qp_init_attr init;
	struct ibv_mr *mr;
	struct ibv_sge sge;
	struct vt_pair p;

	vt_pair_open(&p, &opt);
	assert_int_equal(ibv_destroy_qp(p.b.qp), 0);
	p.b.srq = vt_made(ibv_create_srq(other, &srq_init));
	init = (struct ibv_qp_init_attr){ .send_cq = p.b.cq, .recv_cq = p.b.cq, .srq = p.b.srq,
					  .cap = { 8, 0, 1, 0, 0 }, .qp_type = IBV_QPT_RC };
	p.b.qp = vt_made(ibv_create_qp(vt.pd, &init));
	assert_int_equal(vt_modify(p.a.qp, IBV_QPS_RESET), 0);
	vt_pair_climb(&p);
	mr = vt_mr(other, p.b.buf, 64, IBV_ACCESS_LOCAL_WRITE);
	sge = (struct ibv_sge){ (uintptr_t)p.b.buf, 64, mr->lkey };
	wr.sg_list = &sge;
	assert_int_equal(ibv_post_srq_recv(p.b.srq, &wr, &bad), 0);
	vt_send(&p.a, &p.b, 1);
	vt_expect(p.b.cq, 4, IBV_WC_SUCCESS);
	vt_expect(p.a.cq, 1, IBV_WC_SUCCESS);
	/* And the QP's own PD does not count. */
	sge.lkey = p.b.mr->lkey;
	assert_int_equal(ibv_post_srq_recv(p.b.srq, &wr, &bad), 0);
	vt_send(&p.a, &p.b, 1);
	vt_expect(p.b.cq, 4, IBV_WC_LOC_PROT_ERR);
	vt_expect(p.a.cq, 1, IBV_WC_REM_OP_ERR);
	vt_event_acked(IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	vt_pair_close(&p);
	assert_int_equal(ibv_dealloc_pd(other), 0);
}

/* --- asynchronous events --- */

vt_test(the_async_fd_may_be_read_without_waiting)
{
	struct ibv_async_event event;
	int flags = fcntl(vt.ctx->async_fd, F_GETFL);

	assert_int_equal(fcntl(vt.ctx->async_fd, F_SETFL, flags | O_NONBLOCK), 0);
	assert_false(vt_readable(vt.ctx->async_fd, 0));
	errno = 0;
	assert_int_equal(ibv_get_async_event(vt.ctx, &event), -1);
	assert_int_equal(errno, EAGAIN);
}

/* Events of one context are not those of another. */
vt_test(events_go_to_their_context)
{
	struct ibv_context *other = vt_made(ibv_open_device(vt.ctx->device));
	struct vt_options opt = { .type = IBV_QPT_RC, .srq = true };
	struct vt_pair p;

	vt_pair_open(&p, &opt);
	assert_int_equal(vt_modify(p.b.qp, IBV_QPS_ERR), 0);
	assert_true(vt_readable(vt.ctx->async_fd, VT_WAIT_MS));
	assert_false(vt_readable(other->async_fd, VT_QUIET_MS));
	vt_event_acked(IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_false(vt_readable(vt.ctx->async_fd, VT_QUIET_MS));
	vt_pair_close(&p);
	assert_int_equal(ibv_close_device(other), 0);
}
