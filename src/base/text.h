/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BASE_TEXT_H
#define VB_BASE_TEXT_H

/*
 * A text composed in a caller's array. What does not fit is left out; the text is always
 * zero-terminated. Any thread, each with a text of its own.
 */

#include <stddef.h>

struct vb_text {
	char *chars;
	size_t bytes; /* of the array, at least 1 */
	size_t used;  /* without the terminating zero */
};

enum { VB_TEXT_TYPED_MAX = 60 }; /* octets shown of what a user typed */

/* Returns an empty text in this array. */
struct vb_text vb_text_in(char *chars, size_t bytes);

/* Adds these strings, of which the last is NULL. */
void vb_text_add(struct vb_text *text, ...) __attribute__((sentinel));

/*
 * Adds what a user typed, so many octets: on one line whatever it contains, and shortened if it is
 * long.
 */
void vb_text_add_typed(struct vb_text *text, const char *typed, size_t bytes);

/*
 * "WHAT cannot be 'TYPED': it is GOOD"; where nothing was typed, "WHAT is ABSENT: it is GOOD".
 */
void vb_text_add_cannot(struct vb_text *text, const char *what, const char *typed, size_t bytes,
			const char *absent, const char *good);

#endif
