/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BASE_TEXT_H
#define VB_BASE_TEXT_H

/*
 * A text that is put together piece by piece in somebody's array. What does not fit is left out;
 * a zero is always behind the last octet. Any thread, each with a text of its own.
 */

#include <stddef.h>

struct vb_text {
	char *chars;
	size_t bytes; /* of the array, at least 1 */
	size_t used;  /* without the zero */
};

enum { VB_TEXT_TYPED_MAX = 60 }; /* octets shown of what somebody typed */

/* An empty text in this array. */
struct vb_text vb_text_in(char *chars, size_t bytes);

/* Add these strings, of which the last is NULL. */
void vb_text_add(struct vb_text *text, ...) __attribute__((sentinel));

/*
 * Add what somebody typed, so many octets of it: on one line, whatever it is, and shortened if it
 * is long.
 */
void vb_text_add_typed(struct vb_text *text, const char *typed, size_t bytes);

#endif
