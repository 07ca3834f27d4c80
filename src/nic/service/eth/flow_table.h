/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_FLOW_TABLE_H
#define VB_NIC_FLOW_TABLE_H

/*
 * Flow rules, found by what frames look like. Those of one order and one mask are a group, in which
 * a hash finds the one entry that a frame can match; so the number of rules costs nothing, only how
 * many different masks there are. Rules that are the same share an entry, and each has its
 * destination there.
 *
 * One thread at a time changes a table. Who looks takes `look`; changes take it for what cannot be
 * seen half done. Nothing else is called with it held.
 */

#include "base/lock.h"
#include "nic/service/eth/flow_spec.h"

struct vb_qp;
struct vb_flow_group;

struct vb_flow_dest {
	struct vb_qp *qp;
	struct vb_counters *counters; /* or NULL */
	uint32_t refs;		      /* so many rules are the same in this as well */
	bool again; /* another in the list stands for that QP: it gets a frame once */
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
	unsigned bits; /* of the mask: more of them are asked first, within one order */
	uint32_t entries, buckets;
	struct vb_flow_entry **bucket;
	unsigned words; /* of the key that the mask has bits in, and where they are */
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
 * A rule and its destination. 0; EEXIST: frames that it matches are dropped, or tagged in another
 * way, by a rule of the same match and order; ENOMEM.
 */
int vb_flow_table_add(struct vb_flow_table *table, const struct vb_flow_rule *rule,
		      struct vb_qp *qp, struct vb_counters *counters,
		      struct vb_flow_entry **entry);

/* The end of what was added. */
void vb_flow_table_remove(struct vb_flow_table *table, struct vb_flow_entry *entry,
			  struct vb_qp *qp, struct vb_counters *counters);

/* What a key matches in a group; NULL: nothing. With `look` held. */
struct vb_flow_entry *vb_flow_group_find(const struct vb_flow_group *group,
					 const union vb_eth_key *key);

#endif
