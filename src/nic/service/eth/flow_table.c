/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/service/eth/flow_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "nic/core/limits.h"

#define BUCKETS_MIN 8u

void vb_flow_table_init(struct vb_flow_table *table)
{
	vb_lock_init(&table->look, VB_RANK_FLOWS);
	table->first = NULL;
	table->groups = 0;
}

static void entry_free(struct vb_flow_entry *entry)
{
	if (entry->dest != &entry->one)
		free(entry->dest);
	free(entry);
}

static void group_free(struct vb_flow_group *group)
{
	free(group->bucket);
	free(group);
}

void vb_flow_table_fini(struct vb_flow_table *table)
{
	struct vb_flow_group *group, *next_group;
	struct vb_flow_entry *entry, *next;

	for (group = table->first; group; group = next_group) {
		next_group = group->next;
		for (uint32_t i = 0; i < group->buckets; i++) {
			for (entry = group->bucket[i]; entry; entry = next) {
				next = entry->next;
				entry_free(entry);
			}
		}
		group_free(group);
	}
	vb_lock_fini(&table->look);
}

/* --- groups --- */

static uint64_t hash_of(const struct vb_flow_group *group, const union vb_eth_key *key)
{
	uint64_t hash = 0;

	for (unsigned i = 0; i < group->words; i++) {
		hash ^= key->word[group->word[i]] & group->mask[i];
		hash *= 0x9e3779b97f4a7c15ull;
		hash ^= hash >> 32;
	}
	return hash;
}

static bool equals(const struct vb_flow_group *group, const struct vb_flow_entry *entry,
		   const union vb_eth_key *key)
{
	uint64_t differ = 0;

	for (unsigned i = 0; i < group->words; i++)
		differ |= (key->word[group->word[i]] & group->mask[i]) ^ entry->value[i];
	return !differ;
}

struct vb_flow_entry *vb_flow_group_find(const struct vb_flow_group *group,
					 const union vb_eth_key *key)
{
	uint64_t hash = hash_of(group, key);
	struct vb_flow_entry *entry = group->bucket[hash & (group->buckets - 1)];

	while (entry && (entry->hash != hash || !equals(group, entry, key)))
		entry = entry->next;
	return entry;
}

static unsigned bits_of(const union vb_eth_key *mask)
{
	unsigned bits = 0;

	for (unsigned i = 0; i < VB_KEY_WORDS; i++) {
		for (uint64_t word = mask->word[i]; word; word &= word - 1)
			bits++;
	}
	return bits;
}

static struct vb_flow_group *group_make(const struct vb_flow_rule *rule)
{
	struct vb_flow_group *group = calloc(1, sizeof(*group));

	if (!group)
		return NULL;
	group->order = rule->order;
	group->traps = rule->traps;
	group->bits = bits_of(&rule->mask);
	for (unsigned i = 0; i < VB_KEY_WORDS; i++) {
		if (!rule->mask.word[i])
			continue;
		group->inner |= i >= VB_KEY_WORDS_LEVEL;
		group->word[group->words] = (uint8_t)i;
		group->mask[group->words++] = rule->mask.word[i];
	}
	group->buckets = BUCKETS_MIN;
	group->bucket = calloc(group->buckets, sizeof(struct vb_flow_entry *));
	if (group->bucket)
		return group;
	group_free(group);
	return NULL;
}

static bool is_of(const struct vb_flow_group *group, const struct vb_flow_rule *rule)
{
	unsigned k = 0;

	if (group->order != rule->order)
		return false;
	for (unsigned i = 0; i < VB_KEY_WORDS; i++) {
		uint64_t mask = k < group->words && group->word[k] == i ? group->mask[k++] : 0;

		if (mask != rule->mask.word[i])
			return false;
	}
	return true;
}

/*
 * The place of a rule's group: by order, then by number of mask bits. So the order that
 * ibv_create_flow(3) leaves open does not depend on which rule came first.
 */
