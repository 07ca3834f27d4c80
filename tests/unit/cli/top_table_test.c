/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of `verbatim top`: what stands in its cells, however large the numbers are. */
#include "cli/top_table.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "group.h"

static char title[64][VB_TOP_CELL_BYTES], text[64][VB_TOP_CELL_BYTES];

/* Cells have no blanks within, but the last. */
static unsigned split(char cells[64][VB_TOP_CELL_BYTES], char *line)
{
	unsigned count = 0;

	for (char *rest, *cell = strtok_r(line, " ", &rest); cell;
	     cell = strtok_r(NULL, " ", &rest))
		snprintf(cells[count++], VB_TOP_CELL_BYTES, "%s", cell);
	return count;
}

static const char *cell(const struct vb_top_row *row, const char *name)
{
	char line[256];
	unsigned titles;

	vb_top_line(line, sizeof(line), NULL, 80);
	titles = split(title, line);
	vb_top_line(line, sizeof(line), row, 80);
	assert_true(split(text, line) == titles);
	for (unsigned i = 0; i < titles; i++)
		if (!strcmp(title[i], name))
			return text[i];
	fail_msg("there is no %s", name);
	return NULL;
}

TEST(a_large_number_keeps_its_unit)
{
	static const struct {
		uint64_t number;
		const char *of_five, *of_four;
	} cases[] = {
		{ 0, ".", "." },	    { 7, "7", "7" },
		{ 999, "999", "999" },	    { 1000, "1.00k", "1.0k" },
		{ 1600, "1.60k", "1.6k" },  { 9994, "9.99k", "10k" },
		{ 9996, "10.0k", "10k" },   { 16384, "16.4k", "16k" },
		{ 99960, "100k", "100k" },  { 999400, "999k", "999k" },
		{ 999600, "1.00M", "1.0M" }, { 123456789, "123M", "123M" },
	};
	struct vb_cli_process process = { .number = "4711" };
	struct vb_sample_qp qp = { .service = "RC", .credits_known = true };
	struct vb_top_row row = { .process = &process, .qp = &qp, .qps = 1 };

	snprintf(process.name, sizeof(process.name), "program");
	for (unsigned i = 0; i < VB_ARRAY_LEN(cases); i++) {
		row.requests = row.again = row.rnr = (double)cases[i].number;
		row.outstanding = cases[i].number;
		qp.credits = (uint32_t)cases[i].number;
		assert_string_equal(cell(&row, "WR/s"), cases[i].of_five);
		assert_string_equal(cell(&row, "QUE"), cases[i].of_four);
		assert_string_equal(cell(&row, "AGN"), cases[i].of_four);
		assert_string_equal(cell(&row, "RNR"), cases[i].of_four);
		assert_string_equal(cell(&row, "CRED"), i ? cases[i].of_four : "0");
	}
}

/* Columns go by their beginnings; numbers are sorted as numbers. */
TEST(columns_are_found_by_their_beginning)
{
	assert_string_equal(vb_top_column_name(vb_top_column_find("wr")), "WR/s");
	assert_string_equal(vb_top_column_name(vb_top_column_find("CRED")), "CRED");
	assert_int_equal(vb_top_column_find("XX"), vb_top_columns());
	assert_int_equal(vb_top_column_find(""), vb_top_columns());
}
