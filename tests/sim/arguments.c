/* SPDX-License-Identifier: BSD-2-Clause */
#include "arguments.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool sim_number_parse(const char *text, uint64_t *number)
{
	bool is_hex = text[0] == '0' && (text[1] | 0x20) == 'x';
	char *end;

	/* strtoull would also take a sign and blanks. */
	if (!(is_hex ? isxdigit((unsigned char)text[2]) : isdigit((unsigned char)text[0])))
		return false;
	errno = 0;
	*number = strtoull(text, &end, is_hex ? 16 : 10);
	return *end == 0 && errno == 0;
}

int sim_refuse(const char *what, const char *text, const char *good)
{
	fprintf(stderr, "sim: '%s' is not a %s: that is %s\n", text, what, good);
	return SIM_BAD_USAGE;
}

int sim_refuse_seed(const char *text)
{
	return sim_refuse("seed", text,
			  "a whole number from 0 to 18446744073709551615, "
			  "such as 4711 or 0x1267");
}

int sim_usage(const char *usage)
{
	fprintf(stderr, "usage: %s\n", usage);
	return SIM_BAD_USAGE;
}

int sim_count_parse(const char *text, uint64_t *count)
{
	if (sim_number_parse(text, count) && *count)
		return 0;
	return sim_refuse("number of runs", text, "a whole number from 1 on");
}

int sim_range_parse(int argc, char **argv, const char *usage, struct sim_range *range)
{
	const char *from = argc == 4 ? argv[3] : "1";

	*range = (struct sim_range){.from = 1, .count = 1};
	if (argc == 2 && strncmp(argv[1], "--", 2) != 0) {
		range->single = true;
		return sim_number_parse(argv[1], &range->from) ? 0 : sim_refuse_seed(argv[1]);
	}
	if (argc < 3 || argc > 4 || strcmp(argv[1], "--count") != 0)
		return sim_usage(usage);
	if (sim_count_parse(argv[2], &range->count))
		return SIM_BAD_USAGE;
	if (!sim_number_parse(from, &range->from))
		return sim_refuse_seed(from);
	if (range->from > UINT64_MAX - (range->count - 1))
		return sim_refuse("number of runs", argv[2], "less, from that seed on");
	return 0;
}

uint64_t sim_runs(const struct sim_range *range, bool (*run)(uint64_t seed, bool trace))
{
	const char *v = getenv("V");
	bool trace = range->single && v && *v && *v != '0';
	uint64_t failures = 0;

	for (uint64_t i = 0; i < range->count; i++)
		failures += !run(range->from + i, trace);
	return failures;
}
