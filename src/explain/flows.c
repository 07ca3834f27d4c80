/* SPDX-License-Identifier: BSD-2-Clause */
#include "explain/flows.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "base/psn.h"
#include "explain/say.h"
#include "explain/view.h"
#include "wire/mad.h"

/* --- drops --- */

enum { OF_ANSWERS = 1, OF_ACKED = 2, AFTER_NAK = 4 };

/* Counters of the NIC (nic/core/stats.h), and what they mean; those that are told otherwise. */
static const struct {
	const char *fate;
	enum vb_trouble_kind kind;
	unsigned quiet; /* where it is no news */
} drops[] = {
	{"drop_icrc", VB_TROUBLE_ICRC, OF_ANSWERS | OF_ACKED | AFTER_NAK}, /* told by its ICRC */
	{"drop_no_qp", VB_TROUBLE_NO_QP, OF_ANSWERS | AFTER_NAK},
	{"drop_qp_state", VB_TROUBLE_STATE, OF_ANSWERS | AFTER_NAK},
	{"drop_wrong_transport", VB_TROUBLE_TRANSPORT, 0},
	{"drop_wrong_peer", VB_TROUBLE_STRANGER, OF_ANSWERS},
	{"drop_pkey", VB_TROUBLE_PKEY, 0},
	{"drop_qkey", VB_TROUBLE_QKEY, 0},
	{"drop_stale_response", VB_TROUBLE_STALE, 0},
	{"drop_malformed", VB_TROUBLE_MALFORMED, 0},
	{"drop_no_receive_wr", VB_TROUBLE_NO_RECV, OF_ACKED},
	{"drop_length", VB_TROUBLE_TOO_LONG, OF_ACKED},
	{"drop_access", VB_TROUBLE_DROP_ACCESS, OF_ACKED},
	{"drop_after_wrong_keys", VB_TROUBLE_DROP_ACCESS, OF_ACKED},
	{"drop_opcode_sequence", VB_TROUBLE_DROPPED, OF_ACKED | AFTER_NAK},
};

static enum vb_trouble_kind drop_kind(const struct vb_story *story, const struct vb_event *event,
				      bool failed)
{
	const char *fate = story->fate[event->fate];
	unsigned now = (vb_event_is_answer(event) ? OF_ANSWERS : 0) | (failed ? AFTER_NAK : 0) |
		       (vb_transport_acks((enum vb_transport)(event->opcode >> 5)) ? OF_ACKED : 0);

	for (unsigned i = 0; i < VB_ARRAY_LEN(drops); i++)
		if (!strcmp(drops[i].fate, fate))
			return drops[i].quiet & now ? VB_TROUBLES : drops[i].kind;
	return VB_TROUBLE_DROPPED;
}

static void drop_say(struct vb_trouble *trouble, const struct vb_story *story, uint32_t index)
{
	const struct vb_event *event = &story->event[index];
	struct vb_pkt pkt;

	vb_event_parse(event, &pkt);
	vb_say_request(trouble, story, index);
	if (trouble->kind == VB_TROUBLE_QKEY)
		vb_trouble_say(trouble, " came with Q_Key 0x%x", pkt.qkey);
	if (trouble->kind == VB_TROUBLE_PKEY)
		vb_trouble_say(trouble, " came with P_Key 0x%x", pkt.pkey);
	vb_trouble_say(trouble, ". The receiver counts it as %s", story->fate[event->fate]);
}

static void drops_judge(struct vb_story *story, uint32_t half, bool failed)
{
	const struct vb_half *h = &story->half[half];
	uint64_t count[VB_TROUBLES] = {0};
	uint32_t first[VB_TROUBLES];

	for (uint32_t i = h->first; i < h->first + h->count; i++) {
		enum vb_trouble_kind kind;

		if (!(story->event[i].flags & VB_EVENT_DROPPED))
			continue;
		kind = drop_kind(story, &story->event[i], failed);
		if (kind != VB_TROUBLES && !count[kind]++)
			first[kind] = i;
	}
	for (unsigned kind = 0; kind < VB_TROUBLES; kind++) {
		struct vb_trouble *trouble;

		if (!count[kind])
			continue;
		trouble = vb_story_trouble(story, (enum vb_trouble_kind)kind, half, first[kind]);
		trouble->count = count[kind];
		drop_say(trouble, story, first[kind]);
	}
}

/* --- damage and congestion --- */

static void icrc_judge(struct vb_story *story, uint32_t half)
{
	const struct vb_half *h = &story->half[half];
	uint64_t count = 0;
	uint32_t first = VB_NONE;
	struct vb_trouble *trouble;

	for (uint32_t i = h->first; i < h->first + h->count; i++) {
		if (!(story->event[i].flags & VB_EVENT_ICRC))
			continue;
		count++;
		first = first == VB_NONE ? i : first;
	}
	if (!count)
		return;
	trouble = vb_story_trouble(story, VB_TROUBLE_ICRC, half, first);
	trouble->count = count;
	vb_trouble_say(trouble, "%" PRIu64 " of %u packets, the first of PSN 0x%x: its receiver "
				"drops them, and RC sends them again",
		       count, h->count, story->event[first].psn);
	if (count == h->count)
		vb_trouble_say(trouble, ". All are: something on the way writes into every packet");
}

