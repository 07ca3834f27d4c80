/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm_fixture.h"

#include <errno.h>

/* A REQ of somebody's, and of somebody else's. */
static void stranger_asks(unsigned number)
{
	struct end stranger = {.gid[15] = 99};
	struct vb_cm_msg req = req_of(number);

	req.local_comm_id = 1000 + number;
	req.req.local_ca_guid = 5;
	net_bring_msg(&req, &stranger, &net.b);
}

BETWEEN_TWO(ids_are_random_but_for_the_slot)
{
	uint32_t low = 0, high = 0;

	for (unsigned i = 0; i < 1000; i++) {
		struct vb_cm_id *id = vb_cm_id_make(&net.a.cm, NULL);

		assert_int_equal(id->local.id >> 22, 5);
		assert_ptr_equal(vb_cm_id_of_local(&net.a.cm, id->local.id), id);
		low += id->local.id & 1;
		high += id->local.id >> 21 & 1;
	}
	assert_in_range(low, 400, 600);
	assert_in_range(high, 400, 600);
}

BETWEEN_TWO(a_new_attempt_has_a_new_id)
{
	struct pair pair = pair_asked(false);
	uint32_t first = pair.a->local.id;
	const struct vb_cm_msg req = req_of(QPN_A);
	const struct vb_cm_ask ask = net_way();

	says(pair.b, VB_CM_REJ);
	net_pass(VB_CM_REJ);
	is_in(pair.a, VB_CM_STATE_IDLE);
	assert_int_not_equal(pair.a->local.id, first);
	assert_null(vb_cm_id_of_local(&net.a.cm, first));
	assert_int_equal(vb_cm_say_ask(pair.a, net.now_ns, &req, &ask), 0);
	net_pass(VB_CM_REQ);
	assert_int_equal(net.b.events, 2);
}

BETWEEN_TWO(listening_is_for_who_is_idle)
{
	struct vb_cm_id *id = vb_cm_id_make(&net.a.cm, NULL);

	assert_int_equal(vb_cm_id_listen(id, SERVICE, 0), EINVAL);
	assert_int_equal(vb_cm_id_listen(id, SERVICE, 1), 0);
	assert_int_equal(vb_cm_id_listen(id, SERVICE, 1), EINVAL);
	assert_int_equal(vb_cm_id_listen(a_asks(false), SERVICE, 1), EINVAL);
	net.mads = 0;
}

/* More than the backlog are not answered; who was taken, or let go of, makes room. */
BETWEEN_TWO(a_full_backlog_is_silent)
{
	for (unsigned i = 0; i < 100; i++)
		stranger_asks(i);
	net_quiet();
	assert_int_equal(net.b.events, 2);
	assert_int_equal(net.b.cm.stats.full, 98);
	assert_int_equal(net.b.cm.ids_count, 3);
	vb_cm_id_take(net.b.told[0].id);
	vb_cm_id_take(net.b.told[0].id);
	stranger_asks(200);
	stranger_asks(201);
	assert_int_equal(net.b.events, 3);
	vb_cm_id_release(net.b.told[1].id, net.now_ns);
	net_lose(VB_CM_REJ);
	stranger_asks(202);
	assert_int_equal(net.b.events, 4);
}

/* A REQ that is taken back makes no room: its id is still there. */
BETWEEN_TWO(taking_back_makes_no_room)
{
	for (unsigned i = 0; i < 10; i++) {
		struct vb_cm_id *id = a_asks(false);

		net_pass(VB_CM_REQ);
		vb_cm_id_release(id, net.now_ns);
		net_pass(VB_CM_REJ);
	}
	assert_int_equal(net.b.cm.ids_count, 3);
}

BETWEEN_TWO(without_memory_there_is_silence)
{
	net.b.poor = true;
	assert_null(vb_cm_id_make(&net.b.cm, NULL));
	stranger_asks(1);
	net_quiet();
	assert_int_equal(net.b.events, 0);
	net.b.poor = false;
	stranger_asks(1);
	assert_int_equal(net.b.events, 1);
}

