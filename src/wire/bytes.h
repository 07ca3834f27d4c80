/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_WIRE_BYTES_H
#define VB_WIRE_BYTES_H

/* Integers in network order, at any alignment. The caller has checked the bounds. */

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t vb_be16_get(const uint8_t *in)
{
	uint16_t v;

	memcpy(&v, in, sizeof(v));
	return be16toh(v);
}

static inline uint32_t vb_be32_get(const uint8_t *in)
{
	uint32_t v;

	memcpy(&v, in, sizeof(v));
	return be32toh(v);
}

static inline uint64_t vb_be64_get(const uint8_t *in)
{
	uint64_t v;

	memcpy(&v, in, sizeof(v));
	return be64toh(v);
}

static inline void vb_be16_put(uint8_t *out, uint16_t v)
{
	v = htobe16(v);
	memcpy(out, &v, sizeof(v));
}

static inline void vb_be32_put(uint8_t *out, uint32_t v)
{
	v = htobe32(v);
	memcpy(out, &v, sizeof(v));
}

static inline void vb_be64_put(uint8_t *out, uint64_t v)
{
	v = htobe64(v);
	memcpy(out, &v, sizeof(v));
}

#endif
