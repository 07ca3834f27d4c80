/* SPDX-License-Identifier: BSD-2-Clause */
/* Inputs (smoke_main.h) for what rsockets say to each other. */
#include <string.h>

#include "base/prng.h"
#include "smoke_main.h"
#include "wire/rs.h"

static void input_seed(struct smoke_input *input, unsigned i)
{
	static const struct vb_rs_hello hello = {
		.has_maps = true, .credits = 384, .maps = 4, .buffer = { 0x1234, 5, 1 << 17 },
	};
	struct vb_rs_from from = { .ipv4 = i % 2, .port = 7 };
	struct vb_rs_first first = { .ipv4 = i % 2, .answers = i >= 4, .qpn = 0x123 };

	if (i == 0) {
		vb_rs_hello_emit(&hello, input->octets);
		input->bytes = VB_RS_HELLO_BYTES;
	} else if (i < 3) {
		input->bytes = vb_rs_from_emit(&from, input->octets);
	} else {
		input->bytes = vb_rs_first_emit(&first, input->octets);
	}
}

static void input_mutate(struct smoke_input *input, uint64_t *seed)
{
	uint64_t r = vb_prng_next(seed);
	size_t at = input->bytes ? (size_t)(r >> 32) % input->bytes : 0;

	if (r % 16 == 0)
		input->bytes = at;
	else
		input->octets[at] ^= (uint8_t)(1 << (r >> 8 & 7));
}

struct smoke smoke = {
	.name = "rs",
	.seeds = 7,
	.rounds = 500000,
	.make = input_seed,
	.mutate = input_mutate,
};
