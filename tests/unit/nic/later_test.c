/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues of those who want to run later. */
#include "nic/core/later.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static struct vb_later_queue queue;
static struct vb_later node[4];

static int setup(void **state)
{
	queue = VB_LATER_EMPTY;
	for (unsigned i = 0; i < 4; i++)
		node[i] = (struct vb_later){ 0 };
	return 0;
}

/* Exactly these wait, in this order; then nobody does. */
static void expect(const char *order)
{
	for (; *order; order++) {
		assert_false(vb_later_is_empty(&queue));
		assert_true(vb_later_is_in(&node[*order - '0']));
		assert_ptr_equal(vb_later_take(&queue), &node[*order - '0']);
		assert_false(vb_later_is_in(&node[*order - '0']));
	}
	assert_true(vb_later_is_empty(&queue));
}

static void fill(void)
{
	for (unsigned i = 0; i < 4; i++)
		vb_later_put(&queue, &node[i]);
}

static void who_came_first_runs_first(void **state)
{
	assert_true(vb_later_is_empty(&queue));
	assert_false(vb_later_is_in(&node[0]));
	fill();
	expect("0123");
	vb_later_put(&queue, &node[2]); /* after it was empty */
	vb_later_put(&queue, &node[0]);
	assert_ptr_equal(vb_later_take(&queue), &node[2]);
	vb_later_put(&queue, &node[2]);
	expect("02");
}

static void or_who_came_last(void **state)
{
	for (unsigned i = 0; i < 3; i++)
		vb_later_put_first(&queue, &node[i]);
	assert_true(vb_later_drop(&queue, &node[1]));
	expect("20");
	vb_later_put_first(&queue, &node[3]);
	expect("3");
}

static void who_goes_leaves_the_others(void **state)
{
	for (unsigned gone = 0; gone < 4; gone++) {
		char left[4] = { 0 };

		for (unsigned i = 0, n = 0; i < 4; i++)
			if (i != gone)
				left[n++] = (char)('0' + i);
		fill();
		assert_true(vb_later_drop(&queue, &node[gone]));
		assert_false(vb_later_is_in(&node[gone]));
		assert_false(vb_later_drop(&queue, &node[gone]));
		expect(left);
	}
}

static void the_end_is_found_after_the_last_has_gone(void **state)
{
	fill();
	assert_true(vb_later_drop(&queue, &node[3]));
	assert_true(vb_later_drop(&queue, &node[2]));
	vb_later_put(&queue, &node[3]);
	expect("013");
	vb_later_put(&queue, &node[1]);
	assert_true(vb_later_drop(&queue, &node[1]));
	assert_true(vb_later_is_empty(&queue));
	vb_later_put(&queue, &node[2]);
	expect("2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(who_came_first_runs_first, setup),
		cmocka_unit_test_setup(or_who_came_last, setup),
		cmocka_unit_test_setup(who_goes_leaves_the_others, setup),
		cmocka_unit_test_setup(the_end_is_found_after_the_last_has_gone, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
