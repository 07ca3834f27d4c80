/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_AROUND_PARTS_H
#define VB_LINK_AROUND_PARTS_H

/*
 * Settings that are a list of parts, "loss=1%,delay=1ms": in any order, each at most once,
 * separated by commas. A table says which parts there are; each is read into a field of a
 * structure. Pure: any thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/words.h"

enum {
	VB_PARTS_PER_UNIT = 1000000000, /* unit of a percentage */
	VB_PARTS_SECONDS_MAX = 10,
	VB_PARTS_WHY_BYTES = 256,
	VB_PARTS_NAME_BYTES = 32, /* of a field for a name, with its zero */
};

struct vb_part_kind;

/* What a value may be, and the type of its field. */
extern const struct vb_part_kind vb_part_percentage; /* "0.5%": uint32_t, 0 to VB_PARTS_PER_UNIT */
extern const struct vb_part_kind vb_part_duration; /* "250us", at most 10s: uint64_t, in ns */
extern const struct vb_part_kind vb_part_number;   /* "7": uint64_t */
extern const struct vb_part_kind vb_part_octets; /* "64KiB", at most 1GiB: uint64_t */
extern const struct vb_part_kind vb_part_rate; /* "10Gbit", 8kbit to 1Tbit: uint64_t, in bit/s */
extern const struct vb_part_kind vb_part_name; /* letters, digits, '-': char[VB_PARTS_NAME_BYTES] */

struct vb_part {
	const char *name;
	size_t field; /* its offset in the structure */
	const struct vb_part_kind *kind;
};

struct vb_parts {
	const struct vb_part *part;
	struct vb_words words; /* VB_WORDS(part) */
	const char *kind, *title; /* for messages: "fault", "Faults" */
};

/*
 * Reads a text into a structure, whose other fields stay as they are. *seen: bit i is set if part i
 * is there. Returns 0; or EINVAL, with some fields read, and `why` says on one line what is wrong
 * and what is valid; it is empty after success.
 */
int vb_parts_read(const struct vb_parts *parts, const char *text, void *into, unsigned *seen,
		  char why[VB_PARTS_WHY_BYTES]);

#endif
