/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_FLOW_SPEC_H
#define VB_NIC_FLOW_SPEC_H

/*
 * ibv_create_flow(3): what an application asks for, decoded. A rule is a key and a mask
 * (eth/key.h), where it stands in the order of all rules, and what is done with what matches. Pure;
 * any thread.
 */

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "eth/key.h"

struct vb_counters;

/* Rules are asked in this order. */
enum vb_flow_class {
	VB_FLOW_SNIFFER, /* a copy of everything */
	VB_FLOW_NORMAL,
	VB_FLOW_DEFAULT, /* what no rule before this has kept */
};

struct vb_flow_rule {
	/* The lower ones are asked first: class << 24, priority << 1, 1 if it traps. */
	uint32_t order;
	bool traps;  /* what matches goes to no rule of a higher order */
	bool egress; /* it is about frames that are sent */
	union vb_eth_key value, mask; /* value: no bits but those of mask */
	bool drop;
	bool has_tag;
	uint32_t tag;
	struct vb_counters *counters; /* or NULL */
};

/*
 * attr is read as libibverbs reads it: `size` means nothing, each specification tells its own.
 * EINVAL: a type, port, flag, bit of comp_mask, number or size of specifications that there is not;
 * DONT_TRAP or EGRESS with other types than NORMAL; DONT_TRAP with drop, EGRESS with a tag; values
 * that contradict each other, or that no header can have; an action twice. EOPNOTSUPP:
 * ACTION_HANDLE; MPLS directly in IP.
 */
int vb_flow_decode(const struct ibv_flow_attr *attr, struct vb_flow_rule *rule);

#endif
