/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_LOG_H
#define VB_RUN_LOG_H

#include "base/lent.h"

/*
 * A line for whoever looks for the reason of something, where VERBATIM_LOG says: "stderr", or a
 * file that is appended to. Without that setting nothing is written anywhere.
 */

/* One line, without the newline. Any thread; not from a signal handler. Keeps errno. */
VB_LENT void vb_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
