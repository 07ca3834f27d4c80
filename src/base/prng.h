/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BASE_PRNG_H
#define VB_BASE_PRNG_H

/*
 * A small seeded generator (splitmix64): replayable in the simulator, seeded from the kernel's
 * entropy in a real device. Its output reveals the rest of the sequence: values that must not be
 * guessed come from vb_prf().
 */

#include <stdint.h>

static inline uint64_t vb_prng_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

#endif
