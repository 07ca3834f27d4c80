/* SPDX-License-Identifier: BSD-2-Clause */
#include "told.h"

#include "netns.h"

/*
 * Automatic path migration: ibv_modify_qp(3) with an alternate path and a path migration state, and
 * what becomes of it (IBA 17.2.8). The primary path is one that can be taken away: an address of
 * its own. The alternate one is the loopback address. Both ends are here.
 */

enum { ALT_TIMEOUT = 15 };

#include "ways.h"

static int setup(void **state)
{
	ways_open(state);
	return 0;
}

static int teardown(void **state)
{
	return ways_close(state);
}

/* --- attributes --- */

static void expect_state(struct ibv_qp *qp, enum ibv_mig_state state)
{
	assert_int_equal(vt_query(qp, -1).path_mig_state, state);
}

/* --- traffic and events --- */

static void expect_event(enum ibv_event_type type, struct ibv_qp *qp)
{
	struct ibv_async_event event = qp_event();

	assert_string_equal(ibv_event_type_str(event.event_type), ibv_event_type_str(type));
	assert_ptr_equal(event.element.qp, qp);
}

/* Both ends have asked for it, and have heard that of each other. */
static void arm(struct vt_pair *p, const struct way *way)
{
	rearm(p->a.qp, way);
	rearm(p->b.qp, way);
	expect_state(p->a.qp, IBV_MIG_REARM);
	vt_exchange(&p->a, &p->b);
	if (p->opt.type == IBV_QPT_UC)
		vt_exchange(&p->b, &p->a);
	expect_state(p->a.qp, IBV_MIG_ARMED);
	expect_state(p->b.qp, IBV_MIG_ARMED);
}

static void pair_open(struct vt_pair *p, enum ibv_qp_type type)
{
	struct vt_options opt = { .type = type, .retry_cnt = 1 };

	vt_pair_open(p, &opt);
}

#define pair_test(f)                                                                              \
	vt_with(migrate_test, f, struct vt_pair, p, pair_open(&p, IBV_QPT_RC), vt_pair_close(&p))
#define wire_pair_test(f)                                                                         \
	vt_with(wire_test, f, struct vt_pair, p, pair_open(&p, IBV_QPT_RC), vt_pair_close(&p))

/* Of RC, and of UC. */
#define pairs_test(f)                                                                             \
	vt_with_each(migrate_test, f, i, 0, 2, struct vt_pair, p, pair_open(&p, vt_types[i]),     \
		     vt_pair_close(&p))

/* --- what may be asked for --- */

migrate_test(the_device_says_that_it_can)
{
	struct ibv_device_attr attr = vt_device();

	assert_true(attr.device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG);
}

/* On each step on which it may be given, and told again until RESET. */
migrate_test(an_alternate_path_is_kept)
{
	for (unsigned i = 0; i < 4; i++) {
		struct vt_options opt = { .type = vt_types[i % 2] };
		enum ibv_qp_state when = i / 2 ? IBV_QPS_RTS : IBV_QPS_RTR;
		struct ibv_qp_attr attr, with = with_alt(&alt);
		struct vt_end end;
		int mask;

		vt_end_open(&end, &opt);
		vt_climb(end.qp, &opt, when - 1, end.qp->qp_num);
		mask = vt_attr(&attr, &opt, when, end.qp->qp_num);
		attr.alt_ah_attr = with.alt_ah_attr;
		attr.alt_port_num = with.alt_port_num;
		attr.alt_timeout = with.alt_timeout;
		assert_int_equal(ibv_modify_qp(end.qp, &attr, mask | IBV_QP_ALT_PATH), 0);
		attr = vt_query(end.qp, -1);
		assert_memory_equal(&attr.alt_ah_attr.grh, &with.alt_ah_attr.grh,
				    sizeof(attr.alt_ah_attr.grh));
		assert_int_equal(attr.alt_port_num, 1);
		assert_int_equal(attr.alt_pkey_index, 0);
		assert_int_equal(attr.alt_timeout, ALT_TIMEOUT);
		assert_int_equal(attr.path_mig_state, IBV_MIG_MIGRATED);
		assert_int_equal(vt_modify(end.qp, IBV_QPS_RESET), 0);
		assert_int_equal(vt_query(end.qp, -1).alt_port_num, 0);
		vt_end_close(&end);
	}
}

