/* SPDX-License-Identifier: BSD-2-Clause */
#include "topology/lines.h"

#include <stdio.h>
#include <string.h>

#define BYTE_ORDER_MARK "\xef\xbb\xbf"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static struct vb_span trimmed(const char *text, const char *end)
{
	while (text < end && is_blank(*text))
		text++;
	while (end > text && is_blank(end[-1]))
		end--;
	return (struct vb_span){ text, (size_t)(end - text) };
}

struct vb_lines vb_lines_of(const char *name, const char *text, size_t bytes, struct vb_text why)
{
	/* Some editors begin a file so. */
	size_t mark = bytes >= strlen(BYTE_ORDER_MARK) &&
				      !memcmp(text, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK))
			      ? strlen(BYTE_ORDER_MARK)
			      : 0;

	return (struct vb_lines){ .name = name, .at = text + mark, .end = text + bytes,
				  .why = why };
}

struct vb_text *vb_lines_wrong(struct vb_lines *lines, struct vb_span piece)
{
	char place[48];

	unsigned column = (unsigned)(piece.text - lines->line) + 1;

	if (lines->name)
		snprintf(place, sizeof(place), ":%u:%u: ", lines->number, column);
	else
		snprintf(place, sizeof(place), "at %u: ", column);
	vb_text_add(&lines->why, lines->name ? lines->name : "", place, NULL);
	return &lines->why;
}

static enum vb_line section_read(struct vb_lines *lines, struct vb_span said)
{
	const char *text = said.text + 1, *end = said.text + said.bytes - 1, *gap;
	struct vb_span inner = trimmed(text, end > text ? end : text);

	if (said.bytes < 2 || *end != ']') {
		vb_text_add(vb_lines_wrong(lines, said),
			    "a section ends with ']', as in [device rail0]", NULL);
		return VB_LINE_WRONG;
	}
	for (gap = inner.text; gap < inner.text + inner.bytes && !is_blank(*gap); gap++)
		continue;
	lines->key = (struct vb_span){ inner.text, (size_t)(gap - inner.text) };
	lines->value = trimmed(gap, inner.text + inner.bytes);
	return VB_LINE_SECTION;
}

static enum vb_line pair_read(struct vb_lines *lines, struct vb_span said)
{
	const char *end = said.text + said.bytes, *sign = memchr(said.text, '=', said.bytes);

	if (!sign || sign == said.text) {
		vb_text_add(vb_lines_wrong(lines, said),
			    "a line says 'key = value', begins a section such as [device rail0], "
			    "or is a comment behind '#'", NULL);
		return VB_LINE_WRONG;
	}
	lines->key = trimmed(said.text, sign);
	lines->value = trimmed(sign + 1, end);
	return VB_LINE_PAIR;
}

enum vb_line vb_lines_next(struct vb_lines *lines)
{
	while (lines->at < lines->end) {
		size_t left = (size_t)(lines->end - lines->at);
		const char *newline = memchr(lines->at, '\n', left);
		const char *end = newline ? newline : lines->end, *comment;
		struct vb_span said;

		lines->line = lines->at;
		lines->at = newline ? newline + 1 : end;
		lines->number++;
		comment = memchr(lines->line, '#', (size_t)(end - lines->line));
		said = trimmed(lines->line, comment ? comment : end);
		if (said.bytes)
			return *said.text == '[' ? section_read(lines, said)
						 : pair_read(lines, said);
	}
	return VB_LINE_END;
}

static bool parts_words(char c)
{
	return is_blank(c) || c == ',';
}

bool vb_span_word(struct vb_span *value, struct vb_span *word)
{
	const char *at = value->text, *end = at + value->bytes;

	while (at < end && parts_words(*at))
		at++;
	word->text = at;
	while (at < end && !parts_words(*at))
		at++;
	word->bytes = (size_t)(at - word->text);
	*value = (struct vb_span){ at, (size_t)(end - at) };
	return word->bytes > 0;
}

bool vb_span_is(struct vb_span piece, const char *text)
{
	return piece.bytes == strlen(text) && memcmp(piece.text, text, piece.bytes) == 0;
}
