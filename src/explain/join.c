/* SPDX-License-Identifier: BSD-2-Clause */
#include "explain/join.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/psn.h"

enum { VOTES_MAX = 16, CANDIDATES_MAX = 8, WINDOW_PSNS = 1 << 16, PACKET_BYTES_MIN = 256 };

uint32_t vb_join_find(const struct vb_story *story, const uint8_t src[VB_GID_BYTES],
		      const uint8_t dst[VB_GID_BYTES], uint32_t dqpn, uint32_t sqpn)
{
	for (uint32_t i = 0; i < story->halves.count; i++) {
		const struct vb_half *half = &story->half[i];

		if (half->dqpn == dqpn && (!half->has_sqpn || half->sqpn == sqpn) &&
		    !memcmp(half->path.src, src, VB_GID_BYTES) &&
		    !memcmp(half->path.dst, dst, VB_GID_BYTES))
			return i;
	}
	return VB_NONE;
}

static void pair(struct vb_story *story, uint32_t a, uint32_t b)
{
	struct vb_half *x = &story->half[a], *y = &story->half[b];

	x->peer = b;
	y->peer = a;
	if (!x->has_sqpn)
		x->sqpn = y->dqpn;
	if (!y->has_sqpn)
		y->sqpn = x->dqpn;
}

/* By the QPN of the sender, where packets, comments or rdma_cm have said it. */
static void join_known(struct vb_story *story)
{
	for (uint32_t i = 0; i < story->halves.count; i++) {
		struct vb_half *half = &story->half[i];
		uint32_t peer;

		if (half->peer != VB_NONE || (!half->sqpn && !half->has_sqpn))
			continue;
		peer = vb_join_find(story, half->path.dst, half->path.src, half->sqpn, half->dqpn);
		/* A QP may talk with itself. */
		if (peer != VB_NONE && story->half[peer].peer == VB_NONE)
			pair(story, i, peer);
	}
}

/* --- by PSNs: an answer has that of a request which came shortly before --- */

struct vote {
	uint32_t half, count;
};

struct ballot {
	struct vote vote[CANDIDATES_MAX];
	uint32_t votes;
};

/* The half whose latest request is the nearest to the PSN. */
static uint32_t asker_of(const struct vb_story *story, const struct vb_event *answer)
{
	const struct vb_half *half = &story->half[answer->half];
	uint32_t best = VB_NONE;
	int32_t best_ahead = WINDOW_PSNS;

	for (uint32_t i = 0; i < story->halves.count; i++) {
		const struct vb_half *x = &story->half[i];
		int32_t ahead;

		if (x->last_request == VB_NONE || x->peer != VB_NONE ||
		    x->transport != half->transport || i == answer->half ||
		    memcmp(x->path.src, half->path.dst, VB_GID_BYTES) ||
		    memcmp(x->path.dst, half->path.src, VB_GID_BYTES))
			continue;
		ahead = vb_psn_diff(x->last_psn, answer->psn);
		if (ahead < 0 || ahead > best_ahead)
			continue;
		if (ahead == best_ahead && best != VB_NONE &&
		    story->event[x->last_request].ns <
			    story->event[story->half[best].last_request].ns)
			continue;
		best = i;
		best_ahead = ahead;
	}
	return best;
}

static void vote(struct ballot *ballot, uint32_t half)
{
	ballot->votes++;
	for (unsigned i = 0; i < CANDIDATES_MAX; i++) {
		struct vote *v = &ballot->vote[i];

		if (v->count && v->half != half)
			continue;
		v->half = half;
		v->count++;
		return;
	}
}

static void request_note(struct vb_story *story, uint32_t index)
{
	const struct vb_event *event = &story->event[index];
	struct vb_half *half = &story->half[event->half];
	struct vb_pkt pkt;

	half->last_request = index;
	half->last_psn = event->psn;
	if (vb_event_op(event)->kind != VB_K_READ_REQ)
		return;
	/* Its answers have the following PSNs, as many as they take. */
	vb_event_parse(event, &pkt);
	half->last_psn = vb_psn_add(event->psn, pkt.reth.bytes / PACKET_BYTES_MIN);
}

/* The packets of halves that are alone, in the order of their times. */
static uint32_t moments_fill(const struct vb_story *story, struct vb_moment *moments)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < story->events.count; i++) {
		const struct vb_event *event = &story->event[i];

		if (event->half == VB_NONE || story->half[event->half].peer != VB_NONE ||
		    (event->flags & VB_EVENT_ICRC) || !vb_transport_acks(event->opcode >> 5))
			continue;
		moments[count++] = (struct vb_moment){event->ns, i};
	}
	vb_moments_sort(moments, count);
	return count;
}

static void join_by_psn(struct vb_story *story)
{
	struct ballot *ballots = calloc(story->halves.count + 1, sizeof(*ballots));
	struct vb_moment *moments = calloc(story->events.count + 1, sizeof(*moments));
	uint32_t count = ballots && moments ? moments_fill(story, moments) : 0;

	story->no_memory |= !ballots || !moments;
	for (uint32_t i = 0; i < count; i++) {
		const struct vb_event *event = &story->event[moments[i].event];
		struct ballot *ballot = &ballots[event->half];
		uint32_t asker;

		if (!vb_event_is_answer(event)) {
			request_note(story, moments[i].event);
		} else if (ballot->votes < VOTES_MAX) {
			asker = asker_of(story, event);
			if (asker != VB_NONE)
				vote(ballot, asker);
		}
	}
	for (uint32_t i = 0; count && i < story->halves.count; i++) {
		const struct vote *best = &ballots[i].vote[0];

		for (unsigned j = 1; j < CANDIDATES_MAX; j++)
			if (ballots[i].vote[j].count > best->count)
				best = &ballots[i].vote[j];
		if (best->count && story->half[i].peer == VB_NONE &&
		    story->half[best->half].peer == VB_NONE)
			pair(story, i, best->half);
	}
	free(ballots);
	free(moments);
}

void vb_join(struct vb_story *story)
{
	join_known(story);
	join_by_psn(story);
}
