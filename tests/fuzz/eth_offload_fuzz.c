/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any octets as a frame that is sent and received with all offloads, and as the header of a stream
 * that is cut: nothing is written but checksums, and what was written is right; each frame of the
 * stream has its part of it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "eth/checksum.h"
#include "eth/toeplitz.h"
#include "eth/tso.h"
#include "fuzz.h"
#include "wire/bytes.h"

/* A transport whose checksum there is, in a packet that is all there. */
static bool sums_up(const struct vb_eth_headers *h, const uint8_t *octets)
{
	uint32_t length;

	if (!h->whole || h->routed || !h->l4_at || h->fragment)
		return false;
	if (h->proto != VB_IPPROTO_UDP)
		return h->proto == VB_IPPROTO_TCP;
	length = vb_be16_get(octets + h->l4_at + 4);
	return length >= 8 && length <= h->end - h->l4_at;
}

static void send_and_receive(const uint8_t *data, uint32_t bytes)
{
	uint8_t *copy = malloc(bytes), input[VB_TOEPLITZ_INPUT_BYTES_MAX];
	struct vb_eth_pieces pieces;
	struct vb_eth_frame frame;
	uint32_t differ = 0;

	vb_check(copy);
	memcpy(copy, data, bytes);
	vb_eth_tx_checksums(copy, bytes, true);
	for (uint32_t i = 0; i < bytes; i++)
		differ += copy[i] != data[i];
	vb_check(differ <= 8); /* IP and TCP, twice */
	if (vb_eth_parse(&frame, copy, bytes)) {
		bool ok = vb_eth_rx_csum_ok(&frame, false);

		vb_check(ok == (sums_up(&frame.outer, copy) && frame.outer.l3 == VB_L3_IPV4));
		if (frame.has_inner)
			vb_check(vb_eth_rx_csum_ok(&frame, true) ==
				 (sums_up(&frame.inner, copy) &&
				  (frame.outer.l3 == VB_L3_NONE || frame.outer.whole)));
		for (unsigned bit = 0; bit < 9; bit++)
			vb_check(vb_toeplitz_input(&frame, 1ull << bit, input) <= 16);
		vb_check(vb_toeplitz_input(&frame, ~0ull, input) <= sizeof(input));
		vb_check(vb_toeplitz_input(&frame, ~VB_HASH_INNER, input) <= sizeof(input));
	}
	vb_eth_rx_pieces(&pieces, copy, bytes, true, true);
	vb_check(pieces.bytes == bytes + 4 - (pieces.stripped ? 4 : 0));
	free(copy);
}

static void cut(const uint8_t *header, uint32_t bytes, uint32_t mss)
{
	static uint8_t octets[VB_TSO_HEADER_BYTES_MAX + 256];
	uint32_t payload = 3 * mss - 1, done = 0;
	struct vb_eth_frame frame;
	struct vb_tso_cut part;
	struct vb_tso tso;

	if (!vb_tso_begin(&tso, header, bytes, payload, mss))
		return;
	while (vb_tso_next(&tso, &part)) {
		vb_check(part.offset == done && part.bytes && part.bytes <= mss);
		done += part.bytes;
		memset(octets + bytes, 0x5a, part.bytes);
		vb_tso_frame(&tso, &part, octets);
		vb_check(vb_eth_parse(&frame, octets, bytes + part.bytes));
		vb_check((frame.has_inner ? frame.inner : frame.outer).end == bytes + part.bytes);
		vb_check((frame.has_inner ? frame.inner : frame.outer).payload_at == bytes);
	}
	vb_check(done == payload);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	if (!bytes)
		return 0;
	send_and_receive(data, (uint32_t)bytes);
	/* Any part of it may be a header, but one that is all header is what is looked for. */
	for (uint32_t header = VB_ETH_HEADER_BYTES; header <= bytes; header += 2)
		cut(data, header, data[bytes - 1] | 1);
	return 0;
}
