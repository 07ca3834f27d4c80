/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SIM_ARGUMENTS_H
#define SIM_ARGUMENTS_H

/* The seeds on a simulator's command line. */

#include <stdbool.h>
#include <stdint.h>

enum { SIM_BAD_USAGE = 2 }; /* the exit status when the arguments are wrong */

/* The seeds from `from` to `from + count - 1`. */
struct sim_range {
	uint64_t from, count;
	bool single; /* one seed was named */
};

/* A whole number and nothing else: decimal, or hexadecimal after 0x. */
bool sim_number_parse(const char *text, uint64_t *number);

/* Say on stderr what is wrong. They return SIM_BAD_USAGE. */
int sim_refuse(const char *what, const char *text, const char *good);
int sim_refuse_seed(const char *text);
int sim_usage(const char *usage);

/* A number of runs, at least 1. 0, or SIM_BAD_USAGE after a message. */
int sim_count_parse(const char *text, uint64_t *count);

/* SEED | --count N [FROM]. 0, or SIM_BAD_USAGE after a message. */
int sim_range_parse(int argc, char **argv, const char *usage, struct sim_range *range);

/*
 * Runs each seed; a single one tells what happens if V is set in the environment, and not 0.
 * Returns how many failed.
 */
uint64_t sim_runs(const struct sim_range *range, bool (*run)(uint64_t seed, bool trace));

#endif
