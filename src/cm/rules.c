/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/rules.h"

#include <stddef.h>

#include "base/check.h"

enum { ATTRS = VB_CM_ATTR_LAST - VB_CM_ATTR_FIRST + 1 };

#define COLUMN(attr) VB_CM_##attr - VB_CM_ATTR_FIRST

/* clang-format off */
static const struct vb_cm_rule heard[VB_CM_STATES][ATTRS] = {
#define VB_CM_HEARD(state, attr, next, send, event) \
	[VB_CM_STATE_##state][COLUMN(attr)] = \
		{true, VB_CM_STATE_##next, VB_CM_SEND_##send, VB_CM_EVENT_##event},
#include "cm/rules.def"
};

static const struct vb_cm_rule lap_heard[VB_CM_LAP_STATES][ATTRS] = {
#define VB_CM_LAP_HEARD(state, attr, next, send, event) \
	[VB_CM_LAP_STATE_##state][COLUMN(attr)] = \
		{true, VB_CM_LAP_STATE_##next, VB_CM_SEND_##send, VB_CM_EVENT_##event},
#include "cm/rules.def"
};

static const struct vb_cm_rule said[VB_CM_STATES][ATTRS] = {
#define VB_CM_SAID(state, attr, next) \
	[VB_CM_STATE_##state][COLUMN(attr)] = {true, VB_CM_STATE_##next, 0, 0},
#include "cm/rules.def"
};

static const struct vb_cm_rule lap_said[VB_CM_LAP_STATES][ATTRS] = {
#define VB_CM_LAP_SAID(state, attr, next) \
	[VB_CM_LAP_STATE_##state][COLUMN(attr)] = {true, VB_CM_LAP_STATE_##next, 0, 0},
#include "cm/rules.def"
};

static const struct vb_cm_rule overdue[VB_CM_STATES] = {
#define VB_CM_OVERDUE(state, next, send, event) \
	[VB_CM_STATE_##state] = \
		{true, VB_CM_STATE_##next, VB_CM_SEND_##send, VB_CM_EVENT_##event},
#include "cm/rules.def"
};

static const struct vb_cm_farewell farewell[VB_CM_STATES] = {
#define VB_CM_FAREWELL(state, next, attr) \
	[VB_CM_STATE_##state] = {true, VB_CM_STATE_##next, VB_CM_##attr, 0, 0},
#define VB_CM_FAREWELL_REJ(state, next, reason, rejected) \
	[VB_CM_STATE_##state] = {true, VB_CM_STATE_##next, VB_CM_REJ, VB_CM_REJ_##reason, \
				 VB_CM_MESSAGE_##rejected},
#include "cm/rules.def"
};

static const struct {
	enum vb_cm_clock_kind clock;
	const char *name;
} states[VB_CM_STATES] = {
#define VB_CM_STATE(state, clock, name) [VB_CM_STATE_##state] = {VB_CM_CLOCK_##clock, name},
#include "cm/rules.def"
}, lap_states[VB_CM_LAP_STATES] = {
#define VB_CM_LAP_STATE(state, clock, name) \
	[VB_CM_LAP_STATE_##state] = {VB_CM_CLOCK_##clock, name},
#include "cm/rules.def"
};

static const char *const events[VB_CM_EVENTS] = {
#define VB_CM_EVENT(event, name) [VB_CM_EVENT_##event] = name,
#include "cm/rules.def"
};
/* clang-format on */

static const struct vb_cm_rule *row(const struct vb_cm_rule *rules, enum vb_cm_attr attr)
{
	const struct vb_cm_rule *rule = &rules[attr - VB_CM_ATTR_FIRST];

	vb_check(attr >= VB_CM_ATTR_FIRST && attr <= VB_CM_ATTR_LAST);
	return rule->legal ? rule : NULL;
}

const struct vb_cm_rule *vb_cm_rule_heard(enum vb_cm_state state, enum vb_cm_attr attr)
{
	return row(heard[state], attr);
}

const struct vb_cm_rule *vb_cm_rule_lap_heard(enum vb_cm_lap_state state, enum vb_cm_attr attr)
{
	return row(lap_heard[state], attr);
}

const struct vb_cm_rule *vb_cm_rule_said(enum vb_cm_state state, enum vb_cm_attr attr)
{
	return row(said[state], attr);
}

const struct vb_cm_rule *vb_cm_rule_lap_said(enum vb_cm_lap_state state, enum vb_cm_attr attr)
{
	return row(lap_said[state], attr);
}

const struct vb_cm_rule *vb_cm_rule_overdue(enum vb_cm_state state)
{
	return overdue[state].legal ? &overdue[state] : NULL;
}

const struct vb_cm_farewell *vb_cm_rule_farewell(enum vb_cm_state state)
{
	return farewell[state].legal ? &farewell[state] : NULL;
}

enum vb_cm_clock_kind vb_cm_state_clock(enum vb_cm_state state)
{
	return states[state].clock;
}

enum vb_cm_clock_kind vb_cm_lap_state_clock(enum vb_cm_lap_state state)
{
	return lap_states[state].clock;
}

const char *vb_cm_state_name(enum vb_cm_state state)
{
	return states[state].name;
}

const char *vb_cm_lap_state_name(enum vb_cm_lap_state state)
{
	return lap_states[state].name;
}

const char *vb_cm_event_name(enum vb_cm_event_type type)
{
	return events[type];
}
