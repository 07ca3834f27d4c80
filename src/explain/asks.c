/* SPDX-License-Identifier: BSD-2-Clause */
#include "explain/asks.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/psn.h"

/* No requester sends again so soon, unless it is told to. */
enum { JUMP_PSNS = 1 << 20, SHORT_READ_BYTES = 256, COPY_NS = 100000 };

void vb_asks_begin(struct vb_asks *asks, struct vb_story *story, const struct vb_view *view)
{
	const struct vb_half *half = &story->half[view->requests];

	*asks = (struct vb_asks){.story = story, .view = *view, .mtu = half->mtu,
				 .last_request = VB_NONE, .last_answer = VB_NONE};
	if (!asks->mtu && view->answers != VB_NONE)
		asks->mtu = story->half[view->answers].mtu;
}

void vb_asks_end(struct vb_asks *asks)
{
	free(asks->ask);
	asks->ask = NULL;
}

static void note(struct vb_tally *tally, uint32_t event, uint64_t count)
{
	if (!tally->count)
		tally->first = event;
	tally->last = event;
	tally->count += count;
}

static uint64_t unwrap(const struct vb_asks *asks, uint32_t psn)
{
	return asks->top + (uint64_t)(int64_t)vb_psn_diff(psn, asks->top & VB_PSN_MASK);
}

/* How many PSNs a packet takes: a READ has those of its answers. 0: not known. */
static uint32_t span_of(const struct vb_asks *asks, const struct vb_event *event)
{
	struct vb_pkt pkt;

	if (vb_event_op(event)->kind != VB_K_READ_REQ)
		return 1;
	vb_event_parse(event, &pkt);
	if (pkt.reth.bytes <= SHORT_READ_BYTES)
		return 1;
	return asks->mtu ? (uint32_t)((pkt.reth.bytes + (uint64_t)asks->mtu - 1) / asks->mtu) : 0;
}

