/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/data/latency.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

/* The power of two at which steps of one ns become steps of more. */
enum { FINE_BITS = 4 };

_Static_assert(1u << FINE_BITS == VB_LATENCY_STEPS, "below, each value has its own bucket");

static unsigned bucket_of(uint64_t ns)
{
	unsigned bits, bucket;

	if (ns < VB_LATENCY_STEPS)
		return (unsigned)ns;
	bits = 63 - (unsigned)__builtin_clzll(ns);
	bucket = (bits - FINE_BITS + 1) * VB_LATENCY_STEPS +
		 (unsigned)(ns >> (bits - FINE_BITS) & (VB_LATENCY_STEPS - 1));
	return bucket < VB_LATENCY_BUCKETS ? bucket : VB_LATENCY_BUCKETS - 1;
}

/* The middle of a bucket. */
static uint64_t value_of(unsigned bucket)
{
	unsigned shift = bucket / VB_LATENCY_STEPS;
	uint64_t first;

	if (!shift)
		return bucket;
	first = (uint64_t)(VB_LATENCY_STEPS + bucket % VB_LATENCY_STEPS) << (shift - 1);
	return first + ((1ull << (shift - 1)) >> 1);
}

/* So many of a thousand are not longer. */
static uint64_t quantile(const struct vb_latency *latency, unsigned of_1000)
{
	uint64_t wanted = ((uint64_t)latency->total * of_1000 + 999) / 1000, seen = 0;

	for (unsigned i = 0; i < VB_LATENCY_BUCKETS; i++) {
		seen += latency->bucket[i];
		if (seen >= wanted)
			return vb_min_u64(value_of(i), latency->max_ns);
	}
	return latency->max_ns;
}

static uint32_t taken_up_to(const struct vb_qp *qp)
{
	return atomic_load_explicit(&qp->user.sq_released, memory_order_acquire);
}

static void forget(struct vb_latency *latency)
{
	latency->max_ns = latency->total = 0;
	memset(latency->bucket, 0, sizeof(latency->bucket));
}

void vb_latency_begin(struct vb_qp *qp, bool anew)
{
	size_t places = qp->req.sq.mask + (size_t)1;
	struct vb_latency *latency = qp->tally.latency;

	if (!latency) {
		latency = calloc(1, sizeof(*latency) + places * sizeof(latency->posted_ns[0]));
		if (!latency)
			return;
		latency->mask = qp->req.sq.mask;
		latency->next = taken_up_to(qp);
		qp->tally.latency = latency;
	} else if (anew) {
		memset(latency->posted_ns, 0, places * sizeof(latency->posted_ns[0]));
		latency->next = taken_up_to(qp);
		forget(latency);
	}
}

void vb_latency_post(struct vb_qp *qp, uint32_t nth, bool signaled, uint64_t now_ns)
{
	struct vb_latency *latency = qp->tally.latency;

	if (latency)
		latency->posted_ns[(qp->req.tail + nth) & latency->mask] =
			signaled || qp->made.sq_sig_all ? now_ns : 0;
}

static void add(struct vb_latency *latency, uint64_t ns)
{
	latency->count++;
	latency->sum_ns += ns;
	latency->total++;
	latency->bucket[bucket_of(ns)]++;
	latency->max_ns = vb_max_u64(latency->max_ns, ns);
}

void vb_latency_taken(struct vb_qp *qp, bool good, uint64_t now_ns)
{
	struct vb_latency *latency = qp->tally.latency;
	uint32_t end = taken_up_to(qp);

	if (!latency)
		return;
	/* A queue that has requests of our own numbers its completions otherwise. */
	if (!good || qp->req.own.done || end - latency->next > latency->mask + 1)
		latency->next = end;
	for (; latency->next != end; latency->next++) {
		uint64_t *posted_ns = &latency->posted_ns[latency->next & latency->mask];

		if (*posted_ns && now_ns >= *posted_ns)
			add(latency, now_ns - *posted_ns);
		*posted_ns = 0;
	}
}

void vb_latency_look(struct vb_qp *qp)
{
	struct vb_latency *latency = qp->tally.latency;

	if (!latency)
		return;
	latency->last = (struct vb_latency_span){ .max_ns = latency->max_ns };
	if (latency->total) {
		latency->last.p50_ns = quantile(latency, 500);
		latency->last.p99_ns = quantile(latency, 990);
	}
	forget(latency);
}

void vb_latency_reset(struct vb_qp *qp)
{
	struct vb_latency *latency = qp->tally.latency;

	if (!latency)
		return;
	latency->next = 0;
	memset(latency->posted_ns, 0,
	       (latency->mask + (size_t)1) * sizeof(latency->posted_ns[0]));
}
