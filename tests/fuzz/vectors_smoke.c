/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inputs (smoke_main.h) of captured packets: what one of the targets takes is a frame; a GRH;
 * identification, port, GRH and frame.
 */
#include "base/check.h"
#include "base/prng.h"
#include "smoke_main.h"
#include "vectors.h"

enum { INPUT_BYTES_MAX = 1024, GRH_BYTES = 40, SEEDS_PER_VECTOR = 3 };

static void input_add(struct smoke_input *input, const void *octets, size_t bytes)
{
	memcpy(input->octets + input->bytes, octets, bytes);
	input->bytes += bytes;
}

/* The IP header of a captured packet, where a receiver finds it. */
static void input_add_grh(struct smoke_input *input, const struct vector *v)
{
	static const uint8_t zero[20];

	if (v->ipv4)
		input_add(input, zero, sizeof(zero));
	input_add(input, v->ip, v->ipv4 ? 20 : GRH_BYTES);
}

static void input_seed(struct smoke_input *input, unsigned i)
{
	const struct vector *v = &vectors[i / SEEDS_PER_VECTOR];
	uint8_t front[4] = { (uint8_t)(v->ip_id >> 8), (uint8_t)v->ip_id,
			     (uint8_t)(v->path.sport >> 8), (uint8_t)v->path.sport };

	input->bytes = 0;
	switch (i % SEEDS_PER_VECTOR) {
	case 0:
		input_add(input, v->frame, v->frame_bytes);
		break;
	case 1:
		input_add_grh(input, v);
		break;
	default:
		input_add(input, front, sizeof(front));
		input_add_grh(input, v);
		input_add(input, v->frame, v->frame_bytes);
	}
}

static void input_mutate(struct smoke_input *input, uint64_t *seed)
{
	uint64_t r = vb_prng_next(seed);
	size_t at = input->bytes ? (size_t)(r >> 32) % input->bytes : 0;

	switch (r % 8) {
	case 0: /* cut anywhere */
		input->bytes = at;
		break;
	case 1: /* cut or grow by whole words */
		input->bytes += 4 * (r >> 8 & 7);
		input->bytes -= vb_min_u64(input->bytes, 4 * (r >> 16 & 7));
		break;
	case 2: /* another opcode, for the headers that follow it */
		input->octets[0] = (uint8_t)(r >> 8);
		break;
	case 3:
		input->octets[at] = (uint8_t)(r >> 8);
		break;
	default:
		input->octets[at] ^= (uint8_t)(1 << (r >> 8 & 7));
	}
	input->bytes = vb_min_u64(input->bytes, INPUT_BYTES_MAX);
}

static int load(void)
{
	int error = vectors_load(NULL);

	smoke.seeds = (unsigned)vectors_count * SEEDS_PER_VECTOR;
	return error;
}

struct smoke smoke = { .name = "packet", .rounds = 1000000, .load = load, .make = input_seed,
		       .mutate = input_mutate };
