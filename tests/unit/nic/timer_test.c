/* SPDX-License-Identifier: BSD-2-Clause */

/* The heap of QPs by time, against a list that is searched. */
#include <stdlib.h>

#include "base/prng.h"
#include "nic_fixture.h"

enum { QPS = 100, STEPS = 200000 };

static struct vb_qp *qps;
static uint64_t model[QPS]; /* UINT64_MAX: not armed */

static int begin_timers(void **state)
{
	begin(state);
	qps = calloc(QPS, sizeof(*qps));
	assert_non_null(qps);
	for (unsigned i = 0; i < QPS; i++) {
		qps[i].nic = fix.nic;
		vb_timer_init(&qps[i].later.timer, false);
		model[i] = UINT64_MAX;
	}
	return 0;
}

static int end_timers(void **state)
{
	free(qps);
	return end(state);
}

#define TIMERS(name) TEST_BETWEEN(name, begin_timers, end_timers)

static uint64_t first(void)
{
	uint64_t at_ns = UINT64_MAX;

	for (unsigned i = 0; i < QPS; i++)
		at_ns = model[i] < at_ns ? model[i] : at_ns;
	return at_ns;
}

static void arm(unsigned i, uint64_t at_ns)
{
	vb_timer_arm(fix.nic, &qps[i], at_ns);
	model[i] = at_ns < model[i] ? at_ns : model[i];
}

static void take_due(uint64_t now_ns)
{
	struct vb_timer *timer;

	while ((timer = vb_timer_take(fix.nic, now_ns))) {
		unsigned i = (unsigned)(vb_container_of(timer, struct vb_qp, later.timer) - qps);

		assert_true(model[i] <= now_ns);
		assert_int_equal(model[i], first());
		model[i] = UINT64_MAX;
	}
	assert_true(first() > now_ns);
}

TIMERS(it_does_what_a_list_does)
{
	uint64_t rng = 7, now_ns = 0;

	for (unsigned step = 0; step < STEPS; step++) {
		unsigned i = (unsigned)(vb_prng_next(&rng) % QPS);

		switch (vb_prng_next(&rng) % 8) {
		case 0:
			vb_timer_cancel(fix.nic, &qps[i]);
			model[i] = UINT64_MAX;
			break;
		case 1:
			now_ns += vb_prng_next(&rng) % 100;
			take_due(now_ns);
			break;
		default:
			arm(i, now_ns + vb_prng_next(&rng) % 1000);
		}
		assert_int_equal(vb_nic_deadline_ns(fix.nic), first());
	}
	take_due(UINT64_MAX - 1);
	assert_int_equal(vb_nic_deadline_ns(fix.nic), UINT64_MAX);
}

TIMERS(a_deadline_only_comes_nearer)
{
	arm(0, 1000);
	arm(0, 2000);
	assert_int_equal(vb_nic_deadline_ns(fix.nic), 1000);
	arm(0, 500);
	assert_int_equal(vb_nic_deadline_ns(fix.nic), 500);
	arm(0, UINT64_MAX);
	assert_int_equal(vb_nic_deadline_ns(fix.nic), 500);
	vb_timer_cancel(fix.nic, &qps[0]);
}

/* Whoever sleeps until the deadline must hear of an earlier one, and of nothing else. */
TIMERS(an_earlier_deadline_kicks)
{
	unsigned kicks;

	arm(0, 1000);
	assert_true(fix.kicks > 0);
	kicks = fix.kicks;
	arm(1, 2000);
	arm(0, 3000);
	assert_int_equal(fix.kicks, kicks);
	arm(1, 900);
	assert_true(fix.kicks > kicks);
	vb_timer_cancel(fix.nic, &qps[0]);
	vb_timer_cancel(fix.nic, &qps[1]);
}