/* On the way to RTS it may be asked for with all the rest, alternate path included. */
migrate_test(it_may_be_asked_for_before_anything_is_sent)
{
	for (unsigned i = 0; i < 2; i++) {
		struct vt_options opt = { .type = vt_types[i], .in_reset = true };
		struct vt_pair p;

		vt_pair_open(&p, &opt);
		for (unsigned n = 0; n < 2; n++) {
			struct ibv_qp *qp = n ? p.b.qp : p.a.qp;
			struct ibv_qp_attr attr, with = with_alt(&alt);
			int mask;

			vt_climb(qp, &p.opt, IBV_QPS_RTR, n ? p.a.qp->qp_num : p.b.qp->qp_num);
			mask = vt_attr(&attr, &p.opt, IBV_QPS_RTS, 0);
			attr.alt_ah_attr = with.alt_ah_attr;
			attr.alt_port_num = 1;
			attr.path_mig_state = IBV_MIG_REARM;
			assert_int_equal(ibv_modify_qp(qp, &attr, mask | IBV_QP_ALT_PATH |
								IBV_QP_PATH_MIG_STATE), 0);
			expect_state(qp, IBV_MIG_REARM);
		}
		vt_exchange(&p.a, &p.b);
		vt_exchange(&p.b, &p.a);
		expect_state(p.a.qp, IBV_MIG_ARMED);
		expect_state(p.b.qp, IBV_MIG_ARMED);
		vt_no_event();
		vt_pair_close(&p);
	}
}

/* ibv_modify_qp(3): of what is refused nothing is kept. */
pair_test(a_wrong_alternate_path_is_refused)
{
	expect_wrong_paths_refused(p->a.qp);
}

/*
 * IBA 17.2.8: software asks for REARM, and for MIGRATED when both are armed. It cannot arm, and
 * what is waited for cannot be called off. Without an alternate path there is nothing to wait for.
 */
pair_test(only_some_changes_of_state_may_be_asked_for)
{
	assert_int_equal(set_state(p->a.qp, IBV_MIG_REARM), EINVAL);
	assert_int_equal(set_state(p->a.qp, IBV_MIG_ARMED), EINVAL);
	assert_int_equal(set_state(p->a.qp, IBV_MIG_MIGRATED), 0);
	expect_state(p->a.qp, IBV_MIG_MIGRATED);
	rearm(p->a.qp, &alt);
	assert_int_equal(set_state(p->a.qp, IBV_MIG_ARMED), EINVAL);
	assert_int_equal(set_state(p->a.qp, IBV_MIG_MIGRATED), EINVAL);
	assert_int_equal(set_state(p->a.qp, IBV_MIG_REARM), 0);
	rearm(p->b.qp, &alt);
	vt_exchange(&p->a, &p->b);
	expect_state(p->a.qp, IBV_MIG_ARMED);
	assert_int_equal(set_state(p->a.qp, IBV_MIG_ARMED), EINVAL);
	assert_int_equal(set_state(p->a.qp, IBV_MIG_REARM), EINVAL);
	expect_state(p->a.qp, IBV_MIG_ARMED);
	vt_no_event();
}

/* --- migration --- */

/* One of them waits, the other does not: nobody is armed, and both get on. */
pairs_test(one_alone_does_not_arm)
{
	rearm(p->a.qp, &alt);
	vt_exchange(&p->a, &p->b);
	vt_exchange(&p->b, &p->a);
	expect_state(p->a.qp, IBV_MIG_REARM);
	expect_state(p->b.qp, IBV_MIG_MIGRATED);
	vt_no_event();
}

/* ibv_query_qp(3): path_mig_state and ah_attr may change by themselves. */
pairs_test(who_is_told_to_migrate_takes_the_other_along)
{
	arm(p, &alt);
	expect_way(p->a.qp, &primary);
	assert_int_equal(set_state(p->a.qp, IBV_MIG_MIGRATED), 0);
	expect_event(IBV_EVENT_PATH_MIG, p->a.qp);
	expect_way(p->a.qp, &alt);
	expect_state(p->a.qp, IBV_MIG_MIGRATED);
	assert_int_equal(vt_query(p->a.qp, -1).timeout, ALT_TIMEOUT);
	expect_way(p->b.qp, &primary);
	vt_exchange(&p->a, &p->b);
	expect_event(IBV_EVENT_PATH_MIG, p->b.qp);
	expect_way(p->b.qp, &alt);
	expect_state(p->b.qp, IBV_MIG_MIGRATED);
	vt_exchange(&p->b, &p->a);
	vt_no_event();
}

/* What the other sends before it has heard of it comes all the same. */
pairs_test(who_has_not_heard_of_it_is_heard)
{
	arm(p, &alt);
	assert_int_equal(set_state(p->a.qp, IBV_MIG_MIGRATED), 0);
	expect_event(IBV_EVENT_PATH_MIG, p->a.qp);
	vt_exchange(&p->b, &p->a);
	if (p->opt.type == IBV_QPT_RC) /* the ACK has told */
		expect_event(IBV_EVENT_PATH_MIG, p->b.qp);
	vt_no_event();
}

