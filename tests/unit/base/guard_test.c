/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies that meet no hole; those that do are the fault handler's test (run/sigguard_test.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/guard.h"

enum { BYTES_MAX = 2 * VB_GUARD_SMALL_BYTES_MAX, SHIFTS = 17, MARGIN = 32 };

static uint8_t from[MARGIN + BYTES_MAX + MARGIN], to[sizeof(from)], expected[sizeof(from)];

static void fill(void)
{
	for (size_t i = 0; i < sizeof(from); i++) {
		from[i] = (uint8_t)(i * 7 + (i >> 8) + 1);
		to[i] = expected[i] = 0xee;
	}
}

/* Of every length, from and to every alignment; nothing beside it is touched. */
static void a_copy_is_exact(void **state)
{
	for (size_t bytes = 0; bytes <= BYTES_MAX; bytes++) {
		for (size_t shift = 0; shift < SHIFTS; shift++) {
			size_t back = (shift * 5) % SHIFTS;

			fill();
			memcpy(expected + shift, from + back, bytes);
			assert_true(vb_guard_copy(to + shift, from + back, bytes));
			assert_memory_equal(to, expected, sizeof(to));
		}
	}
}

static void a_guard_comes_after_another(void **state)
{
	struct vb_guard guard;
	bool inside = vb_guard_enter(&guard);

	assert_true(inside);
	assert_ptr_equal(vb_guard_current, &guard);
	vb_guard_leave();
	assert_null(vb_guard_current);
	assert_true(vb_guard_copy_large(to, from, sizeof(to)));
	assert_null(vb_guard_current);
	assert_memory_equal(to, from, sizeof(to));
}

/* Only the small copy's own instructions are where it may be left. */
static void other_code_goes_on_as_it_was(void **state)
{
	assert_true(vb_guard_resume(0) == 0);
	assert_true(vb_guard_resume(UINTPTR_MAX) == 0);
	assert_true(vb_guard_resume((uintptr_t)memcpy) == 0);
	assert_true(vb_guard_resume((uintptr_t)vb_guard_copy_large) == 0);
	if (!VB_GUARD_ROUTINE)
		return;
	assert_true(vb_guard_resume((uintptr_t)vb_guard_copy_small) != 0);
	assert_true(vb_guard_resume((uintptr_t)vb_guard_copy_small - 1) == 0);
	assert_true(vb_guard_resume(vb_guard_resume((uintptr_t)vb_guard_copy_small)) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_copy_is_exact),
		cmocka_unit_test(a_guard_comes_after_another),
		cmocka_unit_test(other_code_goes_on_as_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
