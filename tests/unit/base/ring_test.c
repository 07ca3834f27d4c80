/* SPDX-License-Identifier: BSD-2-Clause */

/* The ring between two processes that do not trust each other, both ends in one process here. */
#include <stdlib.h>
#include <sys/mman.h>

#include "base/prng.h"
#include "base/ring.h"
#include "group.h"

enum { PAGE = 4096, SLOTS = VB_RING_SLOTS, DATA = VB_RING_DATA_BYTES };

static struct vb_ring_shared *shared; /* pages that nobody may touch lie around it */
static struct vb_ring_tx tx;
static struct vb_ring_rx rx;

/* What was published and not yet taken: the n-th frame's octets follow from n. */
static uint32_t published, taken;

static int begin(void **state)
{
	size_t bytes = sizeof(*shared);
	uint8_t *at = mmap(NULL, bytes + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	assert_int_equal(mprotect(at + PAGE, bytes, PROT_READ | PROT_WRITE), 0);
	shared = (struct vb_ring_shared *)(at + PAGE);
	vb_ring_tx_init(&tx, shared);
	vb_ring_rx_init(&rx, shared);
	published = taken = 0;
	return 0;
}

static int end(void **state)
{
	return munmap((uint8_t *)shared - PAGE, sizeof(*shared) + 2 * PAGE);
}

#define RING(name) TEST_BETWEEN(name, begin, end)

/*
 * As after a long time: so many frames and octets have gone through, and all slots bear the marks
 * of frames of the round before.
 */
static void grow_old(uint32_t position, uint32_t data)
{
	for (uint32_t i = 1; i <= SLOTS; i++) {
		uint32_t before = position - i;

		atomic_store(&shared->slot[vb_ring_slot_index(before)].mark, before + 1);
		tx.data_end[vb_ring_slot_index(before)] = data;
	}
	atomic_store(&shared->tail, position);
	tx.head = tx.tail = position;
	tx.data_head = tx.data_tail = tx.next_data_head = data;
	atomic_store(&rx.next, position);
	atomic_store(&rx.told, position);
	rx.data_pos = rx.data_told = rx.next_data_pos = data;
}

static uint8_t octet_of(uint32_t frame, uint32_t at)
{
	return (uint8_t)(frame * 31 + at * 7 + at / 253);
}

/* False: there is no room. */
static bool produce(uint32_t head, uint32_t payload)
{
	uint8_t *to = vb_ring_reserve(&tx, head, payload);

	if (!to)
		return false;
	for (uint32_t i = 0; i < head; i++)
		tx.octets[i] = octet_of(published, i);
	for (uint32_t i = 0; i < payload; i++)
		to[i] = octet_of(published, head + i);
	vb_ring_publish(&tx, head, payload);
	published++;
	return true;
}

static bool in_data(const uint8_t *at, uint32_t bytes)
{
	return at >= shared->data && (size_t)(at - shared->data) + bytes <= DATA;
}

/* Look at the next frame, which must be there and right, and leave it. */
static void look(uint32_t head, uint32_t payload)
{
	struct vb_ring_frame frame;

	assert_true(vb_ring_ready(&rx));
	assert_true(vb_ring_take(&rx, &frame));
	assert_int_equal(frame.head_bytes, head);
	assert_int_equal(frame.payload_bytes, payload);
	if (head + payload > VB_RING_HEAD_BYTES_MAX)
		assert_true(in_data(frame.payload, payload));
	for (uint32_t i = 0; i < head; i++)
		assert_int_equal(frame.octets[i], octet_of(taken, i));
	for (uint32_t i = 0; i < payload; i++)
		assert_int_equal(frame.payload[i], octet_of(taken, head + i));
}

/* True if the producer was told of room. */
static bool consume(uint32_t head, uint32_t payload)
{
	look(head, payload);
	taken++;
	return vb_ring_release(&rx);
}

static void assert_nothing_to_take(void)
{
	struct vb_ring_frame frame;

	assert_false(vb_ring_ready(&rx));
	assert_false(vb_ring_take(&rx, &frame));
}

/* --- layout --- */

RING(what_two_write_lies_on_lines_of_their_own)
{
	static const size_t at[] = {
		offsetof(struct vb_ring_shared, tail),
		offsetof(struct vb_ring_shared, wants_room),
		offsetof(struct vb_ring_shared, direct),
		offsetof(struct vb_ring_shared, slot),
		offsetof(struct vb_ring_shared, data),
	};

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		assert_int_equal(at[i] % VB_RING_LINE_BYTES, 0);
		assert_true(i == 0 || at[i] > at[i - 1]);
	}
	assert_int_equal(sizeof(struct vb_ring_slot), VB_RING_LINE_BYTES);
	assert_int_equal(offsetof(struct vb_ring_slot, octets) + VB_RING_HEAD_BYTES_MAX,
			 VB_RING_SLOT_BYTES);
	/* Lanes follow one another in a mapping of whole pages. */
	assert_int_equal(sizeof(struct vb_ring_shared) % PAGE, 0);
	assert_int_equal(sizeof(struct vb_ring_area), VB_RING_LANES * sizeof(*shared));
}

