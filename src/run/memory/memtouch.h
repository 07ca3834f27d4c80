/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_MEMTOUCH_H
#define VB_RUN_MEMTOUCH_H

/*
 * Lets the kernel touch memory that may be missing: a fault becomes an error instead of a signal.
 * Any thread; vb_memtouch() also in a signal handler.
 */

#include <stdbool.h>
#include <stddef.h>

/* Can the octet be read (and written, if `write` is set)? If so its page is present now. */
bool vb_memtouch(const void *at, bool write);

/*
 * memcpy within this process, in ascending order with the last octets last. Returns false, with an
 * unspecified part copied, if memory is unmapped or denies the access.
 */
bool vb_memtouch_copy(void *to, const void *from, size_t bytes);

#endif
