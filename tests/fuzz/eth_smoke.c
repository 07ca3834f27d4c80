/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * As smoke.c, for what takes Ethernet frames.
 *
 *   smoke_X [ROUNDS [SEED]]   frames of all kinds, then that many mutations of them
 *   smoke_X --seeds DIR       writes the frames as a corpus for fuzz_X
 *   smoke_X --file FILE ...   an input that libFuzzer kept
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/prng.h"
#include "eth/parse.h"
#include "frames.h"
#include "fuzz.h"

enum { ROUNDS_DEFAULT = 1000000, CHANGES_MAX = 4, SEEDS = 4 * 3 * 5 };

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

static void frame_mutate(struct frame *frame, uint64_t *seed)
{
	uint64_t r = vb_prng_next(seed);
	uint32_t at = frame->bytes ? (uint32_t)(r >> 32) % frame->bytes : 0;

	switch (r % 8) {
	case 0:
		frame->bytes = at;
		break;
	case 1:
		if (frame->bytes + 8 <= FRAME_BYTES_MAX)
			frame_data(frame, 8);
		break;
	case 2:
		frame->octets[at] = (uint8_t)(r >> 8);
		break;
	default:
		frame->octets[at] ^= (uint8_t)(1 << (r >> 8 & 7));
	}
}

/* In memory of exactly that size, so that a sanitizer sees a read beyond it. */
static void try(const uint8_t *octets, uint32_t bytes)
{
	uint8_t *copy = malloc(bytes ? bytes : 1);

	vb_check(copy);
	memcpy(copy, octets, bytes);
	LLVMFuzzerTestOneInput(copy, bytes);
	free(copy);
}

static int seeds_write(const char *dir)
{
	for (unsigned i = 0; i < SEEDS; i++) {
		struct frame frame;
		char name[4096];
		FILE *file;

		frame_seed(&frame, i);
		snprintf(name, sizeof(name), "%s/eth-%u", dir, i);
		file = fopen(name, "wb");
		if (!file || fwrite(frame.octets, 1, frame.bytes, file) != frame.bytes ||
		    fclose(file))
			return 1;
	}
	return 0;
}

static int files_run(char **names)
{
	for (; *names; names++) {
		FILE *file = fopen(*names, "rb");
		struct frame frame;

		if (!file)
			return 1;
		frame.bytes = (uint32_t)fread(frame.octets, 1, sizeof(frame.octets), file);
		fclose(file);
		try(frame.octets, frame.bytes);
	}
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : ROUNDS_DEFAULT;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;

	if (argc == 3 && !strcmp(argv[1], "--seeds"))
		return seeds_write(argv[2]);
	if (argc > 2 && !strcmp(argv[1], "--file"))
		return files_run(argv + 2);
	for (unsigned long i = 0; i < SEEDS + rounds; i++) {
		uint64_t changes = i < SEEDS ? 0 : 1 + vb_prng_next(&seed) % CHANGES_MAX;
		struct frame frame;

		frame_seed(&frame, (unsigned)(i % SEEDS));
		while (changes--)
			frame_mutate(&frame, &seed);
		try(frame.octets, frame.bytes);
	}
	printf("%u frames and %lu mutations of them\n", SEEDS, rounds);
	return 0;
}
