/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CM_TABLE_H
#define VB_CM_TABLE_H

/*
 * A hash table of things that have a struct vb_cm_node each. Strangers choose keys, so they are
 * hashed with a secret. A key may occur more than once. The caller holds the lock.
 */

#include <stdbool.h>
#include <stdint.h>

struct vb_cm_host;

enum { VB_CM_TABLE_FIRST = 16 };

struct vb_cm_key {
	uint64_t word[4];
};

struct vb_cm_node {
	struct vb_cm_node *next;
	struct vb_cm_key key;
	bool listed;
};

struct vb_cm_table {
	const uint64_t *secret; /* two words */
	struct vb_cm_node **bucket;
	uint32_t buckets, count;
	struct vb_cm_node *first[VB_CM_TABLE_FIRST]; /* the buckets of a small table */
};

void vb_cm_table_init(struct vb_cm_table *table, const uint64_t secret[2]);
void vb_cm_table_fini(struct vb_cm_table *table, const struct vb_cm_host *host);

/* The node is in no table. If there is no memory for more buckets, those there are have to do. */
void vb_cm_table_add(struct vb_cm_table *table, const struct vb_cm_host *host,
		     struct vb_cm_node *node, const struct vb_cm_key *key);

/* Nothing happens if it is in none. */
void vb_cm_table_remove(struct vb_cm_table *table, struct vb_cm_node *node);

/* The first with that key, and the next one; NULL: none. */
struct vb_cm_node *vb_cm_table_find(const struct vb_cm_table *table, const struct vb_cm_key *key);
struct vb_cm_node *vb_cm_table_next(const struct vb_cm_node *node);

#endif
