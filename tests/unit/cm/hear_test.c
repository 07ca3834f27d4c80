/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm_fixture.h"

#include "wire/bytes.h"

/* --- repeated messages --- */

BETWEEN_TWO(a_repeated_req_is_no_second_one)
{
	struct vb_cm_id *a = a_asks(false), *b;
	struct mad req = net_pass(VB_CM_REQ);

	b = end_hears(&net.b, VB_CM_EVENT_REQ)->id;
	/* The peer waits, so it is told to be patient: 65 s, as Linux says it. */
	net_bring(&req);
	net_pass(VB_CM_MRA);
	assert_int_equal(end_hears(&net.a, VB_CM_EVENT_MRA)->msg.mra.service_timeout, 24);
	is_in(a, VB_CM_STATE_REQ_MRA_RCVD);
	net_bring(&req);
	net_pass(VB_CM_MRA);
	end_hears_nothing(&net.a);
	assert_int_equal(says(b, VB_CM_REP), 0);
	net_pass(VB_CM_REP);
	net_bring(&req);
	net_quiet();
	end_hears_nothing(&net.b);
	assert_int_equal(net.b.cm.stats.duplicate, 3);
}

BETWEEN_TWO(a_repeated_req_is_rejected_again)
{
	struct mad req;

	a_asks(false);
	req = net_pass(VB_CM_REQ);
	says(net.b.told[0].id, VB_CM_REJ);
	net_lose(VB_CM_REJ);
	net_bring(&req);
	net_pass(VB_CM_REJ);
	end_hears(&net.a, VB_CM_EVENT_REJ);
	/* Its user may have let go of it. */
	vb_cm_id_release(net.b.told[0].id, net.now_ns);
	net_bring(&req);
	net_lose(VB_CM_REJ);
	assert_int_equal(net.b.events, 1);
}

BETWEEN_TWO(a_repeated_rep_gets_its_rtu_again)
{
	struct pair pair = pair_asked(false);
	struct mad rep, rtu, again;

	says(pair.b, VB_CM_REP);
	rep = net_pass(VB_CM_REP);
	end_hears(&net.a, VB_CM_EVENT_REP);
	net_bring(&rep);
	net_pass(VB_CM_MRA);
	end_hears(&net.b, VB_CM_EVENT_MRA);
	says(pair.a, VB_CM_RTU);
	rtu = net_lose(VB_CM_RTU);
	net_bring(&rep);
	again = net_pass(VB_CM_RTU);
	assert_memory_equal(again.data, rtu.data, VB_MAD_BYTES);
	end_hears(&net.b, VB_CM_EVENT_RTU);
	net_bring(&again);
	end_hears_nothing(&net.a);
	end_hears_nothing(&net.b);
}

BETWEEN_TWO(a_repeated_dreq_is_answered_always)
{
	struct pair pair = pair_connected(false);
	struct mad dreq;

	says(pair.a, VB_CM_DREQ);
	dreq = net_pass(VB_CM_DREQ);
	end_hears(&net.b, VB_CM_EVENT_DREQ);
	net_bring(&dreq); /* it is up to its user */
	net_quiet();
	says(pair.b, VB_CM_DREP);
	net_lose(VB_CM_DREP);
	net_bring(&dreq);
	net_lose(VB_CM_DREP);
	end_hears_nothing(&net.b);
	vb_cm_id_release(pair.b, net.now_ns);
	net_bring(&dreq);
	net_lose(VB_CM_DREP);
	while (vb_cm_deadline_ns(&net.b.cm) != VB_CM_NEVER)
		net_wait(&net.b);
	net_bring(&dreq); /* nobody knows of it any more */
	net_pass(VB_CM_DREP);
	end_hears(&net.a, VB_CM_EVENT_DREP);
}

/* A second LAP comes with the first one's number plus one, so the first one is late. */
BETWEEN_TWO(a_late_lap_is_none)
{
	struct pair pair = pair_connected(false);
	const struct vb_cm_msg lap = {.attr = VB_CM_LAP};
	const struct vb_path alternate = {.dst[15] = 9};
	struct mad first, second;

	vb_cm_say(pair.a, net.now_ns, &lap, &alternate);
	first = net_pass(VB_CM_LAP);
	says(pair.b, VB_CM_APR);
	net_pass(VB_CM_APR);
	net_bring(&first);
	net_pass(VB_CM_APR);
	vb_cm_say(pair.a, net.now_ns, &lap, &alternate);
	second = net_pass(VB_CM_LAP);
	says(pair.b, VB_CM_APR);
	net_pass(VB_CM_APR);
	net_bring(&first);
	net_quiet();
	net_bring(&second);
	net_pass(VB_CM_APR);
	end_hears(&net.b, VB_CM_EVENT_LAP);
	end_hears(&net.b, VB_CM_EVENT_LAP);
	end_hears_nothing(&net.b);
	end_hears(&net.a, VB_CM_EVENT_APR);
	end_hears(&net.a, VB_CM_EVENT_APR);
	end_hears_nothing(&net.a);
}

