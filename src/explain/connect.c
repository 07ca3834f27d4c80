/* SPDX-License-Identifier: BSD-2-Clause */
#include "explain/connect.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "explain/join.h"
#include "explain/say.h"
#include "wire/cm_ip.h"
#include "wire/cm_msg.h"
#include "wire/mad_frame.h"

/*
 * One attempt to connect, or to resolve a service: both ends' ids name it. Messages are repeated,
 * and a capture of each end has every one, so they are counted by the end that saw most of them.
 */
struct attempt {
	uint32_t ids[2]; /* of who asked; of who answered, 0: not yet known */
	uint8_t src[VB_GID_BYTES], dst[VB_GID_BYTES];
	uint64_t service_id;
	uint32_t qpn[2];
	uint32_t first[VB_CM_ATTR_LAST + 1]; /* events, VB_NONE: none */
	uint32_t count[VB_CM_ATTR_LAST + 1][2]; /* as they left, and as they came */
	uint16_t reason;
	bool has_reason;
	uint32_t rejected; /* the event */
};

struct attempts {
	struct attempt *attempt;
	struct vb_array state;
};

static bool message_read(const struct vb_event *event, struct vb_cm_msg *msg)
{
	const uint8_t *mad;

	if (event->flags & (VB_EVENT_CUT | VB_EVENT_ICRC))
		return false;
	mad = vb_mad_frame_parse(event->frame, event->bytes);
	return mad && vb_cm_parse(msg, mad);
}

static bool same(const uint8_t a[VB_GID_BYTES], const uint8_t b[VB_GID_BYTES])
{
	return !memcmp(a, b, VB_GID_BYTES);
}

/* Does the message belong to it? Ids are those of the sender, so it matters who that is. */
static bool fits(const struct attempt *a, const struct vb_half *half, const struct vb_cm_msg *msg)
{
	bool forth = same(a->src, half->path.src) && same(a->dst, half->path.dst);
	bool back = same(a->src, half->path.dst) && same(a->dst, half->path.src);

	if (msg->attr == VB_CM_REQ || msg->attr == VB_CM_SIDR_REQ)
		return forth && a->ids[0] == msg->local_comm_id;
	if (back && a->ids[0] == msg->remote_comm_id)
		return true;
	return forth && a->ids[0] == msg->local_comm_id &&
	       (!a->ids[1] || !msg->remote_comm_id || a->ids[1] == msg->remote_comm_id);
}

static struct attempt *attempt_find(struct vb_story *story, struct attempts *all,
				    const struct vb_half *half, const struct vb_cm_msg *msg)
{
	struct attempt *a;

	for (uint32_t i = all->state.count; i-- > 0;)
		if (fits(&all->attempt[i], half, msg))
			return &all->attempt[i];
	if (msg->attr != VB_CM_REQ && msg->attr != VB_CM_SIDR_REQ)
		return NULL;
	a = vb_story_grow(story, &all->attempt, &all->state, sizeof(*a));
	if (!a)
		return NULL;
	a->ids[0] = msg->local_comm_id;
	memcpy(a->src, half->path.src, VB_GID_BYTES);
	memcpy(a->dst, half->path.dst, VB_GID_BYTES);
	for (unsigned i = 0; i <= VB_CM_ATTR_LAST; i++)
		a->first[i] = VB_NONE;
	return a;
}

static void message_note(struct attempt *a, const struct vb_cm_msg *msg, uint32_t index,
			 const struct vb_event *event)
{
	a->count[msg->attr][event->direction == VB_DIRECTION_IN]++;
	if (a->first[msg->attr] == VB_NONE)
		a->first[msg->attr] = index;
	switch (msg->attr) {
	case VB_CM_REQ:
		a->qpn[0] = msg->req.local_qpn;
		a->service_id = msg->req.service_id;
		break;
	case VB_CM_SIDR_REQ:
		a->service_id = msg->sidr_req.service_id;
		break;
	case VB_CM_REP:
		a->ids[1] = msg->local_comm_id;
		a->qpn[1] = msg->rep.local_qpn;
		break;
	case VB_CM_REJ:
		a->reason = msg->rej.reason;
		a->has_reason = true;
		a->rejected = index;
		break;
	case VB_CM_SIDR_REP:
		a->reason = msg->sidr_rep.status;
		a->has_reason = msg->sidr_rep.status != VB_CM_SIDR_VALID;
		a->rejected = index;
		break;
	default:
		break;
	}
}

/* All messages, in the order of their times. */
static void attempts_read(struct vb_story *story, struct attempts *all)
{
	struct vb_moment *moments = calloc(story->events.count + 1, sizeof(*moments));
	struct vb_cm_msg msg;
	uint32_t count = 0;

	*all = (struct attempts){0};
	story->no_memory |= !moments;
	for (uint32_t i = 0; moments && i < story->events.count; i++)
		if (story->event[i].half != VB_NONE && message_read(&story->event[i], &msg))
			moments[count++] = (struct vb_moment){story->event[i].ns, i};
	vb_moments_sort(moments, count);
	for (uint32_t i = 0; i < count; i++) {
		const struct vb_event *event = &story->event[moments[i].event];
		struct attempt *a;

		message_read(event, &msg);
		a = attempt_find(story, all, &story->half[event->half], &msg);
		if (a)
			message_note(a, &msg, moments[i].event, event);
	}
	free(moments);
}

void vb_connect_pairs(struct vb_story *story)
{
	struct attempts all;

	attempts_read(story, &all);
	for (uint32_t i = 0; i < all.state.count; i++) {
		const struct attempt *a = &all.attempt[i];
		uint32_t forth = vb_join_find(story, a->src, a->dst, a->qpn[1], 0);
		uint32_t back = vb_join_find(story, a->dst, a->src, a->qpn[0], 0);

		if (!a->qpn[0] || !a->qpn[1])
			continue;
		if (forth != VB_NONE && !story->half[forth].has_sqpn)
			story->half[forth].sqpn = a->qpn[0];
		if (back != VB_NONE && !story->half[back].has_sqpn)
			story->half[back].sqpn = a->qpn[1];
	}
	free(all.attempt);
}

/* --- what went wrong --- */

static uint32_t sent(const struct attempt *a, enum vb_cm_attr attr)
{
	return (uint32_t)vb_max_u64(a->count[attr][0], a->count[attr][1]);
}

static void say_service(struct vb_trouble *trouble, const struct attempt *a)
{
	char from[VB_ADDRESS_BYTES], to[VB_ADDRESS_BYTES];
	enum vb_cm_port_space space;

	vb_trouble_say(trouble, "%s to %s, ", vb_gid_text(from, a->src), vb_gid_text(to, a->dst));
	if (vb_cm_service_port_space(a->service_id, &space))
		vb_trouble_say(trouble, "port %u (%s)", vb_cm_service_port(a->service_id),
			       vb_cm_port_space_name(space));
	else
		vb_trouble_say(trouble, "service id 0x%" PRIx64, a->service_id);
}

/* What an application has put into its rejection, if it is text. */
static void say_private(struct vb_trouble *trouble, const struct vb_story *story, uint32_t event)
{
	struct vb_cm_msg msg;
	unsigned chars = 0;

	if (!message_read(&story->event[event], &msg))
		return;
	while (chars < msg.private_bytes && msg.private_data[chars] >= ' ' &&
	       msg.private_data[chars] < 0x7f)
		chars++;
	if (chars > 3)
		vb_trouble_say(trouble, ". It says: \"%.*s\"", (int)chars,
			       (const char *)msg.private_data);
}

static const struct {
	uint16_t reason;
	const char *words;
} rejections[] = {
	{VB_CM_REJ_INVALID_SERVICE_ID,
	 "the server program does not run, has not called rdma_listen yet, or listens on another "
	 "port or address"},
	{VB_CM_REJ_CONSUMER_DEFINED,
	 "the other program called rdma_reject, or ended before it accepted"},
	{VB_CM_REJ_TIMEOUT, "one end did not answer in time, and gave the attempt up"},
	{VB_CM_REJ_STALE_CONNECTION,
	 "this QPN is in a connection that the other end believes to exist: it was not closed"},
	{VB_CM_REJ_NO_RESOURCES,
	 "the backlog of rdma_listen is full, or the other end has no room"},
	{VB_CM_REJ_INVALID_RNR_RETRY, "compare rnr_retry_count of both ends"},
	{VB_CM_REJ_INVALID_MTU, "the other end cannot do this path MTU"},
};

