/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_EXPLAIN_ASKS_H
#define VB_EXPLAIN_ASKS_H

/*
 * The packets of requests of one half by their PSNs, and what became of each: the requester's queue
 * as a capture shows it. PSNs are counted on beyond 24 bits. Pure.
 */

#include "explain/view.h"

struct vb_ask {
	uint64_t psn;
	uint32_t first, last, times, rnrs; /* events; how often it was sent, and told to wait */
};

/* Why a packet is sent again. */
enum vb_cause { VB_CAUSE_SILENCE, VB_CAUSE_NAK, VB_CAUSE_RNR, VB_CAUSES };

/* Something that happens several times. */
struct vb_tally {
	uint64_t count;
	uint32_t first, last; /* events */
};

struct vb_asks {
	struct vb_story *story;
	struct vb_view view;
	uint32_t mtu; /* 0: not known */
	struct vb_ask *ask;
	struct vb_array asks;
	bool begun;
	uint64_t top, acked;   /* the PSN behind the last one; all before it is acknowledged */
	uint64_t again_psn;    /* where the repetition is that goes on */
	bool going_back;       /* one goes on */
	enum vb_cause pending; /* what the last answer asked for */
	uint32_t last_request, last_answer; /* events, VB_NONE: none */
	struct vb_tally answers;
	struct vb_tally round[VB_CAUSES]; /* repetitions, by what they follow */
	struct vb_tally again;		  /* packets of them */
	struct vb_tally acked_again;	  /* ... that had been acknowledged */
	struct vb_tally copies;		  /* that came right behind each other */
	struct vb_tally gaps;		  /* PSNs that are not there */
	struct vb_tally naks;		  /* for a PSN */
	struct vb_tally rnrs;
	struct vb_tally fatal;
	uint64_t wait_ns; /* the longest that preceded a repetition out of silence */
};

void vb_asks_begin(struct vb_asks *asks, struct vb_story *story, const struct vb_view *view);
void vb_asks_end(struct vb_asks *asks);

/* The next packet of either half; false: it belongs to another connection of the same QPNs. */
bool vb_asks_take(struct vb_asks *asks, uint32_t event);

/* The request that a PSN is of, as an answer names it; NULL: it was not seen. */
const struct vb_ask *vb_asks_find(const struct vb_asks *asks, uint32_t psn);

/*
 * PSNs that were acknowledged and never seen, nor sent again: the capture lacks them, and not the
 * responder.
 */
uint64_t vb_asks_missing(const struct vb_asks *asks);

/* The first one that is not acknowledged; NULL: all are. */
const struct vb_ask *vb_asks_open(const struct vb_asks *asks);

#endif
