/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/clock.h"

#include <stddef.h>
#include <string.h>

#include "base/check.h"
#include "cm/host.h"

enum { EXPONENT_OF_MS = 8, EXPONENT_MAX = 24, ACK_TIMEOUT_MAX = 31, FIRST_SIZE = 64 };

bool vb_cm_clocks_reserve(struct vb_cm_clocks *clocks, const struct vb_cm_host *host,
			  uint32_t count)
{
	uint32_t size = clocks->size ? 2 * clocks->size : FIRST_SIZE;
	struct vb_cm_clock **heap;

	if (count <= clocks->size)
		return true;
	heap = host->alloc(host->arg, size * sizeof(struct vb_cm_clock *));
	if (!heap)
		return false;
	if (clocks->heap) {
		memcpy(heap, clocks->heap, clocks->count * sizeof(struct vb_cm_clock *));
		host->release(host->arg, clocks->heap);
	}
	clocks->heap = heap;
	clocks->size = size;
	return true;
}

void vb_cm_clocks_fini(struct vb_cm_clocks *clocks, const struct vb_cm_host *host)
{
	if (clocks->heap)
		host->release(host->arg, clocks->heap);
}

void vb_cm_clock_init(struct vb_cm_clock *clock)
{
	*clock = (struct vb_cm_clock){.at_ns = VB_CM_NEVER};
}

static void put(struct vb_cm_clocks *clocks, uint32_t place, struct vb_cm_clock *clock)
{
	clocks->heap[place] = clock;
	clock->place = place;
}

static void sift_up(struct vb_cm_clocks *clocks, struct vb_cm_clock *clock)
{
	uint32_t place = clock->place;

	for (; place; place = (place - 1) / 2) {
		struct vb_cm_clock *parent = clocks->heap[(place - 1) / 2];

		if (parent->at_ns <= clock->at_ns)
			break;
		put(clocks, place, parent);
	}
	put(clocks, place, clock);
}

static void sift_down(struct vb_cm_clocks *clocks, struct vb_cm_clock *clock)
{
	uint32_t place = clock->place, child;

	while ((child = 2 * place + 1) < clocks->count) {
		if (child + 1 < clocks->count &&
		    clocks->heap[child + 1]->at_ns < clocks->heap[child]->at_ns)
			child++;
		if (clock->at_ns <= clocks->heap[child]->at_ns)
			break;
		put(clocks, place, clocks->heap[child]);
		place = child;
	}
	put(clocks, place, clock);
}

static void take_out(struct vb_cm_clocks *clocks, struct vb_cm_clock *clock)
{
	struct vb_cm_clock *last = clocks->heap[--clocks->count];

	if (last == clock)
		return;
	put(clocks, clock->place, last);
	sift_up(clocks, last);
	sift_down(clocks, last);
}

void vb_cm_clock_set(struct vb_cm_clocks *clocks, struct vb_cm_clock *clock, uint64_t at_ns)
{
	bool ran = clock->at_ns != VB_CM_NEVER;

	clock->at_ns = at_ns;
	if (at_ns == VB_CM_NEVER) {
		if (ran)
			take_out(clocks, clock);
		return;
	}
	if (!ran) {
		vb_check(clocks->count < clocks->size);
		put(clocks, clocks->count++, clock);
	}
	sift_up(clocks, clock);
	sift_down(clocks, clock);
}

struct vb_cm_clock *vb_cm_clocks_first(const struct vb_cm_clocks *clocks)
{
	return clocks->count ? clocks->heap[0] : NULL;
}

uint64_t vb_cm_time_ns(unsigned exponent)
{
	unsigned doublings = exponent > EXPONENT_MAX ? EXPONENT_MAX : exponent;

	doublings -= doublings < EXPONENT_OF_MS ? doublings : EXPONENT_OF_MS;
	return 1000000ull << doublings;
}

uint8_t vb_cm_ack_timeout(unsigned ack_delay, unsigned lifetime)
{
	unsigned both_ways = lifetime + 1;
	unsigned more = ack_delay > both_ways ? ack_delay : both_ways;
	unsigned less = ack_delay > both_ways ? both_ways : ack_delay;
	unsigned sum = less + 1 >= more ? more + 1 : more;

	return (uint8_t)(sum > ACK_TIMEOUT_MAX ? ACK_TIMEOUT_MAX : sum);
}
