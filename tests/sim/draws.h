/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_SIM_DRAWS_H
#define VB_SIM_DRAWS_H

/* What worlds draw and require. Included where struct sim is known. */

#include <stdarg.h>
#include <stdio.h>

/* The run ends, and says why. */
static inline __attribute__((noreturn, format(printf, 1, 2))) void failed(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(sim.why, sizeof(sim.why), format, args);
	va_end(args);
	longjmp(sim.failed, 1);
}

#define require(cond)                                                                             \
	do {                                                                                      \
		if (!(cond))                                                                      \
			failed("%s:%d: not so: %s", __FILE__, __LINE__, #cond);                   \
	} while (0)

static inline uint32_t below(uint32_t n)
{
	return (uint32_t)(vb_prng_next(&sim.rng) % n);
}

static inline bool chance(unsigned percent)
{
	return below(100) < percent;
}

#endif
