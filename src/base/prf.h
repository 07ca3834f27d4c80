/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BASE_PRF_H
#define VB_BASE_PRF_H

/*
 * SipHash-2-4 (Aumasson, Bernstein 2012) of one 64-bit word: without the key, known values tell
 * nothing about others. Repeatable, as the simulator needs. For values that others see and must not
 * predict; vb_prng_next() would reveal its state.
 */

#include <stdint.h>

static inline uint64_t vb_rotl_u64(uint64_t x, unsigned by)
{
	return x << by | x >> (64 - by);
}

static inline void vb_sip_rounds(uint64_t v[4], unsigned rounds)
{
	while (rounds--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = vb_rotl_u64(v[1], 13) ^ v[0];
		v[3] = vb_rotl_u64(v[3], 16) ^ v[2];
		v[0] = vb_rotl_u64(v[0], 32) + v[3];
		v[2] += v[1];
		v[3] = vb_rotl_u64(v[3], 21) ^ v[0];
		v[1] = vb_rotl_u64(v[1], 17) ^ v[2];
		v[2] = vb_rotl_u64(v[2], 32);
	}
}

static inline uint64_t vb_prf(const uint64_t key[2], uint64_t word)
{
	const uint64_t blocks[] = { word, (uint64_t)sizeof(word) << 56 };
	uint64_t v[4] = {
		key[0] ^ 0x736f6d6570736575u,
		key[1] ^ 0x646f72616e646f6du,
		key[0] ^ 0x6c7967656e657261u,
		key[1] ^ 0x7465646279746573u,
	};

	for (unsigned i = 0; i < 2; i++) {
		v[3] ^= blocks[i];
		vb_sip_rounds(v, 2);
		v[0] ^= blocks[i];
	}
	v[2] ^= 0xff;
	vb_sip_rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif
