/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/around/fault.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/check.h"
#include "base/lock.h"
#include "base/prng.h"
#include "link/around/around.h"
#include "link/around/fault_parse.h"
#include "link/around/held.h"

static const uint64_t reorder_ns = 2000000; /* how long a reordered frame waits to be overtaken */
static const uint64_t again_ns = 100000;    /* when the inner link was full */

struct fault_link {
	struct vb_around around;
	struct vb_fault fault;
	atomic_uint_least64_t due_ns; /* of the first frame that waits; UINT64_MAX: none */
	vb_lock lock;		      /* guards all that follows */
	uint64_t seeds; /* draws each frame's seed: no frame's draws affect the next one's */
	uint64_t prng;	/* of the current frame */
	struct vb_held_queue waiting;
	unsigned counting; /* of these, how many wait for overtakers */
	struct vb_fault_counts counts;
};

static struct fault_link *fault_of(struct vb_link *link)
{
	return vb_container_of(link, struct fault_link, around.link);
}

/* The functions from here to fault_tx() are called with the lock held. */

static uint64_t random_below(struct fault_link *fault, uint64_t bound)
{
	return vb_prng_next(&fault->prng) % bound;
}

/* Draws even if the probability is 0, so that setting one fault does not change the others. */
static bool chance(struct fault_link *fault, uint32_t parts)
{
	return random_below(fault, VB_FAULT_PER_UNIT) < parts;
}

static void due_publish(struct fault_link *fault)
{
	atomic_store(&fault->due_ns, vb_held_due_ns(&fault->waiting));
}

static void hold(struct fault_link *fault, struct vb_held *frame)
{
	vb_held_put(&fault->waiting, frame);
	fault->counting += frame->overtakers != 0;
	due_publish(fault);
}

static struct vb_held *unhold(struct fault_link *fault, struct vb_held **at)
{
	struct vb_held *frame = vb_held_take(&fault->waiting, at);

	fault->counting -= frame->overtakers != 0;
	due_publish(fault);
	return frame;
}

static int pass(struct fault_link *fault, const struct vb_held *frame)
{
	return vb_held_send(frame, fault->around.inner);
}

/* Sends a frame that has waited. If the inner link is full, it waits again. */
static void pass_late(struct fault_link *fault, struct vb_held *frame)
{
	int rc = pass(fault, frame);

	if (rc == EAGAIN) {
		frame->due_ns = vb_around_now_ns() + again_ns;
		frame->overtakers = 0;
		hold(fault, frame);
		return;
	}
	fault->counts.refused += rc != 0;
	free(frame);
}

static void pass_due(struct fault_link *fault)
{
	uint64_t now = vb_around_now_ns();

	while (fault->waiting.first && fault->waiting.first->due_ns <= now)
		pass_late(fault, unhold(fault, &fault->waiting.first));
}

/* A frame has passed: sends those that waited for this many. */
static void overtaken(struct fault_link *fault)
{
	for (struct vb_held **at = &fault->waiting.first; fault->counting && *at;) {
		struct vb_held *frame = *at;

		if (frame->overtakers > 1)
			frame->overtakers--;
		else if (frame->overtakers) {
			pass_late(fault, unhold(fault, at));
			continue;
		}
		at = &frame->next;
	}
}

