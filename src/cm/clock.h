/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CM_CLOCK_H
#define VB_CM_CLOCK_H

/* When ids want to be looked at: a heap by time. The caller holds the lock. */

#include <stdbool.h>
#include <stdint.h>

#include "base/lent.h"

struct vb_cm_host;

#define VB_CM_NEVER UINT64_MAX

/* One of an id. */
struct vb_cm_clock {
	uint64_t at_ns;	   /* VB_CM_NEVER: it does not run, and is not in the heap */
	uint64_t until_ns; /* ... and then it has run out */
	uint64_t slow_ns;  /* when to repeat to a peer that is not known to be one of ours */
	uint64_t step_ns;  /* from one look to the next */
	uint32_t place;
};

struct vb_cm_clocks {
	struct vb_cm_clock **heap;
	uint32_t count, size;
};

/* Room for that many clocks; false if there is no memory. */
bool vb_cm_clocks_reserve(struct vb_cm_clocks *clocks, const struct vb_cm_host *host,
			  uint32_t count);
void vb_cm_clocks_fini(struct vb_cm_clocks *clocks, const struct vb_cm_host *host);

void vb_cm_clock_init(struct vb_cm_clock *clock);

/* VB_CM_NEVER stops it. */
void vb_cm_clock_set(struct vb_cm_clocks *clocks, struct vb_cm_clock *clock, uint64_t at_ns);

/* The first; NULL: none runs. */
struct vb_cm_clock *vb_cm_clocks_first(const struct vb_cm_clocks *clocks);

/*
 * A time as messages have it, exponent n, as Linux takes it: 2^(n-8) ms for 4.096 us * 2^n. At most
 * 65 s, for a stranger's number shall not keep anything longer.
 */
uint64_t vb_cm_time_ns(unsigned exponent);

/*
 * How long a QP waits for an acknowledgement (IBTA 12.7.34), as an exponent, as Linux adds them up:
 * what its peer takes for one, and the way there and back.
 */
VB_LENT uint8_t vb_cm_ack_timeout(unsigned ack_delay, unsigned lifetime);

#endif
