/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/say.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/check.h"
#include "cm/repeat.h"
#include "wire/bytes.h"

enum {
	MRA_SERVICE_TIMEOUT = 24, /* 65 s, as Linux has it */
	ATTR_AT = 16,
	GUID_BYTES = 8,
};

/* Which transaction a message belongs to. New ones count on from that of the REQ (hear.c). */
enum tid { TID_NEW_CONNECT, TID_CONNECT, TID_NEW, TID_PEER };

/* clang-format off */
static const struct shape {
	enum tid tid;
	bool again; /* it is sent again until it is answered; else, when the peer asks again */
} shapes[] = {
	[VB_CM_REQ - VB_CM_ATTR_FIRST]      = {TID_NEW_CONNECT, true},
	[VB_CM_MRA - VB_CM_ATTR_FIRST]      = {TID_CONNECT,     false}, /* of a LAP: TID_PEER */
	[VB_CM_REJ - VB_CM_ATTR_FIRST]      = {TID_CONNECT,     false},
	[VB_CM_REP - VB_CM_ATTR_FIRST]      = {TID_CONNECT,     true},
	[VB_CM_RTU - VB_CM_ATTR_FIRST]      = {TID_CONNECT,     false},
	[VB_CM_DREQ - VB_CM_ATTR_FIRST]     = {TID_NEW,         true},
	[VB_CM_DREP - VB_CM_ATTR_FIRST]     = {TID_PEER,        false},
	[VB_CM_SIDR_REQ - VB_CM_ATTR_FIRST] = {TID_NEW_CONNECT, true},
	[VB_CM_SIDR_REP - VB_CM_ATTR_FIRST] = {TID_CONNECT,     false},
	[VB_CM_LAP - VB_CM_ATTR_FIRST]      = {TID_NEW,         true},
	[VB_CM_APR - VB_CM_ATTR_FIRST]      = {TID_PEER,        false},
};
/* clang-format on */

/* --- sending --- */

void vb_cm_say_send(struct vb_cm_id *id, uint8_t mad[VB_MAD_BYTES])
{
	struct vb_cm *cm = id->cm;

	cm->stats.sent++;
	cm->host.send(cm->host.arg, &id->path, mad);
}

void vb_cm_say_to(struct vb_cm *cm, const struct vb_path *path, const struct vb_cm_msg *msg)
{
	uint8_t mad[VB_MAD_BYTES];

	vb_cm_emit(msg, mad);
	vb_cm_mark(mad);
	cm->stats.sent++;
	cm->host.send(cm->host.arg, path, mad);
}

void vb_cm_say_hello(struct vb_cm_id *id)
{
	struct vb_cm_msg msg;

	vb_cm_hello(&msg, id->local.id, id->tid.connect);
	vb_cm_say_to(id->cm, &id->path, &msg);
}

/* --- filling in --- */

static uint64_t tid_of(struct vb_cm_id *id, enum tid kind)
{
	switch (kind) {
	case TID_NEW_CONNECT:
		id->tid.connect = vb_cm_draw(id->cm);
		id->tid.own = id->tid.peer = id->tid.connect;
		return id->tid.connect;
	case TID_CONNECT:
		return id->tid.connect;
	case TID_NEW:
		return ++id->tid.own;
	case TID_PEER:
		return id->tid.peer;
	}
	return 0;
}

static enum vb_cm_message message_of(enum vb_cm_state state)
{
	switch (state) {
	case VB_CM_STATE_REQ_RCVD:
	case VB_CM_STATE_REQ_MRA_SENT:
		return VB_CM_MESSAGE_REQ;
	case VB_CM_STATE_REP_RCVD:
	case VB_CM_STATE_REP_MRA_SENT:
		return VB_CM_MESSAGE_REP;
	default:
		return VB_CM_MESSAGE_OTHER;
	}
}

static void fill_body(struct vb_cm_id *id, struct vb_cm_msg *msg)
{
	switch (msg->attr) {
	case VB_CM_REQ:
		msg->req.local_ca_guid = id->local.guid;
		break;
	case VB_CM_REP:
		msg->rep.local_ca_guid = id->local.guid;
		break;
	case VB_CM_MRA:
		msg->mra.message_mraed = message_of(id->state);
		break;
	case VB_CM_REJ:
		msg->rej.message_rejected = message_of(id->state);
		/* Linux names none of its own yet. */
		if (id->state == VB_CM_STATE_REQ_RCVD)
			msg->local_comm_id = 0;
		break;
	case VB_CM_DREQ:
		msg->dreq.remote_qpn = id->remote.qpn;
		break;
	case VB_CM_LAP:
		msg->lap.remote_qpn = id->remote.qpn;
		break;
	case VB_CM_SIDR_REP:
		msg->sidr_rep.service_id = id->listening.service_id;
		msg->local_comm_id = 0;
		break;
	case VB_CM_RTU:
	case VB_CM_DREP:
	case VB_CM_SIDR_REQ:
	case VB_CM_APR:
		break;
	}
}

