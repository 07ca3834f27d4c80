/* SPDX-License-Identifier: BSD-2-Clause */

/* What a CQ does that was asked for more than to queue: stamps, moderation, overruns. */
#include "nic_fixture.h"

static struct vb_cq *make_ex(struct ibv_cq_init_attr_ex attr)
{
	struct vb_cq *cq;

	assert_int_equal(vb_cq_create_ex(fix.ctx, &attr, &cq), 0);
	return cq;
}

static int try_ex(struct ibv_cq_init_attr_ex attr)
{
	struct vb_cq *cq;
	int err = vb_cq_create_ex(fix.ctx, &attr, &cq);

	if (!err)
		drop_cq(cq);
	return err;
}

/* --- ibv_create_cq_ex(3): what it takes and what not --- */

NIC_TEST(every_bit_is_known_or_refused)
{
	const uint32_t flags[] = { IBV_CREATE_CQ_ATTR_SINGLE_THREADED,
				   IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN };
	struct ibv_cq_init_attr_ex attr = { .cqe = 4 };

	for (unsigned bit = 0; bit < 64; bit++) {
		attr.wc_flags = 1ull << bit;
		assert_int_equal(try_ex(attr), bit < 12 ? 0 : EOPNOTSUPP);
	}
	attr.wc_flags = 0;
	for (unsigned bit = 0; bit < 32; bit++) {
		attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
		attr.flags = 1u << bit;
		assert_int_equal(try_ex(attr),
				 attr.flags == flags[0] || attr.flags == flags[1] ? 0 : EOPNOTSUPP);
		/* What the mask does not name is not looked at. */
		attr.comp_mask = 0;
		assert_int_equal(try_ex(attr), 0);
		if (bit >= 2) {
			attr.comp_mask = 1u << bit;
			assert_int_equal(try_ex(attr), EOPNOTSUPP);
		}
	}
}

NIC_TEST(values_out_of_range_are_refused)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 0 };
	struct vb_ctx *other;
	struct vb_channel *channel;

	assert_int_equal(try_ex(attr), EINVAL);
	attr.cqe = VB_CQE_MAX + 1u;
	assert_int_equal(try_ex(attr), EINVAL);
	attr.cqe = UINT32_MAX;
	assert_int_equal(try_ex(attr), EINVAL);
	attr.cqe = 1;
	attr.comp_vector = VB_COMP_VECTORS;
	assert_int_equal(try_ex(attr), EINVAL);
	attr.comp_vector = UINT32_MAX;
	assert_int_equal(try_ex(attr), EINVAL);
	attr.comp_vector = VB_COMP_VECTORS - 1;
	assert_int_equal(try_ex(attr), 0);
	assert_int_equal(vb_ctx_create(fix.nic, FD_ASYNC, &other), 0);
	assert_int_equal(vb_channel_create(other, FD_CHANNEL, &channel), 0);
	attr.channel = &channel->ibv;
	assert_int_equal(try_ex(attr), EINVAL);
	assert_int_equal(vb_channel_destroy(channel), 0);
	vb_ctx_destroy(other);
	assert_int_equal(atomic_load(&fix.nic->counts.cqs), 0);
}

NIC_TEST(without_clocks_nothing_is_stamped)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 1 };
	struct ibv_device_attr_ex device;
	uint64_t now;

	vb_nic_query_device_ex(fix.nic, &device);
	assert_true(device.completion_timestamp_mask == UINT64_MAX);
	assert_int_equal(device.hca_core_clock, 1000000); /* kHz: ns */
	fix.raw_ns = 99;
	assert_int_equal(vb_nic_query_clock(fix.nic, &now), 0);
	assert_int_equal(now, 99);
	fix.nic->host.stamps = NULL;
	attr.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
	assert_int_equal(try_ex(attr), EOPNOTSUPP);
	attr.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
	assert_int_equal(try_ex(attr), EOPNOTSUPP);
	vb_nic_query_device_ex(fix.nic, &device);
	assert_int_equal(device.completion_timestamp_mask, 0);
	assert_int_equal(device.hca_core_clock, 0);
	assert_int_equal(vb_nic_query_clock(fix.nic, &now), EOPNOTSUPP);
}

/* --- taking --- */