static void congestion_judge(struct vb_story *story, uint32_t half)
{
	const struct vb_half *h = &story->half[half];
	uint64_t cnps = 0, marked = 0;
	uint32_t first = VB_NONE;
	struct vb_trouble *trouble;

	for (uint32_t i = h->first; i < h->first + h->count; i++) {
		const struct vb_event *event = &story->event[i];
		bool cnp = vb_event_op(event)->kind == VB_K_CNP;
		bool mark = event->flags & VB_EVENT_MARKED;

		cnps += cnp;
		marked += mark;
		if ((cnp || mark) && first == VB_NONE)
			first = i;
	}
	if (first == VB_NONE)
		return;
	trouble = vb_story_trouble(story, VB_TROUBLE_CONGESTED, half, first);
	trouble->count = cnps + marked;
	if (marked)
		vb_trouble_say(trouble, "%" PRIu64 " of %u packets are marked", marked, h->count);
	if (cnps)
		vb_trouble_say(trouble, "%s%" PRIu64 " CNPs told this end to send slower",
			       marked ? "; " : "", cnps);
}

/* --- what the two directions have to have in common --- */

static void pkey_judge(struct vb_story *story, uint32_t half)
{
	enum { PARTITION = 0x7fff, FULL_MEMBER = 0x8000 };
	const struct vb_half *x = &story->half[half], *y = &story->half[x->peer];
	bool differ = (x->pkey & PARTITION) != (y->pkey & PARTITION);
	struct vb_trouble *trouble;

	if (!differ && ((x->pkey | y->pkey) & FULL_MEMBER))
		return;
	trouble = vb_story_trouble(story, VB_TROUBLE_PKEY, half, x->first);
	vb_trouble_say(trouble, "This end sends with P_Key 0x%04x, the other with 0x%04x%s",
		       x->pkey, y->pkey,
		       differ ? ": two partitions" : ": both are limited members, who may not talk "
						     "with each other");
}

static void mtu_judge(struct vb_story *story, uint32_t half)
{
	const struct vb_half *x = &story->half[half], *y = &story->half[x->peer];
	struct vb_trouble *trouble;
	/* A packet alone shows how long it may be at least. */
	bool differ = x->mtu && y->mtu ? x->mtu != y->mtu
				       : (x->mtu && y->longest > x->mtu) ||
						 (y->mtu && x->longest > y->mtu);

	if (!differ || x->shm || y->shm || x->transport == VB_DC || x->has_sqpn)
		return;
	trouble = vb_story_trouble(story, VB_TROUBLE_MTU, half, x->first);
	vb_trouble_say(trouble, "This end's packets have up to %u octets of payload, the other's "
				"up to %u", x->longest, y->longest);
}

/* --- UC --- */

static void uc_judge(struct vb_story *story, uint32_t half)
{
	const struct vb_half *h = &story->half[half];
	struct vb_view view = vb_view_of(story, half);
	bool here = (view.seen[VB_RESPONDER] || view.on_the_way) && !h->holes;
	enum vb_side side = view.seen[VB_RESPONDER] ? VB_RESPONDER : VB_REQUESTER;
	uint32_t next = VB_NONE, first = VB_NONE;
	struct vb_trouble *trouble;
	uint64_t lost = 0;

	for (uint32_t i = h->first; here && i < h->first + h->count; i++) {
		const struct vb_event *event = &story->event[i];
		int32_t ahead = next == VB_NONE ? 0 : vb_psn_diff(event->psn, next);

		if (vb_view_side(&view, event) != side || (event->flags & VB_EVENT_ICRC) ||
		    vb_event_op(event)->kind == VB_K_CNP)
			continue;
		if (ahead > 0) {
			lost += (uint64_t)ahead;
			first = first == VB_NONE ? i : first;
		}
		/* One that is late had been counted as lost. */
		if (ahead < 0 && lost)
			lost--;
		else
			next = vb_psn_add(event->psn, 1);
	}
	if (!lost)
		return;
	trouble = vb_story_trouble(story, VB_TROUBLE_UC_LOST, half, first);
	trouble->count = lost;
	vb_trouble_say(trouble, "%" PRIu64 " packets are missing, the first before PSN 0x%x: each "
				"message that one of them belongs to is gone as a whole",
		       lost, story->event[first].psn);
}

void vb_flows_judge(struct vb_story *story, uint32_t half, bool failed)
{
	const struct vb_half *h = &story->half[half];

	drops_judge(story, half, failed);
	icrc_judge(story, half);
	congestion_judge(story, half);
	if (h->transport == VB_UC)
		uc_judge(story, half);
	/* Once for both directions. */
	if (h->peer != VB_NONE && half < h->peer && h->dqpn != VB_MAD_QPN) {
		pkey_judge(story, half);
		mtu_judge(story, half);
	}
}
