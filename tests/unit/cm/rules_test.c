/* SPDX-License-Identifier: BSD-2-Clause */
#include "group.h"

#include <string.h>

#include "cm/rules.h"

static const struct {
	enum vb_cm_state from;
	enum vb_cm_attr attr;
	enum vb_cm_state to;
} handshake[] = {
	{VB_CM_STATE_REQ_SENT, VB_CM_REP, VB_CM_STATE_REP_RCVD},
	{VB_CM_STATE_REP_SENT, VB_CM_RTU, VB_CM_STATE_ESTABLISHED},
	{VB_CM_STATE_ESTABLISHED, VB_CM_DREQ, VB_CM_STATE_DREQ_RCVD},
	{VB_CM_STATE_DREQ_SENT, VB_CM_DREP, VB_CM_STATE_TIMEWAIT},
	{VB_CM_STATE_SIDR_REQ_SENT, VB_CM_SIDR_REP, VB_CM_STATE_IDLE},
};

TEST(the_handshake_is_there)
{
	for (unsigned i = 0; i < sizeof(handshake) / sizeof(handshake[0]); i++) {
		const struct vb_cm_rule *rule =
			vb_cm_rule_heard(handshake[i].from, handshake[i].attr);

		assert_non_null(rule);
		assert_int_equal(rule->next, handshake[i].to);
		assert_int_not_equal(rule->event, VB_CM_EVENT_NONE);
	}
}

/* Nobody waits for ever: a state has a clock, or its user decides, or it is the peer's turn. */
TEST(a_clock_that_runs_out_has_a_rule)
{
	for (unsigned i = 0; i < VB_CM_STATES; i++) {
		bool has_clock = vb_cm_state_clock(i) != VB_CM_CLOCK_NONE;

		assert_int_equal(has_clock, vb_cm_rule_overdue(i) != NULL);
	}
}

/* Whose user lets go is over, or has a clock by which it will be. */
TEST(a_farewell_ends)
{
	for (unsigned i = 0; i < VB_CM_STATES; i++) {
		const struct vb_cm_farewell *farewell = vb_cm_rule_farewell(i);

		if (farewell && farewell->next != VB_CM_STATE_IDLE)
			assert_int_not_equal(vb_cm_state_clock(farewell->next), VB_CM_CLOCK_NONE);
	}
}

TEST(nothing_is_heard_or_said_in_idle)
{
	for (unsigned attr = VB_CM_ATTR_FIRST; attr <= VB_CM_ATTR_LAST; attr++) {
		bool asks = attr == VB_CM_REQ || attr == VB_CM_SIDR_REQ;

		assert_null(vb_cm_rule_heard(VB_CM_STATE_IDLE, attr));
		assert_null(vb_cm_rule_heard(VB_CM_STATE_LISTEN, attr));
		assert_null(vb_cm_rule_said(VB_CM_STATE_LISTEN, attr));
		assert_int_equal(asks, vb_cm_rule_said(VB_CM_STATE_IDLE, attr) != NULL);
	}
}

TEST(lap_has_its_own_rules)
{
	assert_int_equal(vb_cm_rule_lap_heard(VB_CM_LAP_STATE_NONE, VB_CM_LAP)->next,
			 VB_CM_LAP_STATE_RCVD);
	assert_int_equal(vb_cm_rule_lap_heard(VB_CM_LAP_STATE_SENT, VB_CM_APR)->next,
			 VB_CM_LAP_STATE_NONE);
	assert_null(vb_cm_rule_lap_heard(VB_CM_LAP_STATE_NONE, VB_CM_APR));
	assert_int_equal(vb_cm_rule_lap_said(VB_CM_LAP_STATE_RCVD, VB_CM_APR)->next,
			 VB_CM_LAP_STATE_NONE);
	assert_null(vb_cm_rule_lap_said(VB_CM_LAP_STATE_SENT, VB_CM_LAP));
	assert_int_equal(vb_cm_lap_state_clock(VB_CM_LAP_STATE_SENT), VB_CM_CLOCK_REPEAT);
}

TEST(all_have_names)
{
	for (unsigned i = 0; i < VB_CM_STATES; i++)
		assert_true(strlen(vb_cm_state_name(i)) > 0);
	for (unsigned i = 0; i < VB_CM_LAP_STATES; i++)
		assert_true(strlen(vb_cm_lap_state_name(i)) > 0);
	for (unsigned i = 0; i < VB_CM_EVENTS; i++)
		assert_true(strlen(vb_cm_event_name(i)) > 0);
}

/* The numbers stand in records, which a hub of another version may read. */
TEST(states_keep_their_numbers)
{
	assert_int_equal(VB_CM_STATE_IDLE, 0);
	assert_int_equal(VB_CM_STATE_REQ_SENT, 2);
	assert_int_equal(VB_CM_STATE_ESTABLISHED, 10);
	assert_int_equal(VB_CM_STATE_SIDR_REQ_RCVD, 16);
}
