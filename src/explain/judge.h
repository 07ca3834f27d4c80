/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_EXPLAIN_JUDGE_H
#define VB_EXPLAIN_JUDGE_H

/* Finds what went wrong in a story (trouble.def), the most important first. Pure. */

#include "explain/story.h"

/* What is told of a flow at the end, as the sender's capture has it, or the receiver's. */
struct vb_summary {
	uint64_t packets, octets, again; /* both ways; octets of payload; again: of requests */
	uint64_t first_ns, last_ns;
};

/* Once, when all files are added. */
void vb_judge(struct vb_story *story);

/* Of a half and its peer. */
struct vb_summary vb_judge_summary(const struct vb_story *story, uint32_t half);

#endif
