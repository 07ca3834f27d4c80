/* SPDX-License-Identifier: BSD-2-Clause */
#include <infiniband/verbs.h>

#include "group.h"
#include "script/match.h"
#include "script/parse.h"
#include "wire/opcode.h"

static struct vb_script script;

static void given(const char *text)
{
	char why[VB_SCRIPT_WHY_BYTES];

	if (vb_script_parse(&script, "x", text, strlen(text), why))
		fail_msg("%s", why);
}

static struct vb_occasion packet(void)
{
	return (struct vb_occasion){
		.where = VB_WHERE_SENT,
		.opcode = VB_OP_RC_SEND_ONLY,
		.state = IBV_QPS_RTS,
		.qpn = 7,
		.bytes = 100,
	};
}

/* The line of the rule that applies; 0: none does. */
static unsigned line(const struct vb_occasion *occasion)
{
	const struct vb_rule *rule = vb_script_match(&script, occasion);

	return rule ? rule->line : 0;
}

TEST(conditions_all_have_to_hold)
{
	static const uint8_t peer[VB_GID_BYTES] = { [10] = 0xff, 0xff, 10, 0, 0, 2 };
	struct vb_occasion it = packet();

	given("sent send qp=7 size>=10 size<=100 state=rts peer=10.0.0.2 after=1us until=1ms "
	      "-> drop");
	it.age_ns = 5000;
	it.peer = peer;
	assert_int_equal(line(&it), 1);
	it.where = VB_WHERE_RECEIVED;
	assert_int_equal(line(&it), 0);
	it.where = VB_WHERE_SENT;
	it.opcode = VB_OP_RC_ACK;
	assert_int_equal(line(&it), 0);
	it.opcode = VB_OP_RC_SEND_LAST;
	it.qpn = 8;
	assert_int_equal(line(&it), 0);
	it.qpn = 7;
	it.bytes = 9;
	assert_int_equal(line(&it), 0);
	it.bytes = 101;
	assert_int_equal(line(&it), 0);
	it.bytes = 10;
	it.state = IBV_QPS_RTR;
	assert_int_equal(line(&it), 0);
	it.state = IBV_QPS_RTS;
	it.peer = NULL;
	assert_int_equal(line(&it), 0);
	it.peer = peer;
	it.age_ns = 999;
	assert_int_equal(line(&it), 0);
	it.age_ns = 1000000;
	assert_int_equal(line(&it), 0);
	it.age_ns = 999999;
	assert_int_equal(line(&it), 1);
}

/* Which of the first ten are met, as bits. */
static unsigned turns(const char *text)
{
	struct vb_occasion it = packet();
	unsigned met = 0;

	given(text);
	for (unsigned i = 0; i < 10; i++)
		met |= (line(&it) != 0) << i;
	return met;
}

TEST(turns_are_counted)
{
	assert_int_equal(turns("sent -> drop"), 0x3ff);
	assert_int_equal(turns("sent nth=3 -> drop"), 1 << 2);
	assert_int_equal(turns("sent first=2 -> drop"), 3);
	assert_int_equal(turns("sent from=9 -> drop"), 3 << 8);
	assert_int_equal(turns("sent every=4 -> drop"), 1 << 3 | 1 << 7);
	assert_int_equal(turns("sent every=4 first=5 -> drop"), 1 << 3);
}

/* So nothing is said to be refused that goes on, and each occasion is one. */
TEST(a_nak_is_for_requests_of_rc)
{
	static const uint8_t others[] = { VB_OP_RC_ACK, VB_OP_RC_READ_RESP_ONLY, VB_OP_UD_SEND_ONLY,
					  VB_OP_XRC_SEND_ONLY, VB_OP_DC_SEND_ONLY };
	struct vb_occasion it = packet();

	given("sent nth=2 -> nak access");
	for (unsigned i = 0; i < sizeof(others); i++) {
		it.opcode = others[i];
		assert_int_equal(line(&it), 0);
	}
	it = packet();
	assert_int_equal(line(&it), 0);
	assert_int_equal(line(&it), 1);
}

/* Whoever sends again what was refused does not meet the rule in step with it. */
TEST(one_in_about_so_many_is_without_a_pattern)
{
	enum { PACKETS = 30000, STEPS_MAX = 200, TRIES = 16 };
	static bool met[PACKETS];
	struct vb_occasion it = packet();
	unsigned count = 0;

	given("sent about=30 -> drop");
	for (unsigned i = 0; i < PACKETS; i++) {
		met[i] = line(&it) != 0;
		count += met[i];
	}
	assert_in_range(count, PACKETS / 30 * 9 / 10, PACKETS / 30 * 11 / 10);
	for (unsigned step = 1; step < STEPS_MAX; step++) {
		for (unsigned from = 0; from < PACKETS - TRIES * step; from++) {
			unsigned in_step = 0;

			while (in_step < TRIES && met[from + in_step * step])
				in_step++;
			assert_true(in_step < TRIES / 2);
		}
	}
}

TEST(the_first_that_fires_is_the_one)
{
	struct vb_occasion it = packet();

	given("sent nth=2 -> drop\nsent nth=2 -> corrupt\nreceived -> drop");
	assert_int_equal(line(&it), 0);
	assert_int_equal(line(&it), 1);
	/* The second rule has not seen the packet that the first one met. */
	assert_int_equal(line(&it), 2);
	assert_int_equal(line(&it), 0);
	assert_true(script.rule[0].fired == 1 && script.rule[1].fired == 1);
}

TEST(moments_come_once_and_in_order)
{
	given("at 3us -> device fatal\nat 1us -> port down\nat 2us -> port down");
	assert_true(vb_script_next_ns(&script) == 1000);
	assert_null(vb_script_due(&script, 999));
	assert_int_equal(vb_script_due(&script, 5000)->line, 2);
	assert_int_equal(vb_script_due(&script, 5000)->line, 3);
	assert_true(vb_script_next_ns(&script) == 3000);
	assert_int_equal(vb_script_due(&script, 5000)->line, 1);
	assert_null(vb_script_due(&script, 5000));
	assert_true(vb_script_next_ns(&script) == UINT64_MAX);
}

TEST(requests_to_connect_are_no_packets)
{
	struct vb_occasion it = { .where = VB_WHERE_CONNECT };

	given("sent -> drop\nreceived -> drop\nconnect nth=2 -> reject consumer");
	assert_int_equal(line(&it), 0);
	assert_int_equal(line(&it), 3);
	assert_int_equal(line(&it), 0);
}
