/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_AROUND_FAULT_PARSE_H
#define VB_LINK_AROUND_FAULT_PARSE_H

/*
 * The text of a setting for faults (fault.h), as a list of parts (parts.h):
 *
 *	loss=P dup=P reorder=P corrupt=P	P: a percentage such as 1% or 0.05%
 *	delay=T					T: such as 250us or 1ms, at most 10s
 *	seed=N					a 64-bit decimal number
 *
 * such as "loss=1%,delay=1ms,seed=7".
 */

#include <stdbool.h>
#include <stdint.h>

#include "link/around/parts.h"

enum {
	VB_FAULT_PER_UNIT = VB_PARTS_PER_UNIT, /* unit of the probabilities */
	VB_FAULT_WHY_BYTES = VB_PARTS_WHY_BYTES,
};

struct vb_fault {
	uint32_t loss, dup, reorder, corrupt; /* 0 to VB_FAULT_PER_UNIT */
	uint64_t delay_ns, seed;
	bool seeded;
};

/*
 * Returns 0, or EINVAL with *fault untouched. `why` says on one line what is wrong and what is
 * valid; it is empty after success.
 */
int vb_fault_parse(struct vb_fault *fault, const char *text, char why[VB_FAULT_WHY_BYTES]);

#endif
