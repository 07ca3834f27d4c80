/* SPDX-License-Identifier: BSD-2-Clause */
#include "explain/view.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/psn.h"

enum vb_side vb_view_side(const struct vb_view *view, const struct vb_event *event)
{
	bool out = event->direction == VB_DIRECTION_OUT;

	if (event->direction == VB_DIRECTION_UNKNOWN)
		return event->file == view->near_file ? VB_REQUESTER : VB_RESPONDER;
	return out == (event->half == view->requests) ? VB_REQUESTER : VB_RESPONDER;
}

/* Is it a request, whose PSN is of its half's own sequence? */
static bool counts(const struct vb_event *event)
{
	return !(event->flags & VB_EVENT_ICRC) && !vb_event_is_answer(event) &&
	       vb_event_op(event)->kind != VB_K_CNP;
}

/* How often PSNs jump in a file that has no directions: what was lost is there at the sender. */
static uint32_t jumps(const struct vb_story *story, const struct vb_half *half, uint16_t file)
{
	uint32_t count = 0, last = VB_NONE;

	for (uint32_t i = half->first; i < half->first + half->count; i++) {
		const struct vb_event *event = &story->event[i];

		if (event->file != file || event->direction != VB_DIRECTION_UNKNOWN ||
		    !counts(event))
			continue;
		count += last != VB_NONE && vb_psn_diff(event->psn, last) > 1;
		last = event->psn;
	}
	return count;
}

/* The file that is the nearest to the sender. UINT16_MAX: all have directions. */
static uint16_t near_file(const struct vb_story *story, const struct vb_half *half)
{
	uint16_t nearest = UINT16_MAX, last = UINT16_MAX;
	uint32_t fewest = UINT32_MAX;

	for (uint32_t i = half->first; i < half->first + half->count; i++) {
		const struct vb_event *event = &story->event[i];
		uint32_t count;

		if (event->direction != VB_DIRECTION_UNKNOWN || event->file == nearest ||
		    event->file == last)
			continue;
		last = event->file;
		count = jumps(story, half, last);
		if (count < fewest)
			nearest = last;
		fewest = (uint32_t)vb_min_u64(fewest, count);
	}
	return nearest;
}

struct vb_view vb_view_of(const struct vb_story *story, uint32_t requests)
{
	const struct vb_half *half = &story->half[requests];
	struct vb_view view = {.requests = requests, .answers = half->peer,
			       .near_file = near_file(story, half)};

	view.on_the_way = view.near_file != UINT16_MAX;
	for (uint32_t i = half->first; i < half->first + half->count; i++)
		view.seen[vb_view_side(&view, &story->event[i])] = true;
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
