/* SPDX-License-Identifier: BSD-2-Clause */
/* Inputs (smoke_main.h) for walks of paths: any. */
#include "base/prng.h"
#include "smoke_main.h"

static void make(struct smoke_input *input, uint64_t *rng)
{
	input->bytes = 100 + vb_prng_next(rng) % 60;
	for (size_t i = 0; i < input->bytes; i++)
		input->octets[i] = (uint8_t)(vb_prng_next(rng) >> 24);
}

struct smoke smoke = { .name = "overlay", .seeds = 100, .rounds = 100000, .make_any = make };
