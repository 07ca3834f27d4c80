/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "group.h"
#include "run/device.h"
#include "run/share.h"

enum { PAGES = 8 };

static struct vb_device dev;
static size_t page;

static void found(struct vb_shared *shared, int32_t file)
{
	assert_int_equal(shared->file, -1);
	shared->file = file;
}

static int begin_with(bool moves)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	memset(&dev, 0, sizeof(dev));
	dev.progress.kick_fd = -1;
	vb_share_open(&dev.share, moves, found);
	return 0;
}

static int begin(void **state)
{
	return begin_with(false);
}

static int begin_moving(void **state)
{
	return begin_with(true);
}

/* As on a kernel that tells of all mappings or none. */
static int begin_moving_slowly(void **state)
{
	begin_with(true);
	dev.share.vmas.is_fast = false;
	return 0;
}

static int end(void **state)
{
	assert_null(dev.share.items);
	vb_share_close(&dev.share);
	return 0;
}

#define MOVING(name) TEST_BETWEEN(name, begin_moving, end)
#define SHARE_TEST(name) TEST_BETWEEN(name, begin, end)

#define SLOWLY(name) TEST_AGAIN(name, name##_slowly, begin_moving_slowly, end)

static uint8_t *pages(int flags, int fd)
{
	uint8_t *at = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, flags, fd, 0);

	assert_true(at != MAP_FAILED);
	for (size_t i = 0; i < PAGES * page; i++)
		at[i] = (uint8_t)(i * 7 + i / 251);
	return at;
}

