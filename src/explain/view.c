/* SPDX-License-Identifier: BSD-2-Clause */
#include "explain/view.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/psn.h"

/* Interfaces that a connection is seen at, without directions: more are not looked at. */
enum { POSTS_MAX = 16 };

struct post {
	uint32_t place;
	uint32_t jumps, last_psn; /* VB_NONE: none yet */
};

enum vb_side vb_view_side(const struct vb_view *view, const struct vb_event *event)
{
	bool out = event->direction == VB_DIRECTION_OUT;

	if (event->direction == VB_DIRECTION_UNKNOWN)
		return event->place == view->near_place  ? VB_REQUESTER
		       : event->place == view->far_place ? VB_RESPONDER
							 : VB_BETWEEN;
	return out == (event->half == view->requests) ? VB_REQUESTER : VB_RESPONDER;
}

/* Is it a request, whose PSN is of its half's own sequence? */
static bool counts(const struct vb_event *event)
{
	return vb_view_took(event) && !vb_event_is_answer(event) &&
	       vb_event_op(event)->kind != VB_K_CNP;
}

/* Notes how often PSNs jump there: what was lost is there at the sender. */
static void post_note(struct post *post, const struct vb_event *event)
{
	if (!counts(event))
		return;
	post->jumps += post->last_psn != VB_NONE && vb_psn_diff(event->psn, post->last_psn) > 1;
	post->last_psn = event->psn;
}

static uint32_t posts_fill(struct post posts[POSTS_MAX], const struct vb_story *story,
			   const struct vb_half *half)
{
	uint32_t count = 0, at;

	for (uint32_t i = half->first; i < half->first + half->count; i++) {
		const struct vb_event *event = &story->event[i];

		if (event->direction != VB_DIRECTION_UNKNOWN)
			continue;
		for (at = 0; at < count && posts[at].place != event->place; at++)
			continue;
		if (at == POSTS_MAX)
			continue;
		if (at == count)
			posts[count++] = (struct post){event->place, 0, VB_NONE};
		post_note(&posts[at], event);
	}
	return count;
}

/* The nearest is the first one with the fewest jumps, the farthest the last one with the most. */
static void places_find(struct vb_view *view, const struct vb_story *story,
			const bool directed[VB_SIDES])
{
	struct post posts[POSTS_MAX];
	uint32_t count = posts_fill(posts, story, &story->half[view->requests]);
	uint32_t near = 0, far = 0;

	view->near_place = view->far_place = VB_NONE;
	for (uint32_t i = 1; i < count; i++) {
		near = posts[i].jumps < posts[near].jumps ? i : near;
		far = posts[i].jumps >= posts[far].jumps ? i : far;
	}
	if (count && !directed[VB_REQUESTER])
		view->near_place = posts[near].place;
	if (count && !directed[VB_RESPONDER] && (far != near || directed[VB_REQUESTER]))
		view->far_place = posts[far].place;
	view->on_the_way = view->near_place != VB_NONE || view->far_place != VB_NONE;
	view->one_host = view->near_place != VB_NONE && view->far_place != VB_NONE &&
			 story->place[view->near_place].file == story->place[view->far_place].file;
}

struct vb_view vb_view_of(const struct vb_story *story, uint32_t requests)
{
	const struct vb_half *half = &story->half[requests];
	struct vb_view view = {.requests = requests, .answers = half->peer};

	/* One of our captures, of an end: what others have is not from there. */
	for (uint32_t i = half->first; i < half->first + half->count; i++)
		if (story->event[i].direction != VB_DIRECTION_UNKNOWN)
			view.seen[vb_view_side(&view, &story->event[i])] = true;
	places_find(&view, story, view.seen);
	view.seen[VB_REQUESTER] |= view.near_place != VB_NONE;
	view.seen[VB_RESPONDER] |= view.far_place != VB_NONE;
	view.main = view.seen[VB_REQUESTER] ? VB_REQUESTER : VB_RESPONDER;
	return view;
}

/* --- comparing --- */

/* A packet as both ends have it. */
struct key {
	uint64_t name; /* PSN, opcode, syndrome */
	uint32_t event;
};

static uint64_t name_of(const struct vb_event *event)
{
	return (uint64_t)event->psn << 16 | (uint64_t)event->opcode << 8 | event->syndrome;
}

