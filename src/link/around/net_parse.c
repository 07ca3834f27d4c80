/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/around/net_parse.h"

#include <stddef.h>

enum { PART_QUEUE = 3, PART_ECN = 4, QUEUE_BYTES_MIN = 65536 };

/* clang-format off */
static const struct vb_part parts[] = {
	{ "rate",   offsetof(struct vb_net, rate),        &vb_part_rate },
	{ "delay",  offsetof(struct vb_net, delay_ns),    &vb_part_duration },
	{ "jitter", offsetof(struct vb_net, jitter_ns),   &vb_part_duration },
	{ "queue",  offsetof(struct vb_net, queue_bytes), &vb_part_octets },
	{ "ecn",    offsetof(struct vb_net, ecn_bytes),   &vb_part_octets },
	{ "name",   offsetof(struct vb_net, name),        &vb_part_name },
	{ "seed",   offsetof(struct vb_net, seed),        &vb_part_number },
};
/* clang-format on */

static const struct vb_parts nets = { parts, VB_WORDS(parts), "part of a network", "Parts" };

int vb_net_parse(struct vb_net *net, const char *text, char why[VB_PARTS_WHY_BYTES])
{
	struct vb_net parsed = { 0 };
	unsigned seen;
	int rc = vb_parts_read(&nets, text, &parsed, &seen, why);

	if (rc)
		return rc;
	if (!(seen >> PART_QUEUE & 1)) {
		parsed.queue_bytes = parsed.rate / 8000;
		if (parsed.queue_bytes < QUEUE_BYTES_MIN)
			parsed.queue_bytes = QUEUE_BYTES_MIN;
	}
	parsed.ecn = seen >> PART_ECN & 1;
	*net = parsed;
	return 0;
}
