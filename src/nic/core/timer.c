/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A heap of QPs and CQs by time. A QP's deadline moves with every acknowledgement, so entries are
 * lazy: one that is too early costs a look, and only one that has to come earlier is moved. So the
 * lock is taken once per QP and retransmission time, not once per packet.
 */

#include "nic/core/timer.h"

#include <stdlib.h>

#include "base/check.h"
#include "nic/core/internal.h"

void vb_timers_init(struct vb_timers *timers)
{
	vb_lock_init(&timers->lock, VB_RANK_TIMERS);
	atomic_store(&timers->first_ns, UINT64_MAX);
}

void vb_timers_fini(struct vb_timers *timers)
{
	vb_lock_fini(&timers->lock);
	free(timers->heap);
}

static void put(struct vb_timers *timers, uint32_t place, struct vb_timer *timer)
{
	timers->heap[place] = timer;
	timer->place = place;
}

static uint64_t at_ns(const struct vb_timers *timers, uint32_t place)
{
	return vb_timer_at_ns(timers->heap[place]);
}

static void sift_up(struct vb_timers *timers, uint32_t place, struct vb_timer *timer)
{
	while (place) {
		uint32_t parent = (place - 1) / 2;

		if (at_ns(timers, parent) <= vb_timer_at_ns(timer))
			break;
		put(timers, place, timers->heap[parent]);
		place = parent;
	}
	put(timers, place, timer);
}

static void sift_down(struct vb_timers *timers, uint32_t place, struct vb_timer *timer)
{
	for (;;) {
		uint32_t child = 2 * place + 1;

		if (child >= timers->count)
			break;
		if (child + 1 < timers->count &&
		    at_ns(timers, child + 1) < at_ns(timers, child))
			child++;
		if (vb_timer_at_ns(timer) <= at_ns(timers, child))
			break;
		put(timers, place, timers->heap[child]);
		place = child;
	}
	put(timers, place, timer);
}

static void publish(struct vb_timers *timers)
{
	atomic_store(&timers->first_ns, timers->count ? at_ns(timers, 0) : UINT64_MAX);
}

/* Makes room for one more. False: no memory, and its owner has no timer. */
static bool make_room(struct vb_timers *timers)
{
	uint32_t size = timers->size ? 2 * timers->size : 64;
	struct vb_timer **heap;

	if (timers->count < timers->size)
		return true;
	heap = realloc(timers->heap, size * sizeof(struct vb_timer *));
	if (!heap)
		return false;
	timers->heap = heap;
	timers->size = size;
	return true;
}

void vb_timer_init(struct vb_timer *timer, bool of_cq)
{
	atomic_init(&timer->at_ns, UINT64_MAX);
	timer->of_cq = of_cq;
}

static void write_at_ns(struct vb_timer *timer, uint64_t ns)
{
	atomic_store_explicit(&timer->at_ns, ns, memory_order_relaxed);
}

void vb_timer_set(struct vb_nic *nic, struct vb_timer *timer, uint64_t ns)
{
	struct vb_timers *timers = &nic->later.timers;
	bool earlier = false;

	if (ns == UINT64_MAX || vb_timer_at_ns(timer) <= ns)
		return;
	vb_lock_take(&timers->lock);
	if (vb_timer_at_ns(timer) == UINT64_MAX) {
		if (make_room(timers)) {
			write_at_ns(timer, ns);
			sift_up(timers, timers->count++, timer);
		}
	} else if (ns < vb_timer_at_ns(timer)) {
		write_at_ns(timer, ns);
		sift_up(timers, timer->place, timer);
	}
	earlier = timers->count && timers->heap[0] == timer;
	publish(timers);
	vb_lock_drop(&timers->lock);
	if (earlier)
		nic->host.clock.kick(nic->host.arg);
}

/* The caller holds the lock; the timer is in the heap. */
static void take_out(struct vb_timers *timers, struct vb_timer *timer)
{
	uint32_t place = timer->place;
	struct vb_timer *last = timers->heap[--timers->count];

	write_at_ns(timer, UINT64_MAX);
	if (last != timer) {
		sift_down(timers, place, last);
		sift_up(timers, last->place, last);
	}
	publish(timers);
}

void vb_timer_clear(struct vb_nic *nic, struct vb_timer *timer)
{
	vb_lock_take(&nic->later.timers.lock);
	if (vb_timer_at_ns(timer) != UINT64_MAX)
		take_out(&nic->later.timers, timer);
	vb_lock_drop(&nic->later.timers.lock);
}

struct vb_timer *vb_timer_take(struct vb_nic *nic, uint64_t now_ns)
{
	struct vb_timers *timers = &nic->later.timers;
	struct vb_timer *timer = NULL;

	vb_lock_take(&timers->lock);
	if (timers->count && at_ns(timers, 0) <= now_ns) {
		timer = timers->heap[0];
		take_out(timers, timer);
	}
	vb_lock_drop(&timers->lock);
	return timer;
}

uint64_t vb_nic_deadline_ns(const struct vb_nic *nic)
{
	/* Ordered after what the caller published about its sleep (run/progress.c). */
	return vb_min_u64(atomic_load(&nic->later.timers.first_ns),
			  atomic_load(&nic->later.acks_due_ns));
}
