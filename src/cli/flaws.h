/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_FLAWS_H
#define VB_CLI_FLAWS_H

/*
 * What `verbatim check` found: read from the file that the checked processes write
 * (run/process/flaw.h), less what is suppressed, as text or JSON.
 */

#include <stdbool.h>
#include <stdio.h>

struct vb_cli_suppression {
	struct vb_cli_suppression *next;
	char *flaw, *place, *words; /* patterns (fnmatch(3)); words may be NULL */
};

/*
 * Reads suppressions: a line each, "NAME PLACE [WORDS]", all three patterns; # begins a comment.
 * Adds them to the list. Returns false after reporting what is wrong.
 */
bool vb_cli_suppressions_read(struct vb_cli_suppression **list, const char *path);

enum vb_cli_form { VB_CLI_TEXT, VB_CLI_JSON, VB_CLI_SUPPRESSIONS };

/*
 * Writes what the file has. Returns how many flaws were reported; -1: the file cannot be read,
 * which is reported.
 */
int vb_cli_flaws_write(FILE *out, const char *path, const struct vb_cli_suppression *list,
		       enum vb_cli_form form);

#endif
