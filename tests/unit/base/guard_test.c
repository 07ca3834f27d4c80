/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies that meet no hole; those that do are the fault handler's test (run/sigguard_test.c). */
#include "base/guard.h"
#include "group.h"

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
TEST(a_copy_is_exact)
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

TEST(a_guard_comes_after_another)
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
TEST(a_small_copy_is_known_by_its_instructions)
{
	const uintptr_t begin = (uintptr_t)vb_guard_copy_small;
	const uintptr_t others[] = { 0, UINTPTR_MAX, (uintptr_t)memcpy,
				     (uintptr_t)vb_guard_copy_large, begin - 1 };
	struct vb_memory_fault fault = { .pc = begin, .to = 4096, .at = 4096 };
	bool write;

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct vb_memory_fault other = { .pc = others[i], .at = 4096 };

		assert_int_equal(vb_guard_find(&other, &write), VB_GUARDED_NOT);
	}
	if (!VB_GUARD_ROUTINE)
		return;
	assert_int_equal(vb_guard_find(&fault, &write), VB_GUARDED_SMALL);
	assert_true(write);
	fault.to = 8192;
	assert_int_equal(vb_guard_find(&fault, &write), VB_GUARDED_SMALL);
	assert_false(write);
	fault.pc = vb_guard_resume(VB_GUARDED_SMALL);
	assert_int_equal(vb_guard_find(&fault, &write), VB_GUARDED_NOT);
}

/* A guard has what it covers, and what runs on its own piece of the stack. */
TEST(a_guard_has_what_it_covers)
{
	static const struct {
		intptr_t at, above;
		enum vb_guarded guarded;
		bool write;
	} rows[] = {
		{ 0, 0, VB_GUARDED_LARGE, true },
		{ 63, 256, VB_GUARDED_LARGE, true },
		{ 64, 0, VB_GUARDED_NOT, false },
		{ -1, 0, VB_GUARDED_NOT, false },
		{ 128, 256, VB_GUARDED_LARGE, false },
		{ 191, 0, VB_GUARDED_LARGE, false },
		{ 192, 0, VB_GUARDED_NOT, false },
		/* A handler above it, and one on another stack. */
		{ 0, 1200, VB_GUARDED_NOT, false },
		{ 128, -4096, VB_GUARDED_NOT, false },
	};
	const uintptr_t base = 1 << 20;
	struct vb_guard guard;
	bool inside, write;

	vb_guard_cover(&guard, (void *)base, (void *)(base + 128), 64);
	inside = vb_guard_enter(&guard);
	assert_true(inside);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vb_memory_fault fault = {
			.pc = 1,
			.sp = (uintptr_t)&guard - (size_t)rows[i].above,
			.at = base + (size_t)rows[i].at,
		};

		if (!VB_GUARD_ROUTINE && (rows[i].above > 1024 || rows[i].above < 0))
			continue;
		assert_int_equal(vb_guard_find(&fault, &write), rows[i].guarded);
		if (rows[i].guarded != VB_GUARDED_NOT)
			assert_int_equal(write, rows[i].write);
	}
	vb_guard_leave();
}
