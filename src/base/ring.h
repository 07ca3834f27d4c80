/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BASE_RING_H
#define VB_BASE_RING_H

/*
 * A ring of frames in memory that two processes share: one producer, one consumer, no lock.
 *
 * A frame has a head (what the consumer reads first) and a payload. If both fit in one slot they
 * are there, beside the mark that publishes the frame, so that a small frame takes one cache line.
 * A longer payload is in the data area. Both ends compute its place from the lengths, so no index
 * is transmitted.
 *
 * Neither end trusts the other. Values from shared memory are read once, checked, and used from the
 * copy. A producer that dies at any instruction leaves complete frames only, since a single store,
 * of the mark, publishes a frame.
 *
 * Each end serializes its own callers. Lengths are in octets; positions count up and wrap.
 */

#include <stdatomic.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/check.h"

/*
 * Small enough that the data stays in the caches of both cores, together with its source and
 * destination. (The simulator uses smaller rings, so that they are often full.)
 */
#ifndef VB_RING_SLOTS
#define VB_RING_SLOTS 256u
#define VB_RING_DATA_BYTES (256u << 10)
#endif

enum {
	VB_RING_SLOT_BYTES = 64,
	VB_RING_HEAD_BYTES_MAX = 56, /* also the most that fits in a slot */
	VB_RING_PAYLOAD_BYTES_MAX = 64 << 10,
	VB_RING_LINE_BYTES = 64,
	VB_RING_AHEAD = 8, /* slots between the one being filled and the one being prefetched */
	VB_RING_LANES = 4, /* rings from one slot to another, together one area */
};

struct vb_ring_slot {
	_Atomic uint64_t mark; /* position + 1; from bit 32 on the lengths: head << 24 | payload */
	uint8_t octets[VB_RING_HEAD_BYTES_MAX];
};

/* All zero at the start. */
struct vb_ring_shared {
	/* The consumer's: slots before `tail` are free; since when it checks `direct`. */
	_Alignas(VB_RING_LINE_BYTES) _Atomic uint32_t tail;
	_Atomic uint32_t heeds_direct;
	/*
	 * The producer's: set while it waits for room, so that the consumer rings when it frees
	 * some.
	 */
	_Alignas(VB_RING_LINE_BYTES) _Atomic uint32_t wants_room;
	/*
	 * The producer's: odd while it accesses the consumer's memory directly; from bit 32 on the
	 * key that it uses.
	 */
	_Alignas(VB_RING_LINE_BYTES) _Atomic uint64_t direct;
	_Alignas(4096) struct vb_ring_slot slot[VB_RING_SLOTS];
	_Alignas(4096) uint8_t data[VB_RING_DATA_BYTES];
};

_Static_assert(sizeof(struct vb_ring_slot) == VB_RING_SLOT_BYTES, "a slot is a cache line");
_Static_assert(!(VB_RING_SLOTS & (VB_RING_SLOTS - 1)), "positions are masked");
_Static_assert(!(VB_RING_DATA_BYTES & (VB_RING_DATA_BYTES - 1)), "positions are masked");

/* The memory of one direction. */
struct vb_ring_area {
	struct vb_ring_shared lane[VB_RING_LANES];
};

/* The producer's private state. */
struct vb_ring_tx {
	struct vb_ring_shared *shared;
	uint32_t head, tail;	     /* next slot to fill; the consumer's tail as last read */
	uint32_t data_head, data_tail;
	uint32_t next_data_head;     /* the value of data_head after the frame being built */
	bool broken;		     /* the consumer wrote an impossible tail */
	/* where the head goes: in the slot, which the consumer does not read yet */
	uint8_t *octets;
	uint32_t data_end[VB_RING_SLOTS];
};

/* The consumer's private state. All zero at the start. */
struct vb_ring_rx {
	struct vb_ring_shared *shared;
	_Atomic uint32_t next; /* written by the consuming thread, read by any */
	_Atomic uint32_t told; /* `tail` as last published */
	uint32_t data_pos, data_told;
	uint32_t next_data_pos;
	_Atomic bool broken; /* the producer wrote impossible values: nothing more is taken */
};

/*
 * A frame taken. The head is a copy; the payload may still be in shared memory and change between
 * reads.
 */
struct vb_ring_frame {
	uint32_t head_bytes, payload_bytes;
	const uint8_t *payload;
	_Alignas(8) uint8_t octets[VB_RING_HEAD_BYTES_MAX];
};

static inline uint32_t vb_ring_slot_index(uint32_t position)
{
	return position & (VB_RING_SLOTS - 1);
}

/*
 * The position where a payload begins: at `position`, or behind the area's end if it would cross
 * that.
 */
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

