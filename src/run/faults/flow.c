/* SPDX-License-Identifier: BSD-2-Clause */

/* Packets on their way through a script: which rule they meet, and what it does to them. */

#include "run/faults/flow.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "cm/nobody.h"
#include "nic/control/inject.h"
#include "nic/control/nic.h"
#include "run/faults/spells.h"
#include "run/faults/strike.h"
#include "wire/aeth.h"
#include "wire/cm_msg.h"
#include "wire/icrc.h"
#include "wire/mad_frame.h"
#include "wire/packet.h"

enum { QPN_GSI = 1, NAK_BYTES = VB_BTH_BYTES + 4, RNR_TIMER = 12 /* 640 us */ };

/* --- queues --- */

void vb_fault_queue_init(struct vb_fault_queue *queue)
{
	*queue = (struct vb_fault_queue){ .end = &queue->first };
}

void vb_fault_queue_put(struct vb_fault_queue *queue, struct vb_fault_item *item)
{
	item->next = NULL;
	*queue->end = item;
	queue->end = &item->next;
	queue->count++;
}

struct vb_fault_item *vb_fault_queue_take(struct vb_fault_queue *queue)
{
	struct vb_fault_item *item = queue->first;

	if (!item)
		return NULL;
	queue->first = item->next;
	if (!queue->first)
		queue->end = &queue->first;
	queue->count--;
	return item;
}

void vb_fault_queue_free(struct vb_fault_queue *queue)
{
	struct vb_fault_item *item;

	while ((item = vb_fault_queue_take(queue)))
		free(item);
}

struct vb_fault_item *vb_fault_item_make(struct vb_fault_flow *flow, uint32_t bytes)
{
	struct vb_fault_item *item = malloc(sizeof(*item) + bytes);

	if (item) {
		memset(item, 0, sizeof(*item));
		item->flow = flow;
		item->bytes = bytes;
	}
	return item;
}

static struct vb_fault_item *item_copy(const struct vb_fault_item *item)
{
	struct vb_fault_item *copy = vb_fault_item_make(item->flow, item->bytes);

	if (copy)
		memcpy(copy, item, sizeof(*item) + item->bytes);
	return copy;
}

void vb_fault_flow_flush(struct vb_fault_flow *flow)
{
	struct vb_fault_item *item;

	while ((item = flow->ready.first)) {
		struct vb_fault_item *next = item->next;

		if (!flow->put(flow, item))
			return;
		flow->ready.first = next;
		if (!next)
			flow->ready.end = &flow->ready.first;
		flow->ready.count--;
	}
}

uint64_t vb_fault_late(struct vb_faults *faults, uint64_t now_ns)
{
	struct vb_fault_item *item;

	while ((item = faults->late.first) && item->due_ns <= now_ns) {
		vb_fault_queue_take(&faults->late);
		vb_fault_queue_put(&item->flow->ready, item);
		vb_fault_flow_flush(item->flow);
	}
	return item ? item->due_ns : UINT64_MAX;
}

/* In the order in which they are due. */
static void delay(struct vb_faults *faults, struct vb_fault_item *item, uint64_t ns)
{
	struct vb_fault_item **at = &faults->late.first;

	item->due_ns = vb_faults_now_ns() + ns;
	if (faults->late.count >= VB_FAULTS_WAITING_MAX) {
		free(item);
		return;
	}
	while (*at && (*at)->due_ns <= item->due_ns)
		at = &(*at)->next;
	item->next = *at;
	*at = item;
	if (!item->next)
		faults->late.end = &item->next;
	faults->late.count++;
}

/* --- what a packet is --- */

struct seen {
	struct vb_pkt pkt;
	const struct vb_op_info *info; /* NULL: it is no packet for a QP */
	uint32_t qpn, dqpn;	       /* ours, and the peer's; 0: not known */
	uint8_t state;
	struct vb_path path;
	bool has_path;
	uint8_t peer[VB_GID_BYTES];
};

