/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_AROUND_HELD_H
#define VB_LINK_AROUND_HELD_H

/*
 * Copies of frames that leave later, for wrappers that delay. A queue is guarded by whoever owns
 * it.
 */

#include <stddef.h>
#include <stdint.h>

#include "link/gather.h"
#include "link/link.h"

/* One frame, or a burst that leaves as it came. */
struct vb_held {
	struct vb_held *next;
	uint64_t due_ns;
	unsigned overtakers; /* fault.c: leaves early once that many have passed; 0: not counted */
	struct vb_path path;
	uint16_t slot, frames;
	uint32_t frame_bytes, last_bytes, bytes;
	uint8_t data[];
};

struct vb_held_queue {
	struct vb_held *first, *last; /* by due_ns; of equal ones as they came */
	unsigned n;
	uint64_t bytes;
};

/*
 * Copies the next `frames` frames of a burst. Returns 0, ENOMEM, or EFAULT if the application has
 * unmapped a piece. The caller frees it.
 */
int vb_held_copy(struct vb_held **held, const struct vb_burst *burst, struct vb_gather *gather,
		 unsigned frames);

/* Sends it, and keeps it. Returns as link.h says. */
int vb_held_send(const struct vb_held *held, struct vb_link *link);

void vb_held_put(struct vb_held_queue *queue, struct vb_held *held);

/* Takes out *at, which is &queue->first or the next of one that is in it. */
struct vb_held *vb_held_take(struct vb_held_queue *queue, struct vb_held **at);

/* When the first is due; UINT64_MAX: none waits. */
uint64_t vb_held_due_ns(const struct vb_held_queue *queue);

#endif