/* --- frames --- */

RING(it_is_empty_at_first)
{
	assert_nothing_to_take();
	assert_true(vb_ring_tx_is_empty(&tx));
	assert_false(vb_ring_untold(&rx));
	assert_false(vb_ring_tell(&rx));
	assert_false(vb_ring_tx_update(&tx));
}

RING(every_length_comes_through)
{
	static const uint32_t payloads[] = { 63, 64, 65, 127, 128, 4095, 4096, 4097, 32768,
					     65535, VB_RING_PAYLOAD_BYTES_MAX };

	for (uint32_t head = 0; head <= VB_RING_HEAD_BYTES_MAX; head++) {
		for (uint32_t payload = 0; payload < 62; payload++) {
			assert_true(produce(head, payload));
			consume(head, payload);
		}
	}
	for (unsigned i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
		assert_true(produce(i, payloads[i]));
		consume(i, payloads[i]);
		assert_true(produce(VB_RING_HEAD_BYTES_MAX, payloads[i]));
		consume(VB_RING_HEAD_BYTES_MAX, payloads[i]);
	}
	assert_nothing_to_take();
}

/* A frame that fits the slot costs one line, and nothing of the data area. */
RING(small_frames_need_no_data)
{
	for (unsigned i = 0; i < 10; i++)
		assert_true(produce(i, VB_RING_HEAD_BYTES_MAX - i));
	assert_int_equal(tx.data_head, 0);
	for (unsigned i = 0; i < 10; i++)
		consume(i, VB_RING_HEAD_BYTES_MAX - i);
	assert_true(produce(10, VB_RING_HEAD_BYTES_MAX - 9));
	assert_int_equal(tx.data_head, VB_RING_LINE_BYTES);
	consume(10, VB_RING_HEAD_BYTES_MAX - 9);
	assert_int_equal(rx.data_pos, VB_RING_LINE_BYTES);
}

RING(a_reservation_alone_changes_nothing)
{
	assert_non_null(vb_ring_reserve(&tx, 20, 30000));
	assert_non_null(vb_ring_reserve(&tx, 20, 10));
	assert_nothing_to_take();
	assert_true(vb_ring_tx_is_empty(&tx));
	assert_int_equal(tx.data_head, 0);
	assert_true(produce(12, 100));
	consume(12, 100);
}

/* What is taken stays until it is released, whatever is published behind it. */
RING(what_is_taken_can_be_taken_again)
{
	assert_true(produce(12, 5000));
	look(12, 5000);
	while (produce(12, 60000))
		;
	look(12, 5000);
	consume(12, 5000);
	look(12, 60000);
}

/* --- full --- */

RING(no_slot_is_given_away_twice)
{
	for (unsigned i = 0; i < SLOTS; i++)
		assert_true(produce(8, 8));
	assert_false(produce(8, 8));
	assert_false(produce(0, 0));
	assert_false(vb_ring_tx_is_empty(&tx));
	/* Told are whole quarters only. */
	for (unsigned i = 1; i < SLOTS / 4; i++) {
		assert_false(consume(8, 8));
		assert_false(produce(8, 8));
	}
	assert_true(consume(8, 8));
	for (unsigned i = 0; i < SLOTS / 4; i++)
		assert_true(produce(8, 8));
	assert_false(produce(8, 8));
	for (unsigned i = 0; i < SLOTS; i++)
		consume(8, 8);
	assert_nothing_to_take();
}

RING(no_data_is_given_away_twice)
{
	const uint32_t bytes = 32768;

	for (unsigned i = 0; i < DATA / bytes; i++)
		assert_true(produce(12, bytes));
	assert_false(produce(12, bytes));
	assert_false(produce(12, 45));
	/* What needs no data still has its place. */
	assert_true(produce(12, 44));
	for (unsigned i = 1; i < DATA / bytes / 4; i++)
		assert_false(consume(12, bytes));
	assert_false(produce(12, 45));
	assert_true(consume(12, bytes));
	for (unsigned i = 0; i < DATA / bytes / 4; i++)
		assert_true(produce(12, bytes));
	assert_false(produce(12, 45));
}

