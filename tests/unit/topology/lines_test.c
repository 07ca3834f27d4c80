/* SPDX-License-Identifier: BSD-2-Clause */
#include "group.h"
#include "topology/lines.h"

static struct vb_lines read_of(const char *text, char why[128])
{
	return vb_lines_of("f", text, strlen(text), vb_text_in(why, 128));
}

TEST(sections_pairs_and_comments_are_told_apart)
{
	char why[128];
	struct vb_lines lines = read_of("# c\n\n [ device  a ]\r\nkey\t= v w # c\nk=", why);

	assert_int_equal(vb_lines_next(&lines), VB_LINE_SECTION);
	assert_true(vb_span_is(lines.key, "device") && vb_span_is(lines.value, "a"));
	assert_int_equal(lines.number, 3);
	assert_int_equal(vb_lines_next(&lines), VB_LINE_PAIR);
	assert_true(vb_span_is(lines.key, "key") && vb_span_is(lines.value, "v w"));
	assert_int_equal(vb_lines_next(&lines), VB_LINE_PAIR);
	assert_true(vb_span_is(lines.key, "k") && vb_span_is(lines.value, ""));
	assert_int_equal(vb_lines_next(&lines), VB_LINE_END);
	assert_string_equal(why, "");
}

TEST(a_byte_order_mark_is_passed_over)
{
	char why[128];
	struct vb_lines lines = read_of("\xef\xbb\xbf[device a]", why);

	assert_int_equal(vb_lines_next(&lines), VB_LINE_SECTION);
	assert_true(vb_span_is(lines.value, "a"));
	lines = read_of("\xef\xbb", why);
	assert_int_equal(vb_lines_next(&lines), VB_LINE_WRONG);
}

TEST(other_lines_are_wrong)
{
	static const char *const wrong[] = { "word", "= v", "[", "[]x", "[device" };
	char why[128];

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct vb_lines lines = read_of(wrong[i], why);

		assert_int_equal(vb_lines_next(&lines), VB_LINE_WRONG);
		assert_memory_equal(why, "f:1:1: ", 7);
	}
}

TEST(words_stand_between_blanks_and_commas)
{
	struct vb_span value = { " a, b\tc,", 8 }, word;

	assert_true(vb_span_word(&value, &word) && vb_span_is(word, "a"));
	assert_true(vb_span_word(&value, &word) && vb_span_is(word, "b"));
	assert_true(vb_span_word(&value, &word) && vb_span_is(word, "c"));
	assert_false(vb_span_word(&value, &word));
}
