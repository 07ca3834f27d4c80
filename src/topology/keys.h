/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TOPOLOGY_KEYS_H
#define VB_TOPOLOGY_KEYS_H

/*
 * The keys that a file may have: a table of them, and the readers that several tables use. Pure:
 * any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/words.h"
#include "topology/limits.h"
#include "topology/lines.h"

/* What else a GID table has. */
enum vb_gid_variety {
	VB_GIDS_V1 = 1,		 /* a row of RoCE v1 before each row of RoCE v2 */
	VB_GIDS_LOCAL_FIRST = 2, /* link-local addresses before all others */
	VB_GIDS_HOLES = 4,	 /* rows without a GID between others */
	VB_GIDS_ALL = 7,
};

struct vb_key {
	const char *name;
	/* Reads a value. False: it is none; unless a message has begun, `good` describes those. */
	bool (*read)(void *arg, struct vb_lines *lines, struct vb_span value);
	const char *good; /* after "it is" */
};

/*
 * Reads the pair of the last line. *seen has a bit for each key of this section that was read; none
 * is said twice. False: it is wrong, and `why` of the lines says so.
 */
bool vb_key_read(const struct vb_key *keys, const struct vb_words *names, uint64_t *seen,
		 struct vb_lines *lines, void *arg);

/* "WHAT cannot be 'VALUE': it is GOOD". Returns false. */
bool vb_key_wrong(struct vb_lines *lines, const char *what, struct vb_span value,
		  const char *good);

/* "plain", or words of varieties, as bits of enum vb_gid_variety. */
bool vb_key_gids(struct vb_lines *lines, struct vb_span value, uint8_t *gids);
extern const char vb_key_good_gids[];

/* The limit that the line's key names. */
bool vb_key_limit(struct vb_lines *lines, struct vb_span value, struct vb_limits *limits);

#endif
