/* SPDX-License-Identifier: BSD-2-Clause */
#include "eth/toeplitz.h"

#include <string.h>

#include "base/check.h"

/* The 32 bits of the key from that bit on. */
static uint32_t window(const uint8_t *key, uint32_t bit)
{
	uint64_t bits = 0;

	for (uint32_t i = 0; i < 5; i++)
		bits = bits << 8 | key[bit / 8 + i];
	return (uint32_t)(bits >> (8 - bit % 8));
}

void vb_toeplitz_init(struct vb_toeplitz *toeplitz, const uint8_t key[VB_TOEPLITZ_KEY_BYTES])
{
	/* The last bit of the longest input uses the last octets of the key. */
	_Static_assert(VB_TOEPLITZ_INPUT_BYTES_MAX + 4 == VB_TOEPLITZ_KEY_BYTES, "of one length");
	for (uint32_t i = 0; i < VB_ARRAY_LEN(toeplitz->half); i++) {
		for (uint32_t value = 0; value < 16; value++) {
			uint32_t hash = 0;

			for (uint32_t bit = 0; bit < 4; bit++) {
				if (value & (8u >> bit))
					hash ^= window(key, 4 * i + bit);
			}
			toeplitz->half[i][value] = hash;
		}
	}
}

uint32_t vb_toeplitz_hash(const struct vb_toeplitz *toeplitz, const uint8_t *input, uint32_t bytes)
{
	uint32_t hash = 0;

	for (uint32_t i = 0; i < bytes; i++)
		hash ^= toeplitz->half[2 * i][input[i] >> 4] ^
			toeplitz->half[2 * i + 1][input[i] & 15];
	return hash;
}

/*
 * The offset of each field in its header: the network header, or the one behind it if its protocol
 * is `proto`.
 */
static const struct field_row {
	uint16_t field;
	uint8_t l3;    /* enum vb_l3, VB_L3_NONE: any */
	uint8_t proto; /* 0: in the network header */
	uint8_t at, bytes;
} field_rows[] = {
	{VB_HASH_SRC_IPV4, VB_L3_IPV4, 0, 12, 4},
	{VB_HASH_DST_IPV4, VB_L3_IPV4, 0, 16, 4},
	{VB_HASH_SRC_IPV6, VB_L3_IPV6, 0, 8, 16},
	{VB_HASH_DST_IPV6, VB_L3_IPV6, 0, 24, 16},
	{VB_HASH_SRC_PORT_TCP, VB_L3_NONE, VB_IPPROTO_TCP, 0, 2},
	{VB_HASH_DST_PORT_TCP, VB_L3_NONE, VB_IPPROTO_TCP, 2, 2},
	{VB_HASH_SRC_PORT_UDP, VB_L3_NONE, VB_IPPROTO_UDP, 0, 2},
	{VB_HASH_DST_PORT_UDP, VB_L3_NONE, VB_IPPROTO_UDP, 2, 2},
	{VB_HASH_IPSEC_SPI, VB_L3_NONE, VB_IPPROTO_ESP, 0, 4},
	{VB_HASH_IPSEC_SPI, VB_L3_NONE, VB_IPPROTO_AH, 4, 4},
};

static bool has_field(const struct vb_eth_headers *h, const struct field_row *row)
{
	if (!row->proto)
		return h->l3 == (enum vb_l3)row->l3;
	return h->l3 != VB_L3_NONE && h->l4_at && !h->fragment && h->proto == row->proto &&
	       (uint32_t)(h->l4_at + row->at + row->bytes) <= h->end;
}

uint32_t vb_toeplitz_input(const struct vb_eth_frame *frame, uint64_t fields,
			   uint8_t input[VB_TOEPLITZ_INPUT_BYTES_MAX])
{
	const struct vb_eth_headers *h = fields & VB_HASH_INNER ? &frame->inner : &frame->outer;
	uint32_t bytes = 0;

	if ((fields & VB_HASH_INNER) && !frame->has_inner)
		return 0;
	for (size_t i = 0; i < VB_ARRAY_LEN(field_rows); i++) {
		const struct field_row *row = &field_rows[i];
		uint32_t at = row->proto ? h->l4_at : h->l3_at;

		if (!(fields & row->field) || !has_field(h, row))
			continue;
		memcpy(input + bytes, frame->octets + at + row->at, row->bytes);
		bytes += row->bytes;
	}
	return bytes;
}
