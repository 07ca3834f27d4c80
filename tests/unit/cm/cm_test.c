/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm_fixture.h"

enum { MANY = 10000 };

/* As many as a server of many clients has, all at once; and they go. */
BETWEEN_TWO(ten_thousand_connect)
{
	static struct pair pair[MANY];
	const struct vb_cm_ask ask = net_way();

	for (unsigned i = 0; i < MANY; i++) {
		const struct vb_cm_msg msg = req_of(i + 1), rep = {
								    .attr = VB_CM_REP,
								    .rep.local_qpn = i + 1,
							    };

		net.a.events = net.a.heard_of = net.b.events = net.b.heard_of = 0;
		pair[i].a = vb_cm_id_make(&net.a.cm, NULL);
		assert_int_equal(vb_cm_say_ask(pair[i].a, net.now_ns, &msg, &ask), 0);
		net_pass(VB_CM_REQ);
		pair[i].b = end_hears(&net.b, VB_CM_EVENT_REQ)->id;
		vb_cm_id_take(pair[i].b);
		assert_int_equal(vb_cm_say(pair[i].b, net.now_ns, &rep, NULL), 0);
		net_pass(VB_CM_REP);
		assert_int_equal(says(pair[i].a, VB_CM_RTU), 0);
		net_pass(VB_CM_RTU);
	}
	assert_int_equal(net.a.cm.by_qpn.count, MANY);
	for (unsigned i = 0; i < MANY; i++) {
		is_in(pair[i].a, VB_CM_STATE_ESTABLISHED);
		is_in(pair[i].b, VB_CM_STATE_ESTABLISHED);
		assert_int_equal(pair[i].a->remote.id, pair[i].b->local.id);
		net.b.events = net.b.heard_of = 0;
		vb_cm_id_release(pair[i].a, net.now_ns);
		net_pass(VB_CM_DREQ);
		end_hears(&net.b, VB_CM_EVENT_DREQ);
		vb_cm_id_release(pair[i].b, net.now_ns);
		net_pass(VB_CM_DREP);
	}
	net.now_ns += 1000 * MS;
	vb_cm_turn(&net.a.cm, net.now_ns);
	vb_cm_turn(&net.b.cm, net.now_ns);
	assert_int_equal(net.a.cm.by_local.count, 0);
	assert_int_equal(net.a.cm.by_remote.count, 0);
	assert_int_equal(net.b.cm.by_remote.count, 0);
	assert_true(vb_cm_deadline_ns(&net.a.cm) == VB_CM_NEVER);
}

/* All clocks run at once, and each rings when it is due. */
BETWEEN_TWO(all_clocks_ring)
{
	enum { COUNT = 50 };

	for (unsigned i = 0; i < COUNT; i++) {
		a_asks(i % 2 == 0);
		net.now_ns += MS;
	}
	while (vb_cm_deadline_ns(&net.a.cm) != VB_CM_NEVER) {
		net.mads = 0;
		net_wait(&net.a);
		assert_true(vb_cm_deadline_ns(&net.a.cm) > net.now_ns);
	}
	net.mads = 0;
	assert_int_equal(net.a.events, COUNT);
	for (unsigned i = 0; i < COUNT; i++)
		is_in(end_hears(&net.a, VB_CM_EVENT_REQ_OVERDUE)->id, VB_CM_STATE_IDLE);
}

BETWEEN_TWO(what_is_drawn_is_not_foreseen)
{
	uint64_t first = vb_cm_draw(&net.a.cm);

	assert_true(first != vb_cm_draw(&net.a.cm));
	assert_true(first != vb_cm_draw(&net.b.cm));
}

BETWEEN_TWO(nothing_waits_where_nothing_is)
{
	assert_true(vb_cm_deadline_ns(&net.a.cm) == VB_CM_NEVER);
	vb_cm_turn(&net.a.cm, net.now_ns);
	net_quiet();
}

/* Whoever takes all down has nothing left, whatever was going on. */
BETWEEN_TWO(it_ends_in_the_midst)
{
	pair_connected(false);
	vb_cm_id_release(pair_connected(true).a, net.now_ns);
	a_asks(false);
	net.mads = 0;
}
