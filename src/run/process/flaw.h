/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_FLAW_H
#define VB_RUN_FLAW_H

/*
 * Flaws: what works by luck in the application, as `verbatim check` reports it. The library under
 * check appends them to a file, a line each, which the command reads when the program has ended:
 *
 *     NAME pid program number count site words
 *
 * with tabs between. A flaw is said once for each place in the application, and then again with the
 * new count at each power of two and at the end; number tells those of a process apart.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/lent.h"

enum vb_flaw {
#define X(id, name, what, cure) VB_FLAW_##id,
#include "run/process/flaw.def"
#undef X
	VB_FLAWS
};

struct vb_flaw_words {
	const char *name, *what, *cure;
};
extern const struct vb_flaw_words vb_flaw_words[VB_FLAWS];

enum { VB_FLAW_LINE_BYTES = 2048, VB_FLAW_FIELDS = 7 };

/* Opens the file; false: it cannot be. Once, before the others are called. */
bool vb_flaws_open(const char *path);

/*
 * A flaw at this place in the application (callsite.h; NULL: not known). Any thread, not from a
 * signal handler. Keeps errno.
 */
VB_LENT void vb_flaw_say(enum vb_flaw flaw, const void *site, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Counts a flaw that was said before; false: it was not. Saves composing the words. */
bool vb_flaw_again(enum vb_flaw flaw, const void *site);

/* Writes the final counts. */
void vb_flaws_end(void);

/* In a forked child: it has no flaws yet. */
void vb_flaws_forget(void);

#endif
