/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_SIM_DRAWS_H
#define VB_SIM_DRAWS_H

/*
 * What the worlds of sim_xrc, sim_dc and sim_srd draw, require and write. Included where struct sim
 * is known, and OCTETS_FROM.
 */

void failed(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#define require(cond)                                                                             \
	do {                                                                                      \
		if (!(cond))                                                                      \
			failed("%s:%d: not so: %s", __FILE__, __LINE__, #cond);                   \
	} while (0)

static inline uint32_t below(uint32_t n)
{
	return (uint32_t)(vb_prng_next(&sim.rng) % n);
}

static inline bool chance(unsigned percent)
{
	return below(100) < percent;
}

/* Octets that tell where they come from. */
static inline uint8_t octet(uint32_t key, uint32_t at)
{
	return (uint8_t)(key * 131 + at * 7 + (at >> 8) + OCTETS_FROM);
}

static inline void fill(uint8_t *to, uint32_t bytes, uint32_t key)
{
	for (uint32_t i = 0; i < bytes; i++)
		to[i] = octet(key, i);
}

#endif