static void rejection_say(struct vb_story *story, const struct attempt *a)
{
	struct vb_trouble *trouble = vb_story_trouble(
		story, VB_TROUBLE_REJECTED, story->event[a->rejected].half, a->rejected);

	say_service(trouble, a);
	vb_trouble_say(trouble, ": %s (reason %u)", vb_cm_rej_text(a->reason), a->reason);
	for (unsigned i = 0; i < VB_ARRAY_LEN(rejections); i++)
		if (rejections[i].reason == a->reason)
			vb_trouble_say(trouble, ": %s", rejections[i].words);
	say_private(trouble, story, a->rejected);
}

static void unanswered_say(struct vb_story *story, const struct attempt *a, enum vb_cm_attr attr)
{
	struct vb_trouble *trouble = vb_story_trouble(
		story, VB_TROUBLE_UNHEARD, story->event[a->first[attr]].half, a->first[attr]);

	trouble->count = sent(a, attr);
	say_service(trouble, a);
	vb_trouble_say(trouble, ": %s was sent %u times", vb_cm_attr_name(attr), sent(a, attr));
	if (a->count[attr][1])
		vb_trouble_say(trouble, ", and came");
}

/* Has anything gone to the QP that accepted? Then the connection works, whatever was lost. */
static bool is_used(const struct vb_story *story, const struct attempt *a)
{
	uint32_t half = vb_join_find(story, a->src, a->dst, a->qpn[1], 0);

	return half != VB_NONE;
}

static bool is_there(const struct attempt *a, enum vb_cm_attr attr)
{
	return a->first[attr] != VB_NONE;
}

/* Each message that asks for an answer, and what may answer it. */
static const struct {
	enum vb_cm_attr asks, answers[4];
} dialogue[] = {
	{VB_CM_REQ, {VB_CM_REP, VB_CM_REJ, VB_CM_MRA}},
	{VB_CM_SIDR_REQ, {VB_CM_SIDR_REP}},
	{VB_CM_DREQ, {VB_CM_DREP}},
};

static void attempt_judge(struct vb_story *story, const struct attempt *a)
{
	struct vb_trouble *trouble;

	if (a->has_reason && is_there(a, VB_CM_SIDR_REP)) {
		trouble = vb_story_trouble(story, VB_TROUBLE_SIDR,
					   story->event[a->rejected].half, a->rejected);
		say_service(trouble, a);
		vb_trouble_say(trouble, ": %s (status %u)", vb_cm_sidr_text(a->reason), a->reason);
	} else if (a->has_reason) {
		rejection_say(story, a);
	}
	for (unsigned i = 0; i < VB_ARRAY_LEN(dialogue); i++) {
		bool answered = false;

		for (unsigned j = 0; j < VB_ARRAY_LEN(dialogue[i].answers); j++)
			answered |= dialogue[i].answers[j] && is_there(a, dialogue[i].answers[j]);
		if (is_there(a, dialogue[i].asks) && !answered && sent(a, dialogue[i].asks) > 1)
			unanswered_say(story, a, dialogue[i].asks);
	}
	if (is_there(a, VB_CM_REP) && !is_there(a, VB_CM_RTU) && !a->has_reason &&
	    !is_there(a, VB_CM_DREQ) && !is_used(story, a)) {
		trouble = vb_story_trouble(story, VB_TROUBLE_NO_RTU,
					   story->event[a->first[VB_CM_REP]].half,
					   a->first[VB_CM_REP]);
		trouble->count = sent(a, VB_CM_REP);
		say_service(trouble, a);
		vb_trouble_say(trouble, ": REP was sent %u times", sent(a, VB_CM_REP));
	}
}

void vb_connect_judge(struct vb_story *story)
{
	struct attempts all;

	attempts_read(story, &all);
	for (uint32_t i = 0; i < all.state.count; i++)
		attempt_judge(story, &all.attempt[i]);
	free(all.attempt);
}
