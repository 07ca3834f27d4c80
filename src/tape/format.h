/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TAPE_FORMAT_H
#define VB_TAPE_FORMAT_H

/*
 * A tape: the file of all that entered one NIC, in order (docs/replay.md). A head, then items, each
 * with a head of its own and a checksum that covers all before it as well. Structures stand there
 * as they are in memory: the same build of verbatim that records also replays, since the same code
 * has to run.
 */

#include <stddef.h>
#include <stdint.h>

enum vb_tape_kind {
	VB_TAPE_NOTHING,
#define VB_TAPE(name, words) VB_TAPE_##name,
#include "tape/tape.def"
#undef VB_TAPE
	VB_TAPE_KINDS
};

#define VB_TAPE_MAGIC 0x31657061745f6276ull /* "vb_tape1" */

struct vb_tape_head {
	uint64_t magic;
	uint64_t layout;	/* vb_tape_layout() of the build that wrote it */
	_Atomic uint64_t bytes; /* of the tape, this head as well; the file has more room */
	uint64_t began_ns;	/* CLOCK_MONOTONIC */
	uint64_t began_wall_s;	/* since 1970 */
	uint32_t pid, unused;
	char program[208]; /* its words, each with a zero behind it, as far as they fit */
};

struct vb_tape_item_head {
	uint32_t bytes; /* behind this head; the next one follows at a multiple of 8 */
	uint32_t sum;	/* CRC-32C of the sum before and of all of this item but the sum itself */
	uint64_t ns;	/* since the tape began; of what the NIC asked, when the call began */
	uint32_t thread;
	uint32_t kind; /* enum vb_tape_kind */
};

/* How a call ended. Further octets follow: what it gave back, to be compared. */
struct vb_tape_done {
	int64_t rc;
	uint64_t made; /* the object that it made, or 0 */
};

/* What a NIC is made with; persona, GUID and GIDs follow by calls. */
struct vb_tape_nic {
	uint64_t seed;
	uint32_t line_kbps;
	uint32_t gsi; /* has it somebody for management datagrams? */
};

/* "ibv_post_send"; "?" for a kind that there is not. */
const char *vb_tape_words(uint32_t kind);

/* A number that changes with the layout of what stands on a tape. */
uint64_t vb_tape_layout(void);

/* The checksum of an item. */
uint32_t vb_tape_sum(uint32_t before, const struct vb_tape_item_head *head, const void *data);

static inline size_t vb_tape_room(size_t bytes)
{
	return (bytes + 7) & ~(size_t)7;
}

#endif
