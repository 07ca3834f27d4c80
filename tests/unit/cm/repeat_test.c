/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm_fixture.h"

#include "cm/repeat.h"

/* Others are asked again when their timers say so, and as often; then it is over, and they hear. */
BETWEEN_TWO(others_are_asked_by_their_timers)
{
	struct vb_cm_id *a;

	net.unmarked = true;
	a = a_asks(false);
	a->peer = VB_CM_PEER_OTHER;
	vb_cm_clock_set(&net.a.cm.clocks, &a->clock, a->clock.slow_ns);
	net_lose(VB_CM_REQ);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(net_wait(&net.a), 4608);
		net_lose(VB_CM_REQ);
	}
	assert_int_equal(net_wait(&net.a), 4608);
	net_lose(VB_CM_REJ);
	end_hears(&net.a, VB_CM_EVENT_REQ_OVERDUE);
	is_in(a, VB_CM_STATE_IDLE);
	assert_int_equal(net.a.cm.stats.repeated, 3);
}

/* One of ours is asked after 8 ms, and less and less often; for as long as others. */
BETWEEN_TWO(ours_is_asked_within_milliseconds)
{
	unsigned total = 0, times = 0, step = 8;

	a_asks(true);
	net_lose(VB_CM_REQ);
	while (net.a.events == 0) {
		unsigned waited = net_wait(&net.a);

		total += waited;
		if (net.a.events)
			break;
		assert_int_equal(waited, step);
		step = step < 512 ? 2 * step : 512;
		net_lose(VB_CM_REQ);
		times++;
	}
	net_lose(VB_CM_REJ);
	end_hears(&net.a, VB_CM_EVENT_REQ_OVERDUE);
	assert_int_equal(total, 4 * 4608);
	assert_in_range(times, 36, 44);
}

static bool host_is_sure(void *arg, const struct vb_path *path)
{
	return path->local;
}

/* Where nothing is lost an answer that is late is no reason to ask soon; but who dies is silent. */
BETWEEN_TWO(where_nothing_is_lost_there_is_time)
{
	struct vb_cm_id *a;

	net.a.cm.host.is_sure = host_is_sure;
	a = a_asks(true);
	net_lose(VB_CM_REQ);
	assert_int_equal(net_wait(&net.a), 8);
	net_lose(VB_CM_REQ);
	a->path.local = true;
	vb_cm_repeat_start(a, VB_CM_CLOCK_REPEAT);
	assert_int_equal(net_wait(&net.a), 256);
	net_lose(VB_CM_REQ);
	assert_int_equal(net_wait(&net.a), 1024);
	net_pass(VB_CM_REQ);
	end_hears(&net.b, VB_CM_EVENT_REQ);
}

/* Whom we do not know is asked whether it is one of ours; others drop that. */
BETWEEN_TWO(a_stranger_turns_out_to_be_ours)
{
	struct vb_cm_id *a = a_asks(false);

	net_lose(VB_CM_REQ);
	assert_int_equal(net_wait(&net.a), 8);
	net_lose(VB_CM_MRA);
	assert_int_equal(net_wait(&net.a), 16);
	net_pass(VB_CM_MRA); /* B answers */
	net_pass(VB_CM_MRA); /* and A asks again */
	net_lose(VB_CM_REQ);
	assert_int_equal(a->peer, VB_CM_PEER_OURS);
	assert_int_equal(net_wait(&net.a), 8);
	net_pass(VB_CM_REQ);
	end_hears(&net.b, VB_CM_EVENT_REQ);
	end_hears_nothing(&net.a);
}

BETWEEN_TWO(others_are_asked_so_only_a_few_times)
{
	unsigned hellos = 0, reqs = 1;

	net.unmarked = true;
	a_asks(false);
	net_lose(VB_CM_REQ);
	while (net.a.events == 0) {
		struct vb_cm_msg msg;
		struct mad mad;

		net_wait(&net.a);
		mad = net_take();
		assert_true(vb_cm_parse(&msg, mad.data));
		hellos += msg.attr == VB_CM_MRA;
		reqs += msg.attr == VB_CM_REQ;
	}
	assert_int_equal(reqs, 4);
	assert_in_range(hellos, 8, 12);
}

/* Who has connected to it before knows. */
BETWEEN_TWO(an_address_is_remembered)
{
	struct pair pair = pair_asked(false);

	says(pair.b, VB_CM_REJ);
	net_pass(VB_CM_REJ);
	assert_int_equal(a_asks(false)->peer, VB_CM_PEER_OURS);
	net_lose(VB_CM_REQ);
}

