/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_SMOKE_MAIN_H
#define VB_TESTS_SMOKE_MAIN_H

/*
 * A fuzz target without libFuzzer, for every compiler and every `make check`. A function makes its
 * inputs: good ones, by their number, which another function changes; or any, at random.
 * smoke_main.c is the program:
 *
 *   smoke_X [ROUNDS [SEED]]   the good inputs, and that many mutations of them; or that many of any
 *   smoke_X --seeds DIR       writes the good inputs, or some of any, as a corpus for fuzz_X
 *   smoke_X --file FILE ...   an input that libFuzzer kept
 */

#include <stddef.h>
#include <stdint.h>

enum { SMOKE_BYTES_MAX = 1 << 16 };

struct smoke_input {
	uint8_t octets[SMOKE_BYTES_MAX];
	size_t bytes;
};

struct smoke {
	const char *name; /* of what the inputs are, and of their files in a corpus */
	unsigned seeds;	  /* that is: how many files a corpus has */
	unsigned long rounds; /* unless it is told another number */
	int (*load)(void);    /* if not NULL, called first; may set seeds */
	void (*make)(struct smoke_input *input, unsigned i);
	void (*mutate)(struct smoke_input *input, uint64_t *rng);
	void (*make_any)(struct smoke_input *input, uint64_t *rng); /* or NULL */
};

/* Defined by whoever is linked with it. */
extern struct smoke smoke;

#endif
