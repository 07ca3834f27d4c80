/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "group.h"
#include "run/memory/memprobe.h"

enum { PAGES = 4 };

static size_t page_bytes;

/* A mapping of PAGES pages, anonymous and private. */
static char *map(int protection)
{
	char *base = mmap(NULL, PAGES * page_bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(base != MAP_FAILED);
	return base;
}

static void unmap(char *base)
{
	munmap(base, PAGES * page_bytes);
}

TEST(mapped_memory_is_fine)
{
	char *base = map(PROT_READ | PROT_WRITE);

	assert_int_equal(vb_memprobe(base, PAGES * page_bytes, true), 0);
	assert_int_equal(vb_memprobe(base + 1, 1, false), 0);
	assert_int_equal(vb_memprobe(base + page_bytes - 1, 2, true), 0);
	unmap(base);
}

TEST(nothing_is_fine_anywhere)
{
	assert_int_equal(vb_memprobe(NULL, 0, true), 0);
}

TEST(holes_are_found)
{
	char *base = map(PROT_READ | PROT_WRITE);

	munmap(base + page_bytes, page_bytes);
	assert_int_equal(vb_memprobe(base, page_bytes, true), 0);
	assert_int_equal(vb_memprobe(base, page_bytes + 1, true), EFAULT);
	assert_int_equal(vb_memprobe(base, PAGES * page_bytes, false), EFAULT);
	unmap(base);
}

TEST(null_and_wrapping_ranges_are_refused)
{
	assert_int_equal(vb_memprobe(NULL, 1, false), EFAULT);
	assert_int_equal(vb_memprobe((void *)UINTPTR_MAX, 2, false), EFAULT);
	assert_int_equal(vb_memprobe((void *)(UINTPTR_MAX - 10), 5, false), EFAULT);
}

TEST(read_only_memory_is_for_reading)
{
	char *base = map(PROT_READ);

	assert_int_equal(vb_memprobe(base, PAGES * page_bytes, false), 0);
	assert_int_equal(vb_memprobe(base, PAGES * page_bytes, true), EFAULT);
	/* The last page counts as well as the first. */
	mprotect(base, (PAGES - 1) * page_bytes, PROT_READ | PROT_WRITE);
	assert_int_equal(vb_memprobe(base, PAGES * page_bytes, true), EFAULT);
	unmap(base);
}

TEST(reserved_memory_is_not_there)
{
	char *base = map(PROT_NONE);

	assert_int_equal(vb_memprobe(base, PAGES * page_bytes, false), EFAULT);
	unmap(base);
}

static int group_setup(void **state)
{
	page_bytes = sysconf(_SC_PAGESIZE);
	return 0;
}

/* --- ibv_advise_mr(3) --- */

static unsigned resident(char *base)
{
	unsigned char in[PAGES];
	unsigned count = 0;

	assert_int_equal(mincore(base, PAGES * page_bytes, in), 0);
	for (unsigned i = 0; i < PAGES; i++)
		count += in[i] & 1;
	return count;
}

TEST(pages_are_fetched)
{
	char *base = map(PROT_READ | PROT_WRITE);

	assert_int_equal(vb_memfetch(base, PAGES * page_bytes, VB_FETCH_LOOK), 0);
	assert_int_equal(resident(base), 0);
	assert_int_equal(vb_memfetch(base + page_bytes - 1, 2, VB_FETCH_WRITE), 0);
	assert_int_equal(resident(base), 2);
	assert_int_equal(vb_memfetch(base, 0, VB_FETCH_WRITE), 0);
	assert_int_equal(vb_memfetch(base, PAGES * page_bytes, VB_FETCH_READ), 0);
	unmap(base);
}

TEST(what_is_not_there_is_not_fetched)
{
	char *base = map(PROT_READ);

	assert_int_equal(vb_memfetch(base, page_bytes, VB_FETCH_READ), 0);
	assert_int_equal(vb_memfetch(base, page_bytes, VB_FETCH_WRITE), EFAULT);
	assert_int_equal(munmap(base + page_bytes, page_bytes), 0);
	for (int how = VB_FETCH_LOOK; how <= VB_FETCH_WRITE; how++)
		assert_int_equal(vb_memfetch(base, 3 * page_bytes, (enum vb_fetch)how), EFAULT);
	assert_int_equal(vb_memfetch((void *)UINTPTR_MAX, 2, VB_FETCH_LOOK), EFAULT);
	unmap(base);
}

GROUP(group_setup, NULL)
