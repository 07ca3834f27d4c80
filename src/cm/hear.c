/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/hear.h"

#include <string.h>

#include "cm/id.h"
#include "cm/known.h"
#include "cm/nobody.h"
#include "cm/repeat.h"
#include "cm/say.h"
#include "wire/bytes.h"

enum { SIDR_LINGER = 21 }; /* twice as long as Linux waits before it asks again */

/* A message, with what is known of it beside what it says. */
struct heard {
	const struct vb_path *path;
	struct vb_cm_msg msg;
	bool marked;
};

static bool is_gid(const uint8_t a[VB_GID_BYTES], const uint8_t b[VB_GID_BYTES])
{
	return memcmp(a, b, VB_GID_BYTES) == 0;
}

static void answer_for_nobody(struct vb_cm *cm, const struct heard *heard)
{
	struct vb_cm_msg answer;
	struct vb_path back;

	if (!vb_cm_nobody_answers(&answer, &heard->msg, heard->marked))
		return;
	vb_cm_nobody_path_back(&back, heard->path);
	vb_cm_say_to(cm, &back, &answer);
}

static void reject_stale(struct vb_cm *cm, const struct heard *heard)
{
	const struct vb_cm_msg rej = {
		.attr = VB_CM_REJ,
		.transaction_id = heard->msg.transaction_id,
		.local_comm_id = heard->msg.remote_comm_id,
		.remote_comm_id = heard->msg.local_comm_id,
		.rej =
			{
				.reason = VB_CM_REJ_STALE_CONNECTION,
				.message_rejected = VB_CM_MESSAGE_REQ,
			},
	};
	struct vb_path back;

	vb_cm_nobody_path_back(&back, heard->path);
	vb_cm_say_to(cm, &back, &rej);
}

/* The peer is who it is: so much is known of its address now, too. */
static void note_peer(struct vb_cm_id *id, const struct heard *heard)
{
	struct vb_cm *cm = id->cm;

	id->peer = heard->marked ? VB_CM_PEER_OURS : VB_CM_PEER_OTHER;
	vb_cm_known_note(&cm->known, cm->settings.secret, heard->path->src, heard->marked);
}

/* As a rule has it; and its user hears of it. */
static void follow(struct vb_cm_id *id, const struct vb_cm_rule *rule, const struct heard *heard)
{
	const struct vb_cm_event event = {
		.type = rule->event,
		.msg = &heard->msg,
		.path = heard->path,
	};
	enum vb_cm_state next = rule->next;

	if (heard->msg.attr == VB_CM_REJ && heard->msg.rej.reason == VB_CM_REJ_STALE_CONNECTION)
		next = VB_CM_STATE_TIMEWAIT;
	vb_cm_say_by_rule(id, rule, &heard->msg);
	if (next != id->state)
		vb_cm_id_enter(id, next);
	vb_cm_id_settle(id, &event);
}

static void follow_lap(struct vb_cm_id *id, const struct vb_cm_rule *rule,
		       const struct heard *heard)
{
	const struct vb_cm_event event = {
		.type = rule->event,
		.msg = &heard->msg,
		.path = heard->path,
	};

	vb_cm_say_by_rule(id, rule, &heard->msg);
	if (rule->next != id->lap)
		vb_cm_id_enter_lap(id, rule->next);
	vb_cm_id_settle(id, &event);
}

/* --- REQ, SIDR_REQ --- */

/* Of somebody who has connected with this end before, and has begun anew. */
static void is_stale(struct vb_cm_id *old, const struct heard *heard)
{
	struct vb_cm *cm = old->cm;

	cm->stats.stale++;
	reject_stale(cm, heard);
	vb_cm_say_part(old);
}

static bool is_over(const struct vb_cm_id *id)
{
	return vb_cm_state_clock(id->state) == VB_CM_CLOCK_LINGER;
}

static bool is_same_req(const struct vb_cm_id *id, const struct vb_cm_msg *msg)
{
	return id->tid.connect == msg->transaction_id && id->remote.qpn == msg->req.local_qpn &&
	       id->first_psn == msg->req.starting_psn;
}

/* Linux leaves a REQ without an answer, so that it comes again, but refuses a SIDR_REQ. */
static void refuse_for_room(struct vb_cm *cm, const struct heard *heard)
{
	const struct vb_cm_msg rep = {
		.attr = VB_CM_SIDR_REP,
		.transaction_id = heard->msg.transaction_id,
		.remote_comm_id = heard->msg.local_comm_id,
		.sidr_rep = {.service_id = heard->msg.sidr_req.service_id,
			     .status = VB_CM_SIDR_REJECTED},
	};
	struct vb_path back;

	if (heard->msg.attr != VB_CM_SIDR_REQ)
		return;
	vb_cm_nobody_path_back(&back, heard->path);
	vb_cm_say_to(cm, &back, &rep);
}

