/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TOPOLOGY_LINES_H
#define VB_TOPOLOGY_LINES_H

/*
 * The language of topology and persona files, line by line:
 *
 *	# a comment
 *	[device rail0]
 *	interfaces = eth0 eth1
 *
 * Pure: any thread, each with a reader of its own.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/* Octets of the text that is read. */
struct vb_span {
	const char *text;
	size_t bytes;
};

enum vb_line {
	VB_LINE_SECTION, /* key: its kind, value: its name, which may be empty */
	VB_LINE_PAIR,
	VB_LINE_END,
	VB_LINE_WRONG, /* `why` says it */
};

struct vb_lines {
	const char *name;    /* of the file, for messages; NULL: it is no file's */
	const char *at, *end; /* what is still to be read */
	const char *line;    /* the line that was read */
	unsigned number;
	struct vb_span key, value;
	struct vb_text why;
};

/* `name` and the text have to stay; `why` is filled if something is wrong. */
struct vb_lines vb_lines_of(const char *name, const char *text, size_t bytes, struct vb_text why);

/* Reads the next line that says anything. */
enum vb_line vb_lines_next(struct vb_lines *lines);

/*
 * Begins a message about this piece of the line: "NAME:LINE:COLUMN: "; "at COLUMN: " if the text is
 * no file's.
 */
struct vb_text *vb_lines_wrong(struct vb_lines *lines, struct vb_span piece);

/* Takes the first word from a value, whose words are separated by blanks or commas; false: none. */
bool vb_span_word(struct vb_span *value, struct vb_span *word);

bool vb_span_is(struct vb_span piece, const char *text);

#endif