NIC_TEST(a_taken_completion_tells_all)
{
	struct vb_cq *cq = make_cq(4, NULL);
	struct vb_cqe cqe = { .wc = { .wr_id = 5, .byte_len = 6 },
			      .tm_tag = 0x123456789abcdef0,
			      .tm_priv = 77,
			      .note = VB_CQE_TM };
	struct vb_cq_stamp stamp = { 1, 2 };
	struct vb_cqe out = { .wc = { .wr_id = 42 } };

	/* Nothing there: nothing written. */
	assert_false(vb_cq_take(cq, &out, &stamp));
	assert_int_equal(out.wc.wr_id, 42);
	vb_cq_push(cq, &cqe);
	assert_true(vb_cq_take(cq, &out, &stamp));
	assert_memory_equal(&out, &cqe, sizeof(cqe));
	assert_int_equal(stamp.raw_ns, 1);
	assert_false(vb_cq_take(cq, &out, &stamp));
	/* A tag is no queue pair to give anything back to. */
	vb_cq_push(cq, &cqe);
	assert_int_equal(vb_cq_poll(cq, 1, &out.wc), 1);
	drop_cq(cq);
}

NIC_TEST(both_ways_give_places_back)
{
	struct vb_cq *cq = make_cq(4, NULL);
	struct vb_qp *qp = make_qp(IBV_QPT_UD, cq, NULL);
	struct vb_cqe cqe = { .user = &qp->user, .sq_released = 3 };
	struct vb_cq_stamp stamp;

	vb_cq_push(cq, &cqe);
	assert_true(vb_cq_take(cq, &cqe, &stamp));
	assert_int_equal(atomic_load(&qp->user.sq_released), 3);
	cqe.sq_released = 9;
	vb_cq_push(cq, &cqe);
	assert_int_equal(vb_cq_poll(cq, 1, &cqe.wc), 1);
	assert_int_equal(atomic_load(&qp->user.sq_released), 9);
	drop_qp(qp);
	drop_cq(cq);
}

/* "This CQ is used from a single threaded, thus no locking is required" */
NIC_TEST(a_lone_thread_takes_no_lock)
{
	struct vb_cq *cq = make_ex((struct ibv_cq_init_attr_ex){
		.cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED });
	struct vb_cq_stamp stamp;
	struct vb_cqe cqe;

	push(cq, 1, 1, false);
	push(cq, 2, 1, false);
	/* With the lock taken for ever: whoever wanted it would hang here. */
	vb_lock_take(&cq->poll_lock);
	assert_int_equal(vb_cq_poll(cq, 1, &cqe.wc), 1);
	assert_true(vb_cq_take(cq, &cqe, &stamp));
	assert_int_equal(cqe.wc.wr_id, 2);
	vb_lock_drop(&cq->poll_lock);
	drop_cq(cq);
}

/* --- stamps --- */

static void take_stamped(struct vb_cq *cq, uint64_t wr_id, uint64_t raw_ns, uint64_t wall_ns)
{
	struct vb_cq_stamp stamp;
	struct vb_cqe cqe;

	assert_true(vb_cq_take(cq, &cqe, &stamp));
	assert_int_equal(cqe.wc.wr_id, wr_id);
	assert_int_equal(stamp.raw_ns, raw_ns);
	assert_int_equal(stamp.wall_ns, wall_ns);
}

static void push_at(struct vb_cq *cq, uint64_t wr_id, uint32_t qpn, uint64_t ns)
{
	fix.raw_ns = ns;
	fix.wall_ns = ns + 1000000;
	push(cq, wr_id, qpn, false);
}

NIC_TEST(a_stamp_is_of_when_it_was_made)
{
	struct vb_cq *raw = make_ex((struct ibv_cq_init_attr_ex){
		.cqe = 4, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP });
	struct vb_cq *wall = make_ex((struct ibv_cq_init_attr_ex){
		.cqe = 1, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK });
	struct vb_cq *both = make_ex((struct ibv_cq_init_attr_ex){
		.cqe = 2, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
				      IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK });

	push_at(raw, 1, 1, 10);
	push_at(raw, 2, 1, 20);
	push_at(wall, 3, 1, 30);
	push_at(both, 4, 1, 40);
	fix.raw_ns = fix.wall_ns = 7;
	take_stamped(raw, 1, 10, 0);
	take_stamped(raw, 2, 20, 0);
	take_stamped(wall, 3, 0, 1000030);
	take_stamped(both, 4, 40, 1000040);
	assert_int_equal(fix.clocks_read, 5);
	drop_cq(raw);
	drop_cq(wall);
	drop_cq(both);
}