/* A listener for it that has room, and a new id of his; NULL: there is none, and all is said. */
static struct vb_cm_id *make_child(struct vb_cm *cm, uint64_t service_id, const struct heard *heard)
{
	struct vb_cm_id *listener = vb_cm_id_of_service(cm, service_id, heard->path, &heard->msg);
	struct vb_cm_id *child = NULL;

	if (!listener) {
		cm->stats.no_listener++;
		answer_for_nobody(cm, heard);
		return NULL;
	}
	if (listener->listening.waiting < listener->listening.backlog)
		child = vb_cm_id_make_child(listener, service_id);
	if (!child) {
		cm->stats.full++;
		refuse_for_room(cm, heard);
		return NULL;
	}
	vb_cm_nobody_path_back(&child->path, heard->path);
	child->tid.connect = child->tid.own = child->tid.peer = heard->msg.transaction_id;
	note_peer(child, heard);
	return child;
}

static void begin(struct vb_cm_id *child, const struct heard *heard, enum vb_cm_state state,
		  enum vb_cm_event_type type)
{
	const struct vb_cm_event event = {
		.type = type,
		.msg = &heard->msg,
		.path = heard->path,
		.listener = child->listening.listener,
	};

	vb_cm_id_meet(child);
	vb_cm_id_enter(child, state);
	vb_cm_id_settle(child, &event);
}

/* The way to a path's other end, as the sender of a message has it. */
static void path_from(struct vb_path *path, const struct vb_cm_path *said)
{
	*path = (struct vb_path){
		.flow_label = said->flow_label,
		.tclass = said->traffic_class,
		.hop_limit = said->hop_limit,
	};
	memcpy(path->src, said->remote_gid, VB_GID_BYTES);
	memcpy(path->dst, said->local_gid, VB_GID_BYTES);
}

static void learn_from_req(struct vb_cm_id *id, const struct vb_cm_msg *msg)
{
	const struct vb_cm_req *req = &msg->req;
	uint64_t timewait_ns = vb_cm_time_ns(req->primary.local_ack_timeout);
	uint64_t response_ns = vb_cm_time_ns(req->remote_cm_response_timeout);

	id->remote = (struct vb_cm_end){
		.guid = req->local_ca_guid,
		.id = msg->local_comm_id,
		.qpn = req->local_qpn,
	};
	id->first_psn = req->starting_psn;
	id->xrc = req->transport_service_type == VB_CM_TRANSPORT_EXTENDED &&
		  req->extended_transport_type == VB_CM_EXTENDED_XRC;
	id->is_target = id->xrc;
	id->times = (struct vb_cm_times){
		.timeout_ns = vb_cm_time_ns(req->local_cm_response_timeout),
		.retries = req->max_cm_retries,
		.timewait_ns = timewait_ns,
		.linger_ns = 2 * (timewait_ns + response_ns), /* twice until it asks again */
	};
	path_from(&id->alternate, &req->alternate);
}

static void hear_req(struct vb_cm *cm, const struct heard *heard)
{
	const struct vb_cm_msg *msg = &heard->msg;
	const struct vb_cm_end remote = {
		.guid = msg->req.local_ca_guid,
		.id = msg->local_comm_id,
		.qpn = msg->req.local_qpn,
	};
	struct vb_cm_id *id = vb_cm_id_of_remote(cm, &remote, heard->path->src);
	const struct vb_cm_rule *rule;

	if (id && is_same_req(id, msg)) {
		cm->stats.duplicate++;
		note_peer(id, heard);
		rule = vb_cm_rule_heard(id->state, VB_CM_REQ);
		if (rule)
			follow(id, rule, heard);
		return;
	}
	if (id && is_over(id)) {
		vb_cm_table_remove(&cm->by_remote, &id->by_remote);
		id = NULL;
	}
	if (!id)
		id = vb_cm_id_of_qpn(cm, &remote, heard->path->src);
	if (id) {
		is_stale(id, heard);
		return;
	}
	id = make_child(cm, msg->req.service_id, heard);
	if (!id)
		return;
	learn_from_req(id, msg);
	begin(id, heard, VB_CM_STATE_REQ_RCVD, VB_CM_EVENT_REQ);
}

