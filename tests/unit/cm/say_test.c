/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm_fixture.h"

#include <errno.h>

#include "wire/bytes.h"

static struct vb_cm_msg parse(const struct mad *mad)
{
	struct vb_cm_msg msg;

	assert_true(vb_cm_parse(&msg, mad->data));
	return msg;
}

BETWEEN_TWO(a_connection_is_made_and_ended)
{
	struct pair pair = pair_connected(false);

	is_in(pair.a, VB_CM_STATE_ESTABLISHED);
	is_in(pair.b, VB_CM_STATE_ESTABLISHED);
	assert_int_equal(pair.a->remote.id, pair.b->local.id);
	assert_int_equal(pair.b->remote.id, pair.a->local.id);
	assert_int_equal(pair.a->remote.qpn, QPN_B);
	assert_int_equal(pair.b->remote.qpn, QPN_A);
	assert_int_equal(says(pair.a, VB_CM_DREQ), 0);
	net_pass(VB_CM_DREQ);
	end_hears(&net.b, VB_CM_EVENT_DREQ);
	net_quiet();
	assert_int_equal(says(pair.b, VB_CM_DREP), 0);
	net_pass(VB_CM_DREP);
	end_hears(&net.a, VB_CM_EVENT_DREP);
	is_in(pair.a, VB_CM_STATE_TIMEWAIT);
	is_in(pair.b, VB_CM_STATE_TIMEWAIT);
	assert_int_equal(net_wait(&net.a), 512);
	end_hears(&net.a, VB_CM_EVENT_TIMEWAIT_EXIT);
	is_in(pair.a, VB_CM_STATE_IDLE);
	assert_true(vb_cm_deadline_ns(&net.a.cm) == VB_CM_NEVER);
}

/* IBTA 12.6: one transaction for all of the handshake, another one for a DREQ. */
BETWEEN_TWO(transactions_are_echoed)
{
	struct vb_cm_id *a = a_asks(false), *b;
	struct vb_cm_msg req, rep, rtu, dreq, drep;
	struct mad mad = net_pass(VB_CM_REQ);

	req = parse(&mad);
	assert_true(vb_cm_is_marked(mad.data));
	assert_true(req.req.local_ca_guid == net.a.cm.settings.guid);
	assert_int_equal(req.remote_comm_id, 0);
	b = end_hears(&net.b, VB_CM_EVENT_REQ)->id;
	says(b, VB_CM_REP);
	mad = net_pass(VB_CM_REP);
	rep = parse(&mad);
	assert_true(rep.rep.local_ca_guid == net.b.cm.settings.guid);
	says(a, VB_CM_RTU);
	mad = net_pass(VB_CM_RTU);
	rtu = parse(&mad);
	says(b, VB_CM_DREQ);
	mad = net_pass(VB_CM_DREQ);
	dreq = parse(&mad);
	says(a, VB_CM_DREP);
	mad = net_pass(VB_CM_DREP);
	drep = parse(&mad);
	assert_true(rep.transaction_id == req.transaction_id);
	assert_true(rtu.transaction_id == req.transaction_id);
	assert_true(dreq.transaction_id != req.transaction_id);
	assert_true(drep.transaction_id == dreq.transaction_id);
	assert_int_equal(dreq.dreq.remote_qpn, QPN_A);
}

