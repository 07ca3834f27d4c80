/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_EXPLAIN_TROUBLE_H
#define VB_EXPLAIN_TROUBLE_H

/* What was found in captures: a row of trouble.def each, and words of its own. Pure. */

#include <stddef.h>
#include <stdint.h>

enum vb_trouble_kind {
#define X(name, ...) VB_TROUBLE_##name,
#include "explain/trouble.def"
#undef X
	VB_TROUBLES
};

enum vb_weight { VB_WEIGHT_FAULT, VB_WEIGHT_NOTE };

struct vb_trouble_words {
	const char *name; /* stable */
	enum vb_weight weight;
	const char *what, *look;
};

extern const struct vb_trouble_words vb_trouble_words[VB_TROUBLES];

enum { VB_TROUBLE_BYTES = 640 };

struct vb_trouble {
	enum vb_trouble_kind kind;
	uint32_t half;	/* of the story, VB_NONE: of no flow */
	uint32_t event; /* the first packet, VB_NONE: no packet */
	uint64_t count;
	char words[VB_TROUBLE_BYTES]; /* a sentence or several, "" */
	size_t used;		      /* of words */
};

/* Adds words, as printf does; what does not fit is left out. */
void vb_trouble_say(struct vb_trouble *trouble, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
