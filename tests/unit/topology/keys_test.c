/* SPDX-License-Identifier: BSD-2-Clause */
#include "group.h"
#include "topology/keys.h"

static bool even_read(void *arg, struct vb_lines *lines, struct vb_span value)
{
	*(unsigned *)arg += 1;
	return vb_span_is(value, "2");
}

static const struct vb_key keys[] = { { "even", even_read, "2" }, { "other", even_read, "2" } };
static const struct vb_words names = VB_WORDS(keys);

static bool read_all(const char *text, char why[256])
{
	struct vb_lines lines = vb_lines_of("f", text, strlen(text), vb_text_in(why, 256));
	unsigned calls = 0;
	uint64_t seen = 0;

	while (vb_lines_next(&lines) == VB_LINE_PAIR) {
		if (!vb_key_read(keys, &names, &seen, &lines, &calls))
			return false;
	}
	return calls > 0;
}

TEST(a_key_is_read_once)
{
	char why[256];

	assert_true(read_all("even = 2\nother = 2\n", why));
	assert_false(read_all("even = 2\neven = 2\n", why));
	assert_string_equal(why, "f:2:1: even is said twice");
	assert_false(read_all("even = 3", why));
	assert_string_equal(why, "f:1:8: even cannot be '3': it is 2");
	assert_false(read_all("evn = 2", why));
	assert_string_equal(why, "f:1:1: there is no key 'evn'; did you mean 'even'? Keys: "
				 "even, other");
}

TEST(varieties_of_gid_tables_are_bits)
{
	struct vb_lines lines = { 0 };
	uint8_t gids;

	assert_true(vb_key_gids(&lines, (struct vb_span){ "plain", 5 }, &gids) && !gids);
	assert_true(vb_key_gids(&lines, (struct vb_span){ "v1, holes", 9 }, &gids));
	assert_int_equal(gids, VB_GIDS_V1 | VB_GIDS_HOLES);
	assert_false(vb_key_gids(&lines, (struct vb_span){ "", 0 }, &gids));
}