static int key_compare(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	return x->event < y->event ? -1 : x->event > y->event;
}

struct keys {
	struct key *key;
	uint32_t count;
};

static bool keys_fill(struct keys *keys, const struct vb_story *story, const struct vb_view *view,
		      uint32_t half, enum vb_side side)
{
	const struct vb_half *h = &story->half[half];

	keys->count = 0;
	keys->key = calloc(h->count + 1, sizeof(*keys->key));
	for (uint32_t i = h->first; keys->key && i < h->first + h->count; i++)
		if (vb_view_side(view, &story->event[i]) == side)
			keys->key[keys->count++] = (struct key){name_of(&story->event[i]), i};
	if (keys->key)
		qsort(keys->key, keys->count, sizeof(*keys->key), key_compare);
	return keys->key;
}

/* How many there are of that name. */
static uint32_t keys_count(const struct keys *keys, uint64_t name)
{
	uint32_t low = 0, high = keys->count, from;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (keys->key[middle].name < name)
			low = middle + 1;
		else
			high = middle;
	}
	for (from = low; low < keys->count && keys->key[low].name == name; low++)
		continue;
	return low - from;
}

static void first_note(uint32_t *first, uint32_t event)
{
	if (*first == VB_NONE || event < *first)
		*first = event;
}

/*
 * The last packet that came before that time: what was sent behind it may have been on its way
 * yet.
 */
static uint32_t last_come(const struct vb_story *story, const struct keys *sent,
			  const struct keys *came, uint64_t until_ns)
{
	uint32_t last = 0;

	for (uint32_t i = 0; i < sent->count; i++) {
		const struct key *key = &sent->key[i];

		if (key->event > last && story->event[key->event].ns < until_ns &&
		    keys_count(came, key->name))
			last = key->event;
	}
	return last;
}

static void count_names(struct vb_compared *done, const struct keys *sent, const struct keys *came,
			uint32_t last)
{

	for (uint32_t i = 0, next; i < sent->count; i = next) {
		uint64_t name = sent->key[i].name;
		uint32_t there = keys_count(came, name), here = 0;

		for (next = i; next < sent->count && sent->key[next].name == name; next++)
			here += sent->key[next].event <= last;
		if (here > there) {
			done->lost += here - there;
			first_note(&done->first_lost, sent->key[i].event);
		} else if (there > next - i) {
			done->duplicated += there - (next - i);
			first_note(&done->first_duplicated, sent->key[i].event);
		}
	}
}

/* Packets that came behind a later one, and were sent once. A READ may go on within itself. */
static void count_late(struct vb_compared *done, const struct vb_story *story,
		       const struct vb_view *view, const struct keys *sent, enum vb_side side)
{
	const struct vb_half *half = &story->half[view->requests];
	uint32_t most = VB_NONE;

	for (uint32_t i = half->first; i < half->first + half->count; i++) {
		const struct vb_event *event = &story->event[i];

		if (vb_view_side(view, event) != side || !counts(event) ||
		    vb_event_op(event)->kind == VB_K_READ_REQ)
			continue;
		if (most == VB_NONE || vb_psn_diff(event->psn, most) > 0) {
			most = event->psn;
		} else if (event->psn != most && keys_count(sent, name_of(event)) == 1) {
			done->late++;
			first_note(&done->first_late, i);
		}
	}
}

struct vb_compared vb_view_compare(struct vb_story *story, const struct vb_view *view,
				   uint32_t half, uint64_t until_ns)
{
	struct vb_compared done = {.first_lost = VB_NONE, .first_duplicated = VB_NONE,
				   .first_late = VB_NONE};
	bool forth = half == view->requests;
	enum vb_side from = forth ? VB_REQUESTER : VB_RESPONDER;
	enum vb_side to = forth ? VB_RESPONDER : VB_REQUESTER;
	struct keys sent = {0}, came = {0};

	if (keys_fill(&sent, story, view, half, from) && keys_fill(&came, story, view, half, to)) {
		done.sent = sent.count;
		if (sent.count && came.count) {
			count_names(&done, &sent, &came,
				    last_come(story, &sent, &came, until_ns));
			if (forth)
				count_late(&done, story, view, &sent, to);
		}
	} else {
		story->no_memory = true;
	}
	free(sent.key);
	free(came.key);
	return done;
}