BETWEEN_TWO(what_its_user_says_arrives)
{
	struct pair pair = {.a = a_asks(false)};
	const struct told *told;
	struct vb_cm_msg rep = {
		.attr = VB_CM_REP,
		.rep = {.local_qpn = QPN_B,
			.starting_psn = 99,
			.responder_resources = 3,
			.initiator_depth = 4,
			.rnr_retry_count = 5,
			.srq = true},
		.private_data = (const uint8_t *)"replies",
		.private_bytes = 8,
	};

	net_pass(VB_CM_REQ);
	told = end_hears(&net.b, VB_CM_EVENT_REQ);
	pair.b = told->id;
	assert_ptr_equal(told->listener, net.listener);
	assert_int_equal(told->msg.req.starting_psn, 7);
	assert_int_equal(told->msg.private_bytes, VB_CM_REQ_PRIVATE_BYTES);
	assert_string_equal((const char *)told->private_data, "request");
	assert_int_equal(vb_cm_say(pair.b, net.now_ns, &rep, NULL), 0);
	net_pass(VB_CM_REP);
	told = end_hears(&net.a, VB_CM_EVENT_REP);
	assert_int_equal(told->msg.rep.starting_psn, 99);
	assert_int_equal(told->msg.rep.responder_resources, 3);
	assert_int_equal(told->msg.rep.initiator_depth, 4);
	assert_int_equal(told->msg.rep.rnr_retry_count, 5);
	assert_true(told->msg.rep.srq);
	assert_string_equal((const char *)told->private_data, "replies");
}

BETWEEN_TWO(what_is_said_out_of_turn_is_refused)
{
	struct vb_cm_id *idle = vb_cm_id_make(&net.a.cm, NULL);
	struct vb_cm_ask ask = net_way();
	const struct vb_cm_msg req = req_of(1);
	struct pair pair;

	for (unsigned attr = VB_CM_ATTR_FIRST; attr <= VB_CM_ATTR_LAST; attr++) {
		assert_int_equal(says(idle, attr), EINVAL);
		assert_int_equal(says(net.listener, attr), EINVAL);
	}
	net_quiet();
	pair = pair_connected(false);
	assert_int_equal(says(pair.a, VB_CM_REP), EINVAL);
	assert_int_equal(says(pair.a, VB_CM_RTU), EINVAL);
	assert_int_equal(says(pair.a, VB_CM_DREP), EINVAL);
	assert_int_equal(says(pair.a, VB_CM_APR), EINVAL);
	assert_int_equal(says(pair.a, VB_CM_LAP), EINVAL); /* without a path */
	assert_int_equal(vb_cm_say_ask(pair.a, net.now_ns, &req, &ask), EINVAL);
	ask.timeout_ns = 0;
	assert_int_equal(vb_cm_say_ask(idle, net.now_ns, &req, &ask), EINVAL);
	net_quiet();
	assert_int_equal(says(pair.a, VB_CM_DREQ), 0);
	assert_int_equal(says(pair.a, VB_CM_DREQ), EINVAL);
}

BETWEEN_TWO(what_is_too_long_is_refused)
{
	static const uint8_t octets[VB_MAD_BYTES];
	struct vb_cm_id *id = vb_cm_id_make(&net.a.cm, NULL);
	struct vb_cm_ask ask = net_way();
	struct vb_cm_msg msg = req_of(QPN_A);

	msg.private_data = octets;
	msg.private_bytes = VB_CM_REQ_PRIVATE_BYTES + 1;
	assert_int_equal(vb_cm_say_ask(id, net.now_ns, &msg, &ask), EINVAL);
	msg.private_bytes = VB_CM_REQ_PRIVATE_BYTES;
	assert_int_equal(vb_cm_say_ask(id, net.now_ns, &msg, &ask), 0);
	net_pass(VB_CM_REQ);
	msg = (struct vb_cm_msg){
		.attr = VB_CM_REJ,
		.info = octets,
		.info_bytes = VB_CM_INFO_BYTES + 1,
	};
	assert_int_equal(vb_cm_say(net.b.told[0].id, net.now_ns, &msg, NULL), EINVAL);
	is_in(net.b.told[0].id, VB_CM_STATE_REQ_RCVD);
}

