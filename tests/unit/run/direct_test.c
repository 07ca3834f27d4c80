/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "group.h"
#include "nic/way/peer.h"
#include "run/device.h"
#include "run/direct.h"

/* The peer is a child, which stopped itself: what it has, we have at the same address. */

enum { BYTES = 300000, NONCE = 0x1234567 };

static struct vb_peer peer;
static struct vb_peer_maps maps;
static struct vb_export *export;
static uint64_t nonce; /* the child has its number here, we another */
static uint8_t *theirs, *ours, *seen;
static int file = -1, disk = -1, export_fd = -1;
static pid_t child;

/* What the child has of the export. */
enum has { TO_WRITE, TO_READ, PRIVATE, ELSEWHERE, A_COPY, NOTHING };

static void *file_map(void *at, int fd, int protection, int flags)
{
	void *memory = mmap(at, sizeof(*export), protection, flags, fd, 0);

	assert_true(memory != MAP_FAILED);
	return memory;
}

static void export_have(enum has has)
{
	int copy;

	switch (has) {
	case TO_WRITE:
		break;
	case TO_READ:
		mprotect(export, sizeof(*export), PROT_READ);
		break;
	case PRIVATE:
		file_map(export, export_fd, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED);
		break;
	case ELSEWHERE:
		file_map(NULL, export_fd, PROT_READ | PROT_WRITE, MAP_SHARED);
		munmap(export, sizeof(*export));
		break;
	case A_COPY:
		copy = memfd_create("copy", MFD_CLOEXEC);
		assert_int_equal(ftruncate(copy, sizeof(*export)), 0);
		file_map(export, copy, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED);
		break;
	case NOTHING:
		munmap(export, sizeof(*export));
	}
}

static _Noreturn void be_peer(enum has has)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	export_have(has);
	nonce = NONCE;
	memset(theirs, 0xee, BYTES);
	raise(SIGSTOP);
	_exit(0);
}

static void *pages(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_true(at != MAP_FAILED);
	return at;
}

/* Private, as they were when the peer began, and only to be read. */
static uint8_t *guarded;

static void peer_begin(enum has has)
{
	struct stat st;
	int status;

	nonce = 0;
	child = fork();
	if (!child)
		be_peer(has);
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	assert_true(WIFSTOPPED(status));
	memset(&maps, 0, sizeof(maps));
	memset(&peer, 0, sizeof(peer));
	export->pid = (uint32_t)child;
	export->nonce = NONCE;
	export->nonce_address = (uintptr_t)&nonce;
	export->self = (uintptr_t)export;
	peer.export = export;
	peer.run = &maps;
	assert_int_equal(fstat(export_fd, &st), 0);
	vb_direct_meet(&maps.direct, (uint32_t)child, st.st_dev, st.st_ino);
}

static int begin(void **state)
{
	char path[] = "/var/tmp/vb-direct-test-XXXXXX";

	export_fd = memfd_create("export", MFD_CLOEXEC);
	assert_int_equal(ftruncate(export_fd, sizeof(*export)), 0);
	export = file_map(NULL, export_fd, PROT_READ | PROT_WRITE, MAP_SHARED);
	theirs = pages(BYTES);
	ours = pages(BYTES);
	seen = pages(BYTES);
	guarded = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(guarded != MAP_FAILED);
	for (size_t i = 0; i < BYTES; i++)
		ours[i] = (uint8_t)(i * 7 + i / 251);
	file = memfd_create("test", MFD_CLOEXEC);
	disk = mkstemp(path);
	unlink(path);
	assert_int_equal(ftruncate(file, BYTES), 0);
	assert_int_equal(ftruncate(disk, BYTES), 0);
	peer_begin(TO_WRITE);
	return 0;
}

static void child_end(void)
{
	if (child) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	child = 0;
}

static int end(void **state)
{
	child_end();
	vb_direct_part(&maps.direct);
	assert_int_equal(maps.direct.mem_fd, -1);
	close(export_fd);
	close(file);
	close(disk);
	munmap(export, sizeof(*export));
	munmap(theirs, BYTES);
	munmap(ours, BYTES);
	munmap(seen, BYTES);
	munmap(guarded, BYTES);
	return 0;
}

#define DIRECT_TEST(name) TEST_BETWEEN(name, begin, end)

/* Pinned pages would be written whatever their protection is; paged ones are asked. */
DIRECT_TEST(protection_counts_where_there_is_paging)
{
	static const size_t lengths[] = { 8, BYTES / 2, BYTES };

	for (unsigned i = 0; i < VB_ARRAY_LEN(lengths); i++) {
		struct iovec from = { ours, lengths[i] }, to = { seen, lengths[i] };
		uint64_t at = (uintptr_t)guarded;

		assert_false(vb_direct_write(NULL, &peer, at, &from, 1, true));
		assert_true(vb_direct_read(NULL, &peer, at, &to, 1, true));
		assert_int_equal(seen[0], 0);
		at = (uintptr_t)theirs;
		assert_true(vb_direct_write(NULL, &peer, at, &from, 1, true));
		assert_true(vb_direct_read(NULL, &peer, at, &to, 1, true));
		assert_memory_equal(ours, seen, lengths[i]);
	}
	assert_true(vb_direct_write(NULL, &peer, (uintptr_t)guarded,
				    &(struct iovec){ ours, 8 }, 1, false));
}

