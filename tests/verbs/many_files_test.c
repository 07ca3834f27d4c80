/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "skip.h"

/*
 * Registering memory of a file, of which peers want to know the descriptor: what it costs is the
 * same however many are open. Counted are the looks at descriptors by the thread that registers.
 */

enum { FEW = 100, MANY = 4000, REGIONS = 50, SPARE = 200 };

static struct {
	int fd;
	void *at;
} files[MANY];
static unsigned open_files;
static size_t page;
static __thread unsigned looks;

int fstat(int fd, struct stat *st)
{
	looks++;
	return (int)syscall(SYS_newfstatat, fd, "", st, AT_EMPTY_PATH);
}

static void files_open(unsigned count)
{
	for (; open_files < count; open_files++) {
		int fd = memfd_create("test", MFD_CLOEXEC);

		assert_true(fd >= 0);
		assert_int_equal(ftruncate(fd, (off_t)page), 0);
		files[open_files].fd = fd;
		files[open_files].at =
			mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		assert_true(files[open_files].at != MAP_FAILED);
	}
}

/* The most that one of some costs, here and there among all of them. */
static unsigned most_looks(void)
{
	static struct ibv_mr *mr[REGIONS];
	unsigned most = 0;

	for (unsigned i = 0; i < REGIONS; i++) {
		void *at = files[(i * 389 + 7) % open_files].at;

		looks = 0;
		mr[i] = vt_made(ibv_reg_mr(vt.pd, at, page, VT_ALL_ACCESS));
		most = looks > most ? looks : most;
	}
	for (unsigned i = 0; i < REGIONS; i++)
		assert_int_equal(ibv_dereg_mr(mr[i]), 0);
	return most;
}

static void files_close(void)
{
	for (unsigned i = 0; i < open_files; i++) {
		munmap(files[i].at, page);
		close(files[i].fd);
	}
	open_files = 0;
}

/* May so many be open? */
static bool has_room(void)
{
	struct rlimit limit;

	page = (size_t)sysconf(_SC_PAGESIZE);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	return limit.rlim_cur >= MANY + REGIONS + SPARE;
}

#define TOO_FEW "there is no room for some thousand descriptors here"

vt_test(registering_costs_the_same_with_any_number_of_descriptors)
{
	unsigned few, many;

	if (!has_room())
		SKIP(TOO_FEW);
	files_open(FEW);
	few = most_looks();
	files_open(MANY);
	many = most_looks();
	assert_in_range(few, 0, 80);
	assert_in_range(many, 0, 80);
	files_close();
}

/* The descriptors of this process that are of a file. */
static unsigned descriptors_of(int fd)
{
	struct stat wanted, st;
	unsigned count = 0;

	assert_int_equal(fstat(fd, &wanted), 0);
	for (int i = 0; i < MANY + REGIONS + SPARE; i++)
		count += fstat(i, &st) == 0 && st.st_dev == wanted.st_dev &&
			 st.st_ino == wanted.st_ino;
	return count;
}

/* Peers map by a descriptor of the library's own: it has one when it has found the program's. */
vt_test(what_is_not_found_at_once_is_found_later)
{
	int fd;
	struct ibv_mr *mr;

	if (!has_room())
		SKIP(TOO_FEW);
	files_open(FEW);
	fd = files[0].fd;
	mr = vt_made(ibv_reg_mr(vt.pd, files[0].at, page, VT_ALL_ACCESS));
	if (descriptors_of(fd) == 1) {
		assert_int_equal(ibv_dereg_mr(mr), 0);
		files_close();
		SKIP("Linux before 6.11 is not asked what file memory belongs to");
	}
	assert_int_equal(ibv_dereg_mr(mr), 0);
	files_open(MANY);
	fd = files[MANY / 2].fd;
	mr = vt_made(ibv_reg_mr(vt.pd, files[MANY / 2].at, page, VT_ALL_ACCESS));
	for (uint64_t end = vt_now_ms() + VT_WAIT_MS; descriptors_of(fd) == 1;) {
		assert_true(vt_now_ms() < end);
		vt_sleep_ms(1);
	}
	assert_int_equal(descriptors_of(fd), 2);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(descriptors_of(fd), 1);
	files_close();
}
