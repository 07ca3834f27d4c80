/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/aeth.h"

#define CREDIT_CODE_MAX 30 /* the largest that stands for a number */

/* clang-format off */
static const uint32_t credits[] = {
	0,    1,    2,    3,     4,     6,     8,     12,
	16,   24,   32,   48,    64,    96,    128,   192,
	256,  384,  512,  768,   1024,  1536,  2048,  3072,
	4096, 6144, 8192, 12288, 16384, 24576, 32768,
};

/* In units of 10 us, the smallest delay that a code can express. */
static const uint32_t rnr_timers[] = {
	65536, 1,    2,    3,     4,     6,     8,     12,
	16,    24,   32,   48,    64,    96,    128,   192,
	256,   384,  512,  768,   1024,  1536,  2048,  3072,
	4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152,
};
/* clang-format on */

#define RNR_TIMER_UNIT_NS 10000u

uint32_t vb_credit_decode(unsigned code5)
{
	code5 &= VB_AETH_VALUE_MASK;
	return code5 > CREDIT_CODE_MAX ? VB_CREDIT_UNLIMITED : credits[code5];
}

unsigned vb_credit_encode(uint32_t count)
{
	unsigned log2;

	if (count == VB_CREDIT_UNLIMITED)
		return VB_CREDIT_CODE_UNLIMITED;
	if (count < 2)
		return count;
	/* Two codes for each power of two: 2^n and 2^n * 3/2, rounded down. */
	log2 = 31 - (unsigned)__builtin_clz(count);
	if (2 * log2 >= CREDIT_CODE_MAX)
		return CREDIT_CODE_MAX;
	return 2 * log2 + (count >> (log2 - 1) & 1);
}

uint64_t vb_rnr_timer_ns(unsigned code5)
{
	return (uint64_t)rnr_timers[code5 & VB_AETH_VALUE_MASK] * RNR_TIMER_UNIT_NS;
}
