/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_SEGMENT_TABLE_H
#define VB_NIC_SEGMENT_TABLE_H

/*
 * The members of a hub's Ethernet segment, in memory that all its processes share: for each process
 * (by one of its slots) the destinations that its flow rules want, so that senders can skip the
 * others. All of it is a hint: a receiver decides by its own rules.
 *
 * A member writes its own entry, and all read it; a reader that finds an entry being changed
 * assumes that the frame is wanted. Any thread; no lock, no allocation.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "nic/core/limits.h"

enum { VB_SEGMENT_MACS_MAX = 31, VB_SEGMENT_WORDS = VB_SLOTS / 64 };

/* What a member wants beyond the destinations in its list. */
enum {
	VB_SEGMENT_ALL = 1,    /* every frame, to any destination */
	VB_SEGMENT_GROUPS = 2, /* every multicast and broadcast frame */
};

struct vb_segment_member {
	_Atomic uint64_t wants; /* changes << 16 | count << 8 | VB_SEGMENT_* */
	_Atomic uint64_t mac[VB_SEGMENT_MACS_MAX];
};

struct vb_segment_table {
	_Atomic uint64_t members[VB_SEGMENT_WORDS]; /* a bit for each slot that wants something */
	_Alignas(64) _Atomic uint32_t uplink; /* the slot that has the uplink; 0: none */
	_Alignas(64) struct vb_segment_member member[VB_SLOTS];
};

/* What a NIC wants, according to its rules. */
struct vb_segment_filter {
	unsigned flags; /* VB_SEGMENT_* */
	uint32_t count;
	uint64_t mac[VB_SEGMENT_MACS_MAX]; /* as from vb_segment_mac() */
};

enum vb_segment_want { VB_SEGMENT_NOT, VB_SEGMENT_LISTENS, VB_SEGMENT_ADDRESSED };

/* Six octets as a number. */
static inline uint64_t vb_segment_mac(const uint8_t octets[6])
{
	uint64_t mac = 0;

	for (unsigned i = 0; i < 6; i++)
		mac = mac << 8 | octets[i];
	return mac;
}

/* IEEE 802.3 3.2.3: the first bit on the wire marks a group. */
static inline bool vb_segment_is_group(uint64_t mac)
{
	return mac >> 40 & 1;
}

/* Writes the entry of a slot; an empty filter removes it from the segment. */
static inline void vb_segment_write(struct vb_segment_table *table, uint16_t slot,
				    const struct vb_segment_filter *filter)
{
	struct vb_segment_member *member = &table->member[slot];
	_Atomic uint64_t *word = &table->members[slot / 64];
	uint64_t bit = 1ull << slot % 64, changes;

	/* Meanwhile everything is wanted. */
	changes = (atomic_load(&member->wants) >> 16) + 1;
	atomic_store(&member->wants, changes << 16 | VB_SEGMENT_ALL);
	for (uint32_t i = 0; i < filter->count; i++)
		atomic_store(&member->mac[i], filter->mac[i]);
	atomic_store(&member->wants,
		     (changes + 1) << 16 | (uint64_t)filter->count << 8 | filter->flags);
	if (filter->flags || filter->count)
		atomic_fetch_or(word, bit);
	else
		atomic_fetch_and(word, ~bit);
}

/* Does a member want frames to that destination? ADDRESSED: it has that address. */
static inline enum vb_segment_want vb_segment_wants(struct vb_segment_table *table, uint16_t slot,
						    uint64_t mac)
{
	struct vb_segment_member *member = &table->member[slot];
	uint64_t wants = atomic_load_explicit(&member->wants, memory_order_acquire);
	uint32_t count = wants >> 8 & 0xff;

	for (uint32_t i = 0; i < count && i < VB_SEGMENT_MACS_MAX; i++) {
		if (atomic_load_explicit(&member->mac[i], memory_order_acquire) == mac)
			return VB_SEGMENT_ADDRESSED;
	}
	if ((wants & VB_SEGMENT_ALL) ||
	    ((wants & VB_SEGMENT_GROUPS) && vb_segment_is_group(mac)) ||
	    atomic_load_explicit(&member->wants, memory_order_relaxed) != wants)
		return VB_SEGMENT_LISTENS;
	return VB_SEGMENT_NOT;
}

/* Removes a dead process. */
static inline void vb_segment_clear(struct vb_segment_table *table, uint16_t slot)
{
	uint32_t uplink = slot;

	atomic_fetch_and(&table->members[slot / 64], ~(1ull << slot % 64));
	atomic_compare_exchange_strong(&table->uplink, &uplink, 0);
}

/* Does vb_segment_clear() have anything to do? */
static inline bool vb_segment_has(const struct vb_segment_table *table, uint16_t slot)
{
	return (atomic_load(&table->members[slot / 64]) >> slot % 64 & 1) ||
	       atomic_load(&table->uplink) == slot;
}

#endif
