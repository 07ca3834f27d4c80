/* SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>
#include <sched.h>

#include "nic_fixture.h"

static void assert_polled(struct vb_cq *cq, unsigned count, const uint64_t *wr_ids)
{
	struct ibv_wc wc[64];

	assert_int_equal(vb_cq_poll(cq, 64, wc), count);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(wc[i].wr_id, wr_ids[i]);
}

NIC_TEST(completions_come_out_as_they_went_in)
{
	struct vb_cq *cq = make_cq(4, NULL);
	struct ibv_wc wc[4];
	uint64_t in = 0, out = 0;

	/* Round and round, so that the ring's end is met in every place. */
	for (unsigned round = 0; round < 50; round++) {
		unsigned n = 1 + round % 4;

		for (unsigned i = 0; i < n; i++)
			push(cq, in++, 1, false);
		assert_int_equal(vb_cq_poll(cq, 4, wc), n);
		for (unsigned i = 0; i < n; i++)
			assert_int_equal(wc[i].wr_id, out++);
		assert_int_equal(vb_cq_poll(cq, 4, wc), 0);
	}
	drop_cq(cq);
}

NIC_TEST(at_least_the_size_that_was_asked_for)
{
	static const int good[] = { 1, 2, 3, 5, 64, 1000, VB_CQE_MAX };
	static const int bad[] = { 0, -1, VB_CQE_MAX + 1, 1 << 30 };
	struct vb_cq *cq;

	for (unsigned i = 0; i < VB_ARRAY_LEN(good); i++) {
		cq = make_cq(good[i], NULL);
		assert_true(cq->ibv.cq.cqe >= good[i]);
		drop_cq(cq);
	}
	for (unsigned i = 0; i < VB_ARRAY_LEN(bad); i++)
		assert_int_equal(vb_cq_create(fix.ctx, bad[i], NULL, 0, NULL, &cq), EINVAL);
	assert_int_equal(vb_cq_create(fix.ctx, 1, NULL, -1, NULL, &cq), EINVAL);
	assert_int_equal(vb_cq_create(fix.ctx, 1, NULL, VB_COMP_VECTORS, NULL, &cq), EINVAL);
}

/* IBA 11.6.3.1: a CQ that overruns is in error, and its owner is told. */
NIC_TEST(an_overrun_is_told_once)
{
	struct vb_cq *cq = make_cq(2, NULL);
	static const uint64_t kept[] = { 1, 2 };

	for (uint64_t i = 1; i <= 2; i++)
		push(cq, i, 1, false);
	assert_no_event();
	push(cq, 3, 1, false);
	push(cq, 4, 1, false);
	assert_event(IBV_EVENT_CQ_ERR);
	assert_no_event();
	assert_int_equal(cq->events.async, 1);
	assert_polled(cq, 2, kept);
	drop_cq(cq);
}

NIC_TEST(an_event_of_a_dead_cq_is_forgotten)
{
	struct vb_cq *cq = make_cq(1, NULL);

	push(cq, 1, 1, false);
	push(cq, 2, 1, false);
	assert_int_equal(fix.signals[FD_ASYNC], 1);
	drop_cq(cq);
	assert_no_event();
}

NIC_TEST(resizing_keeps_what_waits)
{
	struct vb_cq *cq = make_cq(4, NULL);
	static const uint64_t all[] = { 2, 3, 4, 5 };
	struct ibv_wc wc;

	for (uint64_t i = 0; i < 4; i++)
		push(cq, i, 1, false);
	vb_cq_poll(cq, 1, &wc);
	vb_cq_poll(cq, 1, &wc);
	push(cq, 4, 1, false);
	push(cq, 5, 1, false);
	assert_int_equal(vb_cq_resize(cq, 100), 0);
	assert_true(cq->ibv.cq.cqe >= 100);
	assert_int_equal(vb_cq_resize(cq, 3), EINVAL);
	assert_int_equal(vb_cq_resize(cq, 0), EINVAL);
	assert_int_equal(vb_cq_resize(cq, VB_CQE_MAX + 1), EINVAL);
	assert_int_equal(vb_cq_resize(cq, 4), 0);
	assert_polled(cq, 4, all);
	drop_cq(cq);
}

NIC_TEST(a_purge_takes_one_qp_only)
{
	struct vb_cq *cq = make_cq(8, NULL);
	static const uint64_t others[] = { 1, 3, 4, 6 };

	for (uint64_t i = 0; i < 8; i++)
		push(cq, i, i == 1 || i == 3 || i == 4 || i == 6 ? 7 : 8, false);
	vb_cq_purge(cq, 8);
	assert_polled(cq, 4, others);
	vb_cq_purge(cq, 7);
	assert_polled(cq, 0, NULL);
	drop_cq(cq);
}

static struct vb_channel *make_channel(void)
{
	struct vb_channel *channel;

	assert_int_equal(vb_channel_create(fix.ctx, FD_CHANNEL, &channel), 0);
	return channel;
}

