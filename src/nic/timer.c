/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A heap of QPs by time. A QP moves its deadline with every acknowledgement, so deadlines here
 * are lazy: one that lies too early costs a look, one that has to come earlier is moved. The lock
 * is met once per QP and retransmission time, not once per packet.
 */

#include <stdlib.h>

#include "base/check.h"
#include "nic/internal.h"
#include "nic/qp.h"

void vb_timers_init(struct vb_timers *timers)
{
	vb_lock_init(&timers->lock);
	atomic_store(&timers->first_ns, UINT64_MAX);
}

void vb_timers_fini(struct vb_timers *timers)
{
	vb_lock_fini(&timers->lock);
	free(timers->heap);
}

static void put(struct vb_timers *timers, uint32_t place, struct vb_qp *qp)
{
	timers->heap[place] = qp;
	qp->timer.place = place;
}

static void sift_up(struct vb_timers *timers, uint32_t place, struct vb_qp *qp)
{
	while (place) {
		uint32_t parent = (place - 1) / 2;

		if (timers->heap[parent]->timer.at_ns <= qp->timer.at_ns)
			break;
		put(timers, place, timers->heap[parent]);
		place = parent;
	}
	put(timers, place, qp);
}

static void sift_down(struct vb_timers *timers, uint32_t place, struct vb_qp *qp)
{
	for (;;) {
		uint32_t child = 2 * place + 1;

		if (child >= timers->count)
			break;
		if (child + 1 < timers->count &&
		    timers->heap[child + 1]->timer.at_ns < timers->heap[child]->timer.at_ns)
			child++;
		if (qp->timer.at_ns <= timers->heap[child]->timer.at_ns)
			break;
		put(timers, place, timers->heap[child]);
		place = child;
	}
	put(timers, place, qp);
}

static void publish(struct vb_timers *timers)
{
	atomic_store(&timers->first_ns, timers->count ? timers->heap[0]->timer.at_ns : UINT64_MAX);
}

/* Room for every QP that exists; false if there is none, and then QPs go without a clock. */
static bool make_room(struct vb_timers *timers)
{
	uint32_t size = timers->size ? 2 * timers->size : 64;
	struct vb_qp **heap;

	if (timers->count < timers->size)
		return true;
	heap = realloc(timers->heap, size * sizeof(struct vb_qp *));
	if (!heap)
		return false;
	timers->heap = heap;
	timers->size = size;
	return true;
}

void vb_timer_arm(struct vb_nic *nic, struct vb_qp *qp, uint64_t at_ns)
{
	struct vb_timers *timers = &nic->timers;
	bool earlier = false;

	if (at_ns == UINT64_MAX ||
	    atomic_load_explicit(&qp->timer_ns, memory_order_relaxed) <= at_ns)
		return;
	vb_lock_take(&timers->lock);
	if (qp->timer.at_ns == UINT64_MAX) {
		if (make_room(timers)) {
			qp->timer.at_ns = at_ns;
			sift_up(timers, timers->count++, qp);
		}
	} else if (at_ns < qp->timer.at_ns) {
		qp->timer.at_ns = at_ns;
		sift_up(timers, qp->timer.place, qp);
	}
	atomic_store_explicit(&qp->timer_ns, qp->timer.at_ns, memory_order_relaxed);
	earlier = timers->count && timers->heap[0] == qp;
	publish(timers);
	vb_lock_drop(&timers->lock);
	if (earlier)
		nic->host.kick(nic->host.arg);
}

/* Caller holds the lock; the QP is in the heap. */
static void take_out(struct vb_timers *timers, struct vb_qp *qp)
{
	uint32_t place = qp->timer.place;
	struct vb_qp *last = timers->heap[--timers->count];

	qp->timer.at_ns = UINT64_MAX;
	atomic_store_explicit(&qp->timer_ns, UINT64_MAX, memory_order_relaxed);
	if (last != qp) {
		sift_down(timers, place, last);
		sift_up(timers, last->timer.place, last);
	}
	publish(timers);
}

void vb_timer_cancel(struct vb_nic *nic, struct vb_qp *qp)
{
	vb_lock_take(&nic->timers.lock);
	if (qp->timer.at_ns != UINT64_MAX)
		take_out(&nic->timers, qp);
	vb_lock_drop(&nic->timers.lock);
}

struct vb_qp *vb_timer_take(struct vb_nic *nic, uint64_t now_ns)
{
	struct vb_timers *timers = &nic->timers;
	struct vb_qp *qp = NULL;

	vb_lock_take(&timers->lock);
	if (timers->count && timers->heap[0]->timer.at_ns <= now_ns) {
		qp = timers->heap[0];
		take_out(timers, qp);
	}
	vb_lock_drop(&timers->lock);
	return qp;
}

uint64_t vb_nic_deadline_ns(const struct vb_nic *nic)
{
	/* Ordered against what the caller says of its sleep before it asks (run/progress.c). */
	return vb_min_u64(atomic_load(&nic->timers.first_ns), atomic_load(&nic->acks_due_ns));
}
