/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_SMOKE_MAIN_H
#define VB_TESTS_SMOKE_MAIN_H

/*
 * A fuzz target without libFuzzer, for every compiler and every `make check`, whose good inputs are
 * made by a function. smoke_main.c is the program:
 *
 *   smoke_X [ROUNDS [SEED]]   the good inputs, then that many mutations of them
 *   smoke_X --seeds DIR       writes the good inputs as a corpus for fuzz_X
 *   smoke_X --file FILE ...   an input that libFuzzer kept
 */

#include <stddef.h>
#include <stdint.h>

enum { SMOKE_BYTES_MAX = 4096 };

struct smoke_input {
	uint8_t octets[SMOKE_BYTES_MAX];
	size_t bytes;
};

struct smoke {
	const char *name; /* of what the inputs are, and of their files in a corpus */
	unsigned seeds;
	unsigned long rounds; /* unless it is told another number */
	void (*make)(struct smoke_input *input, unsigned i);
	void (*mutate)(struct smoke_input *input, uint64_t *seed);
};

/* Defined by whoever is linked with it. */
extern const struct smoke smoke;

#endif
