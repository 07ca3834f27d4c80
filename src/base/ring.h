/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BASE_RING_H
#define VB_BASE_RING_H

/*
 * A ring of frames in memory that two processes share: one producer, one consumer, no lock.
 *
 * A frame is a head (what the consumer looks at first) and a payload. Head and payload that fit
 * one slot lie in it, beside the mark that publishes it, so that a small frame costs one cache
 * line; a longer payload lies in the data area. Where, both ends compute alike from the lengths:
 * no index ever crosses.
 *
 * Neither end trusts the other. What is read from shared memory is read once, checked, and used
 * from the copy. A producer that dies at any instruction leaves a prefix of what it meant to send,
 * because the one store of the mark publishes a frame.
 *
 * Each end serializes its own callers. Lengths are in octets, positions count on and wrap.
 */

#include <stdatomic.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/check.h"

/*
 * No more data than stays in the caches of both cores beside what it is copied from and to. (The
 * simulator makes rings smaller, so that they are full all the time.)
 */
#ifndef VB_RING_SLOTS
#define VB_RING_SLOTS 256u
#define VB_RING_DATA_BYTES (256u << 10)
#endif

enum {
	VB_RING_SLOT_BYTES = 64,
	VB_RING_HEAD_BYTES_MAX = 56, /* also what fits a slot altogether */
	VB_RING_PAYLOAD_BYTES_MAX = 64 << 10,
	VB_RING_LINE_BYTES = 64,
	VB_RING_AHEAD = 8, /* slots between the one being filled and the one being fetched */
	VB_RING_LANES = 4, /* rings from one slot to another: one area */
};

struct vb_ring_slot {
	_Atomic uint64_t mark; /* position + 1, and above 2^32 the lengths: head << 24 | payload */
	uint8_t octets[VB_RING_HEAD_BYTES_MAX];
};

/* All zero at first. */
struct vb_ring_shared {
	/* The consumer's: slots before `tail` are free; and from when on it heeds `direct`. */
	_Alignas(VB_RING_LINE_BYTES) _Atomic uint32_t tail;
	_Atomic uint32_t heeds_direct;
	/* The producer's: set while it waits for room, so that the consumer rings when it moves. */
	_Alignas(VB_RING_LINE_BYTES) _Atomic uint32_t wants_room;
	/*
	 * The producer's: odd while it reaches into the consumer's memory by itself, and above 2^32
	 * by which key.
	 */
	_Alignas(VB_RING_LINE_BYTES) _Atomic uint64_t direct;
	_Alignas(4096) struct vb_ring_slot slot[VB_RING_SLOTS];
	_Alignas(4096) uint8_t data[VB_RING_DATA_BYTES];
};

_Static_assert(sizeof(struct vb_ring_slot) == VB_RING_SLOT_BYTES, "a slot is a cache line");
_Static_assert(!(VB_RING_SLOTS & (VB_RING_SLOTS - 1)), "positions are masked");
_Static_assert(!(VB_RING_DATA_BYTES & (VB_RING_DATA_BYTES - 1)), "positions are masked");

/* What the memory of one direction holds. */
struct vb_ring_area {
	struct vb_ring_shared lane[VB_RING_LANES];
};

/* The producer's own side. */
struct vb_ring_tx {
	struct vb_ring_shared *shared;
	uint32_t head, tail;	     /* next to fill; the consumer's, as last seen */
	uint32_t data_head, data_tail;
	uint32_t next_data_head;     /* of the frame being built */
	bool broken;		     /* the consumer has written nonsense */
	uint8_t *octets;	     /* ... goes here: the slot's, which nobody looks at yet */
	uint32_t data_end[VB_RING_SLOTS];
};

/* The consumer's own side. All zero at first. */
struct vb_ring_rx {
	struct vb_ring_shared *shared;
	_Atomic uint32_t next; /* written by whoever consumes, looked at by anybody */
	_Atomic uint32_t told; /* `tail`, as last published */
	uint32_t data_pos, data_told;
	uint32_t next_data_pos;
	_Atomic bool broken; /* the producer has written nonsense: nothing is taken any more */
};

/* A frame taken. The head is a copy; the payload may still be shared, and be anything twice. */
struct vb_ring_frame {
	uint32_t head_bytes, payload_bytes;
	const uint8_t *payload;
	_Alignas(8) uint8_t octets[VB_RING_HEAD_BYTES_MAX];
};

