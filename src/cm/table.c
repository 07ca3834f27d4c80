/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/table.h"

#include <string.h>

#include "base/prf.h"
#include "cm/host.h"

static struct vb_cm_node **bucket_of(const struct vb_cm_table *table, const struct vb_cm_key *key)
{
	uint64_t hash = 0;

	for (unsigned i = 0; i < 4; i++)
		hash = vb_prf(table->secret, hash ^ key->word[i]);
	return &table->bucket[hash & (table->buckets - 1)];
}

static bool is_equal(const struct vb_cm_key *a, const struct vb_cm_key *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

void vb_cm_table_init(struct vb_cm_table *table, const uint64_t secret[2])
{
	*table = (struct vb_cm_table){.secret = secret, .buckets = VB_CM_TABLE_FIRST};
	table->bucket = table->first;
}

void vb_cm_table_fini(struct vb_cm_table *table, const struct vb_cm_host *host)
{
	if (table->bucket != table->first)
		host->release(host->arg, table->bucket);
}

static void grow(struct vb_cm_table *table, const struct vb_cm_host *host)
{
	struct vb_cm_node **old = table->bucket;
	uint32_t buckets = table->buckets;

	table->bucket = host->alloc(host->arg, 2ull * buckets * sizeof(struct vb_cm_node *));
	if (!table->bucket) {
		table->bucket = old;
		return;
	}
	table->buckets = 2 * buckets;
	for (uint32_t i = 0; i < buckets; i++) {
		for (struct vb_cm_node *node = old[i], *next; node; node = next) {
			struct vb_cm_node **bucket = bucket_of(table, &node->key);

			next = node->next;
			node->next = *bucket;
			*bucket = node;
		}
	}
	if (old != table->first)
		host->release(host->arg, old);
}

void vb_cm_table_add(struct vb_cm_table *table, const struct vb_cm_host *host,
		     struct vb_cm_node *node, const struct vb_cm_key *key)
{
	struct vb_cm_node **bucket;

	if (table->count == table->buckets)
		grow(table, host);
	bucket = bucket_of(table, key);
	*node = (struct vb_cm_node){.next = *bucket, .key = *key, .listed = true};
	*bucket = node;
	table->count++;
}

void vb_cm_table_remove(struct vb_cm_table *table, struct vb_cm_node *node)
{
	struct vb_cm_node **at;

	if (!node->listed)
		return;
	for (at = bucket_of(table, &node->key); *at != node;)
		at = &(*at)->next;
	*at = node->next;
	node->listed = false;
	table->count--;
}

static struct vb_cm_node *first_from(struct vb_cm_node *node, const struct vb_cm_key *key)
{
	while (node && !is_equal(&node->key, key))
		node = node->next;
	return node;
}

struct vb_cm_node *vb_cm_table_find(const struct vb_cm_table *table, const struct vb_cm_key *key)
{
	return first_from(*bucket_of(table, key), key);
}

struct vb_cm_node *vb_cm_table_next(const struct vb_cm_node *node)
{
	return first_from(node->next, &node->key);
}