static uint8_t *private_pages(void)
{
	return pages(MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static bool untouched(const uint8_t *at, size_t from, size_t bytes)
{
	for (size_t i = from; i < from + bytes; i++) {
		if (at[i] != (uint8_t)(i * 7 + i / 251))
			return false;
	}
	return true;
}

static bool is_private(const uint8_t *at)
{
	struct vb_vma vma;

	assert_true(vb_vma_find(&dev.share.vmas, at, &vma));
	assert_true(vb_vma_holds(&vma, at));
	return !vma.shared && !vma.inode;
}

/* Do a peer's mapping of the file and the region have the same octets? */
static void expect_same(const struct vb_shared *shared, uint8_t *region, size_t bytes)
{
	size_t inside = bytes - shared->skip - shared->cut;
	uint64_t from = shared->offset + shared->skip, part = from % page;
	uint8_t *at = mmap(NULL, inside + part, PROT_READ | PROT_WRITE, MAP_SHARED, shared->file,
			   (off_t)(from - part));
	uint8_t before = region[shared->skip];

	assert_true(at != MAP_FAILED);
	assert_memory_equal(at + part, region + shared->skip, inside);
	at[part] = before ^ 0xff;
	assert_int_equal(region[shared->skip], before ^ 0xff);
	region[shared->skip] = before;
	assert_int_equal(at[part], before);
	munmap(at, inside + part);
}

SHARE_TEST(private_memory_is_left_alone)
{
	uint8_t *at = private_pages();
	struct vb_shared shared;

	assert_false(vb_share_region(&dev, at, PAGES * page, &shared));
	assert_true(is_private(at));
	munmap(at, PAGES * page);
}

MOVING(whole_pages_are_moved_and_come_back)
{
	static const struct {
		size_t from, bytes; /* in eighths of a page */
		uint16_t skip, cut;
	} rows[] = {
		{ 0, 64, 0, 0 }, { 1, 15, 7, 0 }, { 0, 17, 0, 1 }, { 3, 21, 5, 0 }, { 7, 10, 1, 1 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t *at = private_pages();
		size_t from = rows[i].from * page / 8, bytes = rows[i].bytes * page / 8;
		struct vb_shared shared;
		struct stat st;

		assert_true(vb_share_region(&dev, at + from, bytes, &shared));
		assert_int_equal(shared.skip, rows[i].skip * page / 8);
		assert_int_equal(shared.cut, rows[i].cut * page / 8);
		assert_true(untouched(at, 0, PAGES * page));
		expect_same(&shared, at + from, bytes);
		assert_int_equal(is_private(at), rows[i].from != 0);
		assert_true(is_private(at + (PAGES - 1) * page) || from + bytes == PAGES * page);
		at[from + shared.skip] ^= 1;
		vb_share_end(&dev, &shared);
		at[from + shared.skip] ^= 1;
		assert_true(untouched(at, 0, PAGES * page));
		for (size_t p = 0; p < PAGES; p++)
			assert_true(is_private(at + p * page));
		/* Nothing of it is left in the file. */
		assert_int_equal(fstat(dev.share.fd, &st), 0);
		assert_int_equal(st.st_blocks, 0);
		munmap(at, PAGES * page);
	}
}

MOVING(less_than_a_page_is_not_moved)
{
	uint8_t *at = private_pages();
	struct vb_shared shared;

	assert_false(vb_share_region(&dev, at + 1, page, &shared));
	assert_false(vb_share_region(&dev, at + page / 2, page, &shared));
	assert_false(vb_share_region(&dev, at, 0, &shared));
	assert_true(is_private(at));
	munmap(at, PAGES * page);
}

MOVING(regions_of_the_same_pages_share_them)
{
	uint8_t *at = private_pages();
	struct vb_shared all, part, again;

	assert_true(vb_share_region(&dev, at, PAGES * page, &all));
	assert_true(vb_share_region(&dev, at + 100, 3 * page, &part));
	assert_true(vb_share_region(&dev, at, PAGES * page, &again));
	/* A part of pages that are moved already is in the file whole. */
	assert_int_equal(part.skip + part.cut, 0);
	assert_true(all.id != part.id && part.id != again.id && all.id != again.id);
	expect_same(&part, at + 100, 3 * page);
	vb_share_end(&dev, &all);
	expect_same(&part, at + 100, 3 * page);
	assert_false(is_private(at));
	vb_share_end(&dev, &part);
	expect_same(&again, at, PAGES * page);
	vb_share_end(&dev, &again);
	assert_true(is_private(at));
	assert_true(untouched(at, 0, PAGES * page));
	munmap(at, PAGES * page);
}

MOVING(regions_that_overlap_are_moved_once)
{
	uint8_t *at = private_pages();
	struct vb_shared first, second;

	assert_true(vb_share_region(&dev, at, 4 * page, &first));
	assert_false(vb_share_region(&dev, at + 2 * page, 4 * page, &second));
	vb_share_end(&dev, &first);
	assert_true(vb_share_region(&dev, at + 2 * page, 4 * page, &second));
	vb_share_end(&dev, &second);
	assert_true(untouched(at, 0, PAGES * page));
	munmap(at, PAGES * page);
}

/* Programs free memory first and deregister it later, and others are given the address. */
MOVING(what_was_unmapped_is_not_touched)
{
	uint8_t *at = private_pages(), *others;
	struct vb_shared shared;

	assert_true(vb_share_region(&dev, at, PAGES * page, &shared));
	munmap(at + page, 3 * page);
	others = mmap(at + page, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	assert_ptr_equal(others, at + page);
	vb_share_end(&dev, &shared);
	assert_true(untouched(at, 0, page));
	assert_true(untouched(at, 4 * page, 4 * page));
	assert_true(is_private(at));
	assert_true(is_private(at + 4 * page));
	assert_int_equal(mprotect(others, page, PROT_READ), 0);
	assert_int_equal(others[0], 0);
	munmap(at, PAGES * page);
}

MOVING(what_was_moved_by_the_application_keeps_its_octets)
{
	uint8_t *at = private_pages(), *elsewhere;
	struct vb_shared shared;

	assert_true(vb_share_region(&dev, at, PAGES * page, &shared));
	elsewhere = mremap(at, PAGES * page, 2 * PAGES * page, MREMAP_MAYMOVE);
	assert_true(elsewhere != MAP_FAILED);
	vb_share_end(&dev, &shared);
	assert_true(untouched(elsewhere, 0, PAGES * page));
	munmap(elsewhere, 2 * PAGES * page);
}

MOVING(the_heap_is_moved_and_the_stack_is_not)
{
	uint8_t stack[64 << 10], *heap = malloc(64 << 10);
	struct vb_shared shared;

	memset(stack, 1, sizeof(stack));
	assert_false(vb_share_region(&dev, stack, sizeof(stack), &shared));
	assert_non_null(heap);
	assert_true(vb_share_region(&dev, heap, 64 << 10, &shared));
	vb_share_end(&dev, &shared);
	free(heap);
}

MOVING(a_child_does_not_have_it)
{
	uint8_t *at = private_pages();
	struct vb_shared shared;
	int status;
	pid_t pid;

	assert_true(vb_share_region(&dev, at, 4 * page, &shared));
	pid = fork();
	if (!pid) {
		signal(SIGSEGV, SIG_DFL);
		vb_share_forget(&dev.share);
		at[7 * page] = 1;
		at[0] = 1;
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_true(untouched(at, 0, PAGES * page));
	vb_share_end(&dev, &shared);
	munmap(at, PAGES * page);
}

/* There, a file as large as ours would be is a deadly signal. */
MOVING(where_files_are_limited_nothing_is_moved)
{
	uint8_t *at = private_pages();
	struct rlimit limit, before;
	struct vb_shared shared;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = (struct rlimit){ .rlim_cur = 1 << 20, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_false(vb_share_region(&dev, at, PAGES * page, &shared));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_true(is_private(at));
	munmap(at, PAGES * page);
}

/* --- memory that is a file's already --- */

#define FINDS_NO_MEMORY "Linux before 6.11 is not asked what file memory belongs to"

static bool can_find(void)
{
	return dev.share.vmas.is_fast || dev.share.moves;
}

SHARE_TEST(a_memfd_is_found)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	struct vb_shared shared, second;
	uint8_t *at;

	assert_int_equal(ftruncate(fd, (off_t)((PAGES + 2) * page)), 0);
	at = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)(2 * page));
	assert_true(at != MAP_FAILED);
	if (!can_find())
		SKIP(FINDS_NO_MEMORY);
	assert_true(vb_share_region(&dev, at + 10, 5000, &shared));
	assert_true(vb_share_region(&dev, at + 3 * page, 50, &second));
	assert_int_equal(shared.skip + shared.cut, 0);
	assert_int_equal(shared.offset, 2 * page + 10);
	/* One descriptor, our own, serves both. */
	assert_int_equal(shared.file, second.file);
	close(fd);
	expect_same(&shared, at + 10, 5000);
	vb_share_end(&dev, &shared);
	expect_same(&second, at + 3 * page, 50);
	vb_share_end(&dev, &second);
	assert_int_equal(fcntl(second.file, F_GETFD), -1);
	munmap(at, PAGES * page);
}

SHARE_TEST(a_file_of_dev_shm_is_found_by_its_name)
{
	char name[64];
	struct vb_shared shared;
	uint8_t *at;
	int fd;

	snprintf(name, sizeof(name), "/dev/shm/vb-share-test-%d", (int)getpid());
	if (!can_find())
		SKIP(FINDS_NO_MEMORY);
	fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		SKIP("/dev/shm: %s", strerror(errno));
	assert_int_equal(ftruncate(fd, (off_t)(PAGES * page)), 0);
	at = pages(MAP_SHARED, fd);
	close(fd);
	assert_true(vb_share_region(&dev, at, PAGES * page, &shared));
	expect_same(&shared, at, PAGES * page);
	vb_share_end(&dev, &shared);
	assert_int_equal(unlink(name), 0);
	/* Now there is neither a name nor a descriptor. */
	assert_false(vb_share_region(&dev, at, PAGES * page, &shared));
	munmap(at, PAGES * page);
}

SHARE_TEST(what_is_not_all_one_shared_mapping_is_not_shared)
{
	char path[] = "/var/tmp/vb-share-test-XXXXXX";
	int disk = mkstemp(path), fd = memfd_create("test", MFD_CLOEXEC);
	struct vb_shared shared;
	uint8_t *at, *on_disk;

	assert_int_equal(ftruncate(fd, (off_t)(PAGES * page)), 0);
	at = pages(MAP_SHARED, fd);
	assert_int_equal(mprotect(at + 4 * page, page, PROT_READ), 0);
	/* Beyond its end, in part not writable, not there. */
	assert_false(vb_share_region(&dev, at, (PAGES + 1) * page, &shared));
	assert_false(vb_share_region(&dev, at, 5 * page, &shared));
	assert_false(vb_share_region(&dev, at + 4 * page, page, &shared));
	munmap(at + 5 * page, page);
	assert_false(vb_share_region(&dev, at + 5 * page, page, &shared));
	munmap(at, PAGES * page);
	/* A copy of our own of a file's pages. */
	at = pages(MAP_PRIVATE, fd);
	assert_false(vb_share_region(&dev, at, PAGES * page, &shared));
	munmap(at, PAGES * page);
	close(fd);
	assert_true(disk >= 0);
	unlink(path);
	assert_int_equal(ftruncate(disk, (off_t)(PAGES * page)), 0);
	on_disk = pages(MAP_SHARED, disk);
	/* Where that is memory after all, it is shared. */
	if (fcntl(disk, F_GET_SEALS) < 0)
		assert_false(vb_share_region(&dev, on_disk, PAGES * page, &shared));
	munmap(on_disk, PAGES * page);
	close(disk);
}

/* --- where very many descriptors are open --- */

enum { FILES = 1000, FEW = VB_FILES_LOOKS / 4 }; /* each registered makes one of ours */

static struct {
	int fd;
	uint8_t *at;
	struct vb_shared shared;
} files[FILES];

/* What looking for descriptors costs: the calls of this thread. */
static __thread unsigned looks;

int fstat(int fd, struct stat *st)
{
	looks++;
	return (int)syscall(SYS_newfstatat, fd, "", st, AT_EMPTY_PATH);
}

static void files_open(unsigned count)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_cur < 3 * FILES)
		SKIP("there is no room for some thousand descriptors here");
	for (unsigned i = 0; i < count; i++) {
		files[i].fd = memfd_create("test", MFD_CLOEXEC);
		assert_true(files[i].fd >= 0);
		assert_int_equal(ftruncate(files[i].fd, (off_t)page), 0);
		files[i].at = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, files[i].fd, 0);
		assert_true(files[i].at != MAP_FAILED);
		files[i].at[0] = (uint8_t)i;
	}
}