static inline uint32_t vb_ring_slot_index(uint32_t position)
{
	return position & (VB_RING_SLOTS - 1);
}

/* Where a payload begins that comes after `position`: never across the end of the area. */
static inline uint32_t vb_ring_data_start(uint32_t position, uint32_t bytes)
{
	uint32_t left = VB_RING_DATA_BYTES - (position & (VB_RING_DATA_BYTES - 1));

	return bytes > left ? position + left : position;
}

static inline uint32_t vb_ring_lines(uint32_t bytes)
{
	return (bytes + VB_RING_LINE_BYTES - 1) & ~(VB_RING_LINE_BYTES - 1u);
}

/* --- producer --- */

static inline void vb_ring_tx_init(struct vb_ring_tx *tx, struct vb_ring_shared *shared)
{
	memset(tx, 0, offsetof(struct vb_ring_tx, data_end));
	tx->shared = shared;
}

/* Look how far the consumer is. Cheap to call when full; true if there is more room than before. */
static inline bool vb_ring_tx_update(struct vb_ring_tx *tx)
{
	uint32_t tail = atomic_load_explicit(&tx->shared->tail, memory_order_acquire);

	if (tail == tx->tail)
		return false;
	/* It can only have moved on, and not beyond what was published. */
	if (tail - tx->tail > tx->head - tx->tail) {
		tx->broken = true;
		return false;
	}
	tx->tail = tail;
	tx->data_tail = tx->data_end[vb_ring_slot_index(tail - 1)];
	return true;
}

static inline bool vb_ring_has_room(struct vb_ring_tx *tx, uint32_t payload_end)
{
	return tx->head - tx->tail < VB_RING_SLOTS &&
	       payload_end - tx->data_tail <= VB_RING_DATA_BYTES;
}

/*
 * Room for a frame: where its payload goes, NULL if there is none now. The head goes to tx->octets.
 * Nothing has happened until vb_ring_publish(). Both are shared memory: what was written there is
 * not to be believed when read again.
 */
static inline uint8_t *vb_ring_reserve(struct vb_ring_tx *tx, uint32_t head_bytes,
				       uint32_t payload_bytes)
{
	uint32_t start = tx->data_head, end = start;
	bool fits = head_bytes + payload_bytes <= VB_RING_HEAD_BYTES_MAX;

	vb_check(head_bytes <= VB_RING_HEAD_BYTES_MAX &&
		 payload_bytes <= VB_RING_PAYLOAD_BYTES_MAX);
	if (!fits) {
		start = vb_ring_data_start(tx->data_head, payload_bytes);
		end = start + vb_ring_lines(payload_bytes);
	}
	if (!vb_ring_has_room(tx, end) && (!vb_ring_tx_update(tx) || !vb_ring_has_room(tx, end)))
		return NULL;
	tx->next_data_head = end;
	tx->octets = tx->shared->slot[vb_ring_slot_index(tx->head)].octets;
	return fits ? tx->octets + head_bytes
		    : tx->shared->data + (start & (VB_RING_DATA_BYTES - 1));
}

/* The frame that was reserved, with the same lengths, is complete. */
static inline void vb_ring_publish(struct vb_ring_tx *tx, uint32_t head_bytes,
				   uint32_t payload_bytes)
{
	uint32_t index = vb_ring_slot_index(tx->head);
	struct vb_ring_slot *slot = &tx->shared->slot[index];
	uint64_t lengths = head_bytes << 24 | payload_bytes;

	/* The consumer read that slot a lap ago: have its line here by the time it is filled. */
	__builtin_prefetch(&tx->shared->slot[vb_ring_slot_index(tx->head + VB_RING_AHEAD)], 1);
	tx->data_head = tx->data_end[index] = tx->next_data_head;
	tx->head++;
	atomic_store_explicit(&slot->mark, lengths << 32 | tx->head, memory_order_release);
}

/* Has the consumer told that it took everything? */
static inline bool vb_ring_tx_is_empty(struct vb_ring_tx *tx)
{
	vb_ring_tx_update(tx);
	return tx->head == tx->tail;
}

/* --- consumer --- */