/* A REJ names what it rejects; as long as we have not named an id of ours, it has none. */
BETWEEN_TWO(a_rejection_says_of_what)
{
	struct pair pair = pair_asked(false);
	struct vb_cm_msg rej;
	struct mad mad;

	says(pair.b, VB_CM_REJ);
	mad = net_pass(VB_CM_REJ);
	rej = parse(&mad);
	assert_int_equal(rej.rej.message_rejected, VB_CM_MESSAGE_REQ);
	assert_int_equal(rej.local_comm_id, 0);
	end_hears(&net.a, VB_CM_EVENT_REJ);
	is_in(pair.a, VB_CM_STATE_IDLE);
	pair = pair_answered(false);
	says(pair.a, VB_CM_REJ);
	mad = net_pass(VB_CM_REJ);
	rej = parse(&mad);
	assert_int_equal(rej.rej.message_rejected, VB_CM_MESSAGE_REP);
	assert_int_equal(end_hears(&net.b, VB_CM_EVENT_REJ)->msg.rej.reason,
			 VB_CM_REJ_CONSUMER_DEFINED);
	is_in(pair.b, VB_CM_STATE_IDLE);
	/* A REP that was sent is taken back with "other". */
	pair = pair_answered(false);
	says(pair.b, VB_CM_REJ);
	mad = net_pass(VB_CM_REJ);
	rej = parse(&mad);
	assert_int_equal(rej.rej.message_rejected, VB_CM_MESSAGE_OTHER);
	end_hears(&net.a, VB_CM_EVENT_REJ);
	is_in(pair.a, VB_CM_STATE_TIMEWAIT);
}

/* IBTA 12.9.7.2: data came, so the REP has arrived; the RTU that comes late is nothing new. */
BETWEEN_TWO(data_may_overtake_the_rtu)
{
	struct pair pair = pair_answered(false);

	assert_int_equal(vb_cm_say_established(pair.a, net.now_ns), EINVAL);
	says(pair.a, VB_CM_RTU);
	assert_int_equal(vb_cm_say_established(pair.b, net.now_ns), 0);
	end_hears(&net.b, VB_CM_EVENT_ESTABLISHED);
	assert_int_equal(vb_cm_say_established(pair.b, net.now_ns), EISCONN);
	net_pass(VB_CM_RTU);
	end_hears_nothing(&net.b);
	is_in(pair.b, VB_CM_STATE_ESTABLISHED);
	net_quiet();
}

BETWEEN_TWO(a_service_tells_its_qp)
{
	struct vb_cm_id *a = vb_cm_id_make(&net.a.cm, NULL), *b;
	const struct vb_cm_msg question = {
		.attr = VB_CM_SIDR_REQ,
		.sidr_req.service_id = SERVICE,
	};
	const struct vb_cm_msg answer = {
		.attr = VB_CM_SIDR_REP,
		.sidr_rep = {.qpn = QPN_B, .qkey = 11},
	};
	const struct vb_cm_ask ask = net_way();
	const struct told *told;

	assert_int_equal(vb_cm_say_ask(a, net.now_ns, &question, &ask), 0);
	net_pass(VB_CM_SIDR_REQ);
	b = end_hears(&net.b, VB_CM_EVENT_SIDR_REQ)->id;
	assert_int_equal(vb_cm_say(b, net.now_ns, &answer, NULL), 0);
	net_pass(VB_CM_SIDR_REP);
	told = end_hears(&net.a, VB_CM_EVENT_SIDR_REP);
	assert_int_equal(told->msg.sidr_rep.qpn, QPN_B);
	assert_int_equal(told->msg.sidr_rep.qkey, 11);
	assert_true(told->msg.sidr_rep.service_id == SERVICE);
	is_in(a, VB_CM_STATE_IDLE);
}

static const struct vb_cm_msg lap = {
	.attr = VB_CM_LAP,
	.lap.alternate.local_gid[15] = 41,
	.lap.alternate.remote_gid[15] = 42,
};

