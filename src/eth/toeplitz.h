/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ETH_TOEPLITZ_H
#define VB_ETH_TOEPLITZ_H

/*
 * The Toeplitz hash of receive side scaling, as Microsoft published it ("Verifying the RSS Hash
 * Calculation"), and its input from a frame. Pure; any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "eth/parse.h"

enum {
	VB_TOEPLITZ_KEY_BYTES = 40,
	VB_TOEPLITZ_INPUT_BYTES_MAX = 16 + 16 + 2 + 2,
};

/* A prepared key: what each value of each half octet of the input contributes to the hash. */
struct vb_toeplitz {
	uint32_t half[2 * VB_TOEPLITZ_INPUT_BYTES_MAX][16];
};

void vb_toeplitz_init(struct vb_toeplitz *toeplitz, const uint8_t key[VB_TOEPLITZ_KEY_BYTES]);

/* bytes: at most VB_TOEPLITZ_INPUT_BYTES_MAX. */
uint32_t vb_toeplitz_hash(const struct vb_toeplitz *toeplitz, const uint8_t *input, uint32_t bytes);

/* The fields in the hash: the bits of enum ibv_rx_hash_fields, with the same values. */
enum vb_hash_field {
	VB_HASH_SRC_IPV4 = 1 << 0,
	VB_HASH_DST_IPV4 = 1 << 1,
	VB_HASH_SRC_IPV6 = 1 << 2,
	VB_HASH_DST_IPV6 = 1 << 3,
	VB_HASH_SRC_PORT_TCP = 1 << 4,
	VB_HASH_DST_PORT_TCP = 1 << 5,
	VB_HASH_SRC_PORT_UDP = 1 << 6,
	VB_HASH_DST_PORT_UDP = 1 << 7,
	VB_HASH_IPSEC_SPI = 1 << 8,
};

/* From the packet inside the tunnel, if there is one. */
#define VB_HASH_INNER (1ull << 31)

/*
 * Collects those fields that the frame has, in the order of the hash: source and destination
 * address, source and destination port, SPI. A fragment contributes no ports, so that all fragments
 * of a packet have the same hash. Returns the number of octets, 0 if it has none of the fields.
 */
uint32_t vb_toeplitz_input(const struct vb_eth_frame *frame, uint64_t fields,
			   uint8_t input[VB_TOEPLITZ_INPUT_BYTES_MAX]);

#endif
