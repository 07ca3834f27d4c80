/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/fifo.h"
#include "group.h"

#include <string.h>

TEST(the_first_is_the_first)
{
	struct vb_fifo fifo = {0};
	char text[] = "one";

	assert_null(vb_fifo_first(&fifo));
	assert_true(vb_fifo_put(&fifo, 2, text, sizeof(text)));
	strcpy(text, "two");
	assert_true(vb_fifo_put(&fifo, 2, text, sizeof(text)));
	assert_false(vb_fifo_put(&fifo, 2, text, sizeof(text)));
	assert_int_equal(fifo.count, 2);
	assert_string_equal(vb_fifo_first(&fifo), "one");
	vb_fifo_drop(&fifo);
	assert_string_equal(vb_fifo_first(&fifo), "two");
	vb_fifo_drop(&fifo);
	assert_null(vb_fifo_first(&fifo));
	assert_true(vb_fifo_put(&fifo, 2, text, sizeof(text)));
	assert_string_equal(vb_fifo_first(&fifo), "two");
	vb_fifo_clear(&fifo);
	assert_null(vb_fifo_first(&fifo));
	assert_int_equal(fifo.count, 0);
}