static void files_close(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		close(files[i].fd);
		munmap(files[i].at, page);
	}
}

static bool share_file(unsigned i)
{
	return vb_share_region(&dev, files[i].at, page, &files[i].shared);
}

static void walk_through(void)
{
	for (unsigned i = 0; vb_share_turn(&dev); i++)
		assert_in_range(i, 0, 4 * FILES);
}

static void expect_its_file(unsigned i)
{
	uint8_t octet = 0;

	assert_true(files[i].shared.file >= 0);
	assert_int_equal(pread(files[i].shared.file, &octet, 1, 0), 1);
	assert_int_equal(octet, (uint8_t)i);
}

static unsigned in_order(unsigned i, unsigned count)
{
	return i;
}

static unsigned backwards(unsigned i, unsigned count)
{
	return count - 1 - i;
}

static unsigned in_disorder(unsigned i, unsigned count)
{
	return i * 389 % count; /* which has no factor in common with a count */
}

/* However many are open, and in whatever order they are registered: as many looks, all found. */
SHARE_TEST(many_descriptors_cost_no_more_than_few)
{
	static unsigned (*const orders[])(unsigned, unsigned) = { in_order, backwards,
								  in_disorder };

	for (unsigned o = 0; o < 3; o++) {
		for (unsigned count = FEW; count <= FILES; count += FILES - FEW) {
			unsigned most = 0, at_once = 0;

			files_open(count);
			dev.share.files.next = 0;
			for (unsigned i = 0; i < count; i++) {
				unsigned k = orders[o](i, count);

				looks = 0;
				assert_true(share_file(k));
				most = looks > most ? looks : most;
				at_once += files[k].shared.file >= 0;
			}
			assert_in_range(most, 0, VB_FILES_LOOKS + 8);
			/* As programs do it. */
			if (o == 0 || count == FEW)
				assert_int_equal(at_once, count);
			walk_through();
			for (unsigned i = 0; i < count; i++) {
				expect_its_file(i);
				assert_true(vb_share_end(&dev, &files[i].shared));
			}
			files_close(count);
		}
	}
}

