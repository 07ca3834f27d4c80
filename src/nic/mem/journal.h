/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_JOURNAL_H
#define VB_NIC_JOURNAL_H

/*
 * Another order (core/order.h) of what peers write: octets of received packets are noted, and
 * placed later, in pieces that may overtake each other. Who takes in packets (way/disorder.h)
 * begins a journal, which is its thread's until it ends it, and settles it wherever the standard
 * makes the octets visible. Without a journal octets are placed at once.
 *
 * A piece of a region with IBV_ACCESS_RELAXED_ORDERING may overtake every other; of another region,
 * none: adapters write such memory from the first octet to the last, and programs rely on it.
 * vb_host_order.iba takes that away: then all overtake, except what they overlap.
 */

#include "nic/core/internal.h"

enum { VB_JOURNAL_PIECES = 64 };

struct vb_piece {
	uint8_t *to;
	const uint8_t *from;
	uint32_t bytes;
	bool relaxed;  /* may overtake others ... */
	bool overlaps; /* ... and even those that it overlaps */
};

struct vb_journal {
	struct vb_nic *nic;
	struct vb_journal *outer; /* the thread's when this one began */
	uint64_t *draws;
	const uint8_t *data; /* the packet in hand: only its octets stay until the end ... */
	uint32_t data_bytes;
	bool defers; /* ... and only of such a packet are any noted for later */
	unsigned count;
	struct vb_piece piece[VB_JOURNAL_PIECES];
};

/* begin: draws stays with the caller. end: settles it. */
void vb_journal_begin(struct vb_journal *journal, struct vb_nic *nic, uint64_t *draws);
void vb_journal_end(struct vb_journal *journal);

/*
 * Notes octets for a region with these rights (IBV_ACCESS_*). Returns false if they are to be
 * placed at once; what was noted before has been then.
 */
bool vb_journal_put(unsigned access, uint8_t *to, const uint8_t *from, uint32_t bytes);

/* Places all that this thread has noted. */
void vb_journal_settle(void);

#endif
