/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CAPTURE_FEED_H
#define VB_CAPTURE_FEED_H

/*
 * Octets from the process that is captured to the one that reads them: a ring in shared memory, so
 * that neither makes a system call for a packet, and what was put there outlives its writer. One
 * writer, one reader; each serializes its own callers. The writer trusts nothing that the reader
 * could write.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/record.h"
#include "capture/pcapng.h"

enum { VB_FEED_BYTES = 16 << 20 };

struct vb_feed_shared {
	/* The writer's: octets put since the beginning; packets; nothing more will come. */
	_Alignas(64) _Atomic uint64_t head;
	_Atomic uint64_t taken[VB_RECORD_LINKS], lost[VB_RECORD_LINKS];
	_Atomic uint32_t over;
	/* The reader's: octets taken. */
	_Alignas(64) _Atomic uint64_t tail;
	_Alignas(4096) uint8_t octets[VB_FEED_BYTES];
};

struct vb_feed {
	struct vb_feed_shared *shared; /* NULL: there is none */
	uint64_t head;		       /* the writer's own copy */
};

/* What an asker says to the process by the socket between them, and what it answers. */
struct vb_feed_ask {
	uint32_t magic, never_waits; /* 1: what there is no room for is lost at once */
};

struct vb_feed_answer {
	uint32_t magic, error; /* 0: the feed's descriptor comes with it */
};

enum { VB_FEED_MAGIC = 0x76626361 };

/* The writer makes it. 0, or a positive errno; the descriptor is for the reader. */
int vb_feed_make(struct vb_feed *feed, int *fd);

/* The reader maps it; the descriptor may be closed afterwards. */
int vb_feed_open(struct vb_feed *feed, int fd);
void vb_feed_close(struct vb_feed *feed);

/* In a forked child, which does not inherit it. */
void vb_feed_forget(struct vb_feed *feed);

/* Puts all, or returns false: there is no room. */
bool vb_feed_put(struct vb_feed *feed, const uint8_t *octets, size_t bytes);

/* How far the reader is. */
static inline uint64_t vb_feed_tail(const struct vb_feed *feed)
{
	return atomic_load_explicit(&feed->shared->tail, memory_order_acquire);
}

/* What waits for the reader in one piece, and its length; then that so much of it was taken. */
size_t vb_feed_look(const struct vb_feed *feed, const uint8_t **octets);
void vb_feed_take(struct vb_feed *feed, size_t bytes);

#endif