static void hear_sidr_req(struct vb_cm *cm, const struct heard *heard)
{
	const struct vb_cm_msg *msg = &heard->msg;
	const struct vb_cm_end remote = {.id = msg->local_comm_id};
	struct vb_cm_id *id = vb_cm_id_of_remote(cm, &remote, heard->path->src);
	const struct vb_cm_rule *rule;

	if (id && id->tid.connect != msg->transaction_id && is_over(id)) {
		vb_cm_table_remove(&cm->by_remote, &id->by_remote);
		id = NULL;
	}
	if (id) {
		cm->stats.duplicate++;
		rule = vb_cm_rule_heard(id->state, VB_CM_SIDR_REQ);
		if (rule)
			follow(id, rule, heard);
		return;
	}
	id = make_child(cm, msg->sidr_req.service_id, heard);
	if (!id)
		return;
	id->remote = remote;
	id->times.linger_ns = vb_cm_time_ns(SIDR_LINGER);
	begin(id, heard, VB_CM_STATE_SIDR_REQ_RCVD, VB_CM_EVENT_SIDR_REQ);
}

/* --- what follows a REQ or SIDR_REQ --- */

/* Whom a message is for, by the ids in it; NULL: nobody. */
static struct vb_cm_id *addressee(const struct vb_cm *cm, const struct heard *heard)
{
	const struct vb_cm_msg *msg = &heard->msg;
	struct vb_cm_end remote = {.id = msg->local_comm_id};
	struct vb_cm_id *id;

	if (msg->remote_comm_id)
		id = vb_cm_id_of_local(cm, msg->remote_comm_id);
	else if (msg->attr != VB_CM_REJ || msg->info_bytes < sizeof(remote.guid))
		return NULL;
	else {
		/* Whoever has not heard from us knows no id of ours (IBTA 12.6.7.2). */
		remote.guid = vb_be64_get(msg->info);
		id = vb_cm_id_of_remote(cm, &remote, heard->path->src);
	}
	return id && id->state > VB_CM_STATE_LISTEN ? id : NULL;
}

static uint64_t tid_expected(const struct vb_cm_id *id, const struct vb_cm_msg *msg)
{
	switch (msg->attr) {
	case VB_CM_DREQ:
	case VB_CM_LAP:
		return msg->transaction_id; /* the peer's own */
	case VB_CM_DREP:		    /* if two DREQs cross, Linux may name the REQ's */
		return msg->transaction_id == id->tid.connect ? id->tid.connect : id->tid.own;
	case VB_CM_APR:
		return id->tid.own;
	case VB_CM_MRA:
		if (msg->mra.message_mraed == VB_CM_MESSAGE_OTHER)
			return id->tid.own;
		return id->tid.connect;
	default:
		return id->tid.connect;
	}
}

/* Does it come from the peer's address, in this transaction, about this QP? */
static bool is_ours(const struct vb_cm_id *id, const struct heard *heard)
{
	const struct vb_cm_msg *msg = &heard->msg;

	if (!is_gid(heard->path->src, id->path.dst) && !is_gid(heard->path->src, id->alternate.dst))
		return false;
	if (msg->transaction_id != tid_expected(id, msg))
		return false;
	if (msg->attr == VB_CM_DREQ)
		return msg->dreq.remote_qpn == id->local.qpn;
	return msg->attr != VB_CM_LAP || msg->lap.remote_qpn == id->local.qpn;
}

/* Does it come from the peer's id? Before the REP we know none. */
static bool is_peers(const struct vb_cm_id *id, const struct vb_cm_msg *msg)
{
	if (id->remote.id)
		return msg->local_comm_id == id->remote.id;
	return msg->attr == VB_CM_REP || msg->attr == VB_CM_REJ || msg->attr == VB_CM_MRA ||
	       msg->attr == VB_CM_SIDR_REP;
}

static bool is_mra_for(const struct vb_cm_id *id, const struct vb_cm_msg *msg)
{
	if (id->state == VB_CM_STATE_ESTABLISHED)
		return msg->mra.message_mraed == VB_CM_MESSAGE_OTHER;
	return msg->mra.message_mraed ==
	       (id->state == VB_CM_STATE_REQ_SENT ? VB_CM_MESSAGE_REQ : VB_CM_MESSAGE_REP);
}

static void hear_first_rep(struct vb_cm_id *id, const struct vb_cm_rule *rule,
			   const struct heard *heard)
{
	const struct vb_cm_msg *msg = &heard->msg;
	const struct vb_cm_rep *rep = &msg->rep;
	const struct vb_cm_end remote = {
		.guid = rep->local_ca_guid,
		.id = msg->local_comm_id,
		.qpn = id->xrc ? rep->local_eecn : rep->local_qpn,
	};
	struct vb_cm_id *old = vb_cm_id_of_qpn(id->cm, &remote, heard->path->src);

	/* By the time that it comes again, the old connection has ended: a REJ, as Linux sends it,
	 * might overtake that. */
	if (old) {
		id->cm->stats.stale++;
		vb_cm_say_part(old);
		return;
	}
	id->remote = remote;
	vb_cm_id_meet(id);
	follow(id, rule, heard);
}