BETWEEN_TWO(a_hello_needs_the_right_answer)
{
	struct vb_cm_id *a = a_asks(false);
	struct end stranger = {.gid[15] = 99};
	struct vb_cm_msg hello, answer;

	net_lose(VB_CM_REQ);
	vb_cm_hello(&hello, a->local.id, a->tid.connect);
	vb_cm_hello_answer(&answer, &hello);
	net_bring_msg(&answer, &stranger, &net.a);
	answer.transaction_id++;
	net_bring_msg(&answer, &net.b, &net.a);
	net_quiet();
	assert_int_equal(a->peer, VB_CM_PEER_UNKNOWN);
}

/* An MRA puts it off, once: its service timeout and the ACK timeout. */
BETWEEN_TWO(an_mra_puts_it_off)
{
	struct vb_cm_id *a;
	struct mad req;

	net.unmarked = true;
	a = a_asks(false);
	req = net_pass(VB_CM_REQ);
	net_bring(&req);
	net_pass(VB_CM_MRA);
	end_hears(&net.a, VB_CM_EVENT_MRA);
	assert_int_equal(net_wait(&net.a), 65536 + 512);
	net_lose(VB_CM_REQ);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(net_wait(&net.a), 4608);
		net_lose(VB_CM_REQ);
	}
	assert_int_equal(net_wait(&net.a), 4608);
	end_hears(&net.a, VB_CM_EVENT_REQ_OVERDUE);
	is_in(a, VB_CM_STATE_IDLE);
}

/* The passive side goes by what the REQ says: 4.1 s, 3 times. */
BETWEEN_TWO(a_rep_is_repeated)
{
	struct pair pair;

	net.unmarked = true;
	pair = pair_asked(false);
	says(pair.b, VB_CM_REP);
	net_lose(VB_CM_REP);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(net_wait(&net.b), 4096);
		net_lose(VB_CM_REP);
	}
	assert_int_equal(net_wait(&net.b), 4096);
	end_hears(&net.b, VB_CM_EVENT_REP_OVERDUE);
	is_in(pair.b, VB_CM_STATE_IDLE);
	net_pass(VB_CM_REJ);
	end_hears(&net.a, VB_CM_EVENT_REJ);
}

BETWEEN_TWO(between_ours_a_rep_is_repeated_soon)
{
	struct pair pair = pair_asked(false);

	says(pair.b, VB_CM_REP);
	net_lose(VB_CM_REP);
	assert_int_equal(net_wait(&net.b), 8);
	net_pass(VB_CM_REP);
	end_hears(&net.a, VB_CM_EVENT_REP);
}

BETWEEN_TWO(a_dreq_is_repeated_until_timewait)
{
	struct pair pair;

	net.unmarked = true;
	pair = pair_connected(false);
	says(pair.a, VB_CM_DREQ);
	net_lose(VB_CM_DREQ);
	for (unsigned i = 0; i < 3; i++) {
		net_wait(&net.a);
		net_lose(VB_CM_DREQ);
	}
	net_wait(&net.a);
	net_quiet();
	end_hears(&net.a, VB_CM_EVENT_DREQ_OVERDUE);
	is_in(pair.a, VB_CM_STATE_TIMEWAIT);
	net_wait(&net.a);
	end_hears(&net.a, VB_CM_EVENT_TIMEWAIT_EXIT);
}

BETWEEN_TWO(a_lap_is_given_up)
{
	struct pair pair = pair_connected(false);
	const struct vb_cm_msg lap = {.attr = VB_CM_LAP};
	const struct vb_path alternate = {.dst[15] = 9};

	vb_cm_say(pair.a, net.now_ns, &lap, &alternate);
	while (vb_cm_deadline_ns(&net.a.cm) != VB_CM_NEVER) {
		net.mads = 0;
		net_wait(&net.a);
	}
	end_hears(&net.a, VB_CM_EVENT_LAP_OVERDUE);
	is_in(pair.a, VB_CM_STATE_ESTABLISHED);
	assert_int_equal(pair.a->lap, VB_CM_LAP_STATE_NONE);
}

BETWEEN_TWO(a_service_that_does_not_answer_is_given_up)
{
	struct vb_cm_id *a = vb_cm_id_make(&net.a.cm, NULL);
	const struct vb_cm_msg question = {.attr = VB_CM_SIDR_REQ};
	const struct vb_cm_ask ask = net_way();

	vb_cm_say_ask(a, net.now_ns, &question, &ask);
	while (net.a.events == 0) {
		net.mads = 0;
		net_wait(&net.a);
	}
	end_hears(&net.a, VB_CM_EVENT_SIDR_REQ_OVERDUE);
	is_in(a, VB_CM_STATE_IDLE);
}
