/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_HUB_WORDS_H
#define VB_HUB_WORDS_H

/*
 * Why something failed, in words for people: the one place that makes them. What failed is in the
 * note that was left with the errno (base/failure.h); an errno alone is never taken for more than
 * what strerror() says of it.
 */

#include <stddef.h>

/*
 * Write what is known of error into text, without a newline: "memfd_create: no descriptor left:
 * RLIMIT_NOFILE is 20; raise it: ulimit -n". Returns text.
 */
const char *vb_failure_words(char *text, size_t bytes, int error);

/* vb_failed_because(), with a format. */
int vb_failed_words(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
