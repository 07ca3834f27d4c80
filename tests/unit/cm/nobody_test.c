/* SPDX-License-Identifier: BSD-2-Clause */
#include "group.h"

#include <string.h>

#include "cm/known.h"
#include "cm/nobody.h"

static struct vb_cm_msg message(enum vb_cm_attr attr)
{
	return (struct vb_cm_msg){
		.attr = attr,
		.transaction_id = 77,
		.local_comm_id = 0x01000001,
		.remote_comm_id = attr == VB_CM_REQ || attr == VB_CM_SIDR_REQ ? 0 : 0x0c000002,
	};
}

/* The answer to a message; false: there is none. */
static bool answers(struct vb_cm_msg *answer, const struct vb_cm_msg *msg, bool is_marked)
{
	static uint8_t out[VB_MAD_BYTES];
	uint8_t in[VB_MAD_BYTES];

	vb_cm_emit(msg, in);
	if (is_marked)
		vb_cm_mark(in);
	if (!vb_cm_nobody_answers_mad(out, in))
		return false;
	assert_true(vb_cm_is_marked(out));
	assert_true(vb_cm_parse(answer, out));
	assert_int_equal(answer->transaction_id, msg->transaction_id);
	assert_int_equal(answer->remote_comm_id, msg->local_comm_id);
	return true;
}

TEST(a_dreq_gets_its_drep)
{
	const struct vb_cm_msg msg = message(VB_CM_DREQ);
	struct vb_cm_msg answer;

	assert_true(answers(&answer, &msg, false));
	assert_int_equal(answer.attr, VB_CM_DREP);
	assert_int_equal(answer.local_comm_id, msg.remote_comm_id);
}

TEST(who_connects_is_rejected)
{
	static const struct {
		enum vb_cm_attr attr;
		uint16_t reason;
		uint8_t rejected;
	} row[] = {
		{VB_CM_REQ, VB_CM_REJ_INVALID_SERVICE_ID, VB_CM_MESSAGE_REQ},
		{VB_CM_REP, VB_CM_REJ_INVALID_COMM_ID, VB_CM_MESSAGE_REP},
		{VB_CM_RTU, VB_CM_REJ_INVALID_COMM_ID, VB_CM_MESSAGE_OTHER},
	};
	struct vb_cm_msg answer;

	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		const struct vb_cm_msg msg = message(row[i].attr);

		assert_true(answers(&answer, &msg, false));
		assert_int_equal(answer.attr, VB_CM_REJ);
		assert_int_equal(answer.rej.reason, row[i].reason);
		assert_int_equal(answer.rej.message_rejected, row[i].rejected);
	}
}

TEST(a_service_is_not_there)
{
	struct vb_cm_msg msg = message(VB_CM_SIDR_REQ), answer;

	msg.sidr_req.service_id = 0x0111000000001234;
	assert_true(answers(&answer, &msg, false));
	assert_int_equal(answer.attr, VB_CM_SIDR_REP);
	assert_int_equal(answer.sidr_rep.status, VB_CM_SIDR_UNSUPPORTED);
	assert_true(answer.sidr_rep.service_id == msg.sidr_req.service_id);
}

/* An answer to an answer would never end. */
TEST(answers_are_not_answered)
{
	static const enum vb_cm_attr attrs[] = {
		VB_CM_REJ, VB_CM_DREP, VB_CM_SIDR_REP, VB_CM_LAP, VB_CM_APR, VB_CM_MRA,
	};
	uint8_t zeros[VB_MAD_BYTES] = {0}, out[VB_MAD_BYTES];
	struct vb_cm_msg answer;

	for (unsigned i = 0; i < sizeof(attrs) / sizeof(attrs[0]); i++) {
		const struct vb_cm_msg msg = message(attrs[i]);

		assert_false(answers(&answer, &msg, true));
	}
	assert_false(vb_cm_nobody_answers_mad(out, zeros));
}

TEST(a_hello_is_answered_if_it_is_marked)
{
	struct vb_cm_msg hello, answer, again;

	vb_cm_hello(&hello, 0x01000001, 5);
	assert_false(answers(&answer, &hello, false));
	assert_true(answers(&answer, &hello, true));
	assert_true(vb_cm_is_hello(&answer));
	assert_false(answers(&again, &answer, true));
}

TEST(the_way_back_leads_back)
{
	const struct vb_path path = {
		.src = {1},
		.dst = {2},
		.flow_label = 9,
		.ifindex = 4,
		.tclass = 3,
		.hop_limit = 1,
		.sport = 55555,
	};
	struct vb_path back;

	vb_cm_nobody_path_back(&back, &path);
	assert_memory_equal(back.src, path.dst, VB_GID_BYTES);
	assert_memory_equal(back.dst, path.src, VB_GID_BYTES);
	assert_int_equal(back.flow_label, 9);
	assert_int_equal(back.ifindex, 4);
	assert_int_equal(back.hop_limit, 64);
}

static struct vb_cm_target target_of(const struct vb_cm_msg *msg)
{
	uint8_t mad[VB_MAD_BYTES];

	vb_cm_emit(msg, mad);
	return vb_cm_nobody_target(mad);
}

TEST(it_knows_whose_a_message_is)
{
	struct vb_cm_msg msg = message(VB_CM_REP);
	uint8_t guid[8] = {1}, zeros[VB_MAD_BYTES] = {0};

	msg.remote_comm_id = 37u << 22 | 5;
	assert_int_equal(target_of(&msg).whose, VB_CM_WHOSE_SLOT);
	assert_int_equal(target_of(&msg).slot, 37);
	msg = message(VB_CM_REQ);
	msg.req.service_id = 12345;
	assert_int_equal(target_of(&msg).whose, VB_CM_WHOSE_SERVICE);
	assert_int_equal(target_of(&msg).service_id, 12345);
	msg = message(VB_CM_SIDR_REQ);
	msg.sidr_req.service_id = 54321;
	assert_int_equal(target_of(&msg).whose, VB_CM_WHOSE_SERVICE);
	assert_int_equal(target_of(&msg).service_id, 54321);
	/* Who gives up before he was answered knows no id of ours. */
	msg = message(VB_CM_REJ);
	msg.remote_comm_id = 0;
	msg.rej.reason = VB_CM_REJ_TIMEOUT;
	msg.info = guid;
	msg.info_bytes = sizeof(guid);
	assert_int_equal(target_of(&msg).whose, VB_CM_WHOSE_ALL);
	msg.rej.reason = VB_CM_REJ_CONSUMER_DEFINED;
	assert_int_equal(target_of(&msg).whose, VB_CM_WHOSE_NOBODY);
	assert_int_equal(vb_cm_nobody_target(zeros).whose, VB_CM_WHOSE_NOBODY);
}
