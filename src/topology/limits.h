/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TOPOLOGY_LIMITS_H
#define VB_TOPOLOGY_LIMITS_H

/* The limits of a device that may be lowered. Pure: any thread. */

#include <stdbool.h>
#include <stdint.h>

#include "base/words.h"

enum vb_limit {
#define VB_LIMIT(word, name, least, most) VB_LIMIT_##word,
#include "topology/limits.def"
#undef VB_LIMIT
	VB_LIMITS
};

enum { VB_LIMITS_WHY_BYTES = 384 };

struct vb_limits {
	uint32_t said; /* a bit for each that is lowered */
	uint64_t most[VB_LIMITS];
};

/* Their names, as enum vb_limit counts them. */
extern const struct vb_words vb_limit_names;

/* The least and the most that a limit may be. */
uint64_t vb_limit_least(enum vb_limit limit);
uint64_t vb_limit_most(enum vb_limit limit);

static inline bool vb_limit_is_said(const struct vb_limits *limits, enum vb_limit limit)
{
	return limits->said >> limit & 1;
}

/* Returns false, and sets nothing, if it is less than the least or more than the most. */
bool vb_limit_set(struct vb_limits *limits, enum vb_limit limit, uint64_t most);

/* Adds "max_qp is a number from 1 to 65524". */
void vb_limit_add_range(struct vb_text *text, enum vb_limit limit);

/* What `above` says counts, and where it says nothing, what `limits` has. */
void vb_limits_lay(struct vb_limits *limits, const struct vb_limits *above);

/*
 * Reads "max_qp=16,max_cqe=64" on top of *limits. False: it is wrong, *limits is untouched, and
 * the text says why.
 */
bool vb_limits_parse(struct vb_limits *limits, const char *list, struct vb_text *why);

#endif