static bool write_to(size_t to, size_t bytes)
{
	struct iovec piece = { ours, bytes };

	return vb_direct_write(NULL, &peer, (uintptr_t)theirs + to, &piece, 1, false);
}

static bool read_from(size_t from, size_t bytes)
{
	struct iovec piece = { seen, bytes };

	return vb_direct_read(NULL, &peer, (uintptr_t)theirs + from, &piece, 1, false);
}

DIRECT_TEST(all_lengths_and_places_arrive_whole)
{
	static const size_t lengths[] = { 1,  2,    7,	  8,	 9,	64,    65,
					  63, 4096, 4097, 16384, 16385, 200000 };
	static const size_t places[] = { 64, 65, 100, 127, 4095, 8192 };

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		for (size_t k = 0; k < sizeof(places) / sizeof(places[0]); k++) {
			size_t at = places[k], bytes = lengths[i];

			assert_true(write_to(at, bytes));
			assert_true(read_from(at - 1, bytes + 2));
			assert_memory_equal(seen + 1, ours, bytes);
			assert_int_equal(seen[0], 0xee);
			assert_int_equal(seen[bytes + 1], 0xee);
			memset(seen, 0xee, bytes);
			assert_true(vb_direct_write(NULL, &peer, (uintptr_t)theirs + at,
						    &(struct iovec){ seen, bytes }, 1, false));
		}
	}
	assert_int_equal(theirs[100], 0);
}

DIRECT_TEST(pieces_are_put_in_a_row)
{
	static const size_t lengths[][3] = { { 1, 2, 3 }, { 100, 1, 70 }, { 9000, 9000, 9 } };

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct iovec pieces[3], back[3];
		size_t all = 0;

		for (size_t k = 0; k < 3; k++) {
			pieces[k] = (struct iovec){ ours + 20000 * k, lengths[i][k] };
			back[2 - k] = (struct iovec){ seen + 20000 * k, lengths[i][k] };
			all += lengths[i][k];
		}
		assert_true(vb_direct_write(NULL, &peer, (uintptr_t)theirs + 3, pieces, 3, false));
		assert_true(read_from(3, all));
		for (size_t k = 0, at = 0; k < 3; at += lengths[i][k++])
			assert_memory_equal(seen + at, pieces[k].iov_base, lengths[i][k]);
		assert_true(vb_direct_read(NULL, &peer, (uintptr_t)theirs + 3, back, 3, false));
		assert_memory_equal(back[0].iov_base, ours, vb_min_u64(lengths[i][0],
								       lengths[i][2]));
	}
}

DIRECT_TEST(what_is_not_there_fails)
{
	static const size_t lengths[] = { 8, 5000, 100000 };

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct iovec piece = { ours, lengths[i] };

		assert_false(vb_direct_write(NULL, &peer, 4096, &piece, 1, false));
		assert_false(vb_direct_read(NULL, &peer, 4096, &piece, 1, false));
		/* Ours is not there. */
		piece.iov_base = (void *)4096;
		assert_false(vb_direct_write(NULL, &peer, (uintptr_t)theirs, &piece, 1, false));
		assert_false(vb_direct_read(NULL, &peer, (uintptr_t)theirs, &piece, 1, false));
	}
	/* It was the address, not the way. */
	assert_true(write_to(0, 100000));
}

DIRECT_TEST(a_dead_process_has_no_memory)
{
	assert_true(write_to(0, 8));
	child_end();
	assert_false(write_to(0, 8));
	assert_false(write_to(0, 100000));
	assert_false(read_from(0, 8));
	assert_false(read_from(0, 100000));
	assert_null(vb_direct_map(NULL, &peer, file, 0, 4096));
}

static void expect_refused(bool can_map)
{
	void *at = vb_direct_map(NULL, &peer, file, 0, 4096);

	assert_false(write_to(0, 8));
	assert_false(read_from(0, 100000));
	assert_int_equal(maps.direct.mem_fd, -1);
	assert_int_equal(atomic_load(&maps.direct.state), VB_DIRECT_REFUSED);
	assert_int_equal(at != NULL, can_map);
	if (at)
		vb_direct_unmap(NULL, at, 4096);
}

DIRECT_TEST(who_is_somebody_else_is_refused)
{
	export->nonce++;
	expect_refused(true);
}

