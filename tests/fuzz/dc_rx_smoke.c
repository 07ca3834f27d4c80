/* SPDX-License-Identifier: BSD-2-Clause */
/* Inputs (smoke_main.h) for dc_rx: steps at random, which the target makes packets of. */
#include "base/prng.h"
#include "smoke_main.h"

enum { STEP_BYTES = 8, STEPS_MAX = 200 };

static void make(struct smoke_input *input, uint64_t *rng)
{
	input->bytes = STEP_BYTES * (1 + vb_prng_next(rng) % STEPS_MAX);
	for (size_t i = 0; i < input->bytes; i++)
		input->octets[i] = (uint8_t)(vb_prng_next(rng) >> 32);
}

struct smoke smoke = { .name = "dc_rx", .seeds = 100, .rounds = 20000, .make_any = make };
