/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/repeat.h"

#include "base/check.h"
#include "cm/say.h"

#define MS 1000000ull

static const uint64_t first_ns = 8 * MS;
static const uint64_t sure_ns = 256 * MS; /* ... where nothing is lost */
static const uint64_t most_ns = 512 * MS;
static const uint64_t patient_ns = 4096 * MS; /* after an MRA */

static void set(struct vb_cm_id *id, uint64_t at_ns)
{
	vb_cm_clock_set(&id->cm->clocks, &id->clock, at_ns);
}

static bool is_asking(const struct vb_cm_id *id)
{
	return id->state == VB_CM_STATE_REQ_SENT || id->state == VB_CM_STATE_SIDR_REQ_SENT;
}

/* Nothing is lost there: if the peer does not answer, it has much to do. */
static bool is_sure(const struct vb_cm_id *id)
{
	const struct vb_cm_host *host = &id->cm->host;

	return host->is_sure && host->is_sure(host->arg, &id->path);
}

static bool is_patient(const struct vb_cm_id *id)
{
	return id->state == VB_CM_STATE_REQ_MRA_RCVD || id->state == VB_CM_STATE_REP_MRA_RCVD ||
	       id->lap == VB_CM_LAP_STATE_MRA_RCVD;
}

/* When to look next, and from then on less often. */
static void look_again(struct vb_cm_id *id)
{
	struct vb_cm_clock *clock = &id->clock;
	uint64_t at_ns = id->cm->now_ns + clock->step_ns;

	if (is_sure(id)) {
		clock->step_ns = vb_min_u64(4 * clock->step_ns, patient_ns);
	} else if (id->peer == VB_CM_PEER_OURS) {
		clock->step_ns =
			vb_min_u64(2 * clock->step_ns, is_patient(id) ? patient_ns : most_ns);
	} else if (id->peer == VB_CM_PEER_UNKNOWN && is_asking(id)) {
		clock->step_ns *= 2;
		at_ns = vb_min_u64(at_ns, clock->slow_ns);
	} else {
		at_ns = clock->slow_ns;
	}
	set(id, vb_min_u64(at_ns, clock->until_ns));
}

void vb_cm_repeat_start(struct vb_cm_id *id, enum vb_cm_clock_kind kind)
{
	struct vb_cm_clock *clock = &id->clock;
	uint64_t now_ns = id->cm->now_ns;

	switch (kind) {
	case VB_CM_CLOCK_NONE:
		set(id, VB_CM_NEVER);
		break;
	case VB_CM_CLOCK_REPEAT:
		clock->step_ns = is_sure(id) ? sure_ns : first_ns;
		clock->slow_ns = now_ns + id->times.timeout_ns;
		clock->until_ns = now_ns + id->times.timeout_ns * (id->times.retries + 1);
		look_again(id);
		break;
	case VB_CM_CLOCK_MORE:
		break; /* vb_cm_repeat_later() */
	case VB_CM_CLOCK_LINGER:
		clock->until_ns =
			now_ns + (id->state == VB_CM_STATE_TIMEWAIT ? id->times.timewait_ns
								    : id->times.linger_ns);
		set(id, clock->until_ns);
		break;
	}
}

void vb_cm_repeat_later(struct vb_cm_id *id, uint64_t extra_ns)
{
	struct vb_cm_clock *clock = &id->clock;
	uint64_t slow_ns = id->cm->now_ns + extra_ns;

	if (slow_ns > clock->slow_ns) {
		clock->until_ns += slow_ns - clock->slow_ns;
		clock->slow_ns = slow_ns;
	}
	clock->step_ns = most_ns;
	look_again(id);
}

static void send_again(struct vb_cm_id *id)
{
	id->cm->stats.repeated++;
	vb_cm_say_send(id, id->sent);
}

void vb_cm_repeat_faster(struct vb_cm_id *id)
{
	id->peer = VB_CM_PEER_OURS;
	id->clock.step_ns = first_ns;
	send_again(id);
	look_again(id);
}

static void give_up(struct vb_cm_id *id)
{
	struct vb_cm_event event = {.path = &id->path};
	const struct vb_cm_rule *rule = vb_cm_rule_overdue(id->state);

	if (id->lap != VB_CM_LAP_STATE_NONE) {
		event.type = VB_CM_EVENT_LAP_OVERDUE;
		vb_cm_id_enter_lap(id, VB_CM_LAP_STATE_NONE);
	} else {
		vb_check(rule);
		event.type = rule->event;
		vb_cm_say_by_rule(id, rule, NULL);
		vb_cm_id_enter(id, rule->next);
	}
	vb_cm_id_settle(id, &event);
}

void vb_cm_repeat_ring(struct vb_cm_id *id)
{
	struct vb_cm_clock *clock = &id->clock;
	uint64_t now_ns = id->cm->now_ns;
	bool is_slow = now_ns >= clock->slow_ns;

	if (now_ns >= clock->until_ns) {
		give_up(id);
		return;
	}
	if (is_slow)
		clock->slow_ns = now_ns + id->times.timeout_ns;
	if (is_slow || id->peer == VB_CM_PEER_OURS)
		send_again(id);
	else
		vb_cm_say_hello(id);
	look_again(id);
}
