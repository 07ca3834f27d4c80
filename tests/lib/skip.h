/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_SKIP_H
#define VB_TESTS_SKIP_H

#include <stdarg.h>
#include <string.h>

/*
 * Ends a cmocka test as skipped, for a reason. cmocka itself prints none; scripts/check.py takes it
 * from the line "# skip: REASON" before the result. Include after <cmocka.h>.
 *
 *   SKIP("no disk");   SKIP("ptrace: %s", strerror(errno));
 */
#define SKIP(...)                                      \
	do {                                           \
		print_message("# skip: " __VA_ARGS__); \
		print_message("\n");                   \
		skip();                                \
	} while (0)

/*
 * By this cmocka prints its results, too. It calls a test that is skipped "not ok", which for meson
 * is a failure whatever follows. Weak: several files of a program may include this.
 */
__attribute__((weak)) void print_message(const char *format, ...)
{
	bool skipped = !strncmp(format, "not ok %u # SKIP", 16);
	va_list args;

	va_start(args, format);
	vprint_message(skipped ? format + strlen("not ") : format, args);
	va_end(args);
}

#endif