/* What nobody has open is sought once, as long as it is registered. */
SHARE_TEST(what_is_not_there_is_not_sought_again)
{
	struct vb_shared again;

	files_open(FILES);
	close(files[5].fd);
	dev.share.files.next = FILES / 2;
	assert_true(share_file(5));
	assert_int_equal(files[5].shared.file, -1);
	assert_true(vb_share_turn(&dev));
	walk_through();
	assert_int_equal(files[5].shared.file, -1);
	looks = 0;
	assert_true(vb_share_region(&dev, files[5].at, page, &again));
	assert_in_range(looks, 0, 8);
	assert_int_equal(again.file, -1);
	assert_false(vb_share_turn(&dev));
	assert_false(vb_share_end(&dev, &again));
	assert_false(vb_share_end(&dev, &files[5].shared));
	files[5].fd = -1;
	files_close(FILES);
}

/* Several wait for one; one of them leaves before it is found, and one comes in the midst. */
SHARE_TEST(regions_come_and_go_while_it_is_sought)
{
	struct vb_shared first, second, late;

	files_open(FILES);
	dev.share.files.next = FILES / 2;
	assert_true(vb_share_region(&dev, files[7].at, page, &first));
	assert_true(vb_share_region(&dev, files[7].at, page / 2, &second));
	assert_int_equal(first.file, -1);
	assert_int_equal(second.file, -1);
	assert_false(vb_share_end(&dev, &second));
	assert_true(vb_share_turn(&dev));
	assert_true(first.file >= 0);
	assert_int_equal(second.file, -1);
	/* Its descriptor lies behind us: it has to wait for the next walk. */
	dev.share.files.next = FILES / 2;
	assert_true(vb_share_region(&dev, files[9].at, page, &late));
	assert_int_equal(late.file, -1);
	walk_through();
	assert_true(late.file >= 0);
	assert_int_not_equal(late.file, first.file);
	assert_true(vb_share_end(&dev, &first));
	assert_true(vb_share_end(&dev, &late));
	files_close(FILES);
}