/* Who lets go says why, as Linux does. */
BETWEEN_TWO(letting_go_says_goodbye)
{
	struct pair pair;

	vb_cm_id_release(vb_cm_id_make(&net.a.cm, NULL), net.now_ns);
	net_quiet();
	pair = pair_asked(false);
	vb_cm_id_release(pair.b, net.now_ns);
	net_pass(VB_CM_REJ);
	assert_int_equal(end_hears(&net.a, VB_CM_EVENT_REJ)->msg.rej.reason,
			 VB_CM_REJ_CONSUMER_DEFINED);
	pair = pair_answered(false);
	vb_cm_id_release(pair.a, net.now_ns);
	net_pass(VB_CM_REJ);
	end_hears(&net.b, VB_CM_EVENT_REJ);
	pair = pair_connected(false);
	vb_cm_id_release(pair.a, net.now_ns);
	net_pass(VB_CM_DREQ);
	end_hears(&net.b, VB_CM_EVENT_DREQ);
	vb_cm_id_release(pair.b, net.now_ns);
	net_pass(VB_CM_DREP);
	end_hears_nothing(&net.a);
	assert_int_equal(net.a.cm.ids_count, 1);
	assert_int_equal(net.a.cm.lingering_count, 2);
}

BETWEEN_TWO(who_was_let_go_of_lingers_and_goes)
{
	struct pair pair = pair_connected(false);

	vb_cm_id_release(pair.a, net.now_ns);
	net_lose(VB_CM_DREQ);
	assert_int_equal(net_wait(&net.a), 8);
	net_pass(VB_CM_DREQ);
	says(pair.b, VB_CM_DREP);
	net_pass(VB_CM_DREP);
	assert_int_equal(net.a.cm.lingering_count, 1);
	assert_int_equal(net_wait(&net.a), 512);
	assert_int_equal(net.a.cm.lingering_count, 0);
	assert_int_equal(net.a.cm.by_local.count, 0);
	assert_int_equal(net.a.cm.by_remote.count, 0);
	end_hears_nothing(&net.a);
}

BETWEEN_TWO(not_too_many_linger)
{
	net.b.quick = true;
	for (unsigned i = 0; i < VB_CM_LINGERING_MAX + 100; i++) {
		net.b.events = net.mads = 0;
		stranger_asks(i);
	}
	net.mads = 0;
	assert_int_equal(net.b.cm.lingering_count, VB_CM_LINGERING_MAX);
	net.now_ns += 60000 * MS;
	vb_cm_turn(&net.b.cm, net.now_ns);
	assert_int_equal(net.b.cm.lingering_count, 0);
	assert_int_equal(net.b.cm.ids_count, 1);
}

/* It may be let go of while its user hears of it. */
BETWEEN_TWO(a_req_may_be_rejected_at_once)
{
	net.b.quick = true;
	a_asks(false);
	net_pass(VB_CM_REQ);
	net_pass(VB_CM_REJ);
	end_hears(&net.a, VB_CM_EVENT_REJ);
	assert_int_equal(net.b.cm.ids_count, 1);
}

/* As if it had never come: the peer asks again. */
BETWEEN_TWO(forgetting_is_silent)
{
	struct pair pair = pair_asked(true);

	vb_cm_id_forget(pair.b);
	net_quiet();
	net_wait(&net.a);
	net_pass(VB_CM_REQ);
	end_hears(&net.b, VB_CM_EVENT_REQ);
}

BETWEEN_TWO(children_outlive_their_listener)
{
	struct pair pair = {.a = a_asks(false)};

	net_pass(VB_CM_REQ);
	pair.b = end_hears(&net.b, VB_CM_EVENT_REQ)->id;
	vb_cm_id_release(net.listener, net.now_ns);
	assert_int_equal(says(pair.b, VB_CM_REP), 0);
	net_pass(VB_CM_REP);
	end_hears(&net.a, VB_CM_EVENT_REP);
	vb_cm_id_take(pair.b);
}
