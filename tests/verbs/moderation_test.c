/* SPDX-License-Identifier: BSD-2-Clause */
#include "peer.h"

#include <pthread.h>
#include <stdatomic.h>

/*
 * ibv_modify_cq(3): events that wait for several completions, or for a time. An application that
 * polls finds each of them at once all the same.
 */

static struct ibv_comp_channel *channel;
static struct vt_pair pair;

static struct ibv_cq_moderation_caps caps(void)
{
	return vt_device_ex().cq_mod_caps;
}

static int moderate(struct ibv_cq *cq, uint16_t count, uint16_t period_us)
{
	struct ibv_modify_cq_attr attr = { .attr_mask = IBV_CQ_ATTR_MODERATE,
					   .moderate = { count, period_us } };

	return ibv_modify_cq(cq, &attr);
}

static void open_pair(enum ibv_qp_type type)
{
	struct vt_options opt = { .type = type };

	channel = vt_made(ibv_create_comp_channel(vt.ctx));
	opt.channel = channel;
	vt_pair_open(&pair, &opt);
}

static void close_pair(void)
{
	vt_pair_close(&pair);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

/* A message to a's peer, whose completion there is counted. */
static void message(uint64_t wr_id)
{
	assert_int_equal(vt_recv_at(&pair.b, wr_id, 0, 64), 0);
	vt_send(&pair.a, &pair.b, wr_id);
}

static void take_event(struct ibv_cq *cq)
{
	struct ibv_cq *from;
	void *context;

	assert_int_equal(ibv_get_cq_event(channel, &from, &context), 0);
	assert_ptr_equal(from, cq);
	ibv_ack_cq_events(from, 1);
}

static void expect_event(struct ibv_cq *cq)
{
	assert_true(vt_readable(channel->fd, VT_WAIT_MS));
	take_event(cq);
}

static void expect_no_event(void)
{
	assert_false(vt_readable(channel->fd, VT_QUIET_MS));
}

static void expect_range(struct ibv_cq *cq, uint64_t from, uint64_t to)
{
	for (; from <= to; from++)
		vt_expect(cq, from, IBV_WC_SUCCESS);
}

vt_cq_test(unknown_attributes_are_refused, 4)
{
	struct ibv_modify_cq_attr attr = { .attr_mask = 0, .moderate = { 1, 1 } };

	assert_int_equal(ibv_modify_cq(cq, &attr), EINVAL);
	for (unsigned bit = 1; bit < 32; bit++) {
		attr.attr_mask = IBV_CQ_ATTR_MODERATE | 1u << bit;
		assert_int_equal(ibv_modify_cq(cq, &attr), EOPNOTSUPP);
	}
}

/* ibv_query_device_ex(3): "CQ moderation max capabilities" */
vt_cq_test(the_caps_are_true, 4)
{
	struct ibv_cq_moderation_caps max = caps();

	assert_true(max.max_cq_count > 0);
	assert_true(max.max_cq_period > 0);
	assert_int_equal(moderate(cq, max.max_cq_count, max.max_cq_period), 0);
	assert_int_equal(moderate(cq, (uint16_t)(max.max_cq_count + 1), 1), EINVAL);
	assert_int_equal(moderate(cq, 1, (uint16_t)(max.max_cq_period + 1)), EINVAL);
	assert_int_equal(moderate(cq, 0, 0), 0);
}

/* "number of completions per event" */
vt_test(an_event_comes_after_so_many)
{
	open_pair(IBV_QPT_RC);
	assert_int_equal(moderate(pair.b.cq, 4, 0), 0);
	for (unsigned round = 0; round < 3; round++) {
		assert_int_equal(ibv_req_notify_cq(pair.b.cq, 0), 0);
		for (uint64_t i = 1; i <= 3; i++)
			message(i);
		expect_range(pair.a.cq, 1, 3);
		expect_no_event();
		message(4);
		expect_event(pair.b.cq);
		expect_range(pair.b.cq, 1, 4);
		expect_range(pair.a.cq, 4, 4);
	}
	close_pair();
}

/* What is held back is there to be polled. */
vt_test(polling_is_not_moderated)
{
	open_pair(IBV_QPT_RC);
	assert_int_equal(moderate(pair.b.cq, 100, 0), 0);
	assert_int_equal(ibv_req_notify_cq(pair.b.cq, 0), 0);
	for (uint64_t i = 1; i <= 10; i++) {
		message(i);
		vt_expect(pair.b.cq, i, IBV_WC_SUCCESS);
		vt_expect(pair.a.cq, i, IBV_WC_SUCCESS);
	}
	close_pair();
}

/* cq_period, "in micro seconds": nobody turns anything but the clock. */
vt_test(an_event_comes_in_time)
{
	open_pair(IBV_QPT_RC);
	assert_int_equal(moderate(pair.b.cq, caps().max_cq_count, 2000), 0);
	for (uint64_t i = 1; i <= 5; i++) {
		assert_int_equal(ibv_req_notify_cq(pair.b.cq, 0), 0);
		message(i);
		/* Whether one looks at the descriptor, or waits. */
		if (i % 2)
			assert_true(vt_readable(channel->fd, VT_WAIT_MS));
		take_event(pair.b.cq);
		vt_expect(pair.b.cq, i, IBV_WC_SUCCESS);
		vt_expect(pair.a.cq, i, IBV_WC_SUCCESS);
	}
	close_pair();
}

/* One event for all that came meanwhile, by a clock that started with the first of them. */
vt_test(a_period_gathers_what_comes)
{
	const uint16_t period_us = caps().max_cq_period;
	unsigned events = 0;

	open_pair(IBV_QPT_RC);
	assert_int_equal(moderate(pair.b.cq, 0, period_us), 0);
	assert_int_equal(ibv_req_notify_cq(pair.b.cq, 0), 0);
	for (uint64_t i = 1; i <= 32; i++)
		message(i);
	expect_event(pair.b.cq);
	expect_range(pair.b.cq, 1, 32);
	expect_range(pair.a.cq, 1, 32);
	while (vt_readable(channel->fd, VT_QUIET_MS)) {
		expect_event(pair.b.cq);
		events++;
	}
	assert_int_equal(events, 0);
	close_pair();
}

/* ibv_req_notify_cq(3): "only generated for a new CQE ... considered solicited": those count. */
vt_test(solicited_ones_are_counted_apart)
{
	struct vt_wr w;

	open_pair(IBV_QPT_RC);
	assert_int_equal(moderate(pair.b.cq, 2, 0), 0);
	assert_int_equal(ibv_req_notify_cq(pair.b.cq, 1), 0);
	for (uint64_t i = 1; i <= 4; i++)
		message(i);
	expect_range(pair.a.cq, 1, 4);
	expect_no_event();
	for (uint64_t i = 5; i <= 6; i++) {
		assert_int_equal(vt_recv_at(&pair.b, i, 0, 64), 0);
		vt_wr(&w, IBV_WR_SEND, &pair.a, &pair.b, 8);
		w.wr.send_flags |= IBV_SEND_SOLICITED;
		w.wr.wr_id = i;
		vt_post(&pair.a, &w);
	}
	expect_event(pair.b.cq);
	expect_range(pair.b.cq, 1, 6);
	expect_range(pair.a.cq, 5, 6);
	close_pair();
}

vt_test(turning_it_off_tells_what_was_held_back)
{
	open_pair(IBV_QPT_UD);
	assert_int_equal(moderate(pair.a.cq, 100, 0), 0);
	assert_int_equal(ibv_req_notify_cq(pair.a.cq, 0), 0);
	vt_send(&pair.a, &pair.b, 1);
	expect_no_event();
	assert_int_equal(moderate(pair.a.cq, 0, 0), 0);
	expect_event(pair.a.cq);
	vt_expect(pair.a.cq, 1, IBV_WC_SUCCESS);
	/* And from now on it is as with any CQ. */
	assert_int_equal(ibv_req_notify_cq(pair.a.cq, 0), 0);
	vt_send(&pair.a, &pair.b, 2);
	expect_event(pair.a.cq);
	vt_expect(pair.a.cq, 2, IBV_WC_SUCCESS);
	close_pair();
}

/* It goes in peace, with an event held back and its clock running. */
vt_test(a_moderated_cq_can_be_destroyed)
{
	for (unsigned round = 0; round < 20; round++) {
		open_pair(IBV_QPT_UD);
		assert_int_equal(moderate(pair.a.cq, 10, round % 2 ? 1 : caps().max_cq_period), 0);
		assert_int_equal(ibv_req_notify_cq(pair.a.cq, 0), 0);
		vt_send(&pair.a, &pair.b, 1);
		close_pair();
	}
}

/* --- from another process, while a thread here sleeps --- */

struct waiter {
	pthread_t thread;
	_Atomic bool waits;
	struct ibv_cq *cq;
	int rc;
};

static void *wait_for_event(void *arg)
{
	struct waiter *waiter = arg;
	void *context;

	atomic_store(&waiter->waits, true);
	waiter->rc = ibv_get_cq_event(channel, &waiter->cq, &context);
	if (waiter->rc == 0)
		ibv_ack_cq_events(waiter->cq, 1);
	return NULL;
}

/* Asleep, as far as one can tell. */
static void waiter_begin(struct waiter *waiter)
{
	*waiter = (struct waiter){ .rc = -1 };
	assert_int_equal(pthread_create(&waiter->thread, NULL, wait_for_event, waiter), 0);
	while (!atomic_load(&waiter->waits))
		vt_sleep_ms(1);
	vt_sleep_ms(2);
}

/* If it is not woken, this does not end. */
static void waiter_end(struct waiter *waiter, struct ibv_cq *cq)
{
	assert_int_equal(pthread_join(waiter->thread, NULL), 0);
	assert_int_equal(waiter->rc, 0);
	assert_ptr_equal(waiter->cq, cq);
}

/* The sleeper takes the frames in, and somebody else has the clock. */
static void a_sleeper_is_woken(uint16_t count, uint16_t period_us, unsigned messages)
{
	struct vp *peer = vp_start(NULL);
	struct vt_options opt = { .type = IBV_QPT_RC };
	struct waiter waiter;
	struct vp_pair p;

	opt.channel = channel = ibv_create_comp_channel(vt.ctx);
	assert_non_null(channel);
	vp_pair_open(&p, peer, &opt);
	assert_int_equal(moderate(p.a.cq, count, period_us), 0);
	for (unsigned round = 0; round < 10; round++) {
		for (uint64_t i = 1; i <= messages; i++)
			assert_int_equal(vt_recv_at(&p.a, i, 0, 64), 0);
		assert_int_equal(ibv_req_notify_cq(p.a.cq, 0), 0);
		waiter_begin(&waiter);
		for (uint64_t i = 1; i <= messages; i++)
			vp_send(&p, i, 8);
		waiter_end(&waiter, p.a.cq);
		for (uint64_t i = 1; i <= messages; i++)
			vp_expect(&p, i, IBV_WC_SUCCESS);
		expect_range(p.a.cq, 1, messages);
		/* A clock that ran out before all had come told of some: that was one event. */
		while (vt_readable(channel->fd, 0))
			expect_event(p.a.cq);
	}
	vp_pair_close(&p);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	vp_end(peer);
}

vp_test(a_sleeper_is_woken_in_time)
{
	a_sleeper_is_woken(caps().max_cq_count, 3000, 1);
}

vp_test(a_sleeper_is_woken_after_so_many)
{
	a_sleeper_is_woken(4, 0, 4);
}
