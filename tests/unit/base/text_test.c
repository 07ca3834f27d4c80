/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/text.h"
#include "group.h"

TEST(pieces_follow_one_another)
{
	char chars[32] = "what was there before";
	struct vb_text text = vb_text_in(chars, sizeof(chars));

	assert_string_equal(chars, "");
	vb_text_add(&text, "a", "", "bc", NULL);
	vb_text_add(&text, NULL);
	vb_text_add(&text, "d", NULL);
	assert_string_equal(chars, "abcd");
	assert_int_equal(text.used, 4);
}

TEST(what_does_not_fit_is_left_out)
{
	char chars[8];
	struct vb_text text = vb_text_in(chars, 5);

	memset(chars + 5, 'x', 3);
	vb_text_add(&text, "abc", "def", "g", NULL);
	assert_string_equal(chars, "abcd");
	assert_memory_equal(chars + 5, "xxx", 3);
}

TEST(what_was_typed_stays_on_one_line)
{
	char typed[VB_TEXT_TYPED_MAX + 1], chars[2 * VB_TEXT_TYPED_MAX];
	struct vb_text text = vb_text_in(chars, sizeof(chars));

	vb_text_add_typed(&text, "a\n\033b\x7f\xc3\xa4", 7);
	assert_string_equal(chars, "a??b?\xc3\xa4");

	memset(typed, 'a', sizeof(typed));
	text = vb_text_in(chars, sizeof(chars));
	vb_text_add_typed(&text, typed, VB_TEXT_TYPED_MAX);
	assert_int_equal(strlen(chars), VB_TEXT_TYPED_MAX);
	text = vb_text_in(chars, sizeof(chars));
	vb_text_add_typed(&text, typed, VB_TEXT_TYPED_MAX + 1);
	assert_int_equal(strlen(chars), VB_TEXT_TYPED_MAX + 3);
	assert_string_equal(chars + VB_TEXT_TYPED_MAX, "...");
}
