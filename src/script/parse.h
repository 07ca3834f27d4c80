/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_SCRIPT_PARSE_H
#define VB_SCRIPT_PARSE_H

/*
 * Reads a script. A line is a rule, or empty; '#' begins a comment:
 *
 *	sent|received [CLASS,...] [KEY=VALUE ...] -> ACTION
 *	connect [KEY=VALUE ...] -> ACTION
 *	at TIME -> ACTION
 *
 * docs/faults.md has the words. Pure.
 */

#include <stddef.h>

#include "script/rule.h"

enum { VB_SCRIPT_WHY_BYTES = 320 };

/*
 * Reads a text of so many octets, which may be anything. path: where it is from, for messages.
 * Returns 0; or EINVAL with *script untouched, and `why` says on one line what is wrong, where
 * (FILE:LINE:COLUMN), and what is valid.
 */
int vb_script_parse(struct vb_script *script, const char *path, const char *text, size_t bytes,
		    char why[VB_SCRIPT_WHY_BYTES]);

#endif
