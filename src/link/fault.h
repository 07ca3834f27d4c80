/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_FAULT_H
#define VB_LINK_FAULT_H

/*
 * A link around another one that loses, duplicates, reorders, corrupts and delays what is sent. It
 * acts on tx only: if both ends have one, packets of both directions are affected.
 *
 * Frames leave one by one and may leave late, so each has IPv4 identification 0: this link allows
 * bursts of one frame (burst_frames_max is 1), whose ICRC assumes 0.
 *
 * The text is a list of parts, in any order, each at most once:
 *
 *	loss=P dup=P reorder=P corrupt=P	P: a percentage such as 1% or 0.05%
 *	delay=T					T: such as 250us or 1ms, at most 10s
 *	seed=N					a 64-bit decimal number
 *
 * separated by commas: "loss=1%,delay=1ms,seed=7". The same seed and the same frames give the same
 * faults; without a seed a random one is used. A reordered frame waits until 1 to 8 others have
 * overtaken it, or for 2 ms; with a delay, up to 2 ms longer than that.
 */

#include <stdbool.h>
#include <stdint.h>

#include "link/link.h"

enum {
	VB_FAULT_PER_UNIT = 1000000000, /* unit of the probabilities */
	VB_FAULT_HELD_MAX = 1024,	/* delayed frames; one more is lost */
	VB_FAULT_OVERTAKERS_MAX = 8,
	VB_FAULT_FLIPPED_BITS_MAX = 3,
	VB_FAULT_WHY_BYTES = 256,
};

struct vb_fault {
	uint32_t loss, dup, reorder, corrupt; /* 0 to VB_FAULT_PER_UNIT */
	uint64_t delay_ns, seed;
	bool seeded;
};

struct vb_fault_counts {
	uint64_t frames; /* frames sent by the layer above */
	uint64_t lost, duplicated, reordered, corrupted, delayed;
	uint64_t overflowed; /* lost because VB_FAULT_HELD_MAX frames waited */
	uint64_t refused;    /* lost because the inner link could not send them later */
};

/*
 * Returns 0, or EINVAL with *fault untouched. `why` says on one line what is wrong and what is
 * valid; it is empty after success.
 */
int vb_fault_parse(struct vb_fault *fault, const char *text, char why[VB_FAULT_WHY_BYTES]);

/* The counts so far of a link made by vb_link_fault_create. Any thread. */
void vb_link_fault_counts(struct vb_link *link, struct vb_fault_counts *counts);

#endif
