/* SPDX-License-Identifier: BSD-2-Clause */
/* Inputs (smoke_main.h) for what takes Ethernet frames. */
#include <string.h>

#include "base/prng.h"
#include "eth/parse.h"
#include "frames.h"
#include "smoke_main.h"

enum { SEEDS = 4 * 3 * 5 };

/* An IP packet with an L4 header; level 1: in it there is another, or Ethernet. */
static void ip_seed(struct frame *frame, unsigned ip, unsigned what, unsigned level)
{
	static const uint8_t protos[5] = { VB_IPPROTO_TCP, VB_IPPROTO_UDP, VB_IPPROTO_GRE,
					   VB_IPPROTO_ESP, VB_IPPROTO_UDP };
	uint8_t proto = protos[what];

	if (ip == 0)
		frame_ipv4(frame, proto, 0);
	else
		frame_ipv6(frame, ip == 1 ? proto : 60);
	if (ip == 2) {
		frame_extension(frame, 44, 1);
		frame_ipv6_fragment(frame, proto, 0, false);
	}
	if (what == 0)
		frame_tcp(frame, 3);
	else if (what == 1)
		frame_udp(frame, level ? VB_UDP_VXLAN : FRAME_DPORT);
	else if (what == 2)
		frame_gre(frame, 0xb000, level ? VB_ETHERTYPE_IPV6 : VB_ETHERTYPE_MPLS);
	else if (what == 3)
		frame_esp(frame);
	else
		frame_udp(frame, VB_UDP_MPLS);
}

static void frame_seed(struct frame *frame, unsigned i)
{
	unsigned tags = i % 4, ip = i / 4 % 3, what = i / 12;

	frame->bytes = frame->ips = 0;
	frame_eth(frame, frame_dst_mac, ip ? VB_ETHERTYPE_IPV6 : VB_ETHERTYPE_IPV4);
	for (unsigned k = 0; k < tags; k++)
		frame_vlan(frame, k ? VB_ETHERTYPE_VLAN : VB_ETHERTYPE_QINQ, (uint16_t)k);
	ip_seed(frame, ip, what, tags & 1);
	if (what == 1 && (tags & 1)) {
		frame_vxlan(frame);
		frame_eth(frame, frame_dst_mac, VB_ETHERTYPE_IPV4);
		ip_seed(frame, 0, 0, 0);
	} else if (what == 2 && (tags & 1)) {
		ip_seed(frame, 2, 1, 0);
	} else if (what == 2 || what == 4) {
		frame_label(frame, 16, false);
		frame_label(frame, 17, true);
		ip_seed(frame, 1, 1, 0);
	}
	frame_data(frame, 16);
	frame_close(frame);
}

static void input_seed(struct smoke_input *input, unsigned i)
{
	struct frame frame;

	frame_seed(&frame, i);
	memcpy(input->octets, frame.octets, frame.bytes);
	input->bytes = frame.bytes;
}

static void input_mutate(struct smoke_input *input, uint64_t *seed)
{
	uint64_t r = vb_prng_next(seed);
	uint32_t at = input->bytes ? (uint32_t)(r >> 32) % (uint32_t)input->bytes : 0;

	switch (r % 8) {
	case 0:
		input->bytes = at;
		break;
	case 1:
		if (input->bytes + 8 <= FRAME_BYTES_MAX) {
			memset(input->octets + input->bytes, 0x5a, 8);
			input->bytes += 8;
		}
		break;
	case 2:
		input->octets[at] = (uint8_t)(r >> 8);
		break;
	default:
		input->octets[at] ^= (uint8_t)(1 << (r >> 8 & 7));
	}
}

struct smoke smoke = { .name = "eth", .seeds = SEEDS, .rounds = 1000000, .make = input_seed,
		       .mutate = input_mutate };
