/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/core/order.h"

#include "nic_fixture.h"

static void no_time(void *arg, uint64_t ns)
{
}

static struct vb_host_order order = { .seed = 7, .dawdle = no_time };

enum { STREAMS = 4 };

/* A permutation in which each stream is in its order. Returns how many are not where they were. */
static unsigned moved(uint64_t seed, unsigned count)
{
	uint32_t stream[VB_ORDER_MAX] = { 0 };
	uint8_t place[VB_ORDER_MAX], last[STREAMS] = { 0 };
	bool seen[VB_ORDER_MAX] = { false };
	unsigned moves = 0;

	for (unsigned i = 0; i < count; i++)
		stream[i] = (i * 7 + i / 5) % STREAMS;
	vb_order_streams(&seed, stream, count, place);
	for (unsigned i = 0; i < count; i++) {
		assert_true(place[i] < count);
		assert_false(seen[place[i]]);
		seen[place[i]] = true;
		assert_true(place[i] >= last[stream[place[i]]]);
		last[stream[place[i]]] = place[i];
		moves += place[i] != i;
	}
	return moves;
}

NIC_TEST(streams_stay_in_order)
{
	unsigned moves = 0;

	for (uint64_t seed = 0; seed < 200; seed++) {
		for (unsigned count = 0; count <= VB_ORDER_MAX; count += 1 + count / 4)
			moves += moved(seed, count);
	}
	assert_true(moves > 10000);
}

NIC_TEST(one_stream_is_left_alone)
{
	static const uint32_t stream[VB_ORDER_MAX];
	uint8_t place[VB_ORDER_MAX];
	uint64_t draws = 3;

	vb_order_streams(&draws, stream, VB_ORDER_MAX, place);
	for (unsigned i = 0; i < VB_ORDER_MAX; i++)
		assert_int_equal(place[i], i);
}

/* Each of the six orders of three streams comes up. */
NIC_TEST(every_order_is_possible)
{
	static const uint32_t stream[] = { 1, 2, 3 };
	unsigned seen = 0;

	for (uint64_t seed = 0; seed < 100; seed++) {
		uint8_t place[VB_ORDER_MAX];
		uint64_t draws = seed;

		vb_order_streams(&draws, stream, 3, place);
		seen |= 1u << (place[0] * 3 + place[1]);
	}
	assert_int_equal(__builtin_popcount(seen), 6);
}

NIC_TEST(the_seed_decides)
{
	uint64_t first[3];

	fix.nic->host.order = &order;
	for (unsigned i = 0; i < 3; i++)
		first[i] = vb_order_begin(fix.nic, VB_ORDER_OF_PACKETS);
	assert_true(first[0] != first[1] && first[1] != first[2]);
	assert_true(vb_order_begin(fix.nic, VB_ORDER_OF_EVENTS) != first[0]);
	fix.nic->orders[VB_ORDER_OF_PACKETS] = 0;
	for (unsigned i = 0; i < 3; i++)
		assert_true(vb_order_begin(fix.nic, VB_ORDER_OF_PACKETS) == first[i]);
	fix.nic->orders[VB_ORDER_OF_PACKETS] = 0;
	order.seed++;
	assert_true(vb_order_begin(fix.nic, VB_ORDER_OF_PACKETS) != first[0]);
	fix.nic->host.order = NULL;
}
