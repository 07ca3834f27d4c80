/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "group.h"
#include "nic/service/eth/segment_table.h"

/* Who wants which frames, as senders see it. */

enum { SLOT = 70 };

static const uint64_t alice = 0x020000000001, bob = 0x020000000002;
static const uint64_t group = 0x01005e000001, everybody = 0xffffffffffff;

static struct vb_segment_table *table;

static int setup(void **state)
{
	table = aligned_alloc(64, sizeof(*table));
	memset(table, 0, sizeof(*table));
	return 0;
}

static int teardown(void **state)
{
	free(table);
	return 0;
}

#define SEGMENT_TABLE_TEST(name) TEST_BETWEEN(name, setup, teardown)

static void expect_member(bool is_one)
{
	assert_int_equal(vb_segment_has(table, SLOT), is_one);
	assert_int_equal(atomic_load(&table->members[SLOT / 64]), (uint64_t)is_one << SLOT % 64);
}

TEST(octets_are_a_number_of_which_a_bit_says_group)
{
	static const uint8_t octets[6] = { 0x01, 0, 0x5e, 0, 0, 1 };

	assert_int_equal(vb_segment_mac(octets), group);
	assert_true(vb_segment_is_group(group));
	assert_true(vb_segment_is_group(everybody));
	assert_false(vb_segment_is_group(alice));
}

SEGMENT_TABLE_TEST(a_list_is_those_and_no_others)
{
	struct vb_segment_filter filter = { .count = 2, .mac = { alice, group } };

	expect_member(false);
	vb_segment_write(table, SLOT, &filter);
	expect_member(true);
	assert_int_equal(vb_segment_wants(table, SLOT, alice), VB_SEGMENT_ADDRESSED);
	assert_int_equal(vb_segment_wants(table, SLOT, group), VB_SEGMENT_ADDRESSED);
	assert_int_equal(vb_segment_wants(table, SLOT, bob), VB_SEGMENT_NOT);
	assert_int_equal(vb_segment_wants(table, SLOT, everybody), VB_SEGMENT_NOT);
	assert_int_equal(vb_segment_wants(table, SLOT + 1, alice), VB_SEGMENT_NOT);
}

SEGMENT_TABLE_TEST(who_listens_is_not_who_is_meant)
{
	struct vb_segment_filter groups = { .flags = VB_SEGMENT_GROUPS };
	struct vb_segment_filter all = { .flags = VB_SEGMENT_ALL, .count = 1, .mac = { alice } };

	vb_segment_write(table, SLOT, &groups);
	assert_int_equal(vb_segment_wants(table, SLOT, everybody), VB_SEGMENT_LISTENS);
	assert_int_equal(vb_segment_wants(table, SLOT, alice), VB_SEGMENT_NOT);
	vb_segment_write(table, SLOT, &all);
	assert_int_equal(vb_segment_wants(table, SLOT, bob), VB_SEGMENT_LISTENS);
	assert_int_equal(vb_segment_wants(table, SLOT, alice), VB_SEGMENT_ADDRESSED);
}

SEGMENT_TABLE_TEST(who_wants_nothing_leaves)
{
	struct vb_segment_filter filter = { .count = 1, .mac = { alice } }, none = { 0 };

	vb_segment_write(table, SLOT, &filter);
	vb_segment_write(table, SLOT, &none);
	expect_member(false);
	assert_int_equal(vb_segment_wants(table, SLOT, alice), VB_SEGMENT_NOT);
}

SEGMENT_TABLE_TEST(the_dead_leave_with_their_uplink)
{
	struct vb_segment_filter filter = { .count = 1, .mac = { alice } };

	vb_segment_write(table, SLOT, &filter);
	atomic_store(&table->uplink, SLOT);
	vb_segment_clear(table, SLOT + 1);
	expect_member(true);
	assert_int_equal(atomic_load(&table->uplink), SLOT);
	vb_segment_clear(table, SLOT);
	expect_member(false);
	assert_int_equal(atomic_load(&table->uplink), 0);
}

/* A list as long as there is room for, and a count that nobody could have written. */
SEGMENT_TABLE_TEST(no_count_leads_beyond_the_list)
{
	struct vb_segment_filter filter = { .count = VB_SEGMENT_MACS_MAX };

	for (unsigned i = 0; i < VB_SEGMENT_MACS_MAX; i++)
		filter.mac[i] = alice + i;
	vb_segment_write(table, SLOT, &filter);
	assert_int_equal(vb_segment_wants(table, SLOT, alice + VB_SEGMENT_MACS_MAX - 1),
			 VB_SEGMENT_ADDRESSED);
	assert_int_equal(vb_segment_wants(table, SLOT, alice + VB_SEGMENT_MACS_MAX),
			 VB_SEGMENT_NOT);
	atomic_store(&table->member[VB_SLOTS - 1].wants, 0xff00);
	assert_int_equal(vb_segment_wants(table, VB_SLOTS - 1, bob), VB_SEGMENT_NOT);
}
