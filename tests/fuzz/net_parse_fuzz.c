/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any text as a modelled network: what is accepted is in range; of what is refused, one line says
 * why, and nothing was changed.
 */
#include <string.h>

#include "base/check.h"
#include "fuzz.h"
#include "link/around/net_parse.h"

enum { TEXT_BYTES_MAX = 256 };

static void why_check(const char why[VB_PARTS_WHY_BYTES])
{
	size_t chars = strnlen(why, VB_PARTS_WHY_BYTES);

	/* Shorter than the room that there is: nothing was left out. */
	vb_check(chars && chars < VB_PARTS_WHY_BYTES - 1);
	for (size_t i = 0; i < chars; i++)
		vb_check((uint8_t)why[i] >= ' ' && why[i] != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char text[TEXT_BYTES_MAX], why[VB_PARTS_WHY_BYTES];
	struct vb_net net, again;

	if (bytes >= sizeof(text))
		return 0;
	memcpy(text, data, bytes);
	text[bytes] = 0;
	memset(&net, 0xee, sizeof(net));
	again = net;
	memset(why, 'x', sizeof(why));
	if (vb_net_parse(&net, text, why)) {
		why_check(why);
		vb_check(memcmp(&net, &again, sizeof(net)) == 0);
		return 0;
	}
	vb_check(!why[0]);
	vb_check(!net.rate || (net.rate >= 8000 && net.rate <= 1000000000000));
	vb_check(net.delay_ns <= 10000000000 && net.jitter_ns <= 10000000000);
	vb_check(net.queue_bytes <= 1 << 30 && net.ecn_bytes <= 1 << 30);
	vb_check(memchr(net.name, 0, sizeof(net.name)) && !strchr(net.name, '/'));
	return 0;
}
