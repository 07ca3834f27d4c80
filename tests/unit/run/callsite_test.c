/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/process/callsite.h"

#include <errno.h>
#include <stdio.h>

#include "group.h"

/* Where this function returns to: what the application's verbs give. */
static __attribute__((noinline)) const void *here(void)
{
	return __builtin_return_address(0);
}

TEST(an_address_has_its_line_and_its_function)
{
	char text[VB_CALLSITE_BYTES];
	const void *at = here();
	int line = __LINE__ - 1;
	char wanted[64];

	errno = ENOENT;
	snprintf(wanted, sizeof(wanted), "callsite_test.c:%d in ", line);
	assert_ptr_equal(vb_callsite_of(text, at), text);
	assert_ptr_equal(strstr(text, wanted), text);
	assert_int_equal(errno, ENOENT);
}

TEST(a_caller_is_found)
{
	char text[VB_CALLSITE_BYTES];

	/* No library of ours is between: this program has the function itself. */
	vb_callsite(text);
	assert_non_null(strstr(text, " in "));
	assert_non_null(vb_caller());
}

TEST(what_is_nowhere_has_no_place)
{
	char text[VB_CALLSITE_BYTES] = "x";

	assert_string_equal(vb_callsite_of(text, NULL), "");
	assert_string_equal(vb_callsite_of(text, (void *)16), "");
}
