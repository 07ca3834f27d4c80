/* SPDX-License-Identifier: BSD-2-Clause */
#include "group.h"

#include <stdlib.h>

#include "base/prng.h"
#include "cm/clock.h"
#include "cm/host.h"

enum { MANY = 1000 };

static bool poor;

static void *alloc(void *arg, size_t bytes)
{
	(void)arg;
	return poor ? NULL : calloc(1, bytes);
}

static void release(void *arg, void *memory)
{
	(void)arg;
	free(memory);
}

static const struct vb_cm_host host = {.alloc = alloc, .release = release};

/* Set, moved and stopped at random, they ring in order. */
TEST(they_ring_in_order)
{
	static struct vb_cm_clock clock[MANY];
	struct vb_cm_clocks clocks = {0};
	uint64_t rng = 3, last_ns = 0;
	unsigned running = 0;

	for (unsigned i = 0; i < MANY; i++) {
		vb_cm_clock_init(&clock[i]);
		assert_true(vb_cm_clocks_reserve(&clocks, &host, i + 1));
		vb_cm_clock_set(&clocks, &clock[i], vb_prng_next(&rng) % 5000);
	}
	for (unsigned i = 0; i < 3 * MANY; i++) {
		struct vb_cm_clock *any = &clock[vb_prng_next(&rng) % MANY];
		bool stops = vb_prng_next(&rng) % 4 == 0;

		vb_cm_clock_set(&clocks, any, stops ? VB_CM_NEVER : vb_prng_next(&rng) % 5000);
	}
	for (unsigned i = 0; i < MANY; i++)
		running += clock[i].at_ns != VB_CM_NEVER;
	assert_int_equal(clocks.count, running);
	while (vb_cm_clocks_first(&clocks)) {
		struct vb_cm_clock *first = vb_cm_clocks_first(&clocks);

		assert_true(first->at_ns >= last_ns);
		last_ns = first->at_ns;
		vb_cm_clock_set(&clocks, first, VB_CM_NEVER);
		vb_cm_clock_set(&clocks, first, VB_CM_NEVER);
	}
	vb_cm_clocks_fini(&clocks, &host);
}

TEST(there_is_room_or_there_is_not)
{
	struct vb_cm_clocks clocks = {0};

	poor = true;
	assert_false(vb_cm_clocks_reserve(&clocks, &host, 1));
	poor = false;
	assert_true(vb_cm_clocks_reserve(&clocks, &host, 1));
	poor = true;
	assert_true(vb_cm_clocks_reserve(&clocks, &host, 2));
	assert_false(vb_cm_clocks_reserve(&clocks, &host, clocks.size + 1));
	poor = false;
	vb_cm_clocks_fini(&clocks, &host);
}

/* As Linux takes them: 20 is 4.1 s, 16 is 256 ms, and what is less than 8 is one. */
TEST(times_are_those_of_linux)
{
	assert_int_equal(vb_cm_time_ns(0), 1000000);
	assert_int_equal(vb_cm_time_ns(8), 1000000);
	assert_int_equal(vb_cm_time_ns(16), 256000000);
	assert_int_equal(vb_cm_time_ns(20), 4096000000);
	assert_int_equal(vb_cm_time_ns(24), 65536000000);
	assert_int_equal(vb_cm_time_ns(31), 65536000000);
}

/* Of two that are about as long the sum is twice as long, else it is the longer one. */
TEST(timeouts_of_qps_are_those_of_linux)
{
	assert_int_equal(vb_cm_ack_timeout(0, 16), 17);
	assert_int_equal(vb_cm_ack_timeout(15, 16), 17);
	assert_int_equal(vb_cm_ack_timeout(16, 16), 18);
	assert_int_equal(vb_cm_ack_timeout(17, 16), 18);
	assert_int_equal(vb_cm_ack_timeout(18, 16), 19);
	assert_int_equal(vb_cm_ack_timeout(19, 16), 19);
	assert_int_equal(vb_cm_ack_timeout(31, 31), 31);
}
