/* SPDX-License-Identifier: BSD-2-Clause */
/* Inputs (smoke_main.h) for flow rules. */
#include <string.h>

#include "base/check.h"
#include "base/prng.h"
#include "flow_decode_fuzz.h"
#include "flows.h"
#include "frames.h"
#include "smoke_main.h"

enum { SEEDS = 256 };

static const struct {
	unsigned type;
	uint16_t bytes, mask_at;
} kinds[] = {
#define KIND(t, s) { t, sizeof(struct s), offsetof(struct s, mask) }
	KIND(IBV_FLOW_SPEC_ETH, ibv_flow_spec_eth),
	KIND(IBV_FLOW_SPEC_IPV4, ibv_flow_spec_ipv4),
	KIND(IBV_FLOW_SPEC_IPV4_EXT, ibv_flow_spec_ipv4_ext),
	KIND(IBV_FLOW_SPEC_IPV6, ibv_flow_spec_ipv6),
	KIND(IBV_FLOW_SPEC_TCP, ibv_flow_spec_tcp_udp),
	KIND(IBV_FLOW_SPEC_UDP, ibv_flow_spec_tcp_udp),
	KIND(IBV_FLOW_SPEC_ESP, ibv_flow_spec_esp),
	KIND(IBV_FLOW_SPEC_GRE, ibv_flow_spec_gre),
	KIND(IBV_FLOW_SPEC_MPLS, ibv_flow_spec_mpls),
	KIND(IBV_FLOW_SPEC_VXLAN_TUNNEL, ibv_flow_spec_tunnel),
};

/* A specification whose mask has a few bits, with a value that fits often enough. */
static void spec_add(struct flow *flow, uint64_t *seed)
{
	union {
		struct ibv_flow_spec any;
		uint8_t octets[sizeof(struct ibv_flow_spec)];
	} spec;
	uint64_t r = vb_prng_next(seed);
	unsigned kind = r % VB_ARRAY_LEN(kinds);
	uint16_t filter = (uint16_t)(kinds[kind].bytes - kinds[kind].mask_at);

	memset(&spec, 0, sizeof(spec));
	spec.any.hdr.type = kinds[kind].type | (r >> 8 & 3 ? 0 : IBV_FLOW_SPEC_INNER);
	spec.any.hdr.size = kinds[kind].bytes;
	for (unsigned i = 0; i < (r >> 16 & 3); i++) {
		uint64_t bit = vb_prng_next(seed);

		spec.octets[kinds[kind].mask_at + bit % filter] |= (uint8_t)(1 << (bit >> 8 & 7));
	}
	flow_add(flow, &spec, kinds[kind].bytes);
}

static void input_seed(struct smoke_input *input, unsigned n)
{
	struct frame frame = { .bytes = 0 };
	uint64_t seed = n + 1, r = vb_prng_next(&seed);
	struct flow flow;

	flow_begin(&flow, (enum ibv_flow_attr_type)(r & 3));
	flow.attr.priority = (uint16_t)(r >> 8 & 7);
	flow.attr.flags = r >> 16 & 7 || (r & 3) ? 0 : IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
	for (unsigned i = 0; i < (r >> 24 & 3); i++)
		spec_add(&flow, &seed);
	if (r >> 32 & 1)
		flow_tag(&flow, (uint32_t)r);
	frame_eth(&frame, frame_dst_mac, 0x0800);
	frame_ipv4(&frame, 17, 0);
	frame_udp(&frame, r >> 40 & 1 ? 4789 : 7);
	frame_vxlan(&frame);
	frame_eth(&frame, frame_src_mac, 0x86dd);
	frame_ipv6(&frame, 6);
	frame_tcp(&frame, 0);
	frame_close(&frame);
	memset(input->octets, 0, FLOW_FUZZ_RULE_BYTES);
	memcpy(input->octets, &flow, flow.attr.size);
	memcpy(input->octets + FLOW_FUZZ_RULE_BYTES, frame.octets, frame.bytes);
	input->bytes = FLOW_FUZZ_RULE_BYTES + frame.bytes;
}

static void input_mutate(struct smoke_input *input, uint64_t *seed)
{
	uint64_t r = vb_prng_next(seed);
	/* Mostly where the rule is. */
	size_t at = (r >> 32) % (r & 1 ? 128 : input->bytes);

	if (at >= input->bytes)
		return;
	switch (r >> 1 & 7) {
	case 0:
		input->octets[at] = (uint8_t)(r >> 8);
		break;
	case 1:
		input->bytes = input->bytes > 64 ? input->bytes - (r >> 8 & 63) : input->bytes;
		break;
	default:
		input->octets[at] ^= (uint8_t)(1 << (r >> 8 & 7));
	}
}

struct smoke smoke = { .name = "flow", .seeds = SEEDS, .rounds = 500000, .make = input_seed,
		       .mutate = input_mutate };
