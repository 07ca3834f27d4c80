/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/rs.h"

#include <string.h>

#include "wire/bytes.h"

/* --- the hello --- */

enum {
	VERSION = 1,
	FLAGS_AT = 1,
	CREDITS_AT = 2,
	MAPS_AT = 7,
	TARGETS_AT = 8,
	BUFFER_AT = 24,
	FLAG_BIG_ENDIAN = 1,
	FLAG_MAPS = 2,
	/* Counts of I/O maps above 128 are said in steps of 256, by the upper half of 8 bits. */
	MAPS_BITS = 8,
	MAPS_STEP = 1 << (MAPS_BITS - 1),
};

static bool is_big_endian(void)
{
	return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
}

static uint8_t maps_scale(unsigned maps)
{
	return (uint8_t)(maps <= MAPS_STEP ? maps : MAPS_STEP | (maps >> MAPS_BITS));
}

static uint16_t maps_unscale(uint8_t scaled)
{
	return (uint16_t)(scaled <= MAPS_STEP ? scaled : (scaled & ~MAPS_STEP) << MAPS_BITS);
}

uint16_t vb_rs_maps_round(unsigned maps)
{
	unsigned most = (MAPS_STEP - 1) << MAPS_BITS;

	/* 128 .. 255 would be scaled to 128, which says 128. */
	return maps_unscale(maps_scale(maps < most ? maps : most));
}

static void area_read(struct vb_rs_area *area, const uint8_t *in)
{
	area->addr = (uint64_t)vb_be32_get(in) << 32 | vb_be32_get(in + 4);
	area->key = vb_be32_get(in + 8);
	area->length = vb_be32_get(in + 12);
}

static void area_write(uint8_t *out, const struct vb_rs_area *area)
{
	vb_be32_put(out, (uint32_t)(area->addr >> 32));
	vb_be32_put(out + 4, (uint32_t)area->addr);
	vb_be32_put(out + 8, area->key);
	vb_be32_put(out + 12, area->length);
}

bool vb_rs_hello_parse(struct vb_rs_hello *hello, const uint8_t in[VB_RS_HELLO_BYTES])
{
	if (in[0] != VERSION)
		return false;
	hello->swapped = is_big_endian() != !!(in[FLAGS_AT] & FLAG_BIG_ENDIAN);
	hello->has_maps = in[FLAGS_AT] & FLAG_MAPS;
	hello->credits = vb_be16_get(in + CREDITS_AT);
	hello->maps = hello->has_maps ? maps_unscale(in[MAPS_AT]) : 0;
	area_read(&hello->targets, in + TARGETS_AT);
	area_read(&hello->buffer, in + BUFFER_AT);
	return true;
}

void vb_rs_hello_emit(const struct vb_rs_hello *hello, uint8_t out[VB_RS_HELLO_BYTES])
{
	memset(out, 0, VB_RS_HELLO_BYTES);
	out[0] = VERSION;
	out[FLAGS_AT] = (uint8_t)(FLAG_MAPS | (is_big_endian() ? FLAG_BIG_ENDIAN : 0));
	vb_be16_put(out + CREDITS_AT, hello->credits);
	out[MAPS_AT] = maps_scale(hello->maps);
	area_write(out + TARGETS_AT, &hello->targets);
	area_write(out + BUFFER_AT, &hello->buffer);
}

/* --- entries in memory --- */

_Static_assert(sizeof(struct vb_rs_area) == VB_RS_AREA_BYTES, "as the peer has it");
_Static_assert(sizeof(struct vb_rs_map) == VB_RS_MAP_BYTES, "as the peer has it");

static struct vb_rs_area area_swap(const struct vb_rs_area *area)
{
	return (struct vb_rs_area){
		.addr = __builtin_bswap64(area->addr),
		.key = __builtin_bswap32(area->key),
		.length = __builtin_bswap32(area->length),
	};
}

void vb_rs_area_put(uint8_t out[VB_RS_AREA_BYTES], const struct vb_rs_area *area, bool swapped)
{
	struct vb_rs_area said = swapped ? area_swap(area) : *area;

	memcpy(out, &said, sizeof(said));
}

void vb_rs_map_put(uint8_t out[VB_RS_MAP_BYTES], const struct vb_rs_map *map, bool swapped)
{
	uint64_t offset = swapped ? __builtin_bswap64(map->offset) : map->offset;

	memcpy(out, &offset, sizeof(offset));
	vb_rs_area_put(out + sizeof(offset), &map->area, swapped);
}

void vb_rs_area_get(struct vb_rs_area *area, const uint8_t in[VB_RS_AREA_BYTES])
{
	memcpy(area, in, sizeof(*area));
}