static void parse(const struct vb_fault_item *item, struct seen *seen)
{
	struct vb_pkt *pkt = &seen->pkt;

	if (item->flow->wire) {
		if (vb_pkt_parse(pkt, item->octets, item->bytes) == VB_PARSE_OK)
			seen->info = vb_op_info(pkt->opcode);
		seen->path = item->path;
		seen->has_path = true;
		return;
	}
	seen->info = vb_pkt_parse_head(pkt, item->octets, item->head_bytes);
	pkt->payload = item->octets + item->head_bytes;
	pkt->payload_bytes = item->bytes - item->head_bytes;
	if (seen->info && seen->info->transport == VB_UD &&
	    item->head_bytes == seen->info->header_bytes + 2u * VB_GID_BYTES) {
		memcpy(seen->path.src, item->octets + seen->info->header_bytes, VB_GID_BYTES);
		memcpy(seen->path.dst, item->octets + seen->info->header_bytes + VB_GID_BYTES,
		       VB_GID_BYTES);
		seen->has_path = true;
	}
}

/* The path of a packet by a ring is that of its QP. */
static void path_of_qp(const struct vb_fault_item *item, struct seen *seen,
		       const struct vb_qp_facts *facts)
{
	seen->path = facts->path;
	seen->has_path = true;
	if (item->flow->sent)
		return;
	memcpy(seen->path.src, facts->path.dst, VB_GID_BYTES);
	memcpy(seen->path.dst, facts->path.src, VB_GID_BYTES);
}

static void look(const struct vb_fault_item *item, struct seen *seen)
{
	struct vb_faults *faults = item->flow->faults;
	struct vb_qp_facts facts;
	bool sent = item->flow->sent;

	memset(seen, 0, sizeof(*seen));
	parse(item, seen);
	if (!seen->info)
		return;
	seen->dqpn = seen->pkt.dqpn;
	seen->qpn = sent ? seen->pkt.sqpn : seen->dqpn;
	if (sent && !(seen->info->headers & (VB_H_DETH | VB_H_DCETH)))
		seen->qpn = vb_inject_qpn_towards(faults->nic, item->flow->own_slot, seen->dqpn);
	if (seen->qpn && vb_inject_facts(faults->nic, seen->qpn, &facts)) {
		seen->state = facts.state;
		if (!sent)
			seen->dqpn = facts.dqpn;
		if (!seen->has_path)
			path_of_qp(item, seen, &facts);
	}
	if (seen->has_path)
		memcpy(seen->peer, sent ? seen->path.dst : seen->path.src, VB_GID_BYTES);
}

static void say(const struct vb_fault_item *item, const struct vb_rule *rule,
		const struct seen *seen, const char *done)
{
	char what[256], peer[VB_ADDRESS_BYTES] = "?";
	const struct vb_fault_flow *flow = item->flow;

	if (seen->has_path)
		vb_gid_text(peer, seen->peer);
	snprintf(what, sizeof(what),
		 "%s: %s %s, %s, QPN 0x%x %s QPN 0x%x at %s, PSN 0x%x, %u octets", done,
		 flow->sent ? "sent" : "received", seen->info->name,
		 flow->wire ? "by the wire" : "by shared memory", seen->qpn,
		 flow->sent ? "to" : "from", seen->dqpn, peer, seen->pkt.psn,
		 seen->pkt.payload_bytes);
	vb_faults_say(flow->faults, rule, what);
	vb_inject_blame(flow->faults->nic, seen->qpn, vb_rule_place(flow->faults, rule));
}

/* --- what is done to it --- */

static void accept(struct vb_fault_item *item)
{
	vb_fault_queue_put(&item->flow->ready, item);
	vb_fault_flow_flush(item->flow);
}

/* A ring has no ICRC: the packet is dropped as one with a wrong ICRC is. */
static void corrupt(struct vb_fault_item *item)
{
	struct vb_fault_flow *flow = item->flow;

	if (flow->wire) {
		item->octets[item->bytes - VB_ICRC_BYTES - 1] ^= 0x55;
		accept(item);
		return;
	}
	if (!flow->sent)
		vb_stat_add(vb_nic_stats(flow->faults->nic), VB_STAT_DROP_ICRC, 1);
	free(item);
}

static void icrc_put(struct vb_fault_item *item)
{
	vb_icrc_put(item->octets + item->bytes - VB_ICRC_BYTES,
		    vb_icrc_frame(&item->path, item->octets, item->bytes, 0));
	item->id_hint = 0;
}