NIC_TEST(no_clock_is_read_unasked)
{
	struct vb_cq *cq = make_ex((struct ibv_cq_init_attr_ex){
		.cqe = 4, .wc_flags = IBV_CREATE_CQ_SUP_WC_FLAGS &
				      ~(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
					IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK) });
	struct ibv_wc wc;

	push(cq, 1, 1, true);
	vb_cq_poll(cq, 1, &wc);
	assert_int_equal(fix.clocks_read, 0);
	assert_null(cq->stamps);
	drop_cq(cq);
}

NIC_TEST(stamps_stay_with_their_completions)
{
	struct vb_cq *cq = make_ex((struct ibv_cq_init_attr_ex){
		.cqe = 4, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP });
	struct vb_cq_stamp stamp;
	struct vb_cqe cqe;

	push_at(cq, 0, 7, 5);
	vb_cq_take(cq, &cqe, &stamp);
	for (uint64_t i = 1; i <= 4; i++)
		push_at(cq, i, i % 2 ? 7 : 8, 10 * i);
	assert_int_equal(vb_cq_resize(cq, 64), 0);
	assert_int_equal(vb_cq_resize(cq, 4), 0);
	vb_cq_purge(cq, 7);
	push_at(cq, 5, 7, 50);
	take_stamped(cq, 2, 20, 0);
	take_stamped(cq, 4, 40, 0);
	take_stamped(cq, 5, 50, 0);
	drop_cq(cq);
}

/* --- overruns --- */

