/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/mem/journal.h"

#include "nic_fixture.h"

enum { BYTES = 512, RELAXED = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING,
       STRICT = IBV_ACCESS_LOCAL_WRITE };

/* Aligned: what is relaxed is cut at lines of the cache, and the pieces come in any order. */
static _Alignas(64) uint8_t memory[BYTES];
static uint8_t data[2 * BYTES];
static struct vb_journal journal;
static uint64_t draws;
static unsigned overtaken; /* octets seen before one that stands ahead of them */

/* The program that looks, while time passes. */
static void look(void *arg, uint64_t ns)
{
	bool hole = false;

	for (unsigned i = 0; i < BYTES; i++) {
		hole |= !memory[i];
		overtaken += hole && memory[i];
	}
}

static struct vb_host_order order = { .dawdle = look };

static void start(uint64_t seed, bool iba, bool defers)
{
	memset(memory, 0, sizeof(memory));
	memset(data, 1, BYTES);
	memset(data + BYTES, 2, BYTES);
	order.iba = iba;
	fix.nic->host.order = &order;
	draws = seed;
	vb_journal_begin(&journal, fix.nic, &draws);
	journal.data = data;
	journal.data_bytes = sizeof(data);
	journal.defers = defers;
}

static void stop(void)
{
	vb_journal_end(&journal);
	fix.nic->host.order = NULL;
}

/* Two halves, of which the second may be noted first. */
static void halves(unsigned access, bool iba)
{
	overtaken = 0;
	for (uint64_t seed = 0; seed < 200; seed++) {
		start(seed, iba, true);
		assert_true(vb_journal_put(access, memory, data, BYTES / 2));
		assert_true(vb_journal_put(access, memory + BYTES / 2, data, BYTES / 2));
		assert_int_equal(memory[0], 0); /* later */
		stop();
		assert_memory_equal(memory, data, BYTES);
	}
}

NIC_TEST(octets_are_placed_in_order)
{
	halves(STRICT, false);
	assert_int_equal(overtaken, 0);
}

/* ibv_reg_mr(3), IBV_ACCESS_RELAXED_ORDERING: "reach memory in an arbitrary order". */
NIC_TEST(relaxed_octets_are_not)
{
	halves(RELAXED, false);
	assert_true(overtaken > 0);
}

/* C9-28: nothing is said of what stands in memory before the message completes. */
NIC_TEST(by_the_specification_none_are)
{
	halves(STRICT, true);
	assert_true(overtaken > 0);
}

/* Which of two values of the same octets is there in the end, as bits. */
static unsigned last_values(unsigned access, bool iba)
{
	unsigned seen = 0;

	for (uint64_t seed = 0; seed < 200; seed++) {
		start(seed, iba, true);
		assert_true(vb_journal_put(access, memory, data, BYTES));
		assert_true(vb_journal_put(access, memory, data + BYTES, BYTES));
		stop();
		for (unsigned i = 0; i < BYTES; i++)
			seen |= memory[i];
	}
	return seen;
}

/* "Back-to-back network writes ... leave the region in an unknown state", but only there. */
NIC_TEST(the_later_value_stays_unless_relaxed)
{
	assert_int_equal(last_values(STRICT, false), 2);
	assert_int_equal(last_values(STRICT, true), 2);
	assert_int_equal(last_values(RELAXED, false), 3);
}

/* A strict flag behind relaxed data waits for it, since only what is relaxed overtakes. */
NIC_TEST(what_is_not_relaxed_overtakes_nothing)
{
	for (uint64_t seed = 0; seed < 200; seed++) {
		start(seed, false, true);
		overtaken = 0;
		assert_true(vb_journal_put(RELAXED, memory, data, 64));
		assert_true(vb_journal_put(STRICT, memory + 64, data, BYTES - 64));
		stop();
		assert_int_equal(overtaken, 0);
	}
}

NIC_TEST(what_tells_of_others_is_not_deferred)
{
	start(1, false, true);
	assert_true(vb_journal_put(RELAXED, memory, data, 64));
	journal.defers = false;
	assert_true(vb_journal_put(RELAXED, memory + 64, data, BYTES - 64));
	assert_memory_equal(memory, data, BYTES);
	stop();
}

/* Octets from elsewhere than the packet are gone when the call returns. */
NIC_TEST(foreign_octets_are_placed_at_once)
{
	uint8_t octets[64];

	start(1, false, true);
	memset(octets, 7, sizeof(octets));
	assert_true(vb_journal_put(RELAXED, memory, octets, sizeof(octets)));
	assert_memory_equal(memory, octets, sizeof(octets));
	stop();
}

NIC_TEST(what_may_fail_is_left_to_the_caller)
{
	start(1, false, true);
	assert_true(vb_journal_put(STRICT, memory, data, 64));
	assert_false(vb_journal_put(STRICT | IBV_ACCESS_ON_DEMAND, memory + 64, data, 64));
	assert_memory_equal(memory, data, 64);
	assert_true(vb_journal_put(STRICT, memory + 64, data, 64));
	fix.probe = EFAULT;
	assert_false(vb_journal_put(STRICT, memory + 128, data, 64));
	assert_memory_equal(memory, data, 128);
	stop();
}

NIC_TEST(any_number_fits)
{
	start(1, false, true);
	for (unsigned i = 0; i < BYTES; i++)
		assert_true(vb_journal_put(RELAXED, memory + i, data, 1));
	stop();
	assert_memory_equal(memory, data, BYTES);
}

NIC_TEST(without_a_journal_nothing_is_noted)
{
	assert_false(vb_journal_put(STRICT, memory, data, 64));
	vb_journal_settle();
}