void vb_rs_map_get(struct vb_rs_map *map, const uint8_t in[VB_RS_MAP_BYTES])
{
	memcpy(map, in, sizeof(*map));
}

/* --- datagrams --- */

enum {
	IPV4_BYTES = 4,
	IPV6_BYTES = 16,
	FROM_ADDR_AT = 4,
	FROM_ADDR6_AT = 8,
	FIRST_VERSION_AT = 4,
	FIRST_OP_AT = 5,
	FIRST_LENGTH_AT = 6,
	FIRST_QPN_AT = 8,
	FIRST_ADDR_AT = 12,
};

static const uint8_t first_tag[4] = {0x55, 0x55, 0x55, 0x55};

unsigned vb_rs_from_parse(struct vb_rs_from *from, const uint8_t *in, unsigned bytes)
{
	bool ipv4 = bytes >= VB_RS_FROM_IPV4_BYTES && in[0] == 4 &&
		    in[1] == VB_RS_FROM_IPV4_BYTES;

	if (!ipv4 && (bytes < VB_RS_FROM_IPV6_BYTES || in[0] != 6 ||
		      in[1] != VB_RS_FROM_IPV6_BYTES))
		return 0;
	*from = (struct vb_rs_from){.ipv4 = ipv4, .port = vb_be16_get(in + 2)};
	if (ipv4) {
		memcpy(from->addr, in + FROM_ADDR_AT, IPV4_BYTES);
	} else {
		memcpy(&from->flowinfo, in + FROM_ADDR_AT, sizeof(from->flowinfo));
		memcpy(from->addr, in + FROM_ADDR6_AT, IPV6_BYTES);
	}
	return in[1];
}

unsigned vb_rs_from_emit(const struct vb_rs_from *from, uint8_t out[VB_RS_FROM_BYTES_MAX])
{
	out[0] = from->ipv4 ? 4 : 6;
	out[1] = from->ipv4 ? VB_RS_FROM_IPV4_BYTES : VB_RS_FROM_IPV6_BYTES;
	vb_be16_put(out + 2, from->port);
	if (from->ipv4) {
		memcpy(out + FROM_ADDR_AT, from->addr, IPV4_BYTES);
	} else {
		memcpy(out + FROM_ADDR_AT, &from->flowinfo, sizeof(from->flowinfo));
		memcpy(out + FROM_ADDR6_AT, from->addr, IPV6_BYTES);
	}
	return out[1];
}

unsigned vb_rs_first_parse(struct vb_rs_first *first, const uint8_t *in, unsigned bytes)
{
	bool ipv4;

	if (bytes < VB_RS_FIRST_IPV4_BYTES || memcmp(in, first_tag, sizeof(first_tag)))
		return 0;
	ipv4 = in[FIRST_VERSION_AT] == 4 && in[FIRST_LENGTH_AT] == VB_RS_FIRST_IPV4_BYTES;
	if (!ipv4 && (bytes < VB_RS_FIRST_IPV6_BYTES || in[FIRST_VERSION_AT] != 6 ||
		      in[FIRST_LENGTH_AT] != VB_RS_FIRST_IPV6_BYTES))
		return 0;
	if (in[FIRST_OP_AT] != VB_RS_DATA && in[FIRST_OP_AT] != VB_RS_CONTROL)
		return 0;
	*first = (struct vb_rs_first){
		.ipv4 = ipv4,
		.answers = in[FIRST_OP_AT] == VB_RS_CONTROL,
		.qpn = vb_be32_get(in + FIRST_QPN_AT) & 0xffffff,
	};
	memcpy(first->addr, in + FIRST_ADDR_AT, ipv4 ? IPV4_BYTES : IPV6_BYTES);
	return in[FIRST_LENGTH_AT];
}

unsigned vb_rs_first_emit(const struct vb_rs_first *first, uint8_t out[VB_RS_FIRST_BYTES_MAX])
{
	unsigned bytes = first->ipv4 ? VB_RS_FIRST_IPV4_BYTES : VB_RS_FIRST_IPV6_BYTES;

	memset(out, 0, bytes);
	memcpy(out, first_tag, sizeof(first_tag));
	out[FIRST_VERSION_AT] = first->ipv4 ? 4 : 6;
	out[FIRST_OP_AT] = first->answers ? VB_RS_CONTROL : VB_RS_DATA;
	out[FIRST_LENGTH_AT] = (uint8_t)bytes;
	vb_be32_put(out + FIRST_QPN_AT, first->qpn & 0xffffff);
	memcpy(out + FIRST_ADDR_AT, first->addr, first->ipv4 ? IPV4_BYTES : IPV6_BYTES);
	return bytes;
}
