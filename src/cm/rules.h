/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CM_RULES_H
#define VB_CM_RULES_H

/* What follows from what: the rows of rules.def as tables. Nothing here has a state. */

#include <stdbool.h>
#include <stdint.h>

#include "wire/cm_msg.h"

enum vb_cm_state {
#define VB_CM_STATE(name, ...) VB_CM_STATE_##name,
#include "cm/rules.def"
	VB_CM_STATES
};

enum vb_cm_lap_state {
#define VB_CM_LAP_STATE(name, ...) VB_CM_LAP_STATE_##name,
#include "cm/rules.def"
	VB_CM_LAP_STATES
};

enum vb_cm_event_type {
#define VB_CM_EVENT(name, ...) VB_CM_EVENT_##name,
#include "cm/rules.def"
	VB_CM_EVENTS
};

enum vb_cm_clock_kind {
	VB_CM_CLOCK_NONE,
	VB_CM_CLOCK_REPEAT,
	VB_CM_CLOCK_MORE,
	VB_CM_CLOCK_LINGER,
};

/* What the connection manager sends by itself. */
enum vb_cm_send {
	VB_CM_SEND_NOTHING,
	VB_CM_SEND_AGAIN, /* what answered the same message before */
	VB_CM_SEND_RTU,
	VB_CM_SEND_DREP,
	VB_CM_SEND_MRA,
	VB_CM_SEND_STALE,   /* REJ: of an old connection */
	VB_CM_SEND_TIMEOUT, /* REJ: gave up */
};

struct vb_cm_rule {
	bool legal;
	uint8_t next; /* enum vb_cm_state, or enum vb_cm_lap_state */
	uint8_t send; /* enum vb_cm_send; of what our user says: that */
	uint8_t event;
};

/* NULL: nothing follows, or it is not allowed. attr is one of the eleven messages. */
const struct vb_cm_rule *vb_cm_rule_heard(enum vb_cm_state state, enum vb_cm_attr attr);
const struct vb_cm_rule *vb_cm_rule_lap_heard(enum vb_cm_lap_state state, enum vb_cm_attr attr);
const struct vb_cm_rule *vb_cm_rule_said(enum vb_cm_state state, enum vb_cm_attr attr);
const struct vb_cm_rule *vb_cm_rule_lap_said(enum vb_cm_lap_state state, enum vb_cm_attr attr);
const struct vb_cm_rule *vb_cm_rule_overdue(enum vb_cm_state state);

/* How a connection is closed whose user lets go of it or has died. */
struct vb_cm_farewell {
	bool legal;
	uint8_t next; /* enum vb_cm_state */
	uint8_t attr;
	uint8_t reason, rejected; /* of a REJ */
};

/* NULL: nothing has to be said. */
const struct vb_cm_farewell *vb_cm_rule_farewell(enum vb_cm_state state);

enum vb_cm_clock_kind vb_cm_state_clock(enum vb_cm_state state);
enum vb_cm_clock_kind vb_cm_lap_state_clock(enum vb_cm_lap_state state);

/* For people. */
const char *vb_cm_state_name(enum vb_cm_state state);
const char *vb_cm_lap_state_name(enum vb_cm_lap_state state);
const char *vb_cm_event_name(enum vb_cm_event_type type);

#endif
