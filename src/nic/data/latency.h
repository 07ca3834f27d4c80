/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_LATENCY_H
#define VB_NIC_LATENCY_H

/*
 * How long a QP's requests take, from the post to when the application has the completion: measured
 * while somebody watches (control/sample.h), by functions that abi puts in place of the usual ones
 * then. Counted are requests with a completion of their own, and a good one. QP locked.
 */

#include "nic/data/qp.h"

/* How many steps there are from one power of two to the next: a value is right to a sixteenth. */
#define VB_LATENCY_STEPS 16u
#define VB_LATENCY_BUCKETS (37 * VB_LATENCY_STEPS) /* longer than 18 minutes: taken for that */

/* In the time between two looks. */
struct vb_latency_span {
	uint64_t p50_ns, p99_ns, max_ns;
};

struct vb_latency {
	uint32_t next, mask;	  /* requests before this place are counted; places of the queue */
	uint64_t count, sum_ns;	  /* of all that were measured */
	struct vb_latency_span last; /* between the last two looks */
	uint64_t max_ns;	     /* since the last look, as the following */
	uint32_t total;
	uint32_t bucket[VB_LATENCY_BUCKETS];
	uint64_t posted_ns[]; /* of each place; 0: is not counted */
};

/* Measures from now on. anew: nobody did so up to now. Does nothing if there is no memory. */
void vb_latency_begin(struct vb_qp *qp, bool anew);

/* A request is about to be posted, the nth after those in the queue. */
void vb_latency_post(struct vb_qp *qp, uint32_t nth, bool signaled, uint64_t now_ns);

/* The application has taken completions. good: none of them is an error. */
void vb_latency_taken(struct vb_qp *qp, bool good, uint64_t now_ns);

/* Somebody looks: ends a time, and begins the next. */
void vb_latency_look(struct vb_qp *qp);

/* The queue begins anew. */
void vb_latency_reset(struct vb_qp *qp);

#endif