/* "CQE always will be written to next entry ... otherwise CQEs might be lost": the oldest are. */
NIC_TEST(overruns_may_be_ignored)
{
	struct vb_cq *cq = make_ex((struct ibv_cq_init_attr_ex){
		.cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN | IBV_CREATE_CQ_ATTR_SINGLE_THREADED });
	struct ibv_wc wc[8];

	for (uint64_t i = 0; i < 10; i++)
		push(cq, i, 1, false);
	assert_no_event();
	assert_false(vb_cq_is_broken(cq));
	assert_int_equal(vb_cq_poll(cq, 8, wc), 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(wc[i].wr_id, 6 + i);
	push(cq, 10, 1, false);
	assert_int_equal(vb_cq_poll(cq, 8, wc), 1);
	assert_int_equal(wc[0].wr_id, 10);
	drop_cq(cq);
}

/* "In case of a CQ overrun, ... the CQ cannot be used." */
NIC_TEST(a_broken_cq_takes_nothing_more)
{
	struct vb_cq *cq = make_cq(2, NULL);
	struct ibv_wc wc[4];

	for (uint64_t i = 0; i < 3; i++)
		push(cq, i, 1, false);
	assert_event(IBV_EVENT_CQ_ERR);
	assert_true(vb_cq_is_broken(cq));
	assert_int_equal(vb_cq_poll(cq, 4, wc), 2);
	push(cq, 3, 1, false);
	assert_int_equal(vb_cq_poll(cq, 4, wc), 0);
	assert_int_equal(vb_cq_resize(cq, 100), EINVAL);
	assert_no_event();
	drop_cq(cq);
}

NIC_TEST(the_qps_of_a_broken_cq_fail)
{
	struct vb_cq *small = make_cq(1, NULL), *other = make_cq(16, NULL);
	struct vb_qp *sends = make_qp(IBV_QPT_UD, small, NULL);
	struct vb_qp *idle = make_qp(IBV_QPT_UD, small, NULL);
	struct vb_qp *apart = make_qp(IBV_QPT_UD, other, NULL);
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;

	bring(sends, IBV_QPS_RTS);
	bring(apart, IBV_QPS_RTS);
	assert_int_equal(vb_qp_post_recv(sends, &wr, &bad), 0);
	push(small, 1, sends->ibv.qp.qp_num, false);
	push(small, 2, sends->ibv.qp.qp_num, false);
	assert_event(IBV_EVENT_CQ_ERR);
	assert_no_event(); /* it was in the midst of something */
	assert_int_equal(vb_qp_state(sends), IBV_QPS_RTS);
	assert_true(vb_nic_deadline_ns(fix.nic) <= fake_ns);
	vb_nic_turn(fix.nic);
	assert_event(IBV_EVENT_QP_FATAL);
	assert_int_equal(vb_qp_state(sends), IBV_QPS_ERR);
	/* One that has nothing to lose is left alone, and so is one that completes elsewhere. */
	assert_int_equal(vb_qp_state(idle), IBV_QPS_RESET);
	assert_int_equal(vb_qp_state(apart), IBV_QPS_RTS);
	vb_nic_turn(fix.nic);
	assert_no_event();
	/* ... until it has. */
	bring(idle, IBV_QPS_RTS);
	push(small, 3, idle->ibv.qp.qp_num, false);
	vb_nic_turn(fix.nic);
	assert_event(IBV_EVENT_QP_FATAL);
	assert_no_event();
	drop_qp(sends);
	drop_qp(idle);
	drop_qp(apart);
	drop_cq(small);
	drop_cq(other);
}

/* --- moderation: ibv_modify_cq(3) --- */

static struct vb_channel *channel;

static struct vb_cq *make_moderated(uint32_t count, uint32_t period_us)
{
	struct vb_cq *cq;

	assert_int_equal(vb_channel_create(fix.ctx, FD_CHANNEL, &channel), 0);
	cq = make_cq(64, channel);
	assert_int_equal(vb_cq_moderate(cq, count, period_us), 0);
	return cq;
}

static void drop_moderated(struct vb_cq *cq)
{
	drop_cq(cq);
	assert_int_equal(vb_channel_destroy(channel), 0);
	assert_int_equal(vb_nic_deadline_ns(fix.nic), UINT64_MAX);
}

static void assert_events(unsigned count)
{
	assert_int_equal(fix.signals[FD_CHANNEL], count);
	for (; count; count--)
		assert_non_null(vb_channel_pop(channel));
	fix.signals[FD_CHANNEL] = 0;
}

static void drain(struct vb_cq *cq)
{
	struct ibv_wc wc;

	while (vb_cq_poll(cq, 1, &wc))
		;
}

NIC_TEST(more_than_it_can_is_refused)
{
	struct vb_cq *cq = make_moderated(0, 0);
	struct ibv_device_attr_ex device;
	uint32_t count, period;

	vb_nic_query_device_ex(fix.nic, &device);
	count = device.cq_mod_caps.max_cq_count;
	period = device.cq_mod_caps.max_cq_period;
	assert_true(count > 0 && period > 0);
	assert_int_equal(vb_cq_moderate(cq, count + 1, 1), EINVAL);
	assert_int_equal(vb_cq_moderate(cq, 1, period + 1), EINVAL);
	assert_int_equal(vb_cq_moderate(cq, count, period), 0);
	drop_moderated(cq);
}

NIC_TEST(an_event_tells_of_so_many)
{
	struct vb_cq *cq = make_moderated(3, 0);

	for (unsigned round = 0; round < 3; round++) {
		vb_cq_arm_notify(cq, false);
		push(cq, 1, 1, false);
		push(cq, 2, 1, false);
		assert_events(0);
		push(cq, 3, 1, false);
		assert_events(1);
		push(cq, 4, 1, false); /* it is not armed any more */
		assert_events(0);
		drain(cq);
	}
	/* No clock runs for that. */
	assert_int_equal(vb_nic_deadline_ns(fix.nic), UINT64_MAX);
	drop_moderated(cq);
}

NIC_TEST(an_event_comes_in_time)
{
	struct vb_cq *cq = make_moderated(100, 50);

	vb_cq_arm_notify(cq, false);
	fake_ns = 1000;
	push(cq, 1, 1, false);
	fake_ns = 40000;
	push(cq, 2, 1, false); /* the clock runs from the first */
	assert_int_equal(vb_nic_deadline_ns(fix.nic), 51000);
	fake_ns = 50999;
	vb_nic_turn(fix.nic);
	assert_events(0);
	fake_ns = 51000;
	vb_nic_turn(fix.nic);
	assert_events(1);
	fake_ns = 1000000;
	vb_nic_turn(fix.nic);
	assert_events(0);
	drop_moderated(cq);
}

NIC_TEST(either_measure_will_do)
{
	struct vb_cq *cq = make_moderated(2, 50);

	fake_ns = 1000;
	vb_cq_arm_notify(cq, false);
	push(cq, 1, 1, false);
	push(cq, 2, 1, false);
	assert_events(1);
	drain(cq);
	/* The clock that still runs is not this one's. */
	vb_cq_arm_notify(cq, false);
	fake_ns = 31000;
	push(cq, 3, 1, false);
	fake_ns = 60000;
	vb_nic_turn(fix.nic);
	assert_events(0);
	assert_int_equal(vb_nic_deadline_ns(fix.nic), 81000);
	fake_ns = 81000;
	vb_nic_turn(fix.nic);
	assert_events(1);
	drop_moderated(cq);
}

NIC_TEST(what_waits_when_it_is_armed_counts)
{
	struct vb_cq *cq = make_moderated(3, 0);

	push(cq, 1, 1, false);
	push(cq, 2, 1, true);
	vb_cq_arm_notify(cq, false);
	assert_events(0);
	/* Armed twice, they still count once. */
	vb_cq_arm_notify(cq, false);
	assert_events(0);
	push(cq, 3, 1, false);
	assert_events(1);
	drain(cq);
	/* Three that wait are enough, however many there are. */
	for (unsigned i = 0; i < 5; i++)
		push(cq, i, 1, false);
	vb_cq_arm_notify(cq, false);
	assert_events(1);
	drain(cq);
	/* Those that were taken before it is armed again do not count. */
	vb_cq_arm_notify(cq, false);
	push(cq, 1, 1, false);
	push(cq, 2, 1, false);
	drain(cq);
	vb_cq_arm_notify(cq, false);
	push(cq, 3, 1, false);
	push(cq, 4, 1, false);
	assert_events(0);
	push(cq, 5, 1, false);
	assert_events(1);
	drop_moderated(cq);
}

NIC_TEST(only_what_it_is_armed_for_counts)
{
	struct vb_cq *cq = make_moderated(2, 100);

	vb_cq_arm_notify(cq, true);
	push(cq, 1, 1, false);
	push(cq, 2, 1, false);
	push(cq, 3, 1, true);
	assert_events(0);
	push(cq, 4, 1, true);
	assert_events(1);
	drop_moderated(cq);
}

NIC_TEST(a_new_measure_holds_at_once)
{
	struct vb_cq *cq = make_moderated(10, 0);

	vb_cq_arm_notify(cq, false);
	push(cq, 1, 1, false);
	push(cq, 2, 1, false);
	assert_int_equal(vb_cq_moderate(cq, 3, 0), 0);
	assert_events(0);
	assert_int_equal(vb_cq_moderate(cq, 2, 0), 0);
	assert_events(1);
	drain(cq);
	vb_cq_arm_notify(cq, false);
	push(cq, 3, 1, false);
	assert_int_equal(vb_cq_moderate(cq, 0, 0), 0);
	assert_events(1);
	drain(cq);
	/* Off: each event as ever. */
	vb_cq_arm_notify(cq, false);
	push(cq, 4, 1, false);
	assert_events(1);
	/* A clock that is set while one waits runs from then on. */
	drain(cq);
	assert_int_equal(vb_cq_moderate(cq, 10, 0), 0);
	vb_cq_arm_notify(cq, false);
	push(cq, 5, 1, false);
	fake_ns = 5000;
	assert_int_equal(vb_cq_moderate(cq, 10, 20), 0);
	fake_ns = 25000;
	vb_nic_turn(fix.nic);
	assert_events(1);
	drop_moderated(cq);
}

NIC_TEST(a_dead_cq_rings_no_more)
{
	struct vb_cq *cq = make_moderated(10, 50);

	vb_cq_arm_notify(cq, false);
	push(cq, 1, 1, false);
	assert_true(vb_nic_deadline_ns(fix.nic) != UINT64_MAX);
	drop_moderated(cq);
	fake_ns = 1000000;
	vb_nic_turn(fix.nic);
	assert_int_equal(fix.signals[FD_CHANNEL], 0);
}