/* --- both at once --- */

BETWEEN_TWO(both_may_disconnect)
{
	struct pair pair = pair_connected(false);
	struct mad one, other;

	says(pair.a, VB_CM_DREQ);
	says(pair.b, VB_CM_DREQ);
	one = net_take();
	other = net_take();
	net_bring(&one);
	net_pass(VB_CM_DREP);
	net_bring(&other);
	net_lose(VB_CM_DREP);
	end_hears(&net.b, VB_CM_EVENT_DREQ);
	end_hears(&net.a, VB_CM_EVENT_DREP);
	end_hears_nothing(&net.b);
	is_in(pair.a, VB_CM_STATE_TIMEWAIT);
	is_in(pair.b, VB_CM_STATE_TIMEWAIT);
}

BETWEEN_TWO(a_dreq_may_overtake_the_rtu)
{
	struct pair pair = pair_answered(false);
	struct mad rtu;

	says(pair.a, VB_CM_RTU);
	rtu = net_lose(VB_CM_RTU);
	says(pair.a, VB_CM_DREQ);
	net_pass(VB_CM_DREQ);
	end_hears(&net.b, VB_CM_EVENT_DREQ);
	net_bring(&rtu);
	end_hears_nothing(&net.b);
	is_in(pair.b, VB_CM_STATE_DREQ_RCVD);
}

/* The RTU comes when the peer is done with the connection, and what answers the DREQ is lost. */
BETWEEN_TWO(who_parts_is_not_rejected_for_a_late_rtu)
{
	struct pair pair = pair_answered(false);
	struct mad rtu;

	says(pair.a, VB_CM_RTU);
	rtu = net_lose(VB_CM_RTU);
	says(pair.a, VB_CM_DREQ);
	net_pass(VB_CM_DREQ);
	end_hears(&net.b, VB_CM_EVENT_DREQ);
	says(pair.b, VB_CM_DREP);
	net_lose(VB_CM_DREP);
	net_bring(&rtu);
	net_pass(VB_CM_REJ);
	end_hears(&net.a, VB_CM_EVENT_DREP);
	is_in(pair.a, VB_CM_STATE_TIMEWAIT);
}

/* --- stale connections --- */

/* The peer has begun anew: the same QP, and it knows nothing of the old connection. */
BETWEEN_TWO(a_stale_connection_ends)
{
	struct pair pair = pair_connected(false);
	struct vb_cm_id *again;

	vb_cm_id_forget(pair.a);
	net.qpn = QPN_A;
	again = a_asks(false);
	{
		struct mad req = net_take(), rej, dreq;
		struct vb_cm_msg msg;

		net_bring(&req);
		rej = net_take();
		dreq = net_take();
		assert_true(vb_cm_parse(&msg, rej.data));
		assert_int_equal(msg.rej.reason, VB_CM_REJ_STALE_CONNECTION);
		net_bring(&rej);
		end_hears(&net.a, VB_CM_EVENT_REJ);
		is_in(again, VB_CM_STATE_TIMEWAIT);
		is_in(pair.b, VB_CM_STATE_DREQ_SENT);
		net_bring(&dreq);
	}
	net_pass(VB_CM_DREP);
	end_hears(&net.b, VB_CM_EVENT_DREP);
	is_in(pair.b, VB_CM_STATE_TIMEWAIT);
	assert_int_equal(net.b.cm.stats.stale, 1);
}

BETWEEN_TWO(a_stranger_makes_nothing_stale)
{
	struct pair pair = pair_connected(false);
	struct end stranger = {.gid[15] = 99};
	struct vb_cm_msg req = req_of(QPN_A);

	req.req.local_ca_guid = net.a.cm.settings.guid;
	req.local_comm_id = pair.a->local.id;
	net_bring_msg(&req, &stranger, &net.b);
	is_in(pair.b, VB_CM_STATE_ESTABLISHED);
	net_quiet();
	end_hears(&net.b, VB_CM_EVENT_REQ); /* it may connect as anybody */
}

BETWEEN_TWO(a_qp_that_has_left_may_connect_again)
{
	struct pair pair = pair_connected(false);

	vb_cm_id_release(pair.a, net.now_ns);
	net_pass(VB_CM_DREQ);
	end_hears(&net.b, VB_CM_EVENT_DREQ);
	says(pair.b, VB_CM_DREP);
	net_pass(VB_CM_DREP);
	net.qpn = QPN_A;
	a_asks(false);
	net_pass(VB_CM_REQ);
	end_hears(&net.b, VB_CM_EVENT_REQ);
}

