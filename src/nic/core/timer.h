/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_TIMER_H
#define VB_NIC_TIMER_H

/* When QPs and CQs have to be looked at. Any thread. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"

struct vb_nic;

struct vb_timer {
	_Atomic uint64_t at_ns; /* written with the timers' lock; UINT64_MAX: not in the heap */
	uint32_t place;
	bool of_cq; /* part of a struct vb_cq; else of a struct vb_qp */
};

/* All timers of a NIC, as a heap by time. */
struct vb_timers {
	vb_lock lock;
	struct vb_timer **heap;
	uint32_t count, size;
	_Atomic uint64_t first_ns;
};

void vb_timers_init(struct vb_timers *timers);
void vb_timers_fini(struct vb_timers *timers);
void vb_timer_init(struct vb_timer *timer, bool of_cq);
/* Its owner is looked at by at_ns. May be called under any lock but the timers'. */
void vb_timer_set(struct vb_nic *nic, struct vb_timer *timer, uint64_t at_ns);
void vb_timer_clear(struct vb_nic *nic, struct vb_timer *timer);
/* Takes out one that is due; NULL: none. */
struct vb_timer *vb_timer_take(struct vb_nic *nic, uint64_t now_ns);

/* When it is due. Read without the lock, so another thread may bring it forward meanwhile. */
static inline uint64_t vb_timer_at_ns(const struct vb_timer *timer)
{
	return atomic_load_explicit(&timer->at_ns, memory_order_relaxed);
}

/* When to call vb_nic_turn() next: ns as now_ns(), UINT64_MAX: never. No lock. */
uint64_t vb_nic_deadline_ns(const struct vb_nic *nic);

#endif
