/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_LOG_H
#define VB_RUN_LOG_H

#include "base/lent.h"

/*
 * The log: a line for whoever looks for the reason of something, where VERBATIM_LOG says: "stderr",
 * or a file that is appended to. Without that setting nothing is written anywhere.
 *
 * Hints: the few mistakes that everybody makes in the first minute. Programs fail with them and say
 * nothing that helps, so `verbatim run` asks for a line on stderr with VERBATIM_HINTS=stderr. Each
 * hint is given once in the life of a process; more than these few are never given, because there
 * are scripts that look at what programs write there.
 */

enum { VB_LOG_LINE_BYTES = 512 };

enum vb_hint {
	VB_HINT_OPEN,	/* the device cannot be opened */
	VB_HINT_GID,	/* an address with no GID, or a wrong one */
	VB_HINT_UPLINK, /* what VERBATIM_ETH names cannot be opened */
	VB_HINTS,
};

/* One line, without the newline. Any thread; not from a signal handler. Keeps errno. */
VB_LENT void vb_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, and as a hint. */
void vb_log_hint(enum vb_hint hint, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * From now on what this thread logs is also written to line, each over the one before; NULL: no
 * longer. So whoever calls something that logs its reasons can give the last one as a hint.
 */
void vb_log_keep(char line[VB_LOG_LINE_BYTES]);

/* A hint whose reason is in the log already. Any thread; keeps errno. */
void vb_hint(enum vb_hint hint, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
