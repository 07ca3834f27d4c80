/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/fd_table.h"
#include "group.h"

#include <errno.h>
#include <limits.h>

#include "base/check.h"

static struct vb_fd_table table;

TEST(what_is_put_is_found)
{
	static const int numbers[] = {0, 3, VB_FD_PAGE - 1, VB_FD_PAGE,
				      VB_FD_PAGES * VB_FD_PAGE - 1};
	int things[VB_ARRAY_LEN(numbers)];

	for (unsigned i = 0; i < VB_ARRAY_LEN(numbers); i++) {
		assert_null(vb_fd_table_at(&table, numbers[i]));
		assert_int_equal(vb_fd_table_put(&table, numbers[i], &things[i]), 0);
	}
	for (unsigned i = 0; i < VB_ARRAY_LEN(numbers); i++)
		assert_ptr_equal(vb_fd_table_at(&table, numbers[i]), &things[i]);
	assert_null(vb_fd_table_at(&table, 4));
	assert_ptr_equal(vb_fd_table_from(&table, 0), &things[0]);
	assert_ptr_equal(vb_fd_table_from(&table, 4), &things[2]);
	assert_ptr_equal(vb_fd_table_from(&table, VB_FD_PAGE + 1), &things[4]);
	assert_null(vb_fd_table_from(&table, VB_FD_PAGES * VB_FD_PAGE));
}

TEST(it_is_taken_once)
{
	int thing;

	assert_null(vb_fd_table_take(&table, 7));
	assert_int_equal(vb_fd_table_put(&table, 7, &thing), 0);
	assert_ptr_equal(vb_fd_table_take(&table, 7), &thing);
	assert_null(vb_fd_table_take(&table, 7));
	assert_null(vb_fd_table_at(&table, 7));
}

TEST(numbers_that_cannot_be_have_nothing)
{
	static const int numbers[] = {-1, INT_MIN, VB_FD_PAGES * VB_FD_PAGE, INT_MAX};

	for (unsigned i = 0; i < VB_ARRAY_LEN(numbers); i++) {
		assert_int_equal(vb_fd_table_put(&table, numbers[i], &table), EMFILE);
		assert_null(vb_fd_table_at(&table, numbers[i]));
		assert_null(vb_fd_table_take(&table, numbers[i]));
	}
}

TEST(freed_it_keeps_nothing)
{
	vb_fd_table_put(&table, 3, &table);
	vb_fd_table_free(&table);
	assert_null(vb_fd_table_at(&table, 3));
}
