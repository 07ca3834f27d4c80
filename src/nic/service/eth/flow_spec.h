/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_FLOW_SPEC_H
#define VB_NIC_FLOW_SPEC_H

/*
 * Decodes what an application passes to ibv_create_flow(3). A rule has a key and a mask
 * (eth/key.h), its position in the order of rules, and what happens to matching frames. Pure; any
 * thread.
 */

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "eth/key.h"

struct vb_counters;

/* Rules are tried in this order. */
enum vb_flow_class {
	VB_FLOW_SNIFFER, /* gets a copy of every frame */
	VB_FLOW_NORMAL,
	VB_FLOW_DEFAULT, /* gets frames that no earlier rule has kept */
};

struct vb_flow_rule {
	/* Lower values are tried first: class << 24, priority << 1, 1 if it traps. */
	uint32_t order;
	bool traps;  /* matching frames go to no rule of a higher order */
	bool egress; /* it applies to frames that are sent */
	union vb_eth_key value, mask; /* value: has no bits outside of mask */
	bool drop;
	bool has_tag;
	uint32_t tag;
	struct vb_counters *counters; /* or NULL */
};

/*
 * attr is read as libibverbs reads it: `size` is ignored, as each specification has its own.
 * EINVAL: an invalid type, port, flag, bit of comp_mask, number or size of specifications;
 * DONT_TRAP or EGRESS with types other than NORMAL; DONT_TRAP with drop, EGRESS with a tag;
 * contradictory or impossible values; an action twice. EOPNOTSUPP: ACTION_HANDLE; MPLS directly in
 * IP.
 */
int vb_flow_decode(const struct ibv_flow_attr *attr, struct vb_flow_rule *rule);

#endif
