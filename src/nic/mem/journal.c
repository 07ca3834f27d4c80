/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/mem/journal.h"

#include <string.h>

#include "base/guard.h"
#include "nic/core/order.h"

/* Into how many pieces octets are cut at most, and where: processors write whole cache lines. */
#define CUTS_MAX 4u
#define LINE_BYTES 64u
#define WORD_BYTES 8u

#define PAGE_BYTES_MIN 4096u

/* Between two pieces, one pause in so many, and at most so many for all. */
#define PAUSE_ONE_IN 4u
#define PAUSES_MAX 2u

static __thread struct vb_journal *current __attribute__((tls_model("initial-exec")));

void vb_journal_begin(struct vb_journal *journal, struct vb_nic *nic, uint64_t *draws)
{
	journal->nic = nic;
	journal->draws = draws;
	journal->defers = false;
	journal->count = 0;
	journal->outer = current;
	current = journal;
}

void vb_journal_end(struct vb_journal *journal)
{
	vb_journal_settle();
	current = journal->outer;
}

/* --- noting --- */

/* Whether the copy will succeed has to be known now, of each page: later, nobody could be told. */
static bool is_there(struct vb_nic *nic, const uint8_t *to, uint32_t bytes)
{
	while (bytes) {
		uint32_t left = PAGE_BYTES_MIN - ((uintptr_t)to & (PAGE_BYTES_MIN - 1));
		uint32_t n = bytes < left ? bytes : left;

		if (nic->host.process.probe(nic->host.arg, to, n, true))
			return false;
		to += n;
		bytes -= n;
	}
	return true;
}

/* The next piece ends at a line's or word's end, or with the octets. */
static uint32_t cut(struct vb_journal *journal, const uint8_t *to, uint32_t bytes)
{
	uintptr_t unit = journal->nic->host.order->iba ? WORD_BYTES : LINE_BYTES;
	uintptr_t end = (uintptr_t)to + 1 + vb_order_below(journal->draws, bytes);

	end = (end + unit - 1) / unit * unit;
	return end - (uintptr_t)to < bytes ? (uint32_t)(end - (uintptr_t)to) : bytes;
}

static void note(struct vb_journal *journal, unsigned access, uint8_t *to, const uint8_t *from,
		 uint32_t bytes)
{
	bool overlaps = access & IBV_ACCESS_RELAXED_ORDERING;

	for (unsigned i = 1; bytes; i++) {
		uint32_t n = i < CUTS_MAX ? cut(journal, to, bytes) : bytes;

		journal->piece[journal->count++] = (struct vb_piece){
			.to = to, .from = from, .bytes = n, .overlaps = overlaps,
			.relaxed = overlaps || journal->nic->host.order->iba,
		};
		to += n;
		from += n;
		bytes -= n;
	}
}

/* Do the octets stay until the journal ends? */
static bool stay(const struct vb_journal *journal, const uint8_t *from, uint32_t bytes)
{
	return from >= journal->data && from + bytes <= journal->data + journal->data_bytes;
}

bool vb_journal_put(unsigned access, uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	struct vb_journal *journal = current;

	if (!journal)
		return false;
	/* What is paged on demand is the kernel's to copy. */
	if (!bytes || access & IBV_ACCESS_ON_DEMAND || !is_there(journal->nic, to, bytes)) {
		vb_journal_settle();
		return false;
	}
	if (journal->count + CUTS_MAX > VB_JOURNAL_PIECES)
		vb_journal_settle();
	note(journal, access, to, from, bytes);
	if (!journal->defers || !stay(journal, from, bytes))
		vb_journal_settle();
	return true;
}

/* --- placing --- */

static bool overlap(const struct vb_piece *a, const struct vb_piece *b)
{
	return a->to < b->to + b->bytes && b->to < a->to + a->bytes;
}

/* May this one be placed before all that were noted earlier? */
static bool may_go(const struct vb_journal *journal, unsigned index)
{
	const struct vb_piece *piece = &journal->piece[index];

	if (index && !piece->relaxed)
		return false;
	for (unsigned i = 0; i < index && !piece->overlaps; i++) {
		if (overlap(piece, &journal->piece[i]))
			return false;
	}
	return true;
}

static void place(struct vb_journal *journal, unsigned index)
{
	struct vb_piece piece = journal->piece[index];

	memmove(&journal->piece[index], &journal->piece[index + 1],
		(--journal->count - index) * sizeof(piece));
	vb_guard_copy(piece.to, piece.from, piece.bytes);
	atomic_thread_fence(memory_order_release);
}

void vb_journal_settle(void)
{
	struct vb_journal *journal = current;
	unsigned pauses = 0;

	while (journal && journal->count) {
		unsigned index = vb_order_below(journal->draws, journal->count);

		place(journal, may_go(journal, index) ? index : 0);
		if (journal->count && pauses++ < PAUSES_MAX)
			vb_order_dawdle(journal->nic, journal->draws, PAUSE_ONE_IN);
	}
}
