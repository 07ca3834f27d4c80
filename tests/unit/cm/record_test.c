/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm_fixture.h"

/* What closes that id, if its process dies now; it arrives. False: nothing does. */
static bool bury(const struct vb_cm_id *id, struct vb_cm_msg *msg)
{
	struct mad mad = {0};

	if (!id->record)
		return false;
	assert_true(vb_cm_record_close(id->record, &mad.path, mad.data));
	assert_true(vb_cm_is_marked(mad.data));
	assert_memory_equal(mad.path.src, id->path.src, VB_GID_BYTES);
	assert_memory_equal(mad.path.dst, id->path.dst, VB_GID_BYTES);
	assert_true(vb_cm_parse(msg, mad.data));
	net_bring(&mad);
	return true;
}

BETWEEN_TWO(who_has_asked_gives_up)
{
	struct pair pair = pair_asked(false);
	struct vb_cm_msg msg;

	assert_true(bury(pair.a, &msg));
	assert_int_equal(msg.attr, VB_CM_REJ);
	assert_int_equal(msg.rej.reason, VB_CM_REJ_TIMEOUT);
	assert_int_equal(end_hears(&net.b, VB_CM_EVENT_REJ)->msg.rej.reason, VB_CM_REJ_TIMEOUT);
}

BETWEEN_TWO(who_was_asked_rejects)
{
	struct pair pair = pair_asked(false);
	struct vb_cm_msg msg;

	assert_true(bury(pair.b, &msg));
	assert_int_equal(msg.attr, VB_CM_REJ);
	assert_int_equal(msg.rej.reason, VB_CM_REJ_CONSUMER_DEFINED);
	assert_int_equal(msg.rej.message_rejected, VB_CM_MESSAGE_REQ);
	end_hears(&net.a, VB_CM_EVENT_REJ);
}

BETWEEN_TWO(who_has_accepted_takes_it_back)
{
	struct pair pair = pair_answered(false);
	struct vb_cm_msg msg;

	assert_true(bury(pair.b, &msg));
	assert_int_equal(msg.rej.reason, VB_CM_REJ_CONSUMER_DEFINED);
	assert_int_equal(msg.rej.message_rejected, VB_CM_MESSAGE_OTHER);
	end_hears(&net.a, VB_CM_EVENT_REJ);
}

BETWEEN_TWO(who_was_accepted_rejects)
{
	struct pair pair = pair_answered(false);
	struct vb_cm_msg msg;

	assert_true(bury(pair.a, &msg));
	assert_int_equal(msg.rej.message_rejected, VB_CM_MESSAGE_REP);
	end_hears(&net.b, VB_CM_EVENT_REJ);
}

BETWEEN_TWO(who_is_connected_disconnects)
{
	struct pair pair = pair_connected(false);
	struct vb_cm_msg msg;

	assert_true(bury(pair.a, &msg));
	assert_int_equal(msg.attr, VB_CM_DREQ);
	end_hears(&net.b, VB_CM_EVENT_DREQ);
	assert_true(bury(pair.b, &msg));
	assert_int_equal(msg.attr, VB_CM_DREP);
}

BETWEEN_TWO(who_was_disconnected_answers)
{
	struct pair pair = pair_connected(false);
	struct vb_cm_msg msg;

	says(pair.a, VB_CM_DREQ);
	net_pass(VB_CM_DREQ);
	assert_true(bury(pair.b, &msg));
	assert_int_equal(msg.attr, VB_CM_DREP);
	end_hears(&net.a, VB_CM_EVENT_DREP);
}

BETWEEN_TWO(who_was_asked_for_a_service_refuses)
{
	struct vb_cm_id *a = vb_cm_id_make(&net.a.cm, NULL);
	const struct vb_cm_msg question = {
		.attr = VB_CM_SIDR_REQ,
		.sidr_req.service_id = SERVICE,
	};
	const struct vb_cm_ask ask = net_way();
	struct vb_cm_msg msg;

	vb_cm_say_ask(a, net.now_ns, &question, &ask);
	net_pass(VB_CM_SIDR_REQ);
	assert_false(bury(a, &msg)); /* an answer that nobody waits for harms nobody */
	assert_true(bury(net.b.told[0].id, &msg));
	assert_int_equal(msg.sidr_rep.status, VB_CM_SIDR_REJECTED);
	assert_int_equal(end_hears(&net.a, VB_CM_EVENT_SIDR_REP)->msg.sidr_rep.status,
			 VB_CM_SIDR_REJECTED);
}

/* Idle, listening, in timewait: nobody waits. */
BETWEEN_TWO(there_may_be_nothing_to_say)
{
	struct pair pair = pair_connected(false);
	struct vb_cm_record record = {0};
	struct vb_path path;
	uint8_t mad[VB_MAD_BYTES];

	assert_null(net.listener->record);
	assert_null(vb_cm_id_make(&net.a.cm, NULL)->record);
	assert_non_null(pair.a->record);
	says(pair.a, VB_CM_DREQ);
	net_pass(VB_CM_DREQ);
	says(pair.b, VB_CM_DREP);
	net_pass(VB_CM_DREP);
	assert_null(pair.a->record);
	assert_null(pair.b->record);
	assert_false(vb_cm_record_close(&record, &path, mad));
}

/* The memory is the dead process's: it may say anything. */
BETWEEN_TWO(a_wild_record_does_no_harm)
{
	struct vb_cm_record record;
	struct vb_path path;
	uint8_t mad[VB_MAD_BYTES];
	struct vb_cm_msg msg;

	memset(&record, 0xff, sizeof(record));
	assert_false(vb_cm_record_close(&record, &path, mad));
	for (unsigned i = 0; i < VB_CM_STATES; i++) {
		record.state = i;
		if (vb_cm_record_close(&record, &path, mad))
			assert_true(vb_cm_parse(&msg, mad));
	}
}

/* Where there is no room for a record, there is none, and all else goes on. */
BETWEEN_TWO(there_may_be_no_room)
{
	struct pair pair;

	net.a.lent = RECORDS_MAX;
	pair = pair_connected(false);
	assert_null(pair.a->record);
	vb_cm_id_release(pair.a, net.now_ns);
	net_pass(VB_CM_DREQ);
}
