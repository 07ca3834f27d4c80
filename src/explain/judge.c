/* SPDX-License-Identifier: BSD-2-Clause */
#include "explain/judge.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/check.h"
#include "explain/connect.h"
#include "explain/flows.h"
#include "explain/join.h"
#include "explain/reliable.h"
#include "explain/say.h"
#include "explain/view.h"

/* --- what concerns files, and no flow --- */

static void file_judge(struct vb_story *story, uint32_t index)
{
	const struct vb_file *file = &story->file[index];
	struct vb_trouble *trouble;

	if (file->killed) {
		trouble = vb_story_trouble(story, VB_TROUBLE_KILLED, VB_NONE, VB_NONE);
		vb_trouble_say(trouble, "%s, whose capture is %s: its last packet is of %.6f s",
			       file->program, file->name,
			       vb_story_seconds(story, file->last_ns));
	}
	if (file->lost) {
		trouble = vb_story_trouble(story, VB_TROUBLE_CAPTURE_LOST, VB_NONE, VB_NONE);
		trouble->count = file->lost;
		vb_trouble_say(trouble, "%s lacks %" PRIu64 " packets", file->name, file->lost);
	}
	if (file->damaged) {
		trouble = vb_story_trouble(story, VB_TROUBLE_CAPTURE_CUT, VB_NONE, VB_NONE);
		vb_trouble_say(trouble, "%s, behind packet %u", file->name, file->packets);
	}
}

static void others_judge(struct vb_story *story)
{
	struct vb_trouble *trouble;
	uint64_t malformed = 0;

	for (unsigned i = 0; i < VB_PARSE_COUNT; i++)
		malformed += story->malformed[i];
	if (malformed) {
		trouble = vb_story_trouble(story, VB_TROUBLE_MALFORMED, VB_NONE,
					   story->first_malformed);
		trouble->count = malformed;
		for (unsigned i = 0; i < VB_PARSE_COUNT; i++)
			if (story->malformed[i])
				vb_trouble_say(trouble, "%s%s: %" PRIu64,
					       trouble->used ? ", " : "",
					       vb_parse_str((enum vb_parse)i), story->malformed[i]);
	}
	if (story->merged)
		vb_story_trouble(story, VB_TROUBLE_MERGED, VB_NONE, story->first_merged)->count =
			story->merged;
	if (story->cut)
		vb_story_trouble(story, VB_TROUBLE_CUT, VB_NONE, VB_NONE)->count = story->cut;
	if (story->foreign) {
		trouble = vb_story_trouble(story, VB_TROUBLE_FOREIGN, VB_NONE, VB_NONE);
		trouble->count = story->foreign;
		vb_trouble_say(trouble, "The first such packet has link type %u",
			       story->foreign_linktype);
	}
	if (story->fragments)
		vb_story_trouble(story, VB_TROUBLE_FRAGMENTS, VB_NONE, VB_NONE)->count =
			story->fragments;
}

/* --- all --- */

static int trouble_compare(const void *a, const void *b)
{
	const struct vb_trouble *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return x->event < y->event ? -1 : x->event > y->event;
}

static bool is_reliable(const struct vb_half *half)
{
	return half->transport == VB_RC || half->transport == VB_XRC;
}

void vb_judge(struct vb_story *story)
{
	bool *failed = calloc(story->halves.count + 1, sizeof(*failed));

	story->no_memory |= !failed;
	vb_story_sort(story);
	vb_connect_pairs(story);
	vb_join(story);
	for (uint32_t i = 0; failed && i < story->halves.count; i++) {
		uint32_t peer = story->half[i].peer;

		if (!is_reliable(&story->half[i]) || !vb_reliable_judge(story, i))
			continue;
		failed[i] = true;
		if (peer != VB_NONE)
			failed[peer] = true;
	}
	for (uint32_t i = 0; failed && i < story->halves.count; i++)
		vb_flows_judge(story, i, failed[i]);
	vb_connect_judge(story);
	for (uint32_t i = 0; i < story->files.count; i++)
		file_judge(story, i);
	others_judge(story);
	free(failed);
	if (story->troubles.count)
		qsort(story->trouble, story->troubles.count, sizeof(*story->trouble),
		      trouble_compare);
}

static void half_add(struct vb_summary *summary, const struct vb_story *story, uint32_t half)
{
	const struct vb_half *h = &story->half[half];
	struct vb_view view = vb_view_of(story, half);
	/* As it was sent, if that was seen. */
	enum vb_side side = view.seen[VB_REQUESTER] ? VB_REQUESTER : VB_RESPONDER;

	summary->again += h->again;
	for (uint32_t i = h->first; i < h->first + h->count; i++) {
		const struct vb_event *event = &story->event[i];

		if (vb_view_side(&view, event) != side)
			continue;
		summary->packets++;
		summary->octets += event->payload_bytes;
		summary->first_ns = vb_min_u64(summary->first_ns, event->ns);
		summary->last_ns = vb_max_u64(summary->last_ns, event->ns);
	}
}

struct vb_summary vb_judge_summary(const struct vb_story *story, uint32_t half)
{
	struct vb_summary summary = {.first_ns = UINT64_MAX};

	half_add(&summary, story, half);
	if (story->half[half].peer != VB_NONE && story->half[half].peer != half)
		half_add(&summary, story, story->half[half].peer);
	return summary;
}
