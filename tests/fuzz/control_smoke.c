/* SPDX-License-Identifier: BSD-2-Clause */
/* Inputs (smoke_main.h) for parsers that see no packet: settings, scripts, the hub's messages. */
#include <string.h>

#include "base/check.h"
#include "base/prng.h"
#include "hub/proto.h"
#include "smoke_main.h"

static const char *const texts[] = {
	"loss=1%",
	"delay=250us",
	"loss=1%,dup=1%,reorder=5%,corrupt=0.1%,seed=7",
	"seed=18446744073709551615,delay=10s,corrupt=0.0000001%",
	"rate=10Gbit,delay=2us,jitter=1ms,queue=256KiB,ecn=64KiB,name=lab-1,seed=7",
	"rate=1000Gbit,queue=1024MiB,ecn=0B",
	"sent send,RC_ACK qp=0x4141 size>=8 nth=3 -> delay 250us\nat 2s -> gid 0 10.0.0.9",
	"received peer=fe80::1 state=rts every=10 -> nak access # why\nconnect -> reject stale",
	"[device a]\ninterfaces = eth0, eth1\nrate = 100Gbit\nmax_qp = 16\n[device b] # b\nnuma=1",
	"[device a]\naddresses = 10.0.0.1 fd00::1\npci=0000:17:00.0\nuverbs=3\ngids=v1 holes",
	"rail0=eth0,rail1=eth1+10.0.0.7,rail2=fd00::1",
};

/* Each message with every number of descriptors. */
enum { TEXT_BYTES_MAX = 2048 };
enum { FDS = VB_HUB_FDS_MAX + 1, SEEDS = VB_ARRAY_LEN(texts) + FDS * (VB_HUB_TYPES - 1) };

/* A message that is accepted with the right number of descriptors, behind that number. */
static void message_seed(struct smoke_input *input, unsigned type, unsigned fds)
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

static void input_seed(struct smoke_input *input, unsigned i)
{
	if (i < VB_ARRAY_LEN(texts)) {
		input->bytes = strlen(texts[i]);
		memcpy(input->octets, texts[i], input->bytes);
		return;
	}
	i -= VB_ARRAY_LEN(texts);
	message_seed(input, 1 + i / FDS, i % FDS);
}

static void input_mutate(struct smoke_input *input, uint64_t *seed)
{
	uint64_t r = vb_prng_next(seed);
	size_t at = input->bytes ? (size_t)(r >> 32) % input->bytes : 0;

	switch (r % 8) {
	case 0:
		input->bytes = at;
		break;
	case 1: /* say something twice */
		if (input->bytes && input->bytes <= TEXT_BYTES_MAX) {
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

struct smoke smoke = { .name = "control", .seeds = SEEDS, .rounds = 1000000, .make = input_seed,
		       .mutate = input_mutate };
