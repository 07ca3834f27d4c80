/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/text.h"

#include <stdarg.h>
#include <string.h>

enum { FIRST_PRINTABLE = 0x20, DELETE = 0x7f };

struct vb_text vb_text_in(char *chars, size_t bytes)
{
	chars[0] = 0;
	return (struct vb_text){ .chars = chars, .bytes = bytes };
}

static void octets_add(struct vb_text *text, const char *octets, size_t bytes)
{
	size_t room = text->bytes - 1 - text->used;

	if (bytes > room)
		bytes = room;
	memcpy(text->chars + text->used, octets, bytes);
	text->used += bytes;
	text->chars[text->used] = 0;
}

void vb_text_add(struct vb_text *text, ...)
{
	const char *piece;
	va_list pieces;

	va_start(pieces, text);
	while ((piece = va_arg(pieces, const char *)))
		octets_add(text, piece, strlen(piece));
	va_end(pieces);
}

void vb_text_add_typed(struct vb_text *text, const char *typed, size_t bytes)
{
	size_t shown = bytes < VB_TEXT_TYPED_MAX ? bytes : VB_TEXT_TYPED_MAX;

	for (size_t i = 0; i < shown; i++) {
		unsigned char c = (unsigned char)typed[i];

		octets_add(text, c < FIRST_PRINTABLE || c == DELETE ? "?" : typed + i, 1);
	}
	if (shown < bytes)
		vb_text_add(text, "...", NULL);
}

void vb_text_add_cannot(struct vb_text *text, const char *what, const char *typed, size_t bytes,
			const char *absent, const char *good)
{
	vb_text_add(text, what, NULL);
	if (bytes) {
		vb_text_add(text, " cannot be '", NULL);
		vb_text_add_typed(text, typed, bytes);
		vb_text_add(text, "'", NULL);
	} else {
		vb_text_add(text, " is ", absent, NULL);
	}
	vb_text_add(text, ": it is ", good, NULL);
}