static void assert_comp_event(struct vb_channel *channel, struct vb_cq *cq)
{
	assert_true(fix.signals[FD_CHANNEL] > 0);
	fix.signals[FD_CHANNEL]--;
	assert_ptr_equal(vb_channel_pop(channel), cq);
}

/* ibv_req_notify_cq(3): one event for the next completion, and no more until asked again. */
NIC_TEST(one_event_for_each_time_it_is_asked_for)
{
	struct vb_channel *channel = make_channel();
	struct vb_cq *cq = make_cq(64, channel);

	push(cq, 0, 1, true);
	assert_int_equal(fix.signals[FD_CHANNEL], 0);
	vb_cq_poll(cq, 1, &(struct ibv_wc){ 0 });
	vb_cq_arm_notify(cq, false);
	assert_int_equal(fix.signals[FD_CHANNEL], 0);
	push(cq, 1, 1, false);
	push(cq, 2, 1, false);
	assert_int_equal(fix.signals[FD_CHANNEL], 1);
	assert_comp_event(channel, cq);
	assert_int_equal(cq->events.comp, 1);
	assert_null(vb_channel_pop(channel));
	drop_cq(cq);
	assert_int_equal(vb_channel_destroy(channel), 0);
}

/* A program that polls and arms in the wrong order must not sleep over what is there. */
NIC_TEST(what_waits_already_counts)
{
	struct vb_channel *channel = make_channel();
	struct vb_cq *cq = make_cq(64, channel);

	push(cq, 1, 1, false);
	vb_cq_arm_notify(cq, true);
	assert_int_equal(fix.signals[FD_CHANNEL], 0);
	vb_cq_arm_notify(cq, false);
	assert_comp_event(channel, cq);
	drop_cq(cq);
	assert_int_equal(vb_channel_destroy(channel), 0);
}

NIC_TEST(solicited_only_wakes_for_nothing_else)
{
	struct vb_channel *channel = make_channel();
	struct vb_cq *cq = make_cq(64, channel);

	vb_cq_arm_notify(cq, true);
	push(cq, 1, 1, false);
	assert_int_equal(fix.signals[FD_CHANNEL], 0);
	push(cq, 2, 1, true);
	assert_comp_event(channel, cq);
	/* The stronger wish stays: IBA 11.4.2.2. */
	vb_cq_poll(cq, 2, (struct ibv_wc[2]){ { 0 } });
	vb_cq_arm_notify(cq, false);
	vb_cq_arm_notify(cq, true);
	push(cq, 3, 1, false);
	assert_comp_event(channel, cq);
	/* And it follows a weaker one. */
	vb_cq_poll(cq, 1, &(struct ibv_wc){ 0 });
	vb_cq_arm_notify(cq, true);
	vb_cq_arm_notify(cq, false);
	push(cq, 4, 1, false);
	assert_comp_event(channel, cq);
	drop_cq(cq);
	assert_int_equal(vb_channel_destroy(channel), 0);
}

NIC_TEST(cqs_of_a_channel_take_turns)
{
	struct vb_channel *channel = make_channel();
	struct vb_cq *a = make_cq(8, channel), *b = make_cq(8, channel);

	for (unsigned i = 0; i < 2; i++) {
		vb_cq_arm_notify(a, false);
		push(a, i, 1, false);
		vb_cq_arm_notify(b, false);
		push(b, i, 1, false);
		while (vb_cq_poll(a, 1, &(struct ibv_wc){ 0 }) ||
		       vb_cq_poll(b, 1, &(struct ibv_wc){ 0 }))
			;
	}
	assert_comp_event(channel, a);
	assert_comp_event(channel, b);
	assert_comp_event(channel, a);
	assert_comp_event(channel, b);
	assert_int_equal(fix.signals[FD_CHANNEL], 0);
	drop_cq(a);
	drop_cq(b);
	assert_int_equal(vb_channel_destroy(channel), 0);
}

NIC_TEST(a_dead_cq_leaves_its_channel)
{
	struct vb_channel *channel = make_channel();
	struct vb_cq *cq[3];

	assert_int_equal(vb_channel_destroy(channel) == 0 ? 0 : EBUSY, 0);
	channel = make_channel();
	for (unsigned i = 0; i < 3; i++) {
		cq[i] = make_cq(8, channel);
		vb_cq_arm_notify(cq[i], false);
		push(cq[i], i, 1, false);
	}
	assert_int_equal(vb_channel_destroy(channel), EBUSY);
	drop_cq(cq[2]); /* the last of the queue ... */
	drop_cq(cq[0]); /* ... and the first */
	assert_int_equal(fix.signals[FD_CHANNEL], 1);
	assert_comp_event(channel, cq[1]);
	vb_cq_poll(cq[1], 1, &(struct ibv_wc){ 0 });
	vb_cq_arm_notify(cq[1], false);
	push(cq[1], 9, 1, false);
	assert_comp_event(channel, cq[1]);
	drop_cq(cq[1]);
	assert_int_equal(vb_channel_destroy(channel), 0);
}

