/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/around/held.h"

#include <errno.h>
#include <stdlib.h>

#include "base/check.h"

/* The octets of the next frames. */
static uint32_t bytes_of(const struct vb_burst *burst, const struct vb_gather *gather,
			 unsigned frames)
{
	bool to_the_end = gather->frame + frames == burst->frames;

	return (frames - to_the_end) * burst->frame_bytes +
	       (to_the_end ? burst->last_bytes : 0);
}

int vb_held_copy(struct vb_held **held, const struct vb_burst *burst, struct vb_gather *gather,
		 unsigned frames)
{
	uint32_t bytes = bytes_of(burst, gather, frames), done = 0;
	struct vb_held *copy = malloc(sizeof(*copy) + bytes);

	vb_check(frames > 0 && gather->frame + frames <= burst->frames && bytes > 0);
	if (!copy)
		return ENOMEM;
	*copy = (struct vb_held){
		.path = burst->path,
		.slot = burst->slot,
		.frames = (uint16_t)frames,
		.frame_bytes = burst->frame_bytes,
		.bytes = bytes,
	};
	for (unsigned i = 0; i < frames; i++) {
		copy->last_bytes = vb_gather_bytes(gather, burst);
		if (vb_gather_next(gather, burst, copy->data + done)) {
			free(copy);
			return EFAULT;
		}
		done += copy->last_bytes;
	}
	if (frames == 1)
		copy->frame_bytes = copy->last_bytes;
	*held = copy;
	return 0;
}

int vb_held_send(const struct vb_held *held, struct vb_link *link)
{
	struct iovec iov = { (void *)held->data, held->bytes };
	struct vb_burst burst = {
		.path = held->path,
		.slot = held->slot,
		.frames = held->frames,
		.frame_bytes = held->frame_bytes,
		.last_bytes = held->last_bytes,
		.iovcnt = 1,
		.iov = &iov,
	};

	return vb_link_tx(link, &burst);
}

void vb_held_put(struct vb_held_queue *queue, struct vb_held *held)
{
	struct vb_held **at = &queue->first;

	/* Usually the new one is the last. */
	if (queue->last && queue->last->due_ns <= held->due_ns)
		at = &queue->last->next;
	while (*at && (*at)->due_ns <= held->due_ns)
		at = &(*at)->next;
	held->next = *at;
	*at = held;
	if (!held->next)
		queue->last = held;
	queue->n++;
	queue->bytes += held->bytes;
}

struct vb_held *vb_held_take(struct vb_held_queue *queue, struct vb_held **at)
{
	struct vb_held *held = *at;

	*at = held->next;
	queue->n--;
	queue->bytes -= held->bytes;
	if (held == queue->last) {
		queue->last = queue->first;
		while (queue->last && queue->last->next)
			queue->last = queue->last->next;
	}
	return held;
}

uint64_t vb_held_due_ns(const struct vb_held_queue *queue)
{
	return queue->first ? queue->first->due_ns : UINT64_MAX;
}