/* Ours counts its transactions on from that of the REQ, so that a late one is known as such. */
static bool is_late(const struct vb_cm_id *id, const struct heard *heard)
{
	uint64_t first = id->tid.connect;

	return heard->marked && heard->msg.transaction_id - first <= id->tid.peer - first;
}

static void hear_about_lap(struct vb_cm_id *id, const struct heard *heard)
{
	const struct vb_cm_msg *msg = &heard->msg;
	const struct vb_cm_rule *rule = vb_cm_rule_lap_heard(id->lap, msg->attr);
	bool is_lap = msg->attr == VB_CM_LAP, is_last = msg->transaction_id == id->tid.peer;

	if (is_lap && is_last && id->tid.peer != id->tid.connect &&
	    id->lap == VB_CM_LAP_STATE_NONE) {
		vb_cm_say_send(id, id->answer); /* it was answered; the answer was lost */
		return;
	}
	if (!rule || (is_lap && !is_last && is_late(id, heard))) {
		id->cm->stats.unexpected++;
		return;
	}
	if (is_lap && id->lap == VB_CM_LAP_STATE_NONE) {
		id->tid.peer = msg->transaction_id;
		path_from(&id->alternate, &msg->lap.alternate);
	}
	if (msg->attr == VB_CM_APR)
		vb_cm_id_alternate_settle(id, msg);
	follow_lap(id, rule, heard);
}

static void hear_rest(struct vb_cm_id *id, const struct heard *heard)
{
	const struct vb_cm_msg *msg = &heard->msg;
	const struct vb_cm_rule *rule = vb_cm_rule_heard(id->state, msg->attr);
	bool is_established = id->state == VB_CM_STATE_ESTABLISHED;

	note_peer(id, heard);
	if (msg->attr == VB_CM_MRA) {
		if (!is_mra_for(id, msg))
			return;
		if (rule || id->lap == VB_CM_LAP_STATE_SENT)
			vb_cm_repeat_later(id, vb_cm_time_ns(msg->mra.service_timeout) +
						       id->times.timewait_ns);
	}
	if (is_established && !rule) {
		hear_about_lap(id, heard);
	} else if (!rule) {
		id->cm->stats.unexpected++;
	} else if (msg->attr == VB_CM_REP && !id->remote.id) {
		hear_first_rep(id, rule, heard);
	} else {
		if (msg->attr == VB_CM_DREQ)
			id->tid.peer = msg->transaction_id;
		follow(id, rule, heard);
	}
}

/* --- one of ours? --- */

static void hear_hello(struct vb_cm *cm, const struct heard *heard)
{
	const struct vb_cm_msg *msg = &heard->msg;
	struct vb_cm_id *id;

	if (!msg->remote_comm_id) {
		answer_for_nobody(cm, heard);
		return;
	}
	id = addressee(cm, heard);
	if (!id || id->peer != VB_CM_PEER_UNKNOWN || msg->transaction_id != id->tid.connect ||
	    !is_gid(heard->path->src, id->path.dst))
		return;
	vb_cm_known_note(&cm->known, cm->settings.secret, heard->path->src, true);
	if (id->state == VB_CM_STATE_REQ_SENT || id->state == VB_CM_STATE_SIDR_REQ_SENT)
		vb_cm_repeat_faster(id);
}

void vb_cm_hear(struct vb_cm *cm, uint64_t now_ns, const struct vb_path *path,
		const uint8_t mad[VB_MAD_BYTES])
{
	struct heard heard = {.path = path, .marked = vb_cm_is_marked(mad)};
	struct vb_cm_id *id;

	cm->now_ns = now_ns;
	cm->stats.heard++;
	if (!vb_cm_parse(&heard.msg, mad)) {
		cm->stats.malformed++;
	} else if (heard.marked && vb_cm_is_hello(&heard.msg)) {
		hear_hello(cm, &heard);
	} else if (heard.msg.attr == VB_CM_REQ) {
		hear_req(cm, &heard);
	} else if (heard.msg.attr == VB_CM_SIDR_REQ) {
		hear_sidr_req(cm, &heard);
	} else {
		id = addressee(cm, &heard);
		if (id && is_ours(id, &heard) && is_peers(id, &heard.msg)) {
			hear_rest(id, &heard);
			return;
		}
		cm->stats.unmatched++;
		/* A stranger's REP for an id of ours is no reason to reject the peer's; and a DREQ
		 * about another QP gets no answer. */
		if (!id || (heard.msg.attr == VB_CM_DREQ ? !is_peers(id, &heard.msg)
							 : is_ours(id, &heard)))
			answer_for_nobody(cm, &heard);
	}
}
