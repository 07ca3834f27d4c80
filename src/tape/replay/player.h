/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TAPE_PLAYER_H
#define VB_TAPE_PLAYER_H

/*
 * Replays a tape: makes a NIC of the same code, in one thread, whose host answers what the tape
 * says that it answered; makes the same calls; and compares what the NIC asks, sends and completes
 * with what the tape has. It ends where the tape ends, or at the first difference.
 */

#include "nic/core/nic.h"
#include "tape/lists.h"
#include "tape/replay/memory.h"
#include "tape/replay/objects.h"

enum { VB_REPLAY_WORDS_BYTES = 1024 };

struct vb_replay_counts {
	uint64_t calls, frames_in, frames_out, completions, errors, flushed;
};

enum vb_replay_end {
	VB_REPLAY_GOES_ON,
	VB_REPLAY_WHOLE,     /* up to the end of the program */
	VB_REPLAY_OPEN,	     /* the record ends, but the program did not say that it did */
	VB_REPLAY_FULL,	     /* ... since the record was full */
	VB_REPLAY_CUT,	     /* the file is shorter than it was */
	VB_REPLAY_ALTERED,   /* a checksum is wrong: what follows is not to be trusted */
	VB_REPLAY_DIFFERENT, /* the NIC did something else */
	VB_REPLAY_UNTIL,     /* the user wanted no more */
};

struct vb_player {
	/* Set by the caller. */
	void (*say)(void *arg, const char *words); /* what goes wrong, a line each */
	void *arg;
	uint64_t until; /* the item that is no longer replayed; 0: all are */

	/* To be read. */
	struct vb_replay_counts counts;
	struct vb_tape_item call;  /* what is being replayed */
	char difference[VB_REPLAY_WORDS_BYTES];

	/* The player's own. */
	struct vb_tape_reader reader;
	struct vb_nic *nic;
	struct vb_objects objects;
	struct vb_tape_memory memory;
	struct vb_tape_heap heap;
	enum vb_replay_end end;
	uint64_t now_ns;
};

/* Begins; at and bytes as for vb_tape_read_begin(). Returns NULL, or why it cannot be. */
const char *vb_player_begin(struct vb_player *player, const void *at, size_t bytes);

/* Replays all that is left, or up to `until`. */
enum vb_replay_end vb_player_run(struct vb_player *player);

/* Says the state of each QP. */
void vb_player_states(struct vb_player *player);

/* Frees what the player has. The NIC and its objects stay: they may be in any state. */
void vb_player_end(struct vb_player *player);

/*
 * For breakpoints: called before a call is replayed, and when the NIC finds an error, which is in
 * the midst of the call that finds it, or when a completion with one is taken.
 */
void vb_replay_step(uint64_t number) __attribute__((noinline));
void vb_replay_error(const char *words) __attribute__((noinline));

/* --- for the player's files --- */

/* A call that is being replayed. */
struct vb_step {
	struct vb_player *player;
	struct vb_tape_cursor in; /* its arguments */
	int64_t rc;
	void *made;
	enum vb_object_kind kind; /* of what it made */
	uint64_t gone;		  /* the object that it destroys if it succeeds, or 0 */
	const void *results;
	size_t result_bytes;
};

/* The first difference, in words. */
void vb_player_differs(struct vb_player *player, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* A line: when, which item, and these words. */
void vb_player_says(struct vb_player *player, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Why the tape has no further item: sets the end. */
void vb_player_ends(struct vb_player *player, enum vb_tape_read read);

#endif