/* Whoever has consumed everything has left room for any frame, though he may not have told all. */
RING(an_empty_ring_has_room_for_any_frame)
{
	for (unsigned round = 0; round < 2000; round++) {
		uint32_t payload = (round * 9973) % (VB_RING_PAYLOAD_BYTES_MAX + 1);

		assert_true(produce(16, payload));
		consume(16, payload);
		assert_non_null(vb_ring_reserve(&tx, 56, VB_RING_PAYLOAD_BYTES_MAX));
	}
}

RING(telling_frees_the_rest)
{
	assert_true(produce(8, 8));
	assert_false(consume(8, 8));
	assert_true(vb_ring_untold(&rx));
	assert_false(vb_ring_tx_is_empty(&tx));
	assert_true(vb_ring_tell(&rx));
	assert_false(vb_ring_untold(&rx));
	assert_false(vb_ring_tell(&rx));
	assert_true(vb_ring_tx_is_empty(&tx));
}

RING(who_wants_room_is_seen)
{
	assert_false(vb_ring_wants_room(&rx));
	atomic_store(&shared->wants_room, 1);
	assert_true(vb_ring_wants_room(&rx));
}

/* --- round and round --- */

/* Against a queue of lengths; the octets follow from the number. */
static void run_long(uint64_t rng, unsigned steps)
{
	static struct {
		uint32_t head, payload;
	} queue[SLOTS];
	uint32_t least = UINT32_MAX;

	for (unsigned step = 0; step < steps; step++) {
		uint64_t r = vb_prng_next(&rng);
		uint32_t head = (uint32_t)(r >> 8) % (VB_RING_HEAD_BYTES_MAX + 1);
		uint32_t payload = (uint32_t)(r >> 16) % 100;
		unsigned i = published % SLOTS;

		if (r % 8 == 0)
			payload = (uint32_t)(r >> 16) % (VB_RING_PAYLOAD_BYTES_MAX + 1);
		if (r >> 56 < 140) {
			queue[i].head = head;
			queue[i].payload = payload;
			if (!produce(head, payload)) {
				assert_true(published != taken);
				least = published - taken < least ? published - taken : least;
			}
		} else if (published != taken) {
			i = taken % SLOTS;
			consume(queue[i].head, queue[i].payload);
		} else {
			assert_nothing_to_take();
		}
		assert_true(published - taken <= SLOTS);
	}
	/* Nobody was turned away from a ring with much room: half the data, at the worst. */
	assert_true(least > 3);
}

RING(it_goes_round_and_round)
{
	run_long(1, 30000);
}

RING(positions_may_pass_the_highest_number)
{
	static const uint32_t starts[] = { 0, 1, 100, 255, 256, 257 };

	for (unsigned i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		published = taken = 0;
		vb_ring_rx_init(&rx, shared);
		vb_ring_tx_init(&tx, shared);
		grow_old(0u - starts[i], 0u - VB_RING_LINE_BYTES * starts[i]);
		assert_nothing_to_take();
		run_long(i + 2, 5000);
	}
}

/* A slot that nobody has written to is no frame, when all positions have been used. */
RING(zeros_are_no_frame)
{
	grow_old(0xfffffff0, 0);
	for (unsigned i = 0; i < 16; i++) {
		assert_nothing_to_take();
		assert_true(produce(12, 100));
		consume(12, 100);
	}
	assert_nothing_to_take();
}

/* A payload that would cross the end of the data begins anew at its start. */
RING(no_payload_crosses_the_end)
{
	for (uint32_t left = VB_RING_LINE_BYTES; left <= 8 * VB_RING_LINE_BYTES;
	     left += VB_RING_LINE_BYTES) {
		for (uint32_t payload = left - 8; payload <= left + 8; payload += 4) {
			uint32_t skipped = payload > left ? left : 0;

			published = taken = 0;
			vb_ring_rx_init(&rx, shared);
			vb_ring_tx_init(&tx, shared);
			grow_old(77, DATA - left);
			assert_true(produce(56, payload));
			assert_int_equal(tx.data_head,
					 DATA - left + skipped + vb_ring_lines(payload));
			consume(56, payload);
			assert_int_equal(rx.data_pos, tx.data_head);
		}
	}
}

/* --- a consumer out of its mind --- */

static void assert_producer_gives_up(void)
{
	uint32_t head = tx.head, tail = tx.tail;

	assert_false(vb_ring_tx_update(&tx));
	assert_true(tx.broken);
	/* What it knew to be free it may use; then it is over. */
	for (unsigned i = 0; produce(12, 5000); i++)
		assert_true(i < SLOTS);
	assert_true(tx.broken);
	assert_in_range(tx.head - head, 0, SLOTS);
	/* For good: a tail that looks right again does not mend it. */
	atomic_store(&shared->tail, tail);
	vb_ring_tx_update(&tx);
	assert_true(tx.broken);
}