/* The second half of the payload is missing, and all the rest is in order. */
static void truncate(struct vb_fault_item *item, const struct seen *seen)
{
	uint32_t left = seen->pkt.payload_bytes / 2 & ~3u;

	if (!seen->pkt.payload_bytes) {
		free(item);
		return;
	}
	if (item->flow->wire) {
		item->bytes = seen->info->header_bytes + left + VB_ICRC_BYTES;
		item->octets[1] &= (uint8_t)~0x30; /* no pad */
		icrc_put(item);
	} else {
		item->bytes = item->head_bytes + left;
	}
	accept(item);
}

static uint8_t syndrome_of(enum vb_nak_what nak)
{
	switch (nak) {
	case VB_NAK_WHAT_RNR:
		return vb_aeth_rnr(RNR_TIMER);
	case VB_NAK_WHAT_SEQUENCE:
		return vb_aeth_nak(VB_NAK_PSN);
	case VB_NAK_WHAT_INVALID:
		return vb_aeth_nak(VB_NAK_INVALID_REQ);
	case VB_NAK_WHAT_ACCESS:
		return vb_aeth_nak(VB_NAK_ACCESS);
	case VB_NAK_WHAT_OPERATION:
		return vb_aeth_nak(VB_NAK_OP);
	}
	return 0;
}

/* What our QP sent is answered here, as its peer would. */
static void answer(const struct vb_fault_item *item, const struct seen *seen, enum vb_nak_what nak)
{
	struct vb_fault_flow *back = item->flow->back(item->flow, seen->dqpn);
	struct vb_fault_item *made;

	if (!back || !seen->qpn)
		return;
	made = vb_fault_item_make(back, NAK_BYTES + (back->wire ? VB_ICRC_BYTES : 0));
	if (!made)
		return;
	made->head_bytes = back->wire ? 0 : NAK_BYTES;
	vb_bth_put(made->octets, VB_OP_RC_ACK, false, seen->pkt.migreq, seen->pkt.pkey, seen->qpn,
		   false, seen->pkt.psn);
	vb_be32_put(made->octets + VB_BTH_BYTES, (uint32_t)syndrome_of(nak) << 24);
	if (back->wire) {
		vb_cm_nobody_path_back(&made->path, &item->path);
		icrc_put(made);
	}
	accept(made);
}

static void nak(struct vb_fault_item *item, const struct vb_rule *rule, const struct seen *seen)
{
	/* In the order of enum vb_nak_what. */
	static const enum vb_refusal_kind kinds[] = {
		VB_REFUSE_RNR, VB_REFUSE_SEQUENCE, VB_REFUSE_INVALID, VB_REFUSE_ACCESS,
		VB_REFUSE_OPERATION,
	};
	struct vb_faults *faults = item->flow->faults;

	if (item->flow->sent)
		answer(item, seen, (enum vb_nak_what)rule->how.nak);
	else
		vb_inject_refuse(faults->nic, &seen->pkt, kinds[rule->how.nak],
				 vb_rule_place(faults, rule));
	free(item);
}

/* It fails or others do: a spell decides whether the packet goes on. */
static void strike(struct vb_fault_item *item, const struct vb_rule *rule, const struct seen *seen)
{
	vb_faults_strike(item->flow->faults, rule, seen->qpn);
	if (vb_spells_block(item->flow->faults, seen->qpn, seen->has_path ? &seen->path : NULL))
		free(item);
	else
		accept(item);
}

static void meet(struct vb_fault_item *item, const struct vb_rule *rule, const struct seen *seen)
{
	struct vb_faults *faults = item->flow->faults;
	struct vb_fault_item *copy;

	switch (rule->how.what) {
	case VB_FAULT_DELAY:
		delay(faults, item, rule->how.ns);
		return;
	case VB_FAULT_DUPLICATE:
		copy = item_copy(item);
		accept(item);
		if (copy)
			accept(copy);
		return;
	case VB_FAULT_CORRUPT:
		corrupt(item);
		return;
	case VB_FAULT_TRUNCATE:
		truncate(item, seen);
		return;
	case VB_FAULT_NAK:
		nak(item, rule, seen);
		return;
	case VB_FAULT_FAIL:
		vb_inject_fail(faults->nic, seen->qpn, !rule->how.quietly,
			       vb_rule_place(faults, rule));
		break;
	case VB_FAULT_DROP:
	case VB_FAULT_REJECT:
		break;
	case VB_FAULT_SILENCE:
	case VB_FAULT_PORT:
	case VB_FAULT_GID:
	case VB_FAULT_DEVICE:
	case VB_FAULT_PROCESS:
		strike(item, rule, seen);
		return;
	}
	free(item);
}