SHARE_TEST(nothing_is_sought_where_all_was_seen)
{
	files_open(FEW);
	close(files[5].fd);
	assert_false(share_file(5));
	assert_false(vb_share_turn(&dev));
	files[5].fd = -1;
	files_close(FEW);
}

/* Where memory is moved, as many regions as one likes. */
MOVING(many_stretches_are_told_apart)
{
	enum { STRETCHES = 200 };
	static struct vb_shared shared[STRETCHES];
	uint8_t *at[STRETCHES];

	for (unsigned i = 0; i < STRETCHES; i++) {
		at[i] = private_pages();
		assert_true(vb_share_region(&dev, at[i], PAGES * page, &shared[i]));
	}
	for (unsigned i = 0; i < STRETCHES; i++) {
		struct vb_shared part;

		assert_true(vb_share_region(&dev, at[i] + page, page, &part));
		assert_int_equal(part.offset, shared[i].offset + page);
		vb_share_end(&dev, &part);
	}
	for (unsigned i = 0; i < STRETCHES; i += 2)
		vb_share_end(&dev, &shared[i]);
	for (unsigned i = 1; i < STRETCHES; i += 2) {
		expect_same(&shared[i], at[i], PAGES * page);
		vb_share_end(&dev, &shared[i]);
	}
	for (unsigned i = 0; i < STRETCHES; i++) {
		assert_true(is_private(at[i]));
		munmap(at[i], PAGES * page);
	}
}

/* --- device memory --- */

/* Of a file from the start, whatever the kernel tells of mappings. */
SHARE_TEST(device_memory_is_shared)
{
	uint8_t *at = vb_share_device_memory(&dev, PAGES * page);
	struct vb_shared one, other;
	uint8_t octet;

	assert_non_null(at);
	assert_ptr_equal(vb_share_device_memory(&dev, PAGES * page), at);
	dev.share.vmas.is_fast = false;
	assert_true(vb_share_region(&dev, at + 100, 1000, &one));
	assert_int_equal(one.offset, 100);
	assert_int_equal(one.skip, 0);
	assert_int_equal(one.cut, 0);
	at[100] = 0x5a;
	assert_int_equal(pread(one.file, &octet, 1, 100), 1);
	assert_int_equal(octet, 0x5a);
	assert_true(vb_share_region(&dev, at, PAGES * page, &other));
	assert_int_not_equal(one.id, other.id);
	assert_false(vb_share_end(&dev, &one));
	assert_false(vb_share_end(&dev, &other));
	/* It stays when nobody has it registered. */
	assert_int_equal(at[100], 0x5a);
}

SHARE_TEST(device_memory_is_private_where_files_are_limited)
{
	struct rlimit before, none = { .rlim_cur = 0 };
	struct vb_shared out;
	uint8_t *at;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	none.rlim_max = before.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	at = vb_share_device_memory(&dev, PAGES * page);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_non_null(at);
	at[0] = 1;
	assert_false(vb_share_region(&dev, at, 64, &out));
}
SLOWLY(whole_pages_are_moved_and_come_back)
SLOWLY(regions_of_the_same_pages_share_them)
SLOWLY(what_was_unmapped_is_not_touched)
SLOWLY(a_memfd_is_found)