NIC_TEST(a_cq_in_use_stays)
{
	struct vb_cq *cq = make_cq(32, NULL);
	struct vb_qp *qp = make_qp(IBV_QPT_UD, cq, NULL);

	assert_int_equal(vb_cq_destroy(cq), EBUSY);
	assert_int_equal(vb_pd_destroy(fix.pd), EBUSY);
	drop_qp(qp);
	drop_cq(cq);
}

/* --- threads --- */

enum { PUSHERS = 2, POLLERS = 2, PER_PUSHER = 20000, DEPTH = 64 };

static struct {
	struct vb_cq *cq;
	_Atomic uint32_t pushed, polled;
	_Atomic int signals;
} threads;

/* wr_id: the pusher's number above its own count. Never more under way than fit. */
static void *push_many(void *arg)
{
	uint64_t base = (uint64_t)(uintptr_t)arg << 32;

	for (uint64_t i = 0; i < PER_PUSHER; i++) {
		uint32_t mine = atomic_fetch_add(&threads.pushed, 1);

		while ((int32_t)(mine - atomic_load(&threads.polled)) >= DEPTH)
			sched_yield();
		push(threads.cq, base + i, (uint32_t)i, i % 3 == 0);
	}
	return NULL;
}

static void check_polled(const struct ibv_wc *wc, uint64_t *next)
{
	uint64_t pusher = wc->wr_id >> 32, n = wc->wr_id & UINT32_MAX;

	vb_check(pusher < PUSHERS && n >= next[pusher] && wc->qp_num == n);
	next[pusher] = n + 1;
}

static void *poll_many(void *arg)
{
	uint64_t next[PUSHERS] = { 0 };
	struct ibv_wc wc[5];

	while (atomic_load(&threads.polled) < PUSHERS * PER_PUSHER) {
		int n = vb_cq_poll(threads.cq, 1 + (int)(uintptr_t)arg * 4, wc);

		for (int i = 0; i < n; i++)
			check_polled(&wc[i], next);
		atomic_fetch_add(&threads.polled, (uint32_t)n);
		if (n == 0)
			sched_yield();
	}
	return NULL;
}

static void begin_threads(struct vb_channel *channel, pthread_t *pusher)
{
	threads.cq = make_cq(DEPTH, channel);
	atomic_store(&threads.pushed, 0);
	atomic_store(&threads.polled, 0);
	atomic_store(&threads.signals, 0);
	for (uintptr_t i = 0; i < PUSHERS; i++)
		pthread_create(&pusher[i], NULL, push_many, (void *)i);
}

static void end_threads(pthread_t *pusher)
{
	for (unsigned i = 0; i < PUSHERS; i++)
		pthread_join(pusher[i], NULL);
	assert_int_equal(atomic_load(&threads.polled), PUSHERS * PER_PUSHER);
	assert_no_event(); /* no overrun */
	drop_cq(threads.cq);
}

/* And resized, and purged of a QP that has none, all the while. */
NIC_TEST(each_completion_is_polled_once)
{
	pthread_t pusher[PUSHERS], poller[POLLERS];

	begin_threads(NULL, pusher);
	for (uintptr_t i = 0; i < POLLERS; i++)
		pthread_create(&poller[i], NULL, poll_many, (void *)i);
	for (unsigned i = 0; atomic_load(&threads.polled) < PUSHERS * PER_PUSHER; i++) {
		vb_cq_resize(threads.cq, i & 1 ? DEPTH : 4 * DEPTH);
		vb_cq_purge(threads.cq, 0xffffff);
		sched_yield();
	}
	for (unsigned i = 0; i < POLLERS; i++)
		pthread_join(poller[i], NULL);
	end_threads(pusher);
}

static void count_signal(void *arg, int fd)
{
	atomic_fetch_add(&threads.signals, 1);
}

static void uncount_signal(void *arg, int fd)
{
	atomic_fetch_sub(&threads.signals, 1);
}

/* As ibv_get_cq_event(3) has it: wait for an event, arm, then take what is there. */
NIC_TEST(no_event_is_lost)
{
	struct vb_channel *channel = make_channel();
	uint64_t next[PUSHERS] = { 0 };
	pthread_t pusher[PUSHERS];
	struct ibv_wc wc[8];
	int n;

	fix.nic->host.process.signal = count_signal;
	fix.nic->host.process.unsignal = uncount_signal;
	begin_threads(channel, pusher);
	vb_cq_arm_notify(threads.cq, false);
	while (atomic_load(&threads.polled) < PUSHERS * PER_PUSHER) {
		/* Without an event this waits for ever, and the test runs out of time. */
		while (!atomic_load(&threads.signals))
			sched_yield();
		uncount_signal(NULL, 0);
		assert_ptr_equal(vb_channel_pop(channel), threads.cq);
		vb_cq_arm_notify(threads.cq, false);
		while ((n = vb_cq_poll(threads.cq, 8, wc)) > 0) {
			for (int i = 0; i < n; i++)
				check_polled(&wc[i], next);
			atomic_fetch_add(&threads.polled, (uint32_t)n);
		}
	}
	end_threads(pusher);
	assert_int_equal(atomic_load(&threads.signals), 0);
	assert_int_equal(vb_channel_destroy(channel), 0);
}