static struct vb_flow_group **group_place(struct vb_flow_table *table,
					  const struct vb_flow_rule *rule, bool *found)
{
	struct vb_flow_group **at = &table->first;
	unsigned bits = bits_of(&rule->mask);

	while (*at && ((*at)->order < rule->order ||
		       ((*at)->order == rule->order && (*at)->bits > bits)))
		at = &(*at)->next;
	*found = false;
	while (*at && (*at)->order == rule->order && (*at)->bits == bits) {
		*found = is_of(*at, rule);
		if (*found)
			break;
		at = &(*at)->next;
	}
	return at;
}

static int grow(struct vb_flow_table *table, struct vb_flow_group *group)
{
	uint32_t buckets = 2 * group->buckets;
	struct vb_flow_entry **bucket, **old = group->bucket;

	if (group->entries < group->buckets)
		return 0;
	bucket = calloc(buckets, sizeof(struct vb_flow_entry *));
	if (!bucket)
		return ENOMEM;
	vb_lock_take(&table->look);
	for (uint32_t i = 0; i < group->buckets; i++) {
		struct vb_flow_entry *entry, *next;

		for (entry = old[i]; entry; entry = next) {
			struct vb_flow_entry **to = &bucket[entry->hash & (buckets - 1)];

			next = entry->next;
			entry->next = *to;
			*to = entry;
		}
	}
	group->bucket = bucket;
	group->buckets = buckets;
	vb_lock_drop(&table->look);
	free(old);
	return 0;
}

/* --- entries --- */

static struct vb_flow_entry *entry_make(struct vb_flow_group *group,
					const struct vb_flow_rule *rule)
{
	struct vb_flow_entry *entry =
		calloc(1, sizeof(*entry) + group->words * sizeof(entry->value[0]));

	if (!entry)
		return NULL;
	entry->group = group;
	entry->hash = hash_of(group, &rule->value);
	entry->drop = rule->drop;
	entry->has_tag = rule->has_tag;
	entry->tag = rule->tag;
	entry->dest = &entry->one;
	entry->room = 1;
	for (unsigned i = 0; i < group->words; i++)
		entry->value[i] = rule->value.word[group->word[i]];
	return entry;
}

static struct vb_flow_dest *dest_find(const struct vb_flow_entry *entry, const struct vb_qp *qp,
				      const struct vb_counters *counters)
{
	for (uint32_t i = 0; i < entry->dests; i++) {
		if (entry->dest[i].qp == qp && entry->dest[i].counters == counters)
			return &entry->dest[i];
	}
	return NULL;
}

static int dest_add(struct vb_flow_table *table, struct vb_flow_entry *entry, struct vb_qp *qp,
		    struct vb_counters *counters)
{
	struct vb_flow_dest *dest = dest_find(entry, qp, counters), *old = entry->dest;
	struct vb_flow_dest *room = old;
	bool again = false;

	if (dest) {
		dest->refs++;
		return 0;
	}
	if (entry->dests == entry->room) {
		room = calloc(2 * entry->room, sizeof(*room));
		if (!room)
			return ENOMEM;
		memcpy(room, old, entry->dests * sizeof(*room));
	}
	for (uint32_t i = 0; i < entry->dests && !again; i++)
		again = old[i].qp == qp;
	vb_lock_take(&table->look);
	entry->dest = room;
	entry->dest[entry->dests++] =
		(struct vb_flow_dest){ .qp = qp, .counters = counters, .refs = 1, .again = again };
	vb_lock_drop(&table->look);
	if (room == old)
		return 0;
	entry->room *= 2;
	if (old != &entry->one)
		free(old);
	return 0;
}

/* --- rules --- */

/*
 * Adds the first rule with its match; its group exists. It becomes visible with its destination:
 * without one it would keep frames from all later rules.
 */
static int entry_add(struct vb_flow_table *table, struct vb_flow_group *group,
		     const struct vb_flow_rule *rule, struct vb_flow_dest first,
		     struct vb_flow_entry **out)
{
	struct vb_flow_entry *entry = entry_make(group, rule), **at;

