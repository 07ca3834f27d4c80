/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dc_rx without libFuzzer: steps at random, which the target makes packets of.
 *
 *   smoke_dc_rx [ROUNDS [SEED]]
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/prng.h"
#include "fuzz.h"

enum { ROUNDS_DEFAULT = 20000, BYTES_MAX = 8 * 200 };

int main(int argc, char **argv)
{
	uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 0) : ROUNDS_DEFAULT;
	uint64_t rng = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	uint8_t input[BYTES_MAX];

	for (uint64_t i = 0; i < rounds; i++) {
		size_t bytes = 8 * (1 + vb_prng_next(&rng) % (BYTES_MAX / 8));

		for (size_t k = 0; k < bytes; k++)
			input[k] = (uint8_t)(vb_prng_next(&rng) >> 32);
		LLVMFuzzerTestOneInput(input, bytes);
	}
	printf("%llu inputs\n", (unsigned long long)rounds);
	return 0;
}