/* With a new alternate path it begins again: there and back, often. */
pair_test(there_and_back)
{
	for (unsigned round = 0; round < 6; round++) {
		struct vt_end *first = round % 3 ? &p->a : &p->b;
		struct vt_end *second = round % 3 ? &p->b : &p->a;

		arm(p, round % 2 ? &primary : &alt);
		assert_int_equal(set_state(first->qp, IBV_MIG_MIGRATED), 0);
		expect_event(IBV_EVENT_PATH_MIG, first->qp);
		vt_exchange(first, second);
		expect_event(IBV_EVENT_PATH_MIG, second->qp);
		expect_way(first->qp, round % 2 ? &primary : &alt);
		expect_way(second->qp, round % 2 ? &primary : &alt);
	}
	vt_no_event();
}

/* All kinds of work, on its way while paths change. */
migrate_test(work_goes_on_meanwhile)
{
	static const enum ibv_wr_opcode op[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND,
						 IBV_WR_ATOMIC_FETCH_AND_ADD };
	struct vt_options opt = { .bytes = 1 << 18 };
	struct vt_pair p;
	struct vt_wr w;

	vt_pair_open(&p, &opt);
	for (unsigned round = 0; round < 10; round++) {
		arm(&p, round % 2 ? &primary : &alt);
		for (unsigned i = 0; i < 24; i++) {
			vt_wr(&w, op[i % 4], &p.a, &p.b, i % 4 == 3 ? 8 : 1 << 17);
			w.wr.wr_id = i;
			if (op[i % 4] == IBV_WR_SEND)
				vt_recv(&p.b, i);
			vt_post(&p.a, &w);
			if (i == round * 2)
				assert_int_equal(set_state(p.a.qp, IBV_MIG_MIGRATED), 0);
		}
		for (unsigned i = 0; i < 24; i++)
			vt_expect(p.a.cq, i, IBV_WC_SUCCESS);
		for (unsigned i = 2; i < 24; i += 4)
			vt_expect(p.b.cq, i, IBV_WC_SUCCESS);
		expect_event(IBV_EVENT_PATH_MIG, p.a.qp);
		expect_event(IBV_EVENT_PATH_MIG, p.b.qp);
	}
	vt_pair_close(&p);
}

/* --- a path that is lost --- */

/* IBA 17.2.8: retries that are used up are no end, if there is another path. */
wire_pair_test(a_lost_path_is_left)
{
	arm(p, &alt);
	assert_true(netns_interface_down("lo:1"));
	vt_exchange(&p->a, &p->b);
	expect_event(IBV_EVENT_PATH_MIG, p->a.qp);
	expect_event(IBV_EVENT_PATH_MIG, p->b.qp);
	expect_way(p->a.qp, &alt);
	expect_way(p->b.qp, &alt);
	vt_exchange(&p->b, &p->a);
}

/* Without one, or with one that is lost as well, it is an end as ever. */
wire_test(where_there_is_no_other_path_it_ends)
{
	struct vt_pair p;

	for (unsigned armed = 0; armed < 2; armed++) {
		assert_true(netns_address_add("lo:1", PRIMARY));
		primary = way_of(PRIMARY);
		vt.gid_index = primary.index;
		pair_open(&p, IBV_QPT_RC);
		if (armed)
			arm(&p, &primary);
		assert_true(netns_interface_down("lo:1"));
		vt_send(&p.a, &p.b, 5);
		vt_expect(p.a.cq, 5, IBV_WC_RETRY_EXC_ERR);
		if (armed)
			expect_event(IBV_EVENT_PATH_MIG, p.a.qp);
		vt_pair_close(&p);
	}
}

/* IBA 11.6.3.2: a peer that migrates to where we would not is not followed, and that is told. */
wire_test(a_path_that_is_not_ours_is_refused)
{
	struct way third;
	struct vt_pair p;

	log_skip();
	assert_true(netns_address_add("lo:2", THIRD));
	third = way_of(THIRD);
	pair_open(&p, IBV_QPT_RC);
	rearm(p.a.qp, &third);
	rearm(p.b.qp, &alt);
	vt_exchange(&p.a, &p.b);
	assert_int_equal(set_state(p.a.qp, IBV_MIG_MIGRATED), 0);
	expect_event(IBV_EVENT_PATH_MIG, p.a.qp);
	logged(text("QPN 0x%x: IBV_EVENT_PATH_MIG: ", p.a.qp->qp_num), "it migrated", NULL);
	vt_send(&p.a, &p.b, 5);
	expect_event(IBV_EVENT_PATH_MIG_ERR, p.b.qp);
	logged(text("QPN 0x%x: IBV_EVENT_PATH_MIG_ERR: ", p.b.qp->qp_num),
	       "not our alternate path", NULL);
	vt_expect(p.a.cq, 5, IBV_WC_RETRY_EXC_ERR);
	expect_state(p.b.qp, IBV_MIG_ARMED);
	expect_way(p.b.qp, &primary);
	vt_no_event(); /* told once */
	vt_pair_close(&p);
	netns_interface_down("lo:2");
}
