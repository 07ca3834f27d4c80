/* SPDX-License-Identifier: BSD-2-Clause */
#include "smoke_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/prng.h"
#include "fuzz.h"

enum { CHANGES_MAX = 4 };

/* In memory of exactly that size, so that a sanitizer sees a read beyond it. */
static void try(const struct smoke_input *input)
{
	uint8_t *copy = malloc(input->bytes ? input->bytes : 1);

	vb_check(copy);
	memcpy(copy, input->octets, input->bytes);
	LLVMFuzzerTestOneInput(copy, input->bytes);
	free(copy);
}

static void fail(const char *name)
{
	perror(name);
	exit(1);
}

static int seeds_write(const char *dir)
{
	static struct smoke_input input;
	uint64_t rng = 1;

	for (unsigned i = 0; i < smoke.seeds; i++) {
		char name[4096];
		FILE *file;

		if (smoke.make_any)
			smoke.make_any(&input, &rng);
		else
			smoke.make(&input, i);
		snprintf(name, sizeof(name), "%s/%s-%u", dir, smoke.name, i);
		file = fopen(name, "wb");
		if (!file || fwrite(input.octets, 1, input.bytes, file) != input.bytes ||
		    fclose(file))
			fail(name);
	}
	return 0;
}

static int files_run(char **names)
{
	static struct smoke_input input;

	for (; *names; names++) {
		FILE *file = fopen(*names, "rb");

		if (!file)
			fail(*names);
		input.bytes = fread(input.octets, 1, sizeof(input.octets), file);
		fclose(file);
		try(&input);
	}
	return 0;
}

static int random_run(unsigned long rounds, uint64_t rng)
{
	static struct smoke_input input;

	for (unsigned long i = 0; i < rounds; i++) {
		smoke.make_any(&input, &rng);
		try(&input);
	}
	printf("%s: %lu inputs\n", smoke.name, rounds);
	return 0;
}

static int seeds_run(unsigned long rounds, uint64_t rng)
{
	static struct smoke_input input;

	for (unsigned long i = 0; i < smoke.seeds + rounds; i++) {
		uint64_t changes = i < smoke.seeds ? 0 : 1 + vb_prng_next(&rng) % CHANGES_MAX;

		smoke.make(&input, (unsigned)(i % smoke.seeds));
		while (changes--)
			smoke.mutate(&input, &rng);
		try(&input);
	}
	printf("%s: %u good inputs and %lu mutations of them\n", smoke.name, smoke.seeds, rounds);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : smoke.rounds;
	uint64_t rng = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;

	if (argc > 2 && !strcmp(argv[1], "--file"))
		return files_run(argv + 2);
	if (smoke.load && smoke.load())
		return 1;
	if (argc == 3 && !strcmp(argv[1], "--seeds"))
		return seeds_write(argv[2]);
	return smoke.make_any ? random_run(rounds, rng) : seeds_run(rounds, rng);
}