/* Where that PSN is, or would be. */
static uint32_t place_of(const struct vb_asks *asks, uint64_t psn)
{
	uint32_t low = 0, high = asks->asks.count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (asks->ask[middle].psn < psn)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void ask_add(struct vb_asks *asks, uint64_t psn, uint32_t event)
{
	uint32_t place = place_of(asks, psn), count = asks->asks.count;

	if (!vb_story_grow(asks->story, &asks->ask, &asks->asks, sizeof(*asks->ask)))
		return;
	memmove(&asks->ask[place + 1], &asks->ask[place], (count - place) * sizeof(*asks->ask));
	asks->ask[place] = (struct vb_ask){.psn = psn, .first = event, .last = event, .times = 1};
}

/* Comes it at once, and has nothing passed meanwhile? Then a packet was doubled on its way. */
static bool is_copy(const struct vb_asks *asks, const struct vb_ask *ask, uint32_t event,
		    uint32_t before)
{
	const struct vb_event *events = asks->story->event, *last = &events[ask->last];
	bool answered = asks->last_answer != VB_NONE && events[asks->last_answer].ns > last->ns;

	return !asks->going_back && asks->pending == VB_CAUSE_SILENCE && ask->last == before &&
	       events[event].psn == last->psn && !answered &&
	       (asks->view.main == VB_RESPONDER || asks->view.on_the_way) &&
	       events[event].ns - last->ns < COPY_NS;
}

/* `before` is the request that passed before it. */
static void ask_again(struct vb_asks *asks, struct vb_ask *ask, uint32_t event, uint32_t before)
{
	const struct vb_event *events = asks->story->event;

	if (is_copy(asks, ask, event, before)) {
		note(&asks->copies, event, 1);
		return;
	}
	if (!asks->going_back || ask->psn <= asks->again_psn) {
		note(&asks->round[asks->pending], event, 1);
		if (asks->pending == VB_CAUSE_SILENCE)
			asks->wait_ns = vb_max_u64(asks->wait_ns,
						   events[event].ns - events[ask->last].ns);
	}
	asks->going_back = true;
	asks->again_psn = ask->psn;
	asks->pending = VB_CAUSE_SILENCE;
	note(&asks->again, event, 1);
	if (ask->psn < asks->acked)
		note(&asks->acked_again, event, 1);
	ask->times++;
	ask->last = event;
}

/* A READ that is repeated from where its answers ended begins within the first one. */
static bool reads_on(const struct vb_asks *asks, const struct vb_ask *before, uint64_t psn,
		     const struct vb_event *event)
{
	const struct vb_event *first = &asks->story->event[before->first];

	return vb_event_op(event)->kind == VB_K_READ_REQ &&
	       vb_event_op(first)->kind == VB_K_READ_REQ &&
	       psn < before->psn + span_of(asks, first);
}

static bool request_take(struct vb_asks *asks, uint32_t index)
{
	const struct vb_event *event = &asks->story->event[index];
	uint32_t place, span = span_of(asks, event), before = asks->last_request;
	uint64_t psn;

	if (!asks->begun) {
		asks->begun = true;
		asks->top = asks->acked = (1ull << 32) + event->psn;
	}
	psn = unwrap(asks, event->psn);
	if (psn + JUMP_PSNS < asks->top || psn > asks->top + JUMP_PSNS)
		return false;
	asks->last_request = index;
	if (psn >= asks->top) {
		/* Behind a READ of unknown length nothing can be said. */
		if (psn > asks->top && asks->asks.count &&
		    span_of(asks, &asks->story->event[asks->ask[asks->asks.count - 1].first]))
			note(&asks->gaps, index, psn - asks->top);
		ask_add(asks, psn, index);
		asks->top = psn + (span ? span : 1);
		asks->going_back = false;
		return true;
	}
	place = place_of(asks, psn);
	if (place < asks->asks.count && asks->ask[place].psn == psn)
		ask_again(asks, &asks->ask[place], index, before);
	else if (place && reads_on(asks, &asks->ask[place - 1], psn, event))
		ask_again(asks, &asks->ask[place - 1], index, before);
	else
		ask_add(asks, psn, index);
	return true;
}

static void nak_take(struct vb_asks *asks, uint32_t index, uint64_t psn)
{
	const struct vb_event *event = &asks->story->event[index];
	const struct vb_ask *found;

	if (vb_aeth_class(event->syndrome) == VB_AETH_RNR) {
		note(&asks->rnrs, index, 1);
		asks->pending = VB_CAUSE_RNR;
		found = vb_asks_find(asks, event->psn);
		if (found)
			asks->ask[found - asks->ask].rnrs++;
	} else if (event->syndrome == vb_aeth_nak(VB_NAK_PSN)) {
		note(&asks->naks, index, 1);
		asks->pending = VB_CAUSE_NAK;
	} else {
		note(&asks->fatal, index, 1);
	}
	asks->going_back = false;
	/* A NAK acknowledges all before it. */
	asks->acked = vb_max_u64(asks->acked, psn);
}

static void answer_take(struct vb_asks *asks, uint32_t index)
{
	const struct vb_event *event = &asks->story->event[index];
	uint64_t psn;

	psn = unwrap(asks, event->psn);
	/* Of an older connection, or damaged where the ICRC does not look. */
	if (!asks->begun || psn > asks->top + JUMP_PSNS || psn + JUMP_PSNS < asks->top)
		return;
	asks->last_answer = index;
	note(&asks->answers, index, 1);
	if (vb_event_op(event)->kind == VB_K_ACK &&
	    vb_aeth_class(event->syndrome) != VB_AETH_ACK) {
		nak_take(asks, index, psn);
		return;
	}
	asks->acked = vb_max_u64(asks->acked, psn + 1);
	/* A READ of unknown length takes as many PSNs as its answers have. */
	asks->top = vb_max_u64(asks->top, psn + 1);
}

bool vb_asks_take(struct vb_asks *asks, uint32_t index)
{
	const struct vb_event *event = &asks->story->event[index];
	bool forth = event->half == asks->view.requests;

	if (vb_view_side(&asks->view, event) != asks->view.main || !vb_view_took(event) ||
	    vb_event_op(event)->kind == VB_K_CNP || forth == vb_event_is_answer(event))
		return true;
	if (forth)
		return request_take(asks, index);
	answer_take(asks, index);
	return true;
}

const struct vb_ask *vb_asks_find(const struct vb_asks *asks, uint32_t psn)
{
	uint64_t wanted = unwrap(asks, psn);
	uint32_t place = place_of(asks, wanted);

	if (place < asks->asks.count && asks->ask[place].psn == wanted)
		return &asks->ask[place];
	return place ? &asks->ask[place - 1] : NULL;
}

uint64_t vb_asks_missing(const struct vb_asks *asks)
{
	uint64_t missing = 0, next = asks->asks.count ? asks->ask[0].psn : 0;

	for (uint32_t i = 0; i < asks->asks.count; i++) {
		const struct vb_ask *ask = &asks->ask[i];
		uint32_t span = span_of(asks, &asks->story->event[ask->first]);

		if (ask->psn > next && asks->acked > next)
			missing += vb_min_u64(ask->psn, asks->acked) - next;
		if (span)
			next = vb_max_u64(next, ask->psn + span);
		else if (i + 1 < asks->asks.count)
			next = vb_max_u64(next, ask[1].psn);
	}
	return missing;
}

const struct vb_ask *vb_asks_open(const struct vb_asks *asks)
{
	uint32_t place = place_of(asks, asks->acked);

	return place < asks->asks.count ? &asks->ask[place] : NULL;
}