static void fill(struct vb_cm_id *id, struct vb_cm_msg *msg)
{
	enum tid tid = shapes[msg->attr - VB_CM_ATTR_FIRST].tid;

	if (msg->attr == VB_CM_MRA && id->state == VB_CM_STATE_ESTABLISHED)
		tid = TID_PEER;
	msg->transaction_id = tid_of(id, tid);
	msg->local_comm_id = id->local.id;
	msg->remote_comm_id = id->remote.id;
	fill_body(id, msg);
}

/* Fills in what is ours to know, and keeps it for another time: where it is kept. */
static uint8_t *keep(struct vb_cm_id *id, struct vb_cm_msg *msg)
{
	uint8_t *kept = shapes[msg->attr - VB_CM_ATTR_FIRST].again ? id->sent : id->answer;

	fill(id, msg);
	vb_cm_emit(msg, kept);
	vb_cm_mark(kept);
	return kept;
}

/* The record of the new state is there before the message leaves, lest we die in between. */
static void say(struct vb_cm_id *id, struct vb_cm_msg *msg, enum vb_cm_state next)
{
	uint8_t *kept = keep(id, msg);

	vb_cm_id_enter(id, next);
	vb_cm_say_send(id, kept);
}

/* The same, and what was kept before stays. */
static void say_once(struct vb_cm_id *id, struct vb_cm_msg *msg)
{
	fill(id, msg);
	vb_cm_say_to(id->cm, &id->path, msg);
}

/* --- by itself --- */

/* With the private data of the last one, if that is kept. */
static void say_anew(struct vb_cm_id *id, enum vb_cm_attr attr)
{
	struct vb_cm_msg msg = {0};

	if (vb_be16_get(id->answer + ATTR_AT) == attr)
		vb_check(vb_cm_parse(&msg, id->answer));
	msg.attr = attr;
	say_once(id, &msg);
}

/* guid: room for ours, by which who has no id of ours finds the connection (IBTA 12.6.7.2). */
static struct vb_cm_msg make_rej(struct vb_cm_id *id, enum vb_cm_rej_reason reason,
				 uint8_t guid[GUID_BYTES])
{
	struct vb_cm_msg msg = {.attr = VB_CM_REJ, .rej.reason = (uint16_t)reason};

	vb_be64_put(guid, id->local.guid);
	if (reason == VB_CM_REJ_TIMEOUT) {
		msg.info = guid;
		msg.info_bytes = GUID_BYTES;
	}
	return msg;
}

static void say_rej_once(struct vb_cm_id *id, enum vb_cm_rej_reason reason)
{
	uint8_t guid[GUID_BYTES];
	struct vb_cm_msg msg = make_rej(id, reason, guid);

	say_once(id, &msg);
}

static void say_mra(struct vb_cm_id *id)
{
	struct vb_cm_msg msg = {
		.attr = VB_CM_MRA,
		.mra.service_timeout = MRA_SERVICE_TIMEOUT,
	};

	vb_cm_say_send(id, keep(id, &msg));
}

void vb_cm_say_by_rule(struct vb_cm_id *id, const struct vb_cm_rule *rule,
		       const struct vb_cm_msg *msg)
{
	switch ((enum vb_cm_send)rule->send) {
	case VB_CM_SEND_NOTHING:
		break;
	case VB_CM_SEND_AGAIN:
		vb_cm_say_send(id, id->answer);
		break;
	case VB_CM_SEND_RTU:
		say_anew(id, VB_CM_RTU);
		break;
	case VB_CM_SEND_DREP:
		id->tid.peer = msg->transaction_id;
		say_anew(id, VB_CM_DREP);
		break;
	case VB_CM_SEND_MRA:
		say_mra(id);
		break;
	case VB_CM_SEND_STALE:
		say_rej_once(id, VB_CM_REJ_STALE_CONNECTION);
		break;
	case VB_CM_SEND_TIMEOUT:
		say_rej_once(id, VB_CM_REJ_TIMEOUT);
		break;
	}
}

void vb_cm_say_farewell(struct vb_cm_id *id, const struct vb_cm_farewell *farewell)
{
	struct vb_cm_msg msg = {.attr = farewell->attr};
	uint8_t guid[GUID_BYTES];

	if (farewell->attr == VB_CM_REJ)
		msg = make_rej(id, farewell->reason, guid);
	else if (farewell->attr == VB_CM_SIDR_REP)
		msg.sidr_rep.status = VB_CM_SIDR_REJECTED;
	say(id, &msg, farewell->next);
}

