/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections that were rejected, never answered, or never completed. */
#include "captures.h"
#include "explain/judge.h"
#include "group.h"
#include "wire/cm_ip.h"
#include "wire/cm_msg.h"

enum { CLIENT = 1, SERVER = 2, CLIENT_ID = 100, SERVER_ID = 200 };

static struct capture capture;
static struct vb_story story;

static void say(uint8_t from, struct vb_cm_msg msg)
{
	uint8_t mad[VB_MAD_BYTES];
	const struct vb_pkt pkt = { .opcode = VB_OP_UD_SEND_ONLY, .dqpn = VB_MAD_QPN,
				    .sqpn = VB_MAD_QPN, .qkey = VB_MAD_QKEY, .payload = mad,
				    .payload_bytes = VB_MAD_BYTES };

	vb_cm_emit(&msg, mad);
	capture_add(&capture, &pkt, from, CLIENT + SERVER - from, 0,
		    from == CLIENT ? CAPTURE_OUT : CAPTURE_IN, NULL);
}

static void say_req(void)
{
	const struct vb_cm_msg req = {
		.attr = VB_CM_REQ,
		.local_comm_id = CLIENT_ID,
		.req = { .local_qpn = 0x11, .service_id = vb_cm_service_id(VB_CM_PS_TCP, 7174) },
	};

	say(CLIENT, req);
}

static void say_rep(void)
{
	const struct vb_cm_msg rep = {
		.attr = VB_CM_REP,
		.local_comm_id = SERVER_ID,
		.remote_comm_id = CLIENT_ID,
		.rep = { .local_qpn = 0x22 },
	};

	say(SERVER, rep);
}

static void judge(void)
{
	assert_true(vb_story_begin(&story));
	assert_true(vb_story_add(&story, "a", capture.octets, capture.bytes));
	vb_judge(&story);
}

static int begin(void **state)
{
	capture_begin(&capture);
	return 0;
}

static int end(void **state)
{
	vb_story_end(&story);
	return 0;
}

#define ATTEMPT(name) TEST_BETWEEN(name, begin, end)

static void assert_first(enum vb_trouble_kind kind, const char *words)
{
	assert_true(story.troubles.count);
	assert_string_equal(vb_trouble_words[story.trouble[0].kind].name,
			    vb_trouble_words[kind].name);
	if (!strstr(story.trouble[0].words, words))
		fail_msg("'%s' has no '%s'", story.trouble[0].words, words);
}

ATTEMPT(a_connection_joins_both_directions)
{
	struct vb_pkt forth = { .opcode = VB_OP_UC_SEND_ONLY, .dqpn = 0x22, .psn = 1 };
	struct vb_pkt back = { .opcode = VB_OP_UC_SEND_ONLY, .dqpn = 0x11, .psn = 9 };

	say_req();
	say_rep();
	say(CLIENT, (struct vb_cm_msg){ .attr = VB_CM_RTU, .local_comm_id = CLIENT_ID,
					.remote_comm_id = SERVER_ID });
	capture_add(&capture, &forth, CLIENT, SERVER, 0, CAPTURE_OUT, NULL);
	capture_add(&capture, &back, SERVER, CLIENT, 0, CAPTURE_IN, NULL);
	capture_end(&capture);
	judge();
	assert_int_equal(story.troubles.count, 0);
	for (uint32_t i = 0; i < story.halves.count; i++)
		assert_int_not_equal(story.half[i].peer, VB_NONE);
}

ATTEMPT(a_rejection_has_its_reason)
{
	say_req();
	say(SERVER, (struct vb_cm_msg){ .attr = VB_CM_REJ, .remote_comm_id = CLIENT_ID,
					.rej = { .reason = VB_CM_REJ_INVALID_SERVICE_ID },
					.private_data = (const uint8_t *)"go away",
					.private_bytes = 7 });
	judge();
	assert_first(VB_TROUBLE_REJECTED, "10.0.0.1 to 10.0.0.2, port 7174 (TCP): nobody listens "
					  "for this service id (reason 8)");
	assert_first(VB_TROUBLE_REJECTED, "It says: \"go away\"");
}

ATTEMPT(a_request_that_nobody_answers_was_repeated)
{
	for (int i = 0; i < 3; i++)
		say_req();
	judge();
	assert_first(VB_TROUBLE_UNHEARD, "REQ was sent 3 times");
}

ATTEMPT(a_reply_without_an_end_was_never_completed)
{
	say_req();
	for (int i = 0; i < 4; i++)
		say_rep();
	judge();
	assert_first(VB_TROUBLE_NO_RTU, "REP was sent 4 times");
}

ATTEMPT(a_service_that_is_refused_says_why)
{
	const struct vb_cm_msg req = {
		.attr = VB_CM_SIDR_REQ,
		.local_comm_id = CLIENT_ID,
		.sidr_req = { vb_cm_service_id(VB_CM_PS_UDP, 5), 0xffff },
	};

	say(CLIENT, req);
	say(SERVER, (struct vb_cm_msg){ .attr = VB_CM_SIDR_REP, .remote_comm_id = CLIENT_ID,
					.sidr_rep = { .status = VB_CM_SIDR_UNSUPPORTED } });
	judge();
	assert_first(VB_TROUBLE_SIDR, "port 5 (UDP): nobody listens");
}
