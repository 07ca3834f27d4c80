/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ring's target without libFuzzer: steps at random, most of them honest.
 *
 *   smoke_ring [ROUNDS [SEED]]   that many inputs
 *   smoke_ring --seeds DIR       writes some of them as a corpus for fuzz_ring
 *   smoke_ring --file FILE ...   an input that libFuzzer kept
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "fuzz.h"

enum { ROUNDS_DEFAULT = 20000, STEPS_MAX = 200, CORPUS = 100, HONEST = 5, KINDS = 9 };

struct input {
	uint8_t octets[4 * STEPS_MAX];
	size_t bytes;
};

static void make(struct input *input, uint64_t *rng)
{
	unsigned steps = 1 + vb_prng_next(rng) % STEPS_MAX;
	/* Half of the inputs stay honest to the end, so that it is long. */
	unsigned bad_percent = vb_prng_next(rng) & 1 ? 0 : vb_prng_next(rng) % 30;

	input->bytes = 4 * steps;
	for (unsigned i = 0; i < steps; i++) {
		uint64_t r = vb_prng_next(rng);
		uint8_t *at = input->octets + 4 * i;

		memcpy(at, &r, 4);
		at[0] = (uint8_t)((r >> 40) % HONEST);
		if ((r >> 32) % 100 < bad_percent)
			at[0] = (uint8_t)(HONEST + (r >> 40) % (KINDS - HONEST));
	}
}

static int seeds_write(const char *dir)
{
	uint64_t rng = 1;

	for (unsigned i = 0; i < CORPUS; i++) {
		struct input input;
		char name[512];
		FILE *file;

		make(&input, &rng);
		snprintf(name, sizeof(name), "%s/%03u", dir, i);
		file = fopen(name, "w");
		if (!file || fwrite(input.octets, 1, input.bytes, file) != input.bytes ||
		    fclose(file)) {
			perror(name);
			return 1;
		}
	}
	return 0;
}

static int files_try(char **names)
{
	for (; *names; names++) {
		FILE *file = fopen(*names, "r");
		struct input input;

		if (!file) {
			perror(*names);
			return 1;
		}
		input.bytes = fread(input.octets, 1, sizeof(input.octets), file);
		fclose(file);
		LLVMFuzzerTestOneInput(input.octets, input.bytes);
	}
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : ROUNDS_DEFAULT;
	uint64_t rng = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;

	if (argc == 3 && strcmp(argv[1], "--seeds") == 0)
		return seeds_write(argv[2]);
	if (argc > 2 && strcmp(argv[1], "--file") == 0)
		return files_try(argv + 2);
	for (unsigned long round = 0; round < rounds; round++) {
		struct input input;

		make(&input, &rng);
		LLVMFuzzerTestOneInput(input.octets, input.bytes);
	}
	printf("%lu inputs\n", rounds);
	return 0;
}
