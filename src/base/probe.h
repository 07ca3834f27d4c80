/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BASE_PROBE_H
#define VB_BASE_PROBE_H

/*
 * Probes of bpftrace, perf and gdb (USDT): VB_PROBE(name, arguments ...) for a row of probe.def.
 * One is a `nop` and a note in the file, and calls nothing; but its arguments are computed, so that
 * it stands only where a message in good order never comes, or in functions that only a watched
 * process has. Any layer, any thread. Arguments are numbers and pointers to text. Without
 * <sys/sdt.h> when it was built there are none.
 */

#define VB_PROBE_ROW(name, count, arguments) VB_PROBE_ARGUMENTS_##name = (count),
enum vb_probe_arguments {
#include "base/probe.def"
};
#undef VB_PROBE_ROW

#define VB_PROBE_COUNT(a, b, c, d, e, f, n, ...) n

/* In its table, and with as many arguments? */
#define VB_PROBE_CHECK(name, ...)                                                                 \
	_Static_assert(VB_PROBE_ARGUMENTS_##name == VB_PROBE_COUNT(__VA_ARGS__, 6, 5, 4, 3, 2, 1), \
		       "base/probe.def says what " #name " has")

#ifdef VB_PROBES
#define SDT_USE_VARIADIC
#include <sys/sdt.h>
#define VB_PROBE(name, ...)                                                                       \
	do {                                                                                      \
		VB_PROBE_CHECK(name, __VA_ARGS__);                                                \
		STAP_PROBEV(verbatim, name, __VA_ARGS__);                                         \
	} while (0)
#else
static inline void vb_probe_none(int none, ...)
{
}
#define VB_PROBE(name, ...)                                                                       \
	do {                                                                                      \
		VB_PROBE_CHECK(name, __VA_ARGS__);                                                \
		if (0)                                                                            \
			vb_probe_none(0, __VA_ARGS__);                                            \
	} while (0)
#endif

#endif
