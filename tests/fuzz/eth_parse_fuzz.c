/* SPDX-License-Identifier: BSD-2-Clause */
/* Any octets as an Ethernet frame: what is found lies within it, in order. */
#include <string.h>

#include "base/check.h"
#include "eth/parse.h"
#include "fuzz.h"

static void check_headers(const struct vb_eth_headers *headers, uint32_t from, uint32_t end)
{
	uint32_t at = from;

	vb_check(headers->end <= end);
	vb_check(headers->vlans <= VB_ETH_VLANS_MAX);
	vb_check(!headers->first_fragment || headers->fragment);
	if (headers->has_l2) {
		vb_check(headers->l2_at == from);
		at += VB_ETH_HEADER_BYTES + 4u * headers->vlans;
	}
	vb_check((headers->l3 != VB_L3_NONE) == (headers->l3_at != 0));
	if (headers->l3 != VB_L3_NONE) {
		vb_check(headers->l3_at == at);
		at += headers->l3 == VB_L3_IPV4 ? 20 : 40;
	} else {
		vb_check(!headers->l4_at && !headers->proto && !headers->fragment);
	}
	vb_check(!headers->l4_at || headers->l4_at >= at);
	vb_check(headers->payload_at >= at && headers->payload_at >= headers->l4_at);
	vb_check(headers->payload_at <= headers->end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static const struct vb_eth_headers none;
	struct vb_eth_frame frame;

	if (!vb_eth_parse(&frame, data, (uint32_t)bytes)) {
		vb_check(bytes < VB_ETH_HEADER_BYTES);
		return 0;
	}
	vb_check(frame.octets == data && frame.bytes == bytes && frame.outer.has_l2);
	check_headers(&frame.outer, 0, (uint32_t)bytes);
	vb_check((frame.tunnel != VB_TUNNEL_NONE) == (frame.tunnel_at != 0));
	vb_check(frame.tunnel_at <= frame.outer.end);
	if (frame.has_inner) {
		const struct vb_eth_headers *inner = &frame.inner;
		uint32_t at = inner->has_l2 ? inner->l2_at : inner->l3_at;

		vb_check(at > frame.tunnel_at && frame.tunnel != VB_TUNNEL_NONE);
		check_headers(inner, at, frame.outer.end);
	} else {
		vb_check(memcmp(&frame.inner, &none, sizeof(none)) == 0);
	}
	return 0;
}
