/* SPDX-License-Identifier: BSD-2-Clause */
#include "group.h"

#include <stdlib.h>

#include "cm/host.h"
#include "cm/table.h"

enum { MANY = 10000 };

static const uint64_t secret[2] = {1, 2};
static unsigned blocks;
static bool poor;

static void *alloc(void *arg, size_t bytes)
{
	(void)arg;
	blocks += !poor;
	return poor ? NULL : calloc(1, bytes);
}

static void release(void *arg, void *memory)
{
	(void)arg;
	blocks--;
	free(memory);
}

static const struct vb_cm_host host = {.alloc = alloc, .release = release};
static struct vb_cm_node node[MANY];

static struct vb_cm_key key_of(uint64_t n)
{
	return (struct vb_cm_key){.word = {n & 1, n, n * n, 5}};
}

static void fill(struct vb_cm_table *table, unsigned count)
{
	vb_cm_table_init(table, secret);
	for (unsigned i = 0; i < count; i++) {
		const struct vb_cm_key key = key_of(i);

		vb_cm_table_add(table, &host, &node[i], &key);
	}
}

TEST(what_is_added_is_found_until_it_is_removed)
{
	struct vb_cm_table table;

	fill(&table, MANY);
	assert_int_equal(table.count, MANY);
	assert_true(table.buckets >= MANY);
	for (unsigned i = 0; i < MANY; i++) {
		const struct vb_cm_key key = key_of(i);

		assert_ptr_equal(vb_cm_table_find(&table, &key), &node[i]);
		assert_null(vb_cm_table_next(&node[i]));
		vb_cm_table_remove(&table, &node[i]);
		vb_cm_table_remove(&table, &node[i]);
		assert_null(vb_cm_table_find(&table, &key));
	}
	assert_int_equal(table.count, 0);
	vb_cm_table_fini(&table, &host);
	assert_int_equal(blocks, 0);
}

TEST(a_key_may_occur_twice)
{
	const struct vb_cm_key key = key_of(1), other = key_of(3);
	struct vb_cm_table table;

	vb_cm_table_init(&table, secret);
	vb_cm_table_add(&table, &host, &node[0], &key);
	vb_cm_table_add(&table, &host, &node[1], &other);
	vb_cm_table_add(&table, &host, &node[2], &key);
	assert_ptr_equal(vb_cm_table_find(&table, &key), &node[2]);
	assert_ptr_equal(vb_cm_table_next(&node[2]), &node[0]);
	assert_null(vb_cm_table_next(&node[0]));
	vb_cm_table_remove(&table, &node[2]);
	assert_ptr_equal(vb_cm_table_find(&table, &key), &node[0]);
	vb_cm_table_fini(&table, &host);
}

TEST(it_works_without_memory)
{
	struct vb_cm_table table;

	poor = true;
	fill(&table, 100);
	poor = false;
	assert_int_equal(table.buckets, VB_CM_TABLE_FIRST);
	for (unsigned i = 0; i < 100; i++) {
		const struct vb_cm_key key = key_of(i);

		assert_ptr_equal(vb_cm_table_find(&table, &key), &node[i]);
	}
	vb_cm_table_fini(&table, &host);
	assert_int_equal(blocks, 0);
}
