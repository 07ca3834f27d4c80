/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_HUB_WORDS_H
#define VB_HUB_WORDS_H

/*
 * Why something failed, in words for users; only this file makes them. The note left with the errno
 * (base/failure.h) says which call failed. Without a note, an errno means what strerror() says.
 */

#include <stddef.h>

/*
 * Writes what is known of error into text, without a newline: "memfd_create: no descriptor left:
 * RLIMIT_NOFILE is 20; raise it: ulimit -n". Returns text.
 */
const char *vb_failure_words(char *text, size_t bytes, int error);

/* vb_failed_because(), with a format. */
int vb_failed_words(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
