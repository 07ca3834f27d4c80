/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TAPE_READER_H
#define VB_TAPE_READER_H

/* Reads a tape that is in memory: one item after the other, each with its checksum. One thread. */

#include <stdbool.h>

#include "tape/format.h"

struct vb_tape_reader {
	const uint8_t *at;
	size_t bytes; /* what is good, as the head says, and is there */
	size_t next;  /* where the next item begins */
	uint32_t sum;
	uint64_t number; /* of the next item, from 1 on */
	bool is_cut;	 /* there is less than the head says */
};

struct vb_tape_item {
	const struct vb_tape_item_head *head;
	const uint8_t *data;
	uint64_t number;
};

enum vb_tape_read {
	VB_TAPE_READ_ITEM,
	VB_TAPE_READ_LAST,    /* there is no further one */
	VB_TAPE_READ_CUT,     /* it is not whole */
	VB_TAPE_READ_ALTERED, /* its checksum is wrong, or it cannot be */
};

/*
 * Begins. at: aligned to 8. Returns NULL, or why it cannot be read: it is no tape, or one of
 * another build.
 */
const char *vb_tape_read_begin(struct vb_tape_reader *reader, const void *at, size_t bytes);

static inline const struct vb_tape_head *vb_tape_head(const struct vb_tape_reader *reader)
{
	return (const void *)reader->at;
}

/* Reads the next item, or looks at it, and leaves it there. */
enum vb_tape_read vb_tape_read(struct vb_tape_reader *reader, struct vb_tape_item *item);
enum vb_tape_read vb_tape_look(const struct vb_tape_reader *reader, struct vb_tape_item *item);

/* A place in an item. What is not there reads as zeros, and makes it bad. */
struct vb_tape_cursor {
	const uint8_t *at;
	size_t left;
	bool bad;
};

static inline struct vb_tape_cursor vb_tape_cursor_of(const struct vb_tape_item *item)
{
	return (struct vb_tape_cursor){ item->data, item->head->bytes, false };
}

void vb_tape_get(struct vb_tape_cursor *cursor, void *data, size_t bytes);

/* The octets themselves; NULL: they are not there. */
const void *vb_tape_get_octets(struct vb_tape_cursor *cursor, size_t bytes);

#define vb_tape_get_value(cursor, value) vb_tape_get(cursor, value, sizeof(*(value)))

#endif