/* Others use an id for several connections. A late answer is not taken for one to the next. */
BETWEEN_TWO(who_uses_an_id_again_begins_anew)
{
	struct vb_cm_msg req = req_of(QPN_A);
	struct vb_cm_msg question = {
		.attr = VB_CM_SIDR_REQ,
		.local_comm_id = 7,
		.sidr_req.service_id = SERVICE,
	};

	req.local_comm_id = 5;
	net_bring_msg(&req, &net.a, &net.b);
	says(end_hears(&net.b, VB_CM_EVENT_REQ)->id, VB_CM_REJ);
	net.mads = 0;
	req.transaction_id++;
	net_bring_msg(&req, &net.a, &net.b);
	says(end_hears(&net.b, VB_CM_EVENT_REQ)->id, VB_CM_REP);
	net.mads = 0;
	/* Of one that is still there it is a stale one. */
	req.transaction_id++;
	req.req.local_qpn++;
	net_bring_msg(&req, &net.a, &net.b);
	net_lose(VB_CM_REJ);
	end_hears_nothing(&net.b);
	vb_cm_id_take(net.b.told[0].id);
	vb_cm_id_take(net.b.told[1].id);
	net_bring_msg(&question, &net.a, &net.b);
	says(end_hears(&net.b, VB_CM_EVENT_SIDR_REQ)->id, VB_CM_SIDR_REP);
	net_lose(VB_CM_SIDR_REP);
	net_bring_msg(&question, &net.a, &net.b);
	net_lose(VB_CM_SIDR_REP);
	question.transaction_id++;
	net_bring_msg(&question, &net.a, &net.b);
	end_hears(&net.b, VB_CM_EVENT_SIDR_REQ);
	net_quiet();
}

/* A REQ waits until there is room; a question for a service is refused, as by Linux. */
BETWEEN_TWO(a_full_backlog_refuses_questions)
{
	struct vb_cm_msg question = {.attr = VB_CM_SIDR_REQ, .sidr_req.service_id = SERVICE};

	for (uint32_t i = 1; i <= 3; i++) {
		question.local_comm_id = i;
		question.transaction_id = 100 + i;
		net_bring_msg(&question, &net.a, &net.b);
	}
	assert_int_equal(net.b.events, 2);
	assert_int_equal(net.b.cm.stats.full, 1);
	assert_int_equal(net.mads, 1);
	assert_true(vb_cm_parse(&question, net.mad[0].data));
	assert_int_equal(question.attr, VB_CM_SIDR_REP);
	assert_int_equal(question.sidr_rep.status, VB_CM_SIDR_REJECTED);
	assert_int_equal(question.transaction_id, 103);
	assert_int_equal(question.remote_comm_id, 3);
	net.mads = 0;
}

/* --- strangers --- */

enum forgery { ADDRESS, TRANSACTION, OUR_ID, THEIR_ID, QPN, FORGERIES };

/* All that a message of the peer's would say but for one thing. */
static void forge(const struct pair *pair, enum vb_cm_attr attr, enum forgery what)
{
	struct end stranger = {.gid[15] = 99};
	struct vb_cm_msg msg = {
		.attr = attr,
		.transaction_id = pair->a->tid.connect ^ (what == TRANSACTION),
		.local_comm_id = pair->a->local.id ^ (what == THEIR_ID),
		.remote_comm_id = pair->b->local.id ^ (what == OUR_ID),
	};

	if (attr == VB_CM_DREQ)
		msg.dreq.remote_qpn = pair->b->local.qpn ^ (what == QPN);
	if (attr == VB_CM_LAP)
		msg.lap.remote_qpn = pair->b->local.qpn ^ (what == QPN);
	if (attr == VB_CM_REJ)
		msg.rej.reason = VB_CM_REJ_CONSUMER_DEFINED;
	net_bring_msg(&msg, what == ADDRESS ? &stranger : &net.a, &net.b);
}

BETWEEN_TWO(forgeries_change_nothing)
{
	static const enum vb_cm_attr attrs[] = {
		VB_CM_MRA, VB_CM_REJ, VB_CM_RTU, VB_CM_DREQ, VB_CM_DREP, VB_CM_LAP, VB_CM_APR,
	};
	struct pair answered = pair_answered(false), connected = pair_connected(false);
	const struct pair *pairs[] = {&answered, &connected};

	for (unsigned k = 0; k < 2 * VB_ARRAY_LEN(attrs) * FORGERIES; k++) {
		const struct pair *pair = pairs[k % 2];
		enum vb_cm_attr attr = attrs[k / 2 % VB_ARRAY_LEN(attrs)];
		enum forgery what = (enum forgery)(k / 2 / VB_ARRAY_LEN(attrs));
		bool has_qpn = attr == VB_CM_DREQ || attr == VB_CM_LAP;
		enum vb_cm_state before = pair->b->state;

		if (what == (has_qpn ? TRANSACTION : QPN))
			continue; /* whoever asks chooses his transaction */
		forge(pair, attr, what);
		is_in(pair->b, before);
		assert_int_equal(pair->b->lap, VB_CM_LAP_STATE_NONE);
		net.mads = 0; /* answers to strangers */
	}
	end_hears_nothing(&net.b);
}

