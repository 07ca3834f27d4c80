/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_SKIP_H
#define VB_TESTS_SKIP_H

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

#endif
