/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_GROUP_H
#define VB_TESTS_GROUP_H

/*
 * A program of tests, which is one cmocka group. A test is listed by its definition, and they run
 * in the order of their lines:
 *
 *   TEST(what_is_so)
 *   {
 *           assert_true(...);
 *   }
 *
 * A fixture has a word of its own: #define CONNECTED(name) TEST_BETWEEN(name, begin, end).
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "skip.h"

#define TEST(name) TEST_BETWEEN(name, NULL, NULL)
#define TEST_AFTER(name, setup) TEST_BETWEEN(name, setup, NULL)
#define TEST_BETWEEN(name, setup, teardown)                         \
	static void name(void **state);                             \
	TEST_LISTED(name##_is_listed, #name, name, setup, teardown) \
	static void name(void **state)

/* The test of this name runs here too, as another one, with another fixture. */
#define TEST_AGAIN(name, as, setup, teardown) TEST_LISTED(as, #as, name, setup, teardown)

#define TEST_LISTED(adder, name, test, setup, teardown)           \
	__attribute__((constructor)) static void adder(void)      \
	{                                                         \
		group_add(__LINE__, name, test, setup, teardown); \
	}

/* What is called before the first test, and after the last. */
#define GROUP(setup, teardown)                                      \
	__attribute__((constructor)) static void group_is_set(void) \
	{                                                           \
		group_set(setup, teardown);                         \
	}

void group_add(int line, const char *name, CMUnitTestFunction test, CMFixtureFunction setup,
	       CMFixtureFunction teardown);
void group_set(CMFixtureFunction setup, CMFixtureFunction teardown);

/*
 * For a setup that does not find what its test needs, and has undone what it did: the test is
 * skipped, without its teardown; if the setup is the group's, all tests are. Returns 0.
 */
int group_lacks(const char *reason);

#endif
