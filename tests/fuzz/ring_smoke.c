/* SPDX-License-Identifier: BSD-2-Clause */
/* Inputs (smoke_main.h) for the ring's target: steps at random, most of them honest. */
#include <string.h>

#include "base/prng.h"
#include "smoke_main.h"

enum { STEPS_MAX = 200, HONEST = 5, KINDS = 9 };

static void make(struct smoke_input *input, uint64_t *rng)
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

struct smoke smoke = { .name = "ring", .seeds = 100, .rounds = 20000, .make_any = make };
