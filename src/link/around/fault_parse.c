/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/around/fault_parse.h"

#include <stddef.h>

/* clang-format off */
static const struct vb_part parts[] = {
	{ "loss",    offsetof(struct vb_fault, loss),     &vb_part_percentage },
	{ "dup",     offsetof(struct vb_fault, dup),      &vb_part_percentage },
	{ "reorder", offsetof(struct vb_fault, reorder),  &vb_part_percentage },
	{ "corrupt", offsetof(struct vb_fault, corrupt),  &vb_part_percentage },
	{ "delay",   offsetof(struct vb_fault, delay_ns), &vb_part_duration },
	{ "seed",    offsetof(struct vb_fault, seed),     &vb_part_number },
};
/* clang-format on */

enum { PART_SEED = 5 };

static const struct vb_parts faults = { parts, VB_WORDS(parts), "fault", "Faults" };

int vb_fault_parse(struct vb_fault *fault, const char *text, char why[VB_FAULT_WHY_BYTES])
{
	struct vb_fault parsed = { 0 };
	unsigned seen;
	int rc = vb_parts_read(&faults, text, &parsed, &seen, why);

	if (rc)
		return rc;
	parsed.seeded = seen >> PART_SEED & 1;
	*fault = parsed;
	return 0;
}
