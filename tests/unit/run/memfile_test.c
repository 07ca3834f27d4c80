/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "group.h"
#include "run/direct.h"
#include "run/memory/memfile.h"

enum { PAGES = 4 };

static size_t page;
static int fd;

static int begin(void **state)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	fd = memfd_create("test", MFD_CLOEXEC);
	return ftruncate(fd, (off_t)(PAGES * page));
}

static int end(void **state)
{
	return close(fd);
}

#define MEMFILE_TEST(name) TEST_BETWEEN(name, begin, end)

static int map(int file, uint64_t offset, uint64_t bytes, uint64_t iova, bool write, void **at)
{
	return vb_memfile_map(NULL, file, offset, bytes, iova, write, at);
}

/* The octets from any offset on, and the descriptor stays where it stood. */
MEMFILE_TEST(a_part_of_a_file_is_mapped)
{
	uint8_t octets[200];
	void *at;

	assert_int_equal(lseek(fd, 77, SEEK_SET), 77);
	assert_int_equal(map(fd, page + 100, 200, 5 * page + 100, true, &at), 0);
	memset(at, 0xaa, 200);
	assert_int_equal(pread(fd, octets, 200, (off_t)(page + 100)), 200);
	assert_memory_equal(octets, at, 200);
	vb_direct_unmap(NULL, at, 200);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 77);
}

MEMFILE_TEST(children_do_not_have_it)
{
	int status;
	void *at;

	assert_int_equal(map(fd, 0, page, 0, true, &at), 0);
	if (!fork()) {
		unsigned char in;

		_exit(mincore(at, page, &in) == -1 && errno == ENOMEM ? 0 : 1);
	}
	wait(&status);
	assert_int_equal(status, 0);
	vb_direct_unmap(NULL, at, page);
}

MEMFILE_TEST(what_is_not_there_is_not_mapped)
{
	int pipes[2], directory = open("/", O_RDONLY | O_CLOEXEC), read_only;
	char path[64];
	void *at;

	assert_int_equal(pipe(pipes), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	read_only = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(map(-1, 0, page, 0, false, &at), EBADF);
	assert_int_equal(map(pipes[0], 0, page, 0, false, &at), EINVAL);
	assert_int_equal(map(fd, 0, PAGES * page + 1, 0, false, &at), EINVAL);
	assert_int_equal(map(fd, PAGES * page + 1, 0, 1, false, &at), EINVAL);
	assert_int_equal(map(fd, 1, 8, 2, false, &at), EINVAL);
	assert_int_equal(map(read_only, 0, page, 0, true, &at), EOPNOTSUPP);
	assert_int_not_equal(map(directory, 0, page, 0, false, &at), 0);
	assert_int_equal(map(read_only, 0, page, 0, false, &at), 0);
	vb_direct_unmap(NULL, at, page);
	close(read_only);
	close(directory);
	close(pipes[0]);
	close(pipes[1]);
}

/* Others' files are only mapped if they are memory, and all of it is there. */
MEMFILE_TEST(only_memory_is_mapped_of_others)
{
	char path[] = "/var/tmp/memfileXXXXXX";
	int disk = mkstemp(path);
	void *at;

	unlink(path);
	assert_int_equal(ftruncate(disk, (off_t)page), 0);
	/* Where that is a tmpfs, it is memory too. */
	if (fcntl(disk, F_GET_SEALS) < 0)
		assert_null(vb_memfile_map_shared(disk, 0, page));
	assert_null(vb_memfile_map_shared(fd, 0, PAGES * page + 1));
	assert_null(vb_memfile_map_shared(fd, UINT64_MAX - 7, 16));
	at = vb_memfile_map_shared(fd, 10, page);
	assert_non_null(at);
	vb_direct_unmap(NULL, at, page);
	close(disk);
}
