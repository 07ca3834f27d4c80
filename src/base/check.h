/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BASE_CHECK_H
#define VB_BASE_CHECK_H

/*
 * vb_check() states what must hold if our own code is right. It stays on in every build: continuing
 * with a broken invariant could write to memory that is not ours. Never use it for input.
 */

#define vb_check(cond)                                                                            \
	do {                                                                                      \
		if (__builtin_expect(!(cond), 0))                                                 \
			__builtin_trap();                                                         \
	} while (0)

#define VB_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#define vb_container_of(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))

static inline unsigned long long vb_min_u64(unsigned long long a, unsigned long long b)
{
	return a < b ? a : b;
}

static inline unsigned long long vb_max_u64(unsigned long long a, unsigned long long b)
{
	return a > b ? a : b;
}

#endif