/* Reads the consumer's tail. Returns true if there is more room than before. Cheap when full. */
static inline bool vb_ring_tx_update(struct vb_ring_tx *tx)
{
	uint32_t tail = atomic_load_explicit(&tx->shared->tail, memory_order_acquire);

	if (tail == tx->tail)
		return false;
	/* A valid tail only moves forward, and not beyond what was published. */
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
 * Reserves room for a frame. Returns where its payload goes, NULL if there is no room now. The head
 * goes to tx->octets. Without vb_ring_publish() this has no effect. Both are shared memory: what is
 * read back there cannot be trusted.
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

/* Publishes the frame that was reserved, with the same lengths. */
static inline void vb_ring_publish(struct vb_ring_tx *tx, uint32_t head_bytes,
				   uint32_t payload_bytes)
{
	uint32_t index = vb_ring_slot_index(tx->head);
	struct vb_ring_slot *slot = &tx->shared->slot[index];
	uint64_t lengths = head_bytes << 24 | payload_bytes;

	/* The consumer read that slot a lap ago: fetch its line before it is filled. */
	__builtin_prefetch(&tx->shared->slot[vb_ring_slot_index(tx->head + VB_RING_AHEAD)], 1);
	tx->data_head = tx->data_end[index] = tx->next_data_head;
	tx->head++;
	atomic_store_explicit(&slot->mark, lengths << 32 | tx->head, memory_order_release);
}

/* Where the payload is of the frame that was published last. */
static inline const uint8_t *vb_ring_published(const struct vb_ring_tx *tx, uint32_t head_bytes,
					       uint32_t payload_bytes)
{
	uint32_t start = tx->data_head - vb_ring_lines(payload_bytes);

	if (head_bytes + payload_bytes <= VB_RING_HEAD_BYTES_MAX)
		return tx->octets + head_bytes;
	return tx->shared->data + (start & (VB_RING_DATA_BYTES - 1));
}

/* Has the consumer released everything? */
static inline bool vb_ring_tx_is_empty(struct vb_ring_tx *tx)
{
	vb_ring_tx_update(tx);
	return tx->head == tx->tail;
}

/* --- consumer --- */

static inline void vb_ring_rx_init(struct vb_ring_rx *rx, struct vb_ring_shared *shared)
{
	/* Another thread may be reading rx->shared: it is written only if it changes. */
	if (rx->shared != shared)
		rx->shared = shared;
	atomic_store_explicit(&rx->next, 0, memory_order_relaxed);
	atomic_store_explicit(&rx->told, 0, memory_order_relaxed);
	atomic_store_explicit(&rx->broken, false, memory_order_relaxed);
	rx->data_pos = rx->data_told = rx->next_data_pos = 0;
}

/* Is there a frame? Any thread; only the thread that serializes the consumers can rely on true. */
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

/* Takes the next frame. Returns false if there is none, or the ring is broken. */
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

/* Was something taken that the producer does not know of? Any thread. */
static inline bool vb_ring_untold(const struct vb_ring_rx *rx)
{
	return atomic_load_explicit(&rx->told, memory_order_relaxed) !=
	       atomic_load_explicit(&rx->next, memory_order_relaxed);
}

/* Tells the producer that everything taken is free. Returns true if it was not told before. */
static inline bool vb_ring_tell(struct vb_ring_rx *rx)
{
	uint32_t next = atomic_load_explicit(&rx->next, memory_order_relaxed);

	if (!vb_ring_untold(rx))
		return false;
	atomic_store_explicit(&rx->told, next, memory_order_relaxed);
	rx->data_told = rx->data_pos;
	/* Ordered before the following read of wants_room (vb_ring_wants_room). */
	atomic_store(&rx->shared->tail, next);
	return true;
}

/* Goes on to the next frame. The one taken stays valid until vb_ring_tell(). */
static inline uint32_t vb_ring_pass(struct vb_ring_rx *rx)
{
	uint32_t next = atomic_load_explicit(&rx->next, memory_order_relaxed) + 1;

	atomic_store_explicit(&rx->next, next, memory_order_relaxed);
	rx->data_pos = rx->next_data_pos;
	return next;
}

/*
 * Releases the frame taken. Tells the producer only now and then, since that moves a cache line.
 * Returns true if it did.
 */
static inline bool vb_ring_release(struct vb_ring_rx *rx)
{
	uint32_t next = vb_ring_pass(rx);

	if (next - atomic_load_explicit(&rx->told, memory_order_relaxed) < VB_RING_SLOTS / 4 &&
	    rx->data_pos - rx->data_told < VB_RING_DATA_BYTES / 4)
		return false;
	return vb_ring_tell(rx);
}

/* Does the producer wait for room? */
static inline bool vb_ring_wants_room(const struct vb_ring_rx *rx)
{
	return atomic_load(&rx->shared->wants_room) != 0;
}

#endif