void vb_cm_say_part(struct vb_cm_id *id)
{
	struct vb_cm_msg msg = {.attr = VB_CM_DREQ};

	vb_cm_say(id, id->cm->now_ns, &msg, NULL);
}

/* --- by our user --- */

static bool has_room(const struct vb_cm_msg *msg)
{
	return msg->private_bytes <= vb_cm_private_bytes(msg->attr) &&
	       msg->info_bytes <= VB_CM_INFO_BYTES;
}

/* The peer learns these; we, what to compare with and how long to wait. */
static void learn_from_req(struct vb_cm_id *id, const struct vb_cm_req *req)
{
	id->xrc = req->transport_service_type == VB_CM_TRANSPORT_EXTENDED &&
		  req->extended_transport_type == VB_CM_EXTENDED_XRC;
	id->local.qpn = req->local_qpn;
	id->times.timewait_ns = vb_cm_time_ns(req->primary.local_ack_timeout);
}

int vb_cm_say_ask(struct vb_cm_id *id, uint64_t now_ns, const struct vb_cm_msg *msg,
		  const struct vb_cm_ask *ask)
{
	const struct vb_cm_rule *rule = vb_cm_rule_said(id->state, msg->attr);
	struct vb_cm *cm = id->cm;
	struct vb_cm_msg filled = *msg;

	if (!rule || id->state != VB_CM_STATE_IDLE || !ask->timeout_ns || !has_room(msg))
		return EINVAL;
	cm->now_ns = now_ns;
	id->path = ask->path;
	id->alternate = ask->alternate;
	id->times = (struct vb_cm_times){.timeout_ns = ask->timeout_ns, .retries = ask->retries};
	id->times.linger_ns = 2 * ask->timeout_ns;
	id->is_target = false;
	if (msg->attr == VB_CM_REQ)
		learn_from_req(id, &msg->req);
	if (ask->ours || vb_cm_known_has(&cm->known, cm->settings.secret, ask->path.dst))
		id->peer = VB_CM_PEER_OURS;
	say(id, &filled, rule->next);
	return 0;
}

static int say_lap(struct vb_cm_id *id, const struct vb_cm_rule *rule, const struct vb_cm_msg *msg,
		   const struct vb_path *alternate)
{
	struct vb_cm_msg filled = *msg;
	uint8_t *kept;

	if (msg->attr == VB_CM_LAP) {
		if (!alternate)
			return EINVAL;
		id->alternate = *alternate;
	}
	if (msg->attr == VB_CM_APR)
		vb_cm_id_alternate_settle(id, msg);
	kept = keep(id, &filled);
	vb_cm_id_enter_lap(id, rule->next);
	vb_cm_say_send(id, kept);
	return 0;
}

int vb_cm_say(struct vb_cm_id *id, uint64_t now_ns, const struct vb_cm_msg *msg,
	      const struct vb_path *alternate)
{
	const struct vb_cm_rule *rule = vb_cm_rule_said(id->state, msg->attr);
	struct vb_cm_msg filled = *msg;

	if (id->state == VB_CM_STATE_IDLE || !has_room(msg))
		return EINVAL;
	id->cm->now_ns = now_ns;
	if (id->state == VB_CM_STATE_ESTABLISHED && !rule) {
		rule = vb_cm_rule_lap_said(id->lap, msg->attr);
		return rule ? say_lap(id, rule, msg, alternate) : EINVAL;
	}
	if (!rule)
		return EINVAL;
	if (msg->attr == VB_CM_REP)
		id->local.qpn = id->xrc ? msg->rep.local_eecn : msg->rep.local_qpn;
	say(id, &filled, rule->next);
	return 0;
}

int vb_cm_say_established(struct vb_cm_id *id, uint64_t now_ns)
{
	const struct vb_cm_event event = {.type = VB_CM_EVENT_ESTABLISHED, .path = &id->path};

	if (id->state == VB_CM_STATE_ESTABLISHED)
		return EISCONN;
	if (id->state != VB_CM_STATE_REP_SENT && id->state != VB_CM_STATE_REP_MRA_RCVD)
		return EINVAL;
	id->cm->now_ns = now_ns;
	vb_cm_id_enter(id, VB_CM_STATE_ESTABLISHED);
	vb_cm_id_settle(id, &event);
	return 0;
}

int vb_cm_say_migrated(struct vb_cm_id *id)
{
	static const uint8_t none[VB_GID_BYTES];
	struct vb_path path = id->path;

	if (id->state != VB_CM_STATE_ESTABLISHED || id->lap != VB_CM_LAP_STATE_NONE ||
	    memcmp(id->alternate.dst, none, sizeof(none)) == 0)
		return EINVAL;
	id->path = id->alternate;
	id->alternate = path;
	vb_cm_id_enter_lap(id, VB_CM_LAP_STATE_NONE);
	return 0;
}
