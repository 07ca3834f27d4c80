/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_SIM_OCTETS_H
#define VB_SIM_OCTETS_H

/* What sim_xrc, sim_dc and sim_srd send. Included where OCTETS_FROM is known. */

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

static inline bool is_filled(const uint8_t *at, uint32_t bytes, uint32_t key, uint32_t from)
{
	for (uint32_t i = 0; i < bytes; i++) {
		if (at[i] != octet(key, from + i))
			return false;
	}
	return true;
}

#endif
