/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/dcqcn.h"

#include "base/check.h"

/*
 * As in the paper: 55 us. On a slow line that is the time of a frame or two, which of many senders
 * only some could have had: there it is what some frames of each take.
 */
#define PERIOD_NS 55000u
#define PERIOD_BYTES 65536u

enum {
	STEP_PERIODS = 36,   /* at the line's rate a step by octets takes so long (10 MB there) */
	RECOVERY_STEPS = 5,  /* half-way back */
	ALPHA_SHIFT = 8,     /* g = 1/256 */
	RISE_PARTS = 1000,   /* additive increase: 40 Mb/s there */
	FAST_RISE_PARTS = 100, /* hyper increase */
	LEAST_PARTS = 1000,
	FULL_PARTS = 100,    /* closer to the line's rate than that is the line's rate */
	PERIODS_MOST = 5000, /* after which nothing is left of alpha */
};

uint64_t vb_dcqcn_period_ns(uint32_t line_kbps)
{
	return vb_max_u64(PERIOD_NS, PERIOD_BYTES * 8000000ull / line_kbps);
}

static uint64_t step_bytes(const struct vb_dcqcn *cc)
{
	return cc->period_ns * STEP_PERIODS * cc->line_kbps / 8000000;
}

static void rise(struct vb_dcqcn *cc)
{
	uint32_t least = (uint32_t)vb_min_u64(cc->time_steps, cc->byte_steps);
	uint32_t most = (uint32_t)vb_max_u64(cc->time_steps, cc->byte_steps);
	uint64_t target = cc->target_kbps;

	if (least > RECOVERY_STEPS)
		target += cc->line_kbps / FAST_RISE_PARTS * (uint64_t)(least - RECOVERY_STEPS);
	else if (most > RECOVERY_STEPS)
		target += cc->line_kbps / RISE_PARTS;
	cc->target_kbps = (uint32_t)vb_min_u64(target, cc->line_kbps);
	cc->rate_kbps += (cc->target_kbps - cc->rate_kbps) / 2;
}

/* Lets the time pass. */
static void advance(struct vb_dcqcn *cc, uint64_t now_ns)
{
	uint64_t n = 0;

	for (; cc->alpha_ns + cc->period_ns <= now_ns && n < PERIODS_MOST; n++) {
		cc->alpha_ns += cc->period_ns;
		cc->alpha -= cc->alpha >> ALPHA_SHIFT;
	}
	for (n = 0; cc->step_ns + cc->period_ns <= now_ns && n < PERIODS_MOST; n++) {
		cc->step_ns += cc->period_ns;
		cc->time_steps++;
		rise(cc);
	}
	if (n == PERIODS_MOST)
		cc->rate_kbps = cc->line_kbps;
}

void vb_dcqcn_cut(struct vb_dcqcn *cc, uint32_t line_kbps, uint64_t now_ns)
{
	uint64_t cut;

	if (!cc->line_kbps)
		*cc = (struct vb_dcqcn){
			.line_kbps = line_kbps,
			.rate_kbps = line_kbps,
			.alpha = VB_DCQCN_ONE,
			.period_ns = vb_dcqcn_period_ns(line_kbps),
			.alpha_ns = now_ns,
			.step_ns = now_ns,
		};
	advance(cc, now_ns);
	cut = (uint64_t)cc->rate_kbps * cc->alpha / VB_DCQCN_ONE / 2;
	cc->target_kbps = cc->rate_kbps;
	cc->rate_kbps = (uint32_t)vb_max_u64(cc->rate_kbps - cut, cc->line_kbps / LEAST_PARTS + 1);
	cc->alpha += (VB_DCQCN_ONE - cc->alpha) >> ALPHA_SHIFT;
	cc->alpha_ns = cc->step_ns = now_ns;
	cc->time_steps = cc->byte_steps = 0;
	cc->bytes = 0;
}

void vb_dcqcn_sent(struct vb_dcqcn *cc, uint32_t bytes)
{
	cc->bytes += bytes;
	if (cc->bytes < step_bytes(cc))
		return;
	cc->bytes -= step_bytes(cc);
	cc->byte_steps++;
	rise(cc);
}

uint32_t vb_dcqcn_rate(struct vb_dcqcn *cc, uint64_t now_ns)
{
	uint32_t line_kbps = cc->line_kbps;

	advance(cc, now_ns);
	if (cc->rate_kbps + line_kbps / FULL_PARTS < line_kbps)
		return cc->rate_kbps;
	cc->line_kbps = 0;
	return line_kbps;
}
