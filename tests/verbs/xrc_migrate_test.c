/* SPDX-License-Identifier: BSD-2-Clause */
#include "xrc.h"

#include <fcntl.h>

#include "netns.h"

/*
 * Path migration of XRC (IBA 17.2.8): as migrate_test.c has it of RC, but that the receive QP
 * belongs to a domain, and migrates for all that have it open. The primary path can be taken away.
 */

enum { ALT_TIMEOUT = 16, BYTES = 64 };

#include "ways.h"

/* A sender, a receive QP with two handles, and two SRQs. */
static struct all {
	struct ibv_xrcd *xrcd;
	struct vx_srq srq[2];
	struct ibv_qp *rcv, *opened;
	struct vx_snd snd;
	uint64_t sent;
} all;

static void all_open(void)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_type = IBV_QPT_XRC_RECV,
	};

	all = (struct all){ .xrcd = vx_domain(-1, O_CREAT) };
	assert_non_null(all.xrcd);
	vx_srq_open(&all.srq[0], all.xrcd);
	vx_srq_open(&all.srq[1], all.xrcd);
	all.rcv = vt_made(vx_rcv_make(all.xrcd));
	attr.qp_num = all.rcv->qp_num;
	attr.xrcd = all.xrcd;
	all.opened = vt_made(ibv_open_qp(vt.ctx, &attr));
	vx_snd_open(&all.snd, 0);
	assert_int_equal(vx_climb(all.rcv, all.snd.qp->qp_num, IBV_QPS_RTS), 0);
	assert_int_equal(vx_climb(all.snd.qp, all.rcv->qp_num, IBV_QPS_RTS), 0);
}

static void all_close(void)
{
	vx_snd_close(&all.snd);
	assert_int_equal(ibv_destroy_qp(all.opened), 0);
	assert_int_equal(ibv_destroy_qp(all.rcv), 0);
	vx_srq_close(&all.srq[0]);
	vx_srq_close(&all.srq[1]);
	assert_int_equal(ibv_close_xrcd(all.xrcd), 0);
}

static int setup(void **state)
{
	ways_open(state);
	all_open();
	return 0;
}

static int teardown(void **state)
{
	all_close();
	return ways_close(state);
}

#define both_ways_test(f)                                                                         \
	static void f(void **state);                                                              \
	vt_entry(f, wire, setup_wire, teardown_wire, NULL) migrate_test(f)

/* --- attributes --- */

static void expect(struct ibv_qp *qp, enum ibv_mig_state state, const struct way *way)
{
	assert_int_equal(vt_query(qp, -1).path_mig_state, state);
	expect_way(qp, way);
}

/* --- traffic and events --- */

static void post(unsigned srq)
{
	all.sent++;
	vx_recv(&all.srq[srq], all.sent, 0, BYTES);
	vt_fill(all.snd.buf, BYTES, (unsigned)all.sent);
	assert_int_equal(vx_post(&all.snd, IBV_WR_SEND, all.srq[srq].number, all.sent, BYTES, NULL),
			 0);
}

static void send_to(unsigned srq)
{
	post(srq);
	vt_expect(all.srq[srq].cq, all.sent, IBV_WC_SUCCESS);
	assert_true(vt_is_filled(all.srq[srq].buf, BYTES, (unsigned)all.sent));
	vt_expect(all.snd.cq, all.sent, IBV_WC_SUCCESS);
}

static void expect_sender_event(enum ibv_event_type type)
{
	struct ibv_async_event event = qp_event();

	assert_string_equal(ibv_event_type_str(event.event_type), ibv_event_type_str(type));
	assert_ptr_equal(event.element.qp, all.snd.qp);
}

/* Whoever has the receive QP open is told, once. */
static void expect_receiver_events(enum ibv_event_type type)
{
	bool rcv = false, opened = false;

	for (unsigned i = 0; i < 2; i++) {
		struct ibv_async_event event = qp_event();

		assert_string_equal(ibv_event_type_str(event.event_type), ibv_event_type_str(type));
		rcv |= event.element.qp == all.rcv;
		opened |= event.element.qp == all.opened;
	}
	assert_true(rcv && opened);
}

static void arm(const struct way *way, const struct way *now)
{
	rearm(all.rcv, way);
	rearm(all.snd.qp, way);
	send_to(0);
	expect(all.rcv, IBV_MIG_ARMED, now);
	expect(all.opened, IBV_MIG_ARMED, now);
	expect(all.snd.qp, IBV_MIG_ARMED, now);
}

