/* SPDX-License-Identifier: BSD-2-Clause */
/* Inputs (smoke_main.h) for what takes messages of communication management. */
#include "cm_members.h"
#include "cm_vectors.h"
#include "smoke_main.h"
#include "wire/cm_ip.h"

enum {
	FILLED = 4, /* of each message */
	FILLED_ALL = FILLED * VB_ARRAY_LEN(cm_attrs),
	SEEDS = FILLED_ALL + VB_ARRAY_LEN(cm_vectors),
};

/* Linux's, then some filled at random, every other one of them with an IP header. */
static void input_seed(struct smoke_input *input, unsigned i)
{
	static const struct vb_cm_ip ip = { .sport = 7, .src = { 0xfd }, .dst = { 0xfe } };
	uint8_t octets[2 * VB_MAD_BYTES];
	uint64_t seed = i;
	struct vb_cm_msg msg;

	input->bytes = VB_MAD_BYTES;
	if (i >= FILLED_ALL) {
		memset(input->octets, 0, VB_MAD_BYTES);
		cm_octets(input->octets, cm_vectors[i - FILLED_ALL].hex);
		return;
	}
	msg = cm_msg_random(cm_attrs[i / FILLED], &seed, octets);
	if (i % 2)
		vb_cm_ip_emit(&ip, octets);
	vb_cm_emit(&msg, input->octets);
}

static void input_mutate(struct smoke_input *input, uint64_t *seed)
{
	uint64_t r = vb_prng_next(seed);
	size_t at = input->bytes ? (size_t)(r >> 32) % input->bytes : 0;

	switch (r % 16) {
	case 0: /* cut anywhere */
		input->bytes = at;
		break;
	case 1: /* grow */
		if (input->bytes + 8 <= SMOKE_BYTES_MAX) {
			memset(input->octets + input->bytes, 0x5a, 8);
			input->bytes += 8;
		}
		break;
	case 2: /* another message */
		input->octets[17] = (uint8_t)(VB_CM_ATTR_FIRST + (r >> 8) % 11);
		break;
	case 3: /* in the headers */
		input->octets[at % VB_MAD_HEADER_BYTES] = (uint8_t)(r >> 8);
		break;
	case 4: /* where additional information is counted */
		input->octets[VB_MAD_HEADER_BYTES + at % 12] = (uint8_t)(r >> 8);
		break;
	default:
		input->octets[at] ^= (uint8_t)(1 << (r >> 8 & 7));
	}
}

struct smoke smoke = {
	.name = "cm",
	.seeds = SEEDS,
	.rounds = 1000000,
	.make = input_seed,
	.mutate = input_mutate,
};
