/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_AROUND_FAULT_H
#define VB_LINK_AROUND_FAULT_H

/*
 * A link around another one that loses, duplicates, reorders, corrupts and delays what is sent. It
 * acts on tx only: if both ends have one, packets of both directions are affected.
 *
 * Frames leave one by one and may leave late, so each has IPv4 identification 0: this link allows
 * bursts of one frame (burst_frames_max is 1), whose ICRC assumes 0.
 *
 * A text says how often (fault_parse.h). The same seed and the same frames give the same faults;
 * without a seed a random one is used. A reordered frame waits until 1 to 8 others have overtaken
 * it, or for 2 ms; with a delay, up to 2 ms longer than that.
 */

#include <stdint.h>

#include "link/link.h"

enum {
	VB_FAULT_HELD_MAX = 1024,	/* delayed frames; one more is lost */
	VB_FAULT_OVERTAKERS_MAX = 8,
	VB_FAULT_FLIPPED_BITS_MAX = 3,
};

struct vb_fault_counts {
	uint64_t frames; /* frames sent by the layer above */
	uint64_t lost, duplicated, reordered, corrupted, delayed;
	uint64_t overflowed; /* lost because VB_FAULT_HELD_MAX frames waited */
	uint64_t refused;    /* lost because the inner link could not send them later */
};

/* Returns as link.h says. text: as fault_parse.h says; EINVAL if it is invalid. */
int vb_link_fault_create(struct vb_link **link, struct vb_link *inner, const char *text);

/* The counts so far of a link made by vb_link_fault_create. Any thread. */
void vb_link_fault_counts(struct vb_link *link, struct vb_fault_counts *counts);

#endif
