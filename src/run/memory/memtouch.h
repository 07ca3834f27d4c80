/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_MEMTOUCH_H
#define VB_RUN_MEMTOUCH_H

/*
 * Memory that may not be there, touched by the kernel on our behalf: what faults is an error, not a
 * signal. Any thread; the first also in a signal handler.
 */

#include <stdbool.h>
#include <stddef.h>

/* Can the octet be read (and written, if `write` is set)? Then its page is there. */
bool vb_memtouch(const void *at, bool write);

/*
 * memcpy between memory of this process, in ascending order and the last octets last; false, with
 * an unspecified part copied: it may not be read or written, or is not mapped.
 */
bool vb_memtouch_copy(void *to, const void *from, size_t bytes);

#endif