	if (!entry || grow(table, group)) {
		free(entry);
		return ENOMEM;
	}
	entry->one = first;
	entry->dests = 1;
	at = &group->bucket[entry->hash & (group->buckets - 1)];
	vb_lock_take(&table->look);
	entry->next = *at;
	*at = entry;
	group->entries++;
	vb_lock_drop(&table->look);
	*out = entry;
	return 0;
}

/* Removes the last rule with its match, and its destination. */
static void entry_remove(struct vb_flow_table *table, struct vb_flow_entry *entry)
{
	struct vb_flow_group *group = entry->group;
	struct vb_flow_entry **at = &group->bucket[entry->hash & (group->buckets - 1)];

	while (*at != entry)
		at = &(*at)->next;
	vb_lock_take(&table->look);
	*at = entry->next;
	group->entries--;
	vb_lock_drop(&table->look);
	entry_free(entry);
}

/* Removes the group if it is empty. */
static void tidy(struct vb_flow_table *table, struct vb_flow_group *group)
{
	struct vb_flow_group **place = &table->first;

	if (group->entries)
		return;
	while (*place != group)
		place = &(*place)->next;
	vb_lock_take(&table->look);
	*place = group->next;
	table->groups--;
	vb_lock_drop(&table->look);
	group_free(group);
}

static int group_get(struct vb_flow_table *table, const struct vb_flow_rule *rule,
		     struct vb_flow_group **out)
{
	bool found;
	struct vb_flow_group **at = group_place(table, rule, &found), *group;

	*out = *at;
	if (found)
		return 0;
	group = table->groups < VB_FLOW_GROUPS_MAX ? group_make(rule) : NULL;
	if (!group)
		return ENOMEM;
	group->next = *at;
	vb_lock_take(&table->look);
	*at = group;
	table->groups++;
	vb_lock_drop(&table->look);
	*out = group;
	return 0;
}

int vb_flow_table_add(struct vb_flow_table *table, const struct vb_flow_rule *rule,
		      struct vb_qp *qp, struct vb_counters *counters, struct vb_flow_entry **out)
{
	struct vb_flow_group *group;
	struct vb_flow_entry *entry;
	int err = group_get(table, rule, &group);

	if (err)
		return err;
	entry = vb_flow_group_find(group, &rule->value);
	if (entry && (entry->drop != rule->drop || entry->has_tag != rule->has_tag ||
		      entry->tag != rule->tag))
		return EEXIST;
	if (entry)
		err = dest_add(table, entry, qp, counters);
	else
		err = entry_add(table, group, rule,
				(struct vb_flow_dest){ .qp = qp, .counters = counters, .refs = 1 },
				&entry);
	if (err)
		tidy(table, group);
	else
		*out = entry;
	return err;
}

static void dest_remove(struct vb_flow_table *table, struct vb_flow_entry *entry,
			struct vb_flow_dest *dest)
{
	const struct vb_qp *qp = dest->qp;
	bool again = dest->again;

	vb_lock_take(&table->look);
	memmove(dest, dest + 1, (size_t)(entry->dest + --entry->dests - dest) * sizeof(*dest));
	/* Another rule for this QP takes over. */
	for (uint32_t i = 0; i < entry->dests && !again; i++) {
		again = entry->dest[i].qp == qp;
		if (again)
			entry->dest[i].again = false;
	}
	vb_lock_drop(&table->look);
}

void vb_flow_table_remove(struct vb_flow_table *table, struct vb_flow_entry *entry,
			  struct vb_qp *qp, struct vb_counters *counters)
{
	struct vb_flow_dest *dest = dest_find(entry, qp, counters);
	struct vb_flow_group *group = entry->group;

	vb_check(dest);
	if (--dest->refs)
		return;
	if (entry->dests > 1) {
		dest_remove(table, entry, dest);
		return;
	}
	entry_remove(table, entry);
	tidy(table, group);
}
