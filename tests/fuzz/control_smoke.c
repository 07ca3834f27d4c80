/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * As smoke.c, for the parsers that see no packet: fault settings and the hub's messages.
 *
 *   smoke_X [ROUNDS [SEED]]   good inputs, then that many mutations of them
 *   smoke_X --seeds DIR       writes the good inputs as a corpus for fuzz_X
 *   smoke_X --file FILE ...   an input that libFuzzer kept
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/prng.h"
#include "fuzz.h"
#include "hub/proto.h"

enum { ROUNDS_DEFAULT = 1000000, INPUT_BYTES_MAX = 4096, CHANGES_MAX = 4 };

static const char *const texts[] = {
	"loss=1%",
	"delay=250us",
	"loss=1%,dup=1%,reorder=5%,corrupt=0.1%,seed=7",
	"seed=18446744073709551615,delay=10s,corrupt=0.0000001%",
};

/* Each message with every number of descriptors. */
enum { FDS = VB_HUB_FDS_MAX + 1, SEEDS = VB_ARRAY_LEN(texts) + FDS * (VB_HUB_TYPES - 1) };

struct input {
	uint8_t octets[INPUT_BYTES_MAX];
	size_t bytes;
};

/* A message that is accepted with the right number of descriptors, behind that number. */
static void message_seed(struct input *input, unsigned type, unsigned fds)
{
	struct vb_hub_msg msg = vb_hub_msg_make(type);

	switch (type) {
	case VB_HUB_GRANT:
	case VB_HUB_WELCOME:
		msg.welcome.error = !fds;
		msg.grant.slot = 1;
		break;
	case VB_HUB_REACHED:
		msg.reached.error = !fds;
		break;
	case VB_HUB_REACH:
	case VB_HUB_RING:
		msg.ring.from = msg.ring.to = 1;
		break;
	case VB_HUB_MARK:
		msg.mark.slot = 1;
		break;
	case VB_HUB_FAIL:
		msg.fail.pid = 1;
		break;
	case VB_HUB_ROWS:
		msg.rows.count = 1;
		msg.rows.row[0].slot = 1;
		break;
	default:
		break;
	}
	input->octets[0] = (uint8_t)fds;
	input->bytes = 1 + vb_hub_msg_bytes(type);
	memcpy(input->octets + 1, &msg, input->bytes - 1);
}

static void input_seed(struct input *input, unsigned i)
{
	if (i < VB_ARRAY_LEN(texts)) {
		input->bytes = strlen(texts[i]);
		memcpy(input->octets, texts[i], input->bytes);
		return;
	}
	i -= VB_ARRAY_LEN(texts);
	message_seed(input, 1 + i / FDS, i % FDS);
}

static void input_mutate(struct input *input, uint64_t *seed)
{
	uint64_t r = vb_prng_next(seed);
	size_t at = input->bytes ? (size_t)(r >> 32) % input->bytes : 0;

	switch (r % 8) {
	case 0:
		input->bytes = at;
		break;
	case 1: /* say something twice */
		if (input->bytes && 2 * input->bytes <= INPUT_BYTES_MAX) {
			memcpy(input->octets + input->bytes, input->octets, input->bytes);
			input->bytes += at;
		}
		break;
	case 2: /* another digit, sign or letter */
		input->octets[at] = (uint8_t)(' ' + (r >> 8) % 95);
		break;
	default:
		input->octets[at] ^= (uint8_t)(1 << (r >> 8 & 7));
	}
}

static int seeds_write(const char *dir)
{
	for (unsigned i = 0; i < SEEDS; i++) {
		struct input input;
		char name[4096];
		FILE *file;

		input_seed(&input, i);
		snprintf(name, sizeof(name), "%s/control-%u", dir, i);
		file = fopen(name, "wb");
		if (!file || fwrite(input.octets, 1, input.bytes, file) != input.bytes ||
		    fclose(file))
			return 1;
	}
	return 0;
}

static int files_run(char **names)
{
	for (; *names; names++) {
		FILE *file = fopen(*names, "rb");
		struct input input;

		if (!file)
			return 1;
		input.bytes = fread(input.octets, 1, sizeof(input.octets), file);
		fclose(file);
		LLVMFuzzerTestOneInput(input.octets, input.bytes);
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
		struct input input;
		uint64_t changes = i < SEEDS ? 0 : 1 + vb_prng_next(&seed) % CHANGES_MAX;

		input_seed(&input, i % SEEDS);
		while (changes--)
			input_mutate(&input, &seed);
		LLVMFuzzerTestOneInput(input.octets, input.bytes);
	}
	return 0;
}
