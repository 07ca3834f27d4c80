/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_EXPLAIN_VIEW_H
#define VB_EXPLAIN_VIEW_H

/*
 * From where packets of a connection were seen. A capture at the requester has what it sent and
 * which answers came; one at the responder has which requests came. Without directions, as tcpdump
 * has them, of the interfaces that were captured the one in which the fewest requests are missing
 * counts as the requester's, and that in which most are as the responder's, though they may have
 * been on the way; what lies between these is not looked at. Pure.
 */

#include "explain/story.h"

enum vb_side { VB_REQUESTER, VB_RESPONDER, VB_BETWEEN, VB_SIDES };

struct vb_view {
	uint32_t requests, answers; /* halves; answers may be VB_NONE */
	uint32_t near_place;	    /* the requester's, of those without directions, or VB_NONE */
	uint32_t far_place;	    /* the responder's */
	bool on_the_way;	    /* one of them is there */
	bool one_host;		    /* both are, in one file: no ends, but a host on the way */
	bool seen[VB_SIDES];	    /* requests were seen there */
	enum vb_side main;	    /* what is judged */
};

struct vb_view vb_view_of(const struct vb_story *story, uint32_t requests);

/* Where an event of one of the two halves was seen. */
enum vb_side vb_view_side(const struct vb_view *view, const struct vb_event *event);

/* Has it come whole, and was not dropped? */
static inline bool vb_view_took(const struct vb_event *event)
{
	return !(event->flags & (VB_EVENT_DROPPED | VB_EVENT_ICRC | VB_EVENT_MERGED));
}

/* What was sent of a half, and what came of that. */
struct vb_compared {
	uint64_t sent, lost, duplicated, late;
	uint32_t first_lost, first_duplicated, first_late; /* events, VB_NONE: none */
};

/*
 * Compares both sides' views of one half, of what was sent before that time; all is zero if there
 * is only one.
 */
struct vb_compared vb_view_compare(struct vb_story *story, const struct vb_view *view,
				   uint32_t half, uint64_t until_ns);

#endif
