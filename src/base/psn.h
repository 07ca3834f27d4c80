/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BASE_PSN_H
#define VB_BASE_PSN_H

/* 24-bit serial numbers: PSNs, MSNs and SSNs. */

#include <stdint.h>

#define VB_PSN_MASK 0xffffffu

static inline uint32_t vb_psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & VB_PSN_MASK;
}

/* a - b as a signed distance: negative if a comes before b (IBA 9.7.2: half the space is past). */
static inline int32_t vb_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

#endif
