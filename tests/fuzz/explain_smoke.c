/* SPDX-License-Identifier: BSD-2-Clause */
/* Inputs (smoke_main.h): captures of either form with one packet of each opcode, both ways. */
#include "base/check.h"
#include "base/prng.h"
#include "captures.h"
#include "smoke_main.h"

enum { FORMS = 2, PAYLOAD_BYTES = 64 };

static void seed(struct smoke_input *input, unsigned i)
{
	static struct capture capture;
	uint32_t psn = 0xfffff0;

	if (i)
		capture_begin_plain(&capture);
	else
		capture_begin(&capture);
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		const struct vb_op_info *info = vb_op_info((uint8_t)opcode);
		bool back = info && (info->headers & VB_H_AETH);
		struct vb_pkt pkt = {.opcode = (uint8_t)opcode, .dqpn = back ? 0x11 : 0x22,
				     .sqpn = back ? 0x22 : 0x11, .reth = {4096, 1, PAYLOAD_BYTES},
				     .aeth = {.syndrome = (uint8_t)(opcode << 5 | 1)}};

		if (!info)
			continue;
		pkt.psn = back ? psn : ++psn & 0xffffff;
		pkt.payload_bytes = info->payload ? PAYLOAD_BYTES : 0;
		capture_add(&capture, &pkt, back ? 2 : 1, back ? 1 : 2, 3,
			    back ? CAPTURE_IN : CAPTURE_OUT,
			    "client (pid 5), QPN 0x11, wr_id 0x7, dropped: drop_qkey");
	}
	memcpy(input->octets, capture.octets, capture.bytes);
	input->bytes = capture.bytes;
}

static void mutate(struct smoke_input *input, uint64_t *rng)
{
	uint64_t r = vb_prng_next(rng);
	size_t at = input->bytes ? (size_t)(r >> 32) % input->bytes : 0;

	switch (r % 8) {
	case 0:
		input->bytes = at;
		break;
	case 1: /* a packet, or what looks like one, is gone or comes twice */
		memmove(input->octets + at / 2, input->octets + at, input->bytes - at);
		break;
	case 2:
		if (at < input->bytes)
			input->octets[at] = (uint8_t)(r >> 8);
		break;
	default:
		if (at < input->bytes)
			input->octets[at] ^= (uint8_t)(1 << (r >> 8 & 7));
	}
}

struct smoke smoke = {.name = "capture", .seeds = FORMS, .rounds = 30000, .make = seed,
		      .mutate = mutate};