BETWEEN_TWO(a_forged_rep_connects_nobody)
{
	struct vb_cm_id *a = a_asks(false);
	struct end stranger = {.gid[15] = 99};
	struct vb_cm_msg rep = {
		.attr = VB_CM_REP,
		.transaction_id = a->tid.connect,
		.local_comm_id = 5,
		.remote_comm_id = a->local.id,
		.rep.local_qpn = 6,
	};

	net_bring_msg(&rep, &stranger, &net.a);
	rep.transaction_id++;
	net_bring_msg(&rep, &net.b, &net.a);
	is_in(a, VB_CM_STATE_REQ_SENT);
	end_hears_nothing(&net.a);
	net_lose(VB_CM_REQ);
	net_quiet();
}

BETWEEN_TWO(whom_nobody_knows_is_told_so)
{
	struct pair pair = pair_asked(false);

	vb_cm_id_forget(pair.a);
	says(pair.b, VB_CM_REP);
	net_pass(VB_CM_REP);
	net_pass(VB_CM_REJ);
	assert_int_equal(end_hears(&net.b, VB_CM_EVENT_REJ)->msg.rej.reason,
			 VB_CM_REJ_INVALID_COMM_ID);
	is_in(pair.b, VB_CM_STATE_IDLE);
}

BETWEEN_TWO(nonsense_is_counted)
{
	const struct vb_path path = {0};
	uint8_t mad[VB_MAD_BYTES];

	memset(mad, 0x5a, sizeof(mad));
	vb_cm_hear(&net.a.cm, net.now_ns, &path, mad);
	assert_int_equal(net.a.cm.stats.heard, 1);
	assert_int_equal(net.a.cm.stats.malformed, 1);
}

/* --- giving up --- */

/* Who gives up before we have answered has heard no id of ours (IBTA 12.6.7.2). */
BETWEEN_TWO(who_gives_up_is_found_by_its_guid)
{
	struct pair pair = pair_asked(false);

	vb_cm_id_release(pair.a, net.now_ns);
	net_pass(VB_CM_REJ);
	assert_int_equal(end_hears(&net.b, VB_CM_EVENT_REJ)->msg.rej.reason, VB_CM_REJ_TIMEOUT);
	is_in(pair.b, VB_CM_STATE_IDLE);
}

/* --- listeners --- */

static unsigned fit_by_address(void *arg, const struct vb_cm_id *listener,
			       const struct vb_path *path, const struct vb_cm_msg *msg)
{
	const uint8_t *wanted = listener->context;

	(void)arg;
	(void)msg;
	if (!wanted)
		return 1;
	return *wanted == path->dst[15] ? 2 : 0;
}

BETWEEN_TWO(the_best_listener_gets_it)
{
	uint8_t here = 2, elsewhere = 3;
	struct vb_cm_id *best = vb_cm_id_make(&net.b.cm, &here);
	struct vb_cm_id *other = vb_cm_id_make(&net.b.cm, &elsewhere);

	net.b.cm.host.fit = fit_by_address;
	vb_cm_id_listen(best, SERVICE, 1);
	vb_cm_id_listen(other, SERVICE, 1);
	a_asks(false);
	net_pass(VB_CM_REQ);
	assert_ptr_equal(end_hears(&net.b, VB_CM_EVENT_REQ)->listener, best);
	vb_cm_id_release(best, net.now_ns);
	vb_cm_id_release(net.listener, net.now_ns);
	vb_cm_id_release(a_asks(false), net.now_ns);
	net.mads--; /* the REJ that takes it back */
	net_pass(VB_CM_REQ);
	net_pass(VB_CM_REJ);
	assert_int_equal(net.b.cm.stats.no_listener, 1);
}

BETWEEN_TWO(nobody_listens)
{
	vb_cm_id_release(net.listener, net.now_ns);
	a_asks(false);
	net_pass(VB_CM_REQ);
	net_pass(VB_CM_REJ);
	assert_int_equal(end_hears(&net.a, VB_CM_EVENT_REJ)->msg.rej.reason,
			 VB_CM_REJ_INVALID_SERVICE_ID);
}
