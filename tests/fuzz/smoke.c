/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fuzz target without libFuzzer, for every compiler and every `make check`:
 *
 *   smoke_X [ROUNDS [SEED]]   the captured packets, then that many mutations of them
 *   smoke_X --seeds DIR       writes the captured packets as a corpus for fuzz_X
 *   smoke_X --file FILE ...   an input that libFuzzer kept
 *
 * An input is what one of the targets takes: a frame; a GRH; identification, port, GRH and frame.
 */
#include <errno.h>

#include "base/check.h"
#include "base/prng.h"
#include "fuzz.h"
#include "vectors.h"

#define ROUNDS_DEFAULT 1000000
#define INPUT_BYTES_MAX 1024
#define GRH_BYTES 40
#define SEEDS_PER_VECTOR 3

struct input {
	uint8_t octets[INPUT_BYTES_MAX];
	size_t bytes;
};

static void input_add(struct input *input, const void *octets, size_t bytes)
{
	memcpy(input->octets + input->bytes, octets, bytes);
	input->bytes += bytes;
}

/* The IP header of a captured packet, where a receiver finds it. */
static void input_add_grh(struct input *input, const struct vector *v)
{
	static const uint8_t zero[20];

	if (v->ipv4)
		input_add(input, zero, sizeof(zero));
	input_add(input, v->ip, v->ipv4 ? 20 : GRH_BYTES);
}

static void input_seed(struct input *input, size_t i)
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

static void input_mutate(struct input *input, uint64_t *seed)
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

/* In memory of exactly the input's size, so that a sanitizer sees a read beyond it. */
static void input_try(const struct input *input)
{
	uint8_t *copy = malloc(input->bytes ? input->bytes : 1);

	vb_check(copy);
	memcpy(copy, input->octets, input->bytes);
	LLVMFuzzerTestOneInput(copy, input->bytes);
	free(copy);
}

static int smoke(unsigned long rounds, uint64_t seed)
{
	size_t seeds = vectors_count * SEEDS_PER_VECTOR;
	struct input input = { .bytes = 0 };

	for (size_t i = 0; i < seeds; i++) {
		input_seed(&input, i);
		input_try(&input);
	}
	for (unsigned long round = 0; round < rounds; round++) {
		input_seed(&input, vb_prng_next(&seed) % seeds);
		for (unsigned mutations = 1 + vb_prng_next(&seed) % 4; mutations; mutations--)
			input_mutate(&input, &seed);
		input_try(&input);
	}
	printf("%zu seeds and %lu mutations of them\n", seeds, rounds);
	return 0;
}

static int seeds_write(const char *dir)
{
	for (size_t i = 0; i < vectors_count * SEEDS_PER_VECTOR; i++) {
		struct input input;
		char name[512];
		FILE *file;

		input_seed(&input, i);
		snprintf(name, sizeof(name), "%s/%03zu", dir, i);
		file = fopen(name, "w");
		if (!file || fwrite(input.octets, 1, input.bytes, file) != input.bytes ||
		    fclose(file)) {
			fprintf(stderr, "%s: %s\n", name, strerror(errno));
			return 1;
		}
	}
	return 0;
}

static int file_try(const char *name)
{
	static struct input input;
	FILE *file = fopen(name, "r");

	if (!file) {
		fprintf(stderr, "%s: %s\n", name, strerror(errno));
		return 1;
	}
	input.bytes = fread(input.octets, 1, sizeof(input.octets), file);
	fclose(file);
	input_try(&input);
	return 0;
}

int main(int argc, char **argv)
{
	int status = 0;

	if (argc > 2 && strcmp(argv[1], "--file") == 0) {
		for (int i = 2; i < argc; i++)
			status |= file_try(argv[i]);
		return status;
	}
	if (vectors_load(NULL))
		return 1;
	if (argc == 3 && strcmp(argv[1], "--seeds") == 0)
		return seeds_write(argv[2]);
	return smoke(argc > 1 ? strtoul(argv[1], NULL, 0) : ROUNDS_DEFAULT,
		     argc > 2 ? strtoull(argv[2], NULL, 0) : 1);
}