/* --- what may be asked for --- */

migrate_test(an_alternate_path_is_kept)
{
	struct ibv_qp *const qps[] = { all.rcv, all.snd.qp };

	for (unsigned i = 0; i < 2; i++) {
		struct ibv_qp_attr with = with_alt(&alt), attr = with;

		assert_int_equal(ibv_modify_qp(qps[i], &attr, IBV_QP_ALT_PATH), 0);
		attr = vt_query(i ? qps[i] : all.opened, -1);
		assert_memory_equal(&attr.alt_ah_attr.grh, &with.alt_ah_attr.grh,
				    sizeof(attr.alt_ah_attr.grh));
		assert_int_equal(attr.alt_port_num, 1);
		assert_int_equal(attr.alt_pkey_index, 0);
		assert_int_equal(attr.alt_timeout, ALT_TIMEOUT);
		assert_int_equal(attr.path_mig_state, IBV_MIG_MIGRATED);
		assert_int_equal(vt_modify(qps[i], IBV_QPS_RESET), 0);
		assert_int_equal(vt_query(qps[i], -1).alt_port_num, 0);
		assert_int_equal(set_state(qps[i], IBV_MIG_REARM), EINVAL);
	}
}

/* IBTA table of QP state transitions: optional from INIT on. */
migrate_test(it_may_come_with_the_connection)
{
	struct ibv_qp_attr attr = vx_attr(all.snd.qp->qp_num), with = with_alt(&alt);

	assert_int_equal(vt_modify(all.rcv, IBV_QPS_RESET), 0);
	assert_int_equal(vx_climb(all.rcv, all.snd.qp->qp_num, IBV_QPS_INIT), 0);
	attr.alt_ah_attr = with.alt_ah_attr;
	attr.alt_port_num = 1;
	attr.alt_timeout = ALT_TIMEOUT;
	attr.qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(all.rcv, &attr,
				       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MAX_DEST_RD_ATOMIC |
					       IBV_QP_MIN_RNR_TIMER | IBV_QP_ALT_PATH), 0);
	assert_int_equal(vt_query(all.rcv, -1).alt_timeout, ALT_TIMEOUT);
	send_to(0);
}

/* ibv_modify_qp(3): of what is refused nothing is kept. */
migrate_test(a_wrong_alternate_path_is_refused)
{
	expect_wrong_paths_refused(all.rcv);
	expect_wrong_paths_refused(all.snd.qp);
	send_to(0);
}

migrate_test(only_some_changes_of_state_may_be_asked_for)
{
	assert_int_equal(set_state(all.rcv, IBV_MIG_REARM), EINVAL);
	assert_int_equal(set_state(all.rcv, IBV_MIG_ARMED), EINVAL);
	assert_int_equal(set_state(all.rcv, IBV_MIG_MIGRATED), 0);
	rearm(all.rcv, &alt);
	assert_int_equal(set_state(all.opened, IBV_MIG_ARMED), EINVAL);
	assert_int_equal(set_state(all.opened, IBV_MIG_MIGRATED), EINVAL);
	assert_int_equal(set_state(all.opened, IBV_MIG_REARM), 0);
	rearm(all.snd.qp, &alt);
	send_to(0);
	assert_int_equal(set_state(all.rcv, IBV_MIG_REARM), EINVAL);
	expect(all.rcv, IBV_MIG_ARMED, &primary);
	vt_no_event();
}

/* --- migration --- */

migrate_test(one_alone_does_not_arm)
{
	rearm(all.snd.qp, &alt);
	send_to(0);
	send_to(1);
	expect(all.snd.qp, IBV_MIG_REARM, &primary);
	expect(all.rcv, IBV_MIG_MIGRATED, &primary);
	vt_no_event();
}

both_ways_test(a_sender_takes_the_receive_qp_along)
{
	arm(&alt, &primary);
	assert_int_equal(set_state(all.snd.qp, IBV_MIG_MIGRATED), 0);
	expect_sender_event(IBV_EVENT_PATH_MIG);
	expect(all.snd.qp, IBV_MIG_MIGRATED, &alt);
	expect(all.rcv, IBV_MIG_ARMED, &primary);
	send_to(1);
	expect_receiver_events(IBV_EVENT_PATH_MIG);
	expect(all.rcv, IBV_MIG_MIGRATED, &alt);
	expect(all.opened, IBV_MIG_MIGRATED, &alt);
	send_to(0);
	vt_no_event();
}