RING(a_tail_that_moves_back_breaks_the_ring)
{
	for (unsigned i = 0; i < 100; i++)
		assert_true(produce(12, 20));
	for (unsigned i = 0; i < 100; i++)
		consume(12, 20);
	vb_ring_tell(&rx);
	assert_true(vb_ring_tx_update(&tx));
	atomic_store(&shared->tail, 99);
	assert_producer_gives_up();
}

RING(a_tail_beyond_what_was_published_breaks_the_ring)
{
	for (unsigned i = 0; i < 100; i++)
		assert_true(produce(12, 20));
	atomic_store(&shared->tail, 101);
	assert_producer_gives_up();
}

RING(any_other_tail_breaks_the_ring)
{
	static const uint32_t bad[] = { 0x80000000, 0xffffffff, 1000, 0x7fffffff };

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		vb_ring_tx_init(&tx, shared);
		grow_old(500, 4096);
		for (unsigned k = 0; k < 10; k++)
			assert_true(produce(12, 20));
		atomic_store(&shared->tail, bad[i]);
		assert_false(vb_ring_tx_is_empty(&tx));
		assert_true(tx.broken);
	}
}

/* --- a producer out of its mind --- */

static void mark_next(uint32_t position_plus_1, uint32_t head, uint32_t payload)
{
	atomic_store(&shared->slot[vb_ring_slot_index(atomic_load(&rx.next))].mark,
		     ((uint64_t)head << 56) | ((uint64_t)payload << 32) | position_plus_1);
}

RING(lengths_beyond_the_bounds_break_the_ring)
{
	static const struct {
		uint32_t head, payload;
	} bad[] = { { VB_RING_HEAD_BYTES_MAX + 1, 0 }, { 255, 0 },
		    { 0, VB_RING_PAYLOAD_BYTES_MAX + 1 }, { 0, 0xffffff }, { 255, 0xffffff } };
	struct vb_ring_frame frame;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		vb_ring_rx_init(&rx, shared);
		assert_false(vb_ring_rx_is_broken(&rx));
		mark_next(1, bad[i].head, bad[i].payload);
		assert_false(vb_ring_take(&rx, &frame));
		assert_true(vb_ring_rx_is_broken(&rx));
		/* For good. */
		mark_next(1, 12, 20);
		assert_false(vb_ring_take(&rx, &frame));
		assert_int_equal(atomic_load(&rx.next), 0);
		mark_next(0, 0, 0);
	}
}

RING(marks_out_of_their_turn_are_no_frames)
{
	static const uint32_t marks[] = { 0, 2, 100, 257, 0x80000001, 0xffffffff };

	for (unsigned i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		mark_next(marks[i], 12, 20);
		assert_nothing_to_take();
		assert_false(vb_ring_rx_is_broken(&rx));
	}
	/* The slots behind the next one are not looked at. */
	mark_next(0, 0, 0);
	atomic_store(&shared->slot[1].mark, 2);
	assert_nothing_to_take();
}

/* Whatever lengths it claims: the consumer looks within the data, and stays in the slots. */
RING(claimed_lengths_stay_within_the_ring)
{
	uint64_t rng = 5;

	for (unsigned i = 0; i < 20000; i++) {
		uint64_t r = vb_prng_next(&rng);
		uint32_t head = (uint32_t)r % (VB_RING_HEAD_BYTES_MAX + 1);
		uint32_t payload = (uint32_t)(r >> 8) % (VB_RING_PAYLOAD_BYTES_MAX + 1);
		struct vb_ring_frame frame;
		uint32_t sum = 0;

		mark_next(atomic_load(&rx.next) + 1, head, payload);
		assert_true(vb_ring_take(&rx, &frame));
		if (head + payload > VB_RING_HEAD_BYTES_MAX)
			assert_true(in_data(frame.payload, payload));
		for (uint32_t k = 0; k < payload; k += 61)
			sum += frame.payload[k];
		assert_true(sum < UINT32_MAX);
		vb_ring_release(&rx);
	}
}

/* The lengths are read once: what is written over them afterwards changes nothing. */
RING(a_frame_taken_is_a_copy)
{
	struct vb_ring_frame frame;

	assert_true(produce(12, 20));
	assert_true(vb_ring_take(&rx, &frame));
	memset(&shared->slot[0], 0xff, sizeof(shared->slot[0]));
	assert_int_equal(frame.head_bytes, 12);
	assert_int_equal(frame.payload_bytes, 20);
	assert_int_equal(frame.octets[0], octet_of(0, 0));
	assert_int_equal(frame.payload[19], octet_of(0, 31));
	vb_ring_release(&rx);
	assert_int_equal(atomic_load(&rx.next), 1);
	assert_int_equal(rx.data_pos, 0);
}
