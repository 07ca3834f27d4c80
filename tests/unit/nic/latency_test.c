/* SPDX-License-Identifier: BSD-2-Clause */

/* Latencies are those of the requests that were measured, and of no others. */
#include <stdlib.h>

#include "nic/control/sample.h"
#include "nic/data/latency.h"
#include "pair_fixture.h"

enum { LOOK_S = 1 };

static int looks;

/* What abi does: the tests measure by hand. */
static void on_measure(struct vb_ctx *ctx, struct vb_qp *qp)
{
	looks += qp != NULL;
}

static struct vb_sample_qp look(const struct side *s, uint32_t measure_s)
{
	struct vb_sample_qp qp;
	size_t bytes;
	struct vb_sample *sample;

	s->ctx->measure = on_measure;
	sample = vb_nic_sample(s->nic, measure_s, &bytes);
	assert_non_null(sample);
	assert_int_equal(sample->qps, 1);
	qp = sample->qp[0];
	free(sample);
	return qp;
}

/* One request that takes so long, as the application sees it. */
static void exchange(uint64_t ns, bool signaled)
{
	qp_recv(&side[1], b, 0, 0, 64);
	vb_lock_take(&a->lock);
	vb_latency_post(a, 0, signaled, fake_ns);
	vb_lock_drop(&a->lock);
	assert_int_equal(qp_send(&side[0], a, 0, 64), 0);
	settle();
	fake_ns += ns;
	assert_wc(side[0].cq, 0, IBV_WC_SUCCESS);
	assert_wc(side[1].cq, 0, IBV_WC_SUCCESS);
	vb_lock_take(&a->lock);
	vb_latency_taken(a, true, fake_ns);
	vb_lock_drop(&a->lock);
}

static void assert_near(uint64_t is, uint64_t wanted)
{
	assert_true(is >= wanted - wanted / 16 && is <= wanted + wanted / 16);
}

RC_PAIR(nothing_is_measured_unless_somebody_looks)
{
	looks = 0;
	exchange(1000, true);
	assert_int_equal(look(&side[0], 0).latency.count, 0);
	exchange(1000, true);
	assert_int_equal(look(&side[0], 0).latency.count, 0);
	assert_null(a->tally.latency);
	assert_int_equal(looks, 0);
}

RC_PAIR(percentiles_are_those_of_the_time_between_two_looks)
{
	struct vb_sample_qp qp;

	look(&side[0], LOOK_S);
	for (unsigned i = 0; i < 98; i++)
		exchange(2000, true);
	exchange(70000, true);
	exchange(900000, true);
	qp = look(&side[0], LOOK_S);
	assert_int_equal(qp.latency.count, 100);
	assert_int_equal(qp.latency.sum_ns, 98 * 2000 + 70000 + 900000);
	assert_near(qp.latency.p50_ns, 2000);
	assert_near(qp.latency.p99_ns, 70000);
	assert_int_equal(qp.latency.max_ns, 900000);
	exchange(300, true);
	/* Who looks without saying that it will again sees the last time, and ends none. */
	assert_int_equal(look(&side[0], 0).latency.max_ns, 900000);
	qp = look(&side[0], LOOK_S);
	assert_int_equal(qp.latency.max_ns, 300);
	assert_near(qp.latency.p50_ns, 300);
	assert_int_equal(qp.latency.count, 101);
}

RC_PAIR(what_has_no_completion_of_its_own_is_not_counted)
{
	look(&side[0], LOOK_S);
	exchange(5000, false);
	assert_int_equal(look(&side[0], LOOK_S).latency.count, 0);
}

RC_PAIR(it_ends_some_time_after_the_last_look)
{
	static const uint64_t long_ns = 10000000000;

	look(&side[0], LOOK_S);
	exchange(4000, true);
	assert_int_equal(look(&side[0], LOOK_S).latency.max_ns, 4000);
	fake_ns += long_ns;
	assert_int_equal(look(&side[0], 0).latency.max_ns, 0);
	assert_int_equal(look(&side[0], 0).latency.count, 1);
	/* The next one begins anew: what was posted before is not known. */
	assert_int_equal(look(&side[0], LOOK_S).latency.max_ns, 0);
	exchange(6000, true);
	assert_int_equal(look(&side[0], LOOK_S).latency.max_ns, 6000);
}

RC_PAIR(every_time_has_its_bucket)
{
	look(&side[0], LOOK_S);
	for (uint64_t ns = 1; ns < 1ull << 36; ns = ns * 5 / 4 + 1) {
		exchange(ns, true);
		fake_ns += 1;
		assert_near(look(&side[0], 3600).latency.p50_ns, ns);
	}
}