static const char *const done[] = {
	[VB_FAULT_DROP] = "dropped",
	[VB_FAULT_DELAY] = "delayed",
	[VB_FAULT_DUPLICATE] = "duplicated",
	[VB_FAULT_CORRUPT] = "corrupted",
	[VB_FAULT_TRUNCATE] = "truncated",
	[VB_FAULT_SILENCE] = "silence after",
	[VB_FAULT_NAK] = "refused",
	[VB_FAULT_FAIL] = "the QP fails for",
	[VB_FAULT_PORT] = "the port goes down for",
	[VB_FAULT_GID] = "a GID changes for",
	[VB_FAULT_DEVICE] = "the device fails for",
	[VB_FAULT_PROCESS] = "the process is killed for",
	[VB_FAULT_REJECT] = "rejected",
};

/* --- requests to connect --- */

static void reject(const struct vb_fault_item *item, const struct vb_cm_msg *msg, uint32_t reason)
{
	struct vb_faults *faults = item->flow->faults;
	struct vb_cm_msg said;
	uint8_t mad[VB_MAD_BYTES];
	struct vb_path back;

	if (!vb_cm_nobody_answers(&said, msg, false))
		return;
	if (said.attr == VB_CM_REJ)
		said.rej.reason = (uint16_t)reason;
	vb_cm_emit(&said, mad);
	vb_cm_nobody_path_back(&back, &item->path);
	faults->host.mad_send(faults->host.arg, &back, mad);
}

/* A message to QP 1. */
static void judge_mad(struct vb_fault_item *item, const struct seen *seen)
{
	struct vb_faults *faults = item->flow->faults;
	const uint8_t *mad = vb_mad_frame_parse(item->octets, item->bytes);
	const struct vb_occasion occasion = {
		.where = VB_WHERE_CONNECT,
		.peer = item->path.src,
		.age_ns = vb_faults_now_ns() - faults->start_ns,
	};
	struct vb_rule *rule = NULL;
	struct vb_cm_msg msg;

	if (!item->flow->sent && mad && vb_cm_parse(&msg, mad) &&
	    (msg.attr == VB_CM_REQ || msg.attr == VB_CM_SIDR_REQ))
		rule = vb_script_match(&faults->script, &occasion);
	if (!rule) {
		accept(item);
		return;
	}
	say(item, rule, seen, done[rule->how.what]);
	if (rule->how.what == VB_FAULT_REJECT)
		reject(item, &msg, rule->how.number);
	meet(item, rule, seen);
}

/* --- all packets --- */

static struct vb_rule *rule_of(const struct vb_fault_item *item, const struct seen *seen)
{
	struct vb_faults *faults = item->flow->faults;
	const struct vb_occasion occasion = {
		.where = item->flow->sent ? VB_WHERE_SENT : VB_WHERE_RECEIVED,
		.opcode = seen->pkt.opcode,
		.state = seen->state,
		.qpn = seen->qpn,
		.peer = seen->has_path ? seen->peer : NULL,
		.bytes = seen->pkt.payload_bytes,
		.age_ns = vb_faults_now_ns() - faults->start_ns,
	};

	return item->rule ? item->rule : vb_script_match(&faults->script, &occasion);
}

bool vb_fault_judge(struct vb_fault_item *item, bool settled)
{
	struct vb_faults *faults = item->flow->faults;
	struct vb_rule *rule;
	struct seen seen;

	look(item, &seen);
	if (vb_spells_block(faults, seen.qpn, seen.has_path ? &seen.path : NULL)) {
		free(item);
		return true;
	}
	if (seen.info && item->flow->wire && seen.pkt.dqpn == QPN_GSI) {
		judge_mad(item, &seen);
		return true;
	}
	rule = seen.info ? rule_of(item, &seen) : NULL;
	if (!rule) {
		accept(item);
		return true;
	}
	if (!settled && rule->how.what == VB_FAULT_NAK) {
		item->rule = rule;
		return false;
	}
	say(item, rule, &seen, done[rule->how.what]);
	meet(item, rule, &seen);
	return true;
}