/* What it sends before it has heard of it comes all the same, and the answer tells it. */
both_ways_test(a_receive_qp_takes_its_sender_along)
{
	arm(&alt, &primary);
	assert_int_equal(set_state(all.opened, IBV_MIG_MIGRATED), 0);
	expect_receiver_events(IBV_EVENT_PATH_MIG);
	expect(all.rcv, IBV_MIG_MIGRATED, &alt);
	expect(all.snd.qp, IBV_MIG_ARMED, &primary);
	send_to(1);
	expect_sender_event(IBV_EVENT_PATH_MIG);
	expect(all.snd.qp, IBV_MIG_MIGRATED, &alt);
	send_to(0);
	vt_no_event();
}

migrate_test(there_and_back)
{
	for (unsigned round = 0; round < 6; round++) {
		const struct way *from = round % 2 ? &alt : &primary;
		const struct way *to = round % 2 ? &primary : &alt;

		arm(to, from);
		if (round % 3) {
			assert_int_equal(set_state(all.snd.qp, IBV_MIG_MIGRATED), 0);
			expect_sender_event(IBV_EVENT_PATH_MIG);
			send_to(round % 2);
			expect_receiver_events(IBV_EVENT_PATH_MIG);
		} else {
			assert_int_equal(set_state(all.rcv, IBV_MIG_MIGRATED), 0);
			expect_receiver_events(IBV_EVENT_PATH_MIG);
			send_to(round % 2);
			expect_sender_event(IBV_EVENT_PATH_MIG);
		}
		expect(all.snd.qp, IBV_MIG_MIGRATED, to);
		expect(all.rcv, IBV_MIG_MIGRATED, to);
	}
	vt_no_event();
}

/* To one SRQ and the other by turns, on its way while paths change. */
migrate_test(work_goes_on_meanwhile)
{
	for (unsigned round = 0; round < 6; round++) {
		uint64_t first = all.sent + 2;

		arm(round % 2 ? &primary : &alt, round % 2 ? &alt : &primary);
		for (unsigned i = 0; i < 24; i++) {
			post(i / 3 % 2);
			if (i == 4 * round)
				assert_int_equal(set_state(all.snd.qp, IBV_MIG_MIGRATED), 0);
		}
		for (unsigned i = 0; i < 24; i++) {
			vt_expect(all.srq[i / 3 % 2].cq, first + i, IBV_WC_SUCCESS);
			vt_expect(all.snd.cq, first + i, IBV_WC_SUCCESS);
		}
		expect_sender_event(IBV_EVENT_PATH_MIG);
		expect_receiver_events(IBV_EVENT_PATH_MIG);
	}
}

/* --- a path that is lost --- */

wire_test(a_lost_path_is_left)
{
	arm(&alt, &primary);
	assert_true(netns_interface_down("lo:1"));
	send_to(1);
	expect_sender_event(IBV_EVENT_PATH_MIG);
	expect_receiver_events(IBV_EVENT_PATH_MIG);
	assert_int_equal(vt_query(all.snd.qp, -1).timeout, ALT_TIMEOUT);
	expect(all.rcv, IBV_MIG_MIGRATED, &alt);
	send_to(0);
}

/* IBA 11.6.3.2: a peer that migrates to where we would not is not followed, and that is told. */
wire_test(a_path_that_is_not_ours_is_refused)
{
	struct way third;

	assert_true(netns_address_add("lo:2", THIRD));
	third = way_of(THIRD);
	rearm(all.snd.qp, &third);
	rearm(all.rcv, &alt);
	send_to(0);
	assert_int_equal(set_state(all.snd.qp, IBV_MIG_MIGRATED), 0);
	expect_sender_event(IBV_EVENT_PATH_MIG);
	post(0);
	expect_receiver_events(IBV_EVENT_PATH_MIG_ERR);
	vt_expect(all.snd.cq, all.sent, IBV_WC_RETRY_EXC_ERR);
	expect(all.rcv, IBV_MIG_ARMED, &primary);
	vt_no_event(); /* told once */
	netns_interface_down("lo:2");
}
