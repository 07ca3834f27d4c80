/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "sim.h"

int main(int argc, char **argv)
{
	static struct sim sim;
	uint64_t from = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t n = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	int bad = 0;

	for (uint64_t s = from; s < from + n; s++) {
		if (!sim_run(&sim, s, getenv("V") != NULL)) {
			printf("seed %llu: %s\n", (unsigned long long)s, sim.why);
			fflush(stdout);
			bad++;
		}
	}
	printf("%llu runs, %d bad\n", (unsigned long long)n, bad);
	return !!bad;
}
