/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_LOG_H
#define VB_RUN_LOG_H

#include <stdbool.h>

#include "base/lent.h"

/*
 * The log: lines that explain what happened, written where VERBATIM_LOG says: "stderr", or a file
 * to append to. Without that setting nothing is written.
 *
 * Hints: lines about the most common mistakes of new users. Programs that make them fail without a
 * helpful message, so `verbatim run` asks for a line on stderr with VERBATIM_HINTS=stderr. Each
 * hint is given once per process. There are only these few, because scripts look at what programs
 * write to stderr.
 */

enum { VB_LOG_LINE_BYTES = 1024 };

enum vb_hint {
	VB_HINT_OPEN,	/* the device cannot be opened, or none is known */
	VB_HINT_GID,	/* an address with no GID, or a wrong one */
	VB_HINT_UPLINK, /* what VERBATIM_ETH names cannot be opened */
	VB_HINTS,
};

/*
 * Opens the log, unless it is open. Done before others ask whether refusals are wanted
 * (base/refusal.h): they are if there is a log.
 */
void vb_log_open(void);

/*
 * Writes one line, given without the newline. Any thread; not from a signal handler. Keeps errno.
 */
VB_LENT void vb_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Is there a log? For who would have to look for what to write. */
VB_LENT bool vb_log_is_on(void);

/* The same, and as a hint. */
void vb_log_hint(enum vb_hint hint, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * From now on copies each line that this thread logs to `line`, over the one before; NULL: stops
 * that. So a caller can give the last reason logged as a hint.
 */
void vb_log_keep(char line[VB_LOG_LINE_BYTES]);

/* Gives a hint whose reason is in the log already. Any thread; keeps errno. */
void vb_hint(enum vb_hint hint, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