BETWEEN_TWO(an_alternate_path_is_loaded)
{
	struct pair pair = pair_connected(false);
	const struct vb_path alternate = {.src[15] = 41, .dst[15] = 42};

	assert_int_equal(vb_cm_say_migrated(pair.a), EINVAL);
	assert_int_equal(vb_cm_say(pair.a, net.now_ns, &lap, &alternate), 0);
	assert_int_equal(vb_cm_say(pair.a, net.now_ns, &lap, &alternate), EINVAL);
	net_pass(VB_CM_LAP);
	end_hears(&net.b, VB_CM_EVENT_LAP);
	assert_int_equal(says(pair.b, VB_CM_MRA), 0);
	net_pass(VB_CM_MRA);
	end_hears(&net.a, VB_CM_EVENT_MRA);
	assert_int_equal(says(pair.b, VB_CM_APR), 0);
	net_pass(VB_CM_APR);
	end_hears(&net.a, VB_CM_EVENT_APR);
	is_in(pair.a, VB_CM_STATE_ESTABLISHED);
	assert_int_equal(pair.a->lap, VB_CM_LAP_STATE_NONE);
	assert_int_equal(pair.b->alternate.dst[15], 41);
	assert_int_equal(vb_cm_say_migrated(pair.a), 0);
	assert_int_equal(pair.a->path.dst[15], 42);
	assert_true(vb_cm_deadline_ns(&net.a.cm) == VB_CM_NEVER);
}

/* There is none then, on either side. */
BETWEEN_TWO(an_alternate_path_is_refused)
{
	static const struct vb_cm_msg apr = {.attr = VB_CM_APR,
					     .apr.status = VB_CM_APR_UNSUPPORTED};
	const struct vb_path alternate = {.src[15] = 41, .dst[15] = 42};
	struct pair pair = pair_connected(false);

	assert_int_equal(vb_cm_say(pair.a, net.now_ns, &lap, &alternate), 0);
	net_pass(VB_CM_LAP);
	end_hears(&net.b, VB_CM_EVENT_LAP);
	assert_int_equal(vb_cm_say(pair.b, net.now_ns, &apr, NULL), 0);
	net_pass(VB_CM_APR);
	assert_int_equal(end_hears(&net.a, VB_CM_EVENT_APR)->msg.apr.status,
			 VB_CM_APR_UNSUPPORTED);
	assert_int_equal(vb_cm_say_migrated(pair.a), EINVAL);
	assert_int_equal(vb_cm_say_migrated(pair.b), EINVAL);
}

/* XRC names the target's QPN where others have an EECN. */
BETWEEN_TWO(xrc_has_its_qpn_elsewhere)
{
	struct vb_cm_id *a = vb_cm_id_make(&net.a.cm, NULL), *b;
	struct vb_cm_msg req = req_of(QPN_A), dreq;
	const struct vb_cm_msg rep = {.attr = VB_CM_REP, .rep.local_eecn = 0x333333};
	struct vb_cm_ask ask = net_way();
	struct mad mad;

	req.req.transport_service_type = VB_CM_TRANSPORT_EXTENDED;
	req.req.extended_transport_type = VB_CM_EXTENDED_XRC;
	assert_int_equal(vb_cm_say_ask(a, net.now_ns, &req, &ask), 0);
	net_pass(VB_CM_REQ);
	b = end_hears(&net.b, VB_CM_EVENT_REQ)->id;
	assert_int_equal(vb_cm_say(b, net.now_ns, &rep, NULL), 0);
	net_pass(VB_CM_REP);
	says(a, VB_CM_RTU);
	net_pass(VB_CM_RTU);
	assert_int_equal(a->remote.qpn, 0x333333);
	/* Whoever lets go of a target ends nothing. */
	vb_cm_id_release(b, net.now_ns);
	net_quiet();
	says(a, VB_CM_DREQ);
	mad = net_lose(VB_CM_DREQ);
	assert_true(vb_cm_parse(&dreq, mad.data));
	assert_int_equal(dreq.dreq.remote_qpn, 0x333333);
}