/* We have the same memory, but not the number in it. */
DIRECT_TEST(a_pid_of_another_process_is_refused)
{
	export->pid = (uint32_t)getpid();
	maps.direct.pid = (uint32_t)getpid();
	expect_refused(true);
}

/* All that is in an export is known to whoever sees it, and so is the number of its owner. */
DIRECT_TEST(who_does_not_own_the_export_is_refused)
{
	static const enum has has[] = { TO_READ, PRIVATE, ELSEWHERE, A_COPY, NOTHING };

	for (unsigned i = 0; i < VB_ARRAY_LEN(has); i++) {
		child_end();
		peer_begin(has[i]);
		expect_refused(false);
	}
	child_end();
	peer_begin(TO_WRITE);
	assert_true(write_to(0, 8));
}

DIRECT_TEST(a_pid_that_the_hub_does_not_know_is_refused)
{
	vb_direct_meet(&maps.direct, 0, 0, 0);
	expect_refused(false);
}

DIRECT_TEST(a_pid_that_differs_from_the_hub_s_is_refused)
{
	export->pid++;
	expect_refused(false);
}

DIRECT_TEST(files_of_memory_are_mapped)
{
	uint8_t *at = vb_direct_map(NULL, &peer, file, 5000, 10000);
	uint8_t there[10000];

	assert_non_null(at);
	memcpy(at, ours, 10000);
	assert_int_equal(pread(file, there, sizeof(there), 5000), sizeof(there));
	assert_memory_equal(there, ours, sizeof(there));
	vb_direct_unmap(NULL, at, 10000);
	/* Beyond its end; no file; one of a disk, where that is one; arithmetic. */
	assert_null(vb_direct_map(NULL, &peer, file, BYTES - 10, 11));
	assert_null(vb_direct_map(NULL, &peer, file, UINT64_MAX - 10, 4096));
	assert_null(vb_direct_map(NULL, &peer, 999, 0, 10));
	if (fcntl(disk, F_GET_SEALS) < 0)
		assert_null(vb_direct_map(NULL, &peer, disk, 0, 10));
	at = vb_direct_map(NULL, &peer, file, BYTES - 10, 10);
	assert_non_null(at);
	vb_direct_unmap(NULL, at, 10);
}

/* --- the other side --- */

static struct vb_device dev;

DIRECT_TEST(who_might_be_let_in_is_heeded)
{
	assert_true(vb_direct_may_reach(&dev, &peer));
	/* What it says of itself does not count. */
	export->pid++;
	assert_true(vb_direct_may_reach(&dev, &peer));
	vb_direct_meet(&maps.direct, 0, 0, 0);
	assert_false(vb_direct_may_reach(&dev, &peer));
	/* Our own rings. */
	dev.peers.export = export;
	assert_true(vb_direct_may_reach(&dev, &peer));
	dev.peers.export = NULL;
}

DIRECT_TEST(nobody_is_let_into_what_cannot_be_traced)
{
	assert_int_equal(prctl(PR_SET_DUMPABLE, 0), 0);
	assert_false(vb_direct_may_reach(&dev, &peer));
	assert_int_equal(prctl(PR_SET_DUMPABLE, 1), 0);
	assert_true(vb_direct_may_reach(&dev, &peer));
}

/* It has a number here, and no way to name us. */
DIRECT_TEST(one_of_another_pid_namespace_is_not_heeded)
{
	int pipes[2];
	pid_t pid = 0, between;

	assert_int_equal(pipe(pipes), 0);
	between = fork();
	if (!between) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWPID))
			_exit(1);
		pid = fork();
		if (pid && write(pipes[1], &pid, sizeof(pid)) != sizeof(pid))
			_exit(1);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	close(pipes[1]);
	if (read(pipes[0], &pid, sizeof(pid)) == sizeof(pid)) {
		vb_direct_meet(&maps.direct, (uint32_t)pid, 0, 0);
		export->pid = (uint32_t)pid;
		assert_false(vb_direct_may_reach(&dev, &peer));
		/* It may not have got as far as to ask for its parent's death. */
		kill(pid, SIGKILL);
	}
	close(pipes[0]);
	kill(between, SIGKILL);
	waitpid(between, NULL, 0);
	if (!pid)
		SKIP("no PID namespaces here");
}

DIRECT_TEST(a_dead_process_is_gone)
{
	int ends[2];

	vb_lock_init(&dev.peers.bell_lock, VB_RANK_BELLS);
	assert_int_equal(vb_line_create(ends), 0);
	maps.line[VB_LINE_TX].fd = ends[0];
	maps.line[VB_LINE_RX].fd = -1;
	vb_direct_meet(&maps.direct, (uint32_t)child, 0, 0);
	assert_true(vb_direct_tarry(&dev, &peer, 0));
	child_end();
	close(ends[1]);
	assert_false(vb_direct_may_reach(&dev, &peer));
	assert_false(vb_direct_tarry(&dev, &peer, 0));
	close(ends[0]);
}
