/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_FLOW_TABLE_H
#define VB_NIC_FLOW_TABLE_H

/*
 * Flow rules, found by the fields of a frame. Rules with the same order and mask form a group, in
 * which a hash finds the only entry that a frame can match: so the number of rules does not matter,
 * only that of different masks. Equal rules share an entry with all their destinations.
 *
 * One thread at a time changes a table. Matching takes `look`; changes take it for what must not be
 * seen half done. No other function is called with it held.
 */

#include "base/lock.h"
#include "nic/service/eth/flow_spec.h"

struct vb_qp;
struct vb_flow_group;

struct vb_flow_dest {
	struct vb_qp *qp;
	struct vb_counters *counters; /* or NULL */
	uint32_t refs;		      /* number of rules with the same destination */
	bool again; /* an earlier one in the list has the same QP, which gets a frame once */
};

struct vb_flow_entry {
	struct vb_flow_entry *next;
	struct vb_flow_group *group;
	uint64_t hash;
	bool drop, has_tag;
	uint32_t tag;
	uint32_t dests, room;
	struct vb_flow_dest *dest, one; /* dest: &one, or memory */
	uint64_t value[];
};

struct vb_flow_group {
	struct vb_flow_group *next;
	uint32_t order;
	bool traps, inner;
	unsigned bits; /* of the mask: within an order, more bits are tried first */
	uint32_t entries, buckets;
	struct vb_flow_entry **bucket;
	unsigned words; /* words of the key in which the mask has bits, and their indices */
	uint8_t word[VB_KEY_WORDS];
	uint64_t mask[VB_KEY_WORDS];
};

struct vb_flow_table {
	vb_lock look;
	struct vb_flow_group *first;
	_Atomic uint32_t groups;
};

void vb_flow_table_init(struct vb_flow_table *table);
void vb_flow_table_fini(struct vb_flow_table *table);

/*
 * Adds a rule and its destination. Returns 0; EEXIST: a rule with the same match and order drops
 * the frames, or tags them differently; ENOMEM.
 */
int vb_flow_table_add(struct vb_flow_table *table, const struct vb_flow_rule *rule,
		      struct vb_qp *qp, struct vb_counters *counters,
		      struct vb_flow_entry **entry);

/* Removes what was added. */
void vb_flow_table_remove(struct vb_flow_table *table, struct vb_flow_entry *entry,
			  struct vb_qp *qp, struct vb_counters *counters);

/* The entry of a group that a key matches; NULL: none. With `look` held. */
struct vb_flow_entry *vb_flow_group_find(const struct vb_flow_group *group,
					 const union vb_eth_key *key);

#endif
