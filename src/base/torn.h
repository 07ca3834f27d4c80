/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BASE_TORN_H
#define VB_BASE_TORN_H

/*
 * Copies memory that other threads change at the same time. A number beside it (a seqlock) says
 * whether a copy is torn, which is then discarded. For the compiler a plain copy would be a data
 * race nevertheless (C11 5.1.2.4), so both sides use atomic words. They are relaxed: fences are the
 * caller's. Any thread.
 *
 * Both addresses and the length are multiples of 8.
 */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

static inline void vb_torn_write(void *shared, const void *from, size_t bytes)
{
	_Atomic uint64_t *to = shared;
	const uint64_t *words = from;

	for (size_t i = 0; i < bytes / sizeof(*words); i++)
		atomic_store_explicit(&to[i], words[i], memory_order_relaxed);
}

static inline void vb_torn_read(void *to, const void *shared, size_t bytes)
{
	const _Atomic uint64_t *from = shared;
	uint64_t *words = to;

	for (size_t i = 0; i < bytes / sizeof(*words); i++)
		words[i] = atomic_load_explicit(&from[i], memory_order_relaxed);
}

#endif
