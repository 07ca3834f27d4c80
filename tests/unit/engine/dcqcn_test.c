/* SPDX-License-Identifier: BSD-2-Clause */
/* Rates after CNPs, in virtual time; and sixteen senders into one port. */
#include "engine/dcqcn.h"

#include "base/check.h"
#include "base/prng.h"
#include "group.h"

enum { LINE = 10000000, SENDERS = 16 };

static uint32_t recovered(struct vb_dcqcn *cc, uint64_t now_ns, uint32_t bytes)
{
	vb_dcqcn_sent(cc, bytes);
	return vb_dcqcn_rate(cc, now_ns);
}

TEST(the_first_cnp_halves_the_rate)
{
	struct vb_dcqcn cc = { 0 };

	vb_dcqcn_cut(&cc, LINE, 1000);
	assert_int_equal(vb_dcqcn_rate(&cc, 1000), LINE / 2);
	vb_dcqcn_cut(&cc, LINE, 1000);
	assert_int_equal(vb_dcqcn_rate(&cc, 1000), LINE / 4);
}

TEST(no_cnp_stops_a_sender)
{
	struct vb_dcqcn cc = { 0 };

	for (unsigned i = 0; i < 1000; i++)
		vb_dcqcn_cut(&cc, LINE, 1000);
	assert_in_range(vb_dcqcn_rate(&cc, 1000), LINE / 1000, LINE / 999);
	assert_int_equal(cc.alpha >> 8, VB_DCQCN_ONE >> 8);
}

/* Five halves of the way back, then further, at last the line's rate: and it is forgotten. */
TEST(time_brings_the_rate_back)
{
	struct vb_dcqcn cc = { 0 };
	uint64_t now = 1000, period = vb_dcqcn_period_ns(LINE);
	uint32_t last = LINE / 4;
	unsigned steps = 0;

	vb_dcqcn_cut(&cc, LINE, now);
	vb_dcqcn_cut(&cc, LINE, now);
	for (; cc.line_kbps; steps++) {
		uint32_t rate = vb_dcqcn_rate(&cc, now += period);

		assert_true(rate > last);
		if (steps < 5)
			assert_int_equal(rate, last + (LINE / 2 - last) / 2);
		last = rate;
		assert_true(steps < 5000);
	}
	assert_int_equal(last, LINE);
	assert_true(steps > 5);
}

TEST(octets_bring_it_back_too)
{
	struct vb_dcqcn slow = { 0 }, busy = { 0 };
	uint64_t now = 1000, period = vb_dcqcn_period_ns(LINE);

	vb_dcqcn_cut(&slow, LINE, now);
	vb_dcqcn_cut(&busy, LINE, now);
	for (unsigned i = 0; i < 20; i++) {
		now += period;
		vb_dcqcn_rate(&slow, now);
		recovered(&busy, now, 10 << 20);
	}
	assert_true(!busy.line_kbps || busy.rate_kbps > slow.rate_kbps);
}

TEST(a_long_silence_costs_no_time)
{
	struct vb_dcqcn cc = { 0 };

	vb_dcqcn_cut(&cc, LINE, 1000);
	assert_int_equal(vb_dcqcn_rate(&cc, UINT64_MAX / 2), LINE);
	assert_int_equal(cc.line_kbps, 0);
}

/* A slow line's period is longer than a few of its frames. */
TEST(the_period_fits_the_line)
{
	assert_int_equal(vb_dcqcn_period_ns(100000000), 55000);
	assert_int_equal(vb_dcqcn_period_ns(1000), 65536ull * 8000);
}

/*
 * A port with a queue that marks as link/around/net.c does, in steps of a period: the senders get
 * equal shares, nothing is lost, and the port is busy.
 */
static void share(uint32_t line_kbps)
{
	struct vb_dcqcn cc[SENDERS] = { 0 };
	uint64_t period = vb_dcqcn_period_ns(line_kbps), now = 1000, seed = 5;
	double least = 4.0 * (double)period * line_kbps / 8e6, queue = 0, most = 0;
	double sent[SENDERS] = { 0 }, all = 0, squares = 0, port = (double)period * line_kbps / 8e6;

	for (unsigned step = 0; step < 8000; step++, now += period) {
		for (unsigned i = 0; i < SENDERS; i++) {
			uint32_t rate = cc[i].line_kbps ? vb_dcqcn_rate(&cc[i], now) : line_kbps;
			double bytes = (double)period * rate / 8e6, part = (queue - least) / least;
			double frames = bytes / 1024, quiet = 1;

			if (cc[i].line_kbps)
				vb_dcqcn_sent(&cc[i], (uint32_t)bytes);
			queue += bytes;
			sent[i] += step < 4000 ? 0 : bytes;
			/* The chance that none of its frames is marked. */
			part = part < 0 ? 0 : part > 3 ? 1 : part / 30;
			for (; frames > 0; frames--)
				quiet *= 1 - part * (frames < 1 ? frames : 1);
			if ((double)(vb_prng_next(&seed) % 1000000) >= 1e6 * quiet)
				vb_dcqcn_cut(&cc[i], line_kbps, now);
		}
		queue = queue > port ? queue - port : 0;
		most = step >= 4000 && queue > most ? queue : most;
	}
	for (unsigned i = 0; i < SENDERS; i++) {
		all += sent[i];
		squares += sent[i] * sent[i];
	}
	assert_true(all * all / (SENDERS * squares) > 0.95);
	assert_true(all > 0.95 * 4000 * port);
	/* What marks everything is four times what marks nothing. */
	assert_true(most < 4.5 * least);
}

TEST(sixteen_senders_share_a_port)
{
	share(100000);
	share(10000000);
}
