/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_TIMER_H
#define VB_NIC_TIMER_H

/* When QPs and CQs want to be looked at. Any thread. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"

struct vb_nic;

struct vb_timer {
	_Atomic uint64_t at_ns; /* written with the timers' lock; UINT64_MAX: not in the heap */
	uint32_t place;
	bool of_cq; /* it is part of a struct vb_cq; else of a struct vb_qp */
};

/* All of a NIC, by their time: a heap. */
struct vb_timers {
	vb_lock lock;
	struct vb_timer **heap;
	uint32_t count, size;
	_Atomic uint64_t first_ns;
};

void vb_timers_init(struct vb_timers *timers);
void vb_timers_fini(struct vb_timers *timers);
void vb_timer_init(struct vb_timer *timer, bool of_cq);
/* Look at its owner at at_ns or before. Under any lock but the timers'. */
void vb_timer_set(struct vb_nic *nic, struct vb_timer *timer, uint64_t at_ns);
void vb_timer_clear(struct vb_nic *nic, struct vb_timer *timer);
/* Take out one whose time has come, NULL: none. */
struct vb_timer *vb_timer_take(struct vb_nic *nic, uint64_t now_ns);

/* When it will be looked at; without the lock, so others may bring that forward meanwhile. */
static inline uint64_t vb_timer_at_ns(const struct vb_timer *timer)
{
	return atomic_load_explicit(&timer->at_ns, memory_order_relaxed);
}

#endif