static void corrupt(struct fault_link *fault, struct vb_held *frame)
{
	uint64_t flips = 1 + random_below(fault, VB_FAULT_FLIPPED_BITS_MAX);

	while (flips--) {
		uint64_t bit = random_below(fault, (uint64_t)frame->bytes * 8);

		frame->data[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static struct vb_held *frame_copy(const struct vb_held *frame)
{
	struct vb_held *copy = malloc(sizeof(*copy) + frame->bytes);

	if (copy)
		memcpy(copy, frame, sizeof(*copy) + frame->bytes);
	return copy;
}

/* Sets when a frame leaves. */
static void schedule(struct fault_link *fault, struct vb_held *frame, bool reorder)
{
	uint64_t delay_ns = fault->fault.delay_ns;
	uint64_t overtakers = 1 + random_below(fault, VB_FAULT_OVERTAKERS_MAX);
	uint64_t extra_ns = random_below(fault, reorder_ns);

	frame->overtakers = 0;
	frame->due_ns = 0;
	if (delay_ns)
		frame->due_ns = vb_around_now_ns() + delay_ns + (reorder ? extra_ns : 0);
	else if (reorder) {
		frame->due_ns = vb_around_now_ns() + reorder_ns;
		frame->overtakers = (unsigned)overtakers;
	}
}

/* Stores the frame, or sends it and then those that it has overtaken. Consumes the frame. */
static int dispatch(struct fault_link *fault, struct vb_held *frame)
{
	int rc = 0;

	if (!frame->due_ns) {
		rc = pass(fault, frame);
		if (!rc)
			overtaken(fault);
	} else if (fault->waiting.n < VB_FAULT_HELD_MAX) {
		hold(fault, frame);
		return 0;
	} else {
		fault->counts.overflowed++;
	}
	free(frame);
	return rc;
}

/* Applies the faults to one frame. Consumes it. */
static int suffer(struct fault_link *fault, struct vb_held *frame)
{
	const struct vb_fault *odds = &fault->fault;
	struct vb_held *copy = NULL;
	bool lose, twice, flip, late;
	int rc;

	fault->prng = vb_prng_next(&fault->seeds);
	lose = chance(fault, odds->loss);
	twice = chance(fault, odds->dup);
	flip = chance(fault, odds->corrupt);
	late = chance(fault, odds->reorder);
	if (lose) {
		free(frame);
		fault->counts.frames++;
		fault->counts.lost++;
		return 0;
	}
	schedule(fault, frame, late);
	if (flip)
		corrupt(fault, frame);
	if (twice)
		copy = frame_copy(frame);
	rc = dispatch(fault, frame);
	if (rc) {
		free(copy);
		return rc;
	}
	if (copy) {
		schedule(fault, copy, false);
		dispatch(fault, copy);
	}
	fault->counts.frames++;
	fault->counts.duplicated += copy != NULL;
	fault->counts.corrupted += flip;
	fault->counts.reordered += late;
	fault->counts.delayed += odds->delay_ns != 0;
	return 0;
}

static int fault_tx(struct vb_link *link, const struct vb_burst *burst)
{
	struct fault_link *fault = fault_of(link);
	struct vb_gather gather = {0};
	int rc = 0;

	for (unsigned i = 0; i < burst->frames && !rc; i++) {
		struct vb_held *frame;

		rc = vb_held_copy(&frame, burst, &gather, 1);
		if (rc)
			return rc;
		vb_lock_take(&fault->lock);
		pass_due(fault);
		rc = suffer(fault, frame);
		vb_lock_drop(&fault->lock);
		/* EAGAIN would mean that nothing was sent. */
		if (rc == EAGAIN && i)
			rc = EIO;
	}
	return rc;
}

static unsigned fault_rx(struct vb_link *link, struct vb_frame *frames, unsigned max)
{
	struct fault_link *fault = fault_of(link);

	if (atomic_load_explicit(&fault->due_ns, memory_order_relaxed) <= vb_around_now_ns()) {
		vb_lock_take(&fault->lock);
		pass_due(fault);
		vb_lock_drop(&fault->lock);
	}
	return vb_link_rx(fault->around.inner, frames, max);
}

static unsigned fault_burst_frames_max(struct vb_link *link)
{
	return 1;
}

static uint64_t fault_deadline_ns(struct vb_link *link)
{
	struct fault_link *fault = fault_of(link);
	uint64_t due_ns = atomic_load(&fault->due_ns);

	return vb_min_u64(due_ns, fault->around.inner->ops->deadline_ns(fault->around.inner));
}

static void fault_destroy(struct vb_link *link)
{
	struct fault_link *fault = fault_of(link);

	/* As on a wire, delayed frames still leave when their sender is gone. */
	while (fault->waiting.first) {
		struct vb_held *frame = unhold(fault, &fault->waiting.first);

		pass(fault, frame);
		free(frame);
	}
	fault->around.inner->ops->destroy(fault->around.inner);
	vb_lock_fini(&fault->lock);
	free(fault);
}

static const struct vb_link_ops fault_ops = {
	VB_AROUND_OPS,
	.tx = fault_tx,
	.rx = fault_rx,
	.burst_frames_max = fault_burst_frames_max,
	.deadline_ns = fault_deadline_ns,
	.forget = vb_around_forget,
	.destroy = fault_destroy,
};

int vb_link_fault_create(struct vb_link **link, struct vb_link *inner, const char *text)
{
	char why[VB_FAULT_WHY_BYTES];
	struct fault_link *fault;
	struct vb_fault parsed;
	int rc = vb_fault_parse(&parsed, text, why);

	if (rc)
		return rc;
	fault = calloc(1, sizeof(*fault));
	if (!fault)
		return ENOMEM;
	if (!parsed.seeded &&
	    getrandom(&parsed.seed, sizeof(parsed.seed), GRND_NONBLOCK) != sizeof(parsed.seed))
		parsed.seed = vb_around_now_ns();
	fault->around = (struct vb_around){ { &fault_ops }, inner };
	fault->fault = parsed;
	fault->seeds = parsed.seed;
	atomic_init(&fault->due_ns, UINT64_MAX);
	vb_lock_init(&fault->lock, VB_RANK_FAULT);
	*link = &fault->around.link;
	return 0;
}

void vb_link_fault_counts(struct vb_link *link, struct vb_fault_counts *counts)
{
	struct fault_link *fault = fault_of(link);

	vb_lock_take(&fault->lock);
	*counts = fault->counts;
	vb_lock_drop(&fault->lock);
}