static inline void vb_ring_rx_init(struct vb_ring_rx *rx, struct vb_ring_shared *shared)
{
	/* Whoever looked for frames of the one before may still do so: there, nothing is new. */
	if (rx->shared != shared)
		rx->shared = shared;
	atomic_store_explicit(&rx->next, 0, memory_order_relaxed);
	atomic_store_explicit(&rx->told, 0, memory_order_relaxed);
	atomic_store_explicit(&rx->broken, false, memory_order_relaxed);
	rx->data_pos = rx->data_told = rx->next_data_pos = 0;
}

/* Is there a frame? Any thread; only whoever serializes the consumers may believe a yes. */
static inline bool vb_ring_ready(const struct vb_ring_rx *rx)
{
	uint32_t next = atomic_load_explicit(&rx->next, memory_order_relaxed);
	const struct vb_ring_slot *slot = &rx->shared->slot[vb_ring_slot_index(next)];

	return (uint32_t)atomic_load_explicit(&slot->mark, memory_order_relaxed) == next + 1;
}

/* Any thread. */
static inline bool vb_ring_rx_is_broken(const struct vb_ring_rx *rx)
{
	return atomic_load_explicit(&rx->broken, memory_order_relaxed);
}

/* Take the next frame: false if there is none, or the ring is broken. */
static inline bool vb_ring_take(struct vb_ring_rx *rx, struct vb_ring_frame *frame)
{
	uint32_t next = atomic_load_explicit(&rx->next, memory_order_relaxed);
	const struct vb_ring_slot *slot = &rx->shared->slot[vb_ring_slot_index(next)];
	uint64_t mark = atomic_load_explicit(&slot->mark, memory_order_acquire);
	uint32_t head = (uint32_t)(mark >> 56), payload = (uint32_t)(mark >> 32) & 0xffffff;
	uint32_t start;

	if ((uint32_t)mark != next + 1 || vb_ring_rx_is_broken(rx))
		return false;
	if (head > VB_RING_HEAD_BYTES_MAX || payload > VB_RING_PAYLOAD_BYTES_MAX) {
		atomic_store_explicit(&rx->broken, true, memory_order_relaxed);
		return false;
	}
	memcpy(frame->octets, slot->octets, sizeof(frame->octets));
	frame->head_bytes = head;
	frame->payload_bytes = payload;
	if (head + payload <= VB_RING_HEAD_BYTES_MAX) {
		frame->payload = frame->octets + head;
		rx->next_data_pos = rx->data_pos;
	} else {
		start = vb_ring_data_start(rx->data_pos, payload);
		frame->payload = rx->shared->data + (start & (VB_RING_DATA_BYTES - 1));
		rx->next_data_pos = start + vb_ring_lines(payload);
	}
	return true;
}

/* Has something been taken that the producer was not told of? Any thread. */
static inline bool vb_ring_untold(const struct vb_ring_rx *rx)
{
	return atomic_load_explicit(&rx->told, memory_order_relaxed) !=
	       atomic_load_explicit(&rx->next, memory_order_relaxed);
}

/* Tell the producer that everything taken is free. True if that is news. */
static inline bool vb_ring_tell(struct vb_ring_rx *rx)
{
	uint32_t next = atomic_load_explicit(&rx->next, memory_order_relaxed);

	if (!vb_ring_untold(rx))
		return false;
	atomic_store_explicit(&rx->told, next, memory_order_relaxed);
	rx->data_told = rx->data_pos;
	/* Ordered against the look at wants_room that follows (vb_ring_wants_room). */
	atomic_store(&rx->shared->tail, next);
	return true;
}

/*
 * Done with the frame taken. The producer is told now and then only, since its cache line moves
 * each time: true if it was.
 */
static inline bool vb_ring_release(struct vb_ring_rx *rx)
{
	uint32_t next = atomic_load_explicit(&rx->next, memory_order_relaxed) + 1;

	atomic_store_explicit(&rx->next, next, memory_order_relaxed);
	rx->data_pos = rx->next_data_pos;
	if (next - atomic_load_explicit(&rx->told, memory_order_relaxed) < VB_RING_SLOTS / 4 &&
	    rx->data_pos - rx->data_told < VB_RING_DATA_BYTES / 4)
		return false;
	return vb_ring_tell(rx);
}

/* Does the producer wait for news of room? */
static inline bool vb_ring_wants_room(const struct vb_ring_rx *rx)
{
	return atomic_load(&rx->shared->wants_room) != 0;
}

#endif
