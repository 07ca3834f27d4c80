/* SPDX-License-Identifier: BSD-2-Clause */

/* Files that processes share, which of them are mapped, bells, and lines. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "group.h"
#include "link/shm.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

enum { PAGE = 4096, BYTES = 8 * PAGE };

static uint8_t *reserved(void)
{
	void *memory;

	assert_int_equal(vb_shm_reserve(&memory, BYTES), 0);
	return memory;
}

/* A file as somebody else may have made it. */
static int foreign(size_t bytes, int seals)
{
	int fd = memfd_create("foreign", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

/* --- files --- */

TEST(two_mappings_are_one_memory)
{
	uint8_t *a = reserved(), *b = reserved();
	int fd;

	assert_int_equal(vb_shm_create(&fd, BYTES), 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(vb_shm_map(a, fd, BYTES, true), 0);
	assert_int_equal(vb_shm_map(b, fd, BYTES, true), 0);
	close(fd);
	for (unsigned i = 0; i < BYTES; i++)
		assert_int_equal(b[i], 0);
	a[0] = 1;
	a[BYTES - 1] = 2;
	assert_int_equal(b[0], 1);
	assert_int_equal(b[BYTES - 1], 2);
	b[PAGE] = 3;
	assert_int_equal(a[PAGE], 3);
	vb_shm_unmap(a, BYTES);
	vb_shm_unmap(b, BYTES);
}

TEST(what_is_reserved_is_zeros)
{
	uint8_t *a = reserved();

	for (unsigned i = 0; i < BYTES; i++)
		assert_int_equal(a[i], 0);
	a[5] = 1;
	vb_shm_blank(a, BYTES);
	assert_int_equal(a[5], 0);
	a[5] = 1;
	vb_shm_unmap(a, BYTES);
}

/* After that, nobody sees what is written there, and nobody else's writing is seen. */
TEST(what_is_blanked_is_shared_no_longer)
{
	uint8_t *a = reserved(), *b = reserved();
	int fd;

	assert_int_equal(vb_shm_create(&fd, BYTES), 0);
	assert_int_equal(vb_shm_map(a, fd, BYTES, true), 0);
	assert_int_equal(vb_shm_map(b, fd, BYTES, true), 0);
	a[0] = 1;
	vb_shm_blank(a, BYTES);
	assert_int_equal(a[0], 0);
	a[0] = 2;
	assert_int_equal(b[0], 1);
	b[1] = 3;
	assert_int_equal(a[1], 0);
	vb_shm_unmap(a, BYTES);
	vb_shm_unmap(b, BYTES);
	close(fd);
}

/* Its maker could make it shorter, and whoever touches it then gets SIGBUS. */
TEST(a_file_that_may_shrink_is_refused)
{
	static const int seals[] = { 0, F_SEAL_GROW, F_SEAL_SHRINK };
	uint8_t *a = reserved();

	for (unsigned i = 0; i < sizeof(seals) / sizeof(seals[0]); i++) {
		int fd = foreign(BYTES, seals[i]);

		assert_int_equal(vb_shm_map(a, fd, BYTES, true), EPROTO);
		close(fd);
	}
	a[0] = 1;
	vb_shm_unmap(a, BYTES);
}

TEST(a_file_of_another_size_is_refused)
{
	static const size_t sizes[] = { 0, PAGE, BYTES - PAGE, BYTES - 1, BYTES + 1, 2 * BYTES };
	uint8_t *a = reserved();

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		int fd = foreign(sizes[i], F_SEAL_SHRINK | F_SEAL_GROW);

		assert_int_equal(vb_shm_map(a, fd, BYTES, true), EPROTO);
		assert_int_equal(vb_shm_map(a, fd, BYTES, false), EPROTO);
		close(fd);
	}
	/* What was there is there still. */
	a[0] = 1;
	vb_shm_unmap(a, BYTES);
}

TEST(what_is_no_memory_file_is_refused)
{
	int fds[] = { open("/dev/zero", O_RDWR), open("/proc/self/exe", O_RDONLY),
		      socket(AF_UNIX, SOCK_STREAM, 0), -1 };
	uint8_t *a = reserved();

	for (unsigned i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		assert_int_equal(vb_shm_map(a, fds[i], BYTES, false), EPROTO);
		if (fds[i] >= 0)
			close(fds[i]);
	}
	a[0] = 1;
	vb_shm_unmap(a, BYTES);
}

/* Sealed against writing, it cannot be a ring of ours. */
/* There may be no such page when it is touched, and whoever does would be killed. */
TEST(huge_pages_are_refused)
{
	enum { HUGE_BYTES = 2 << 20 };
	int fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
	void *memory;

	if (fd < 0)
		SKIP("memfd_create(MFD_HUGETLB): %s", strerror(errno));
	assert_int_equal(ftruncate(fd, HUGE_BYTES), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	assert_int_equal(vb_shm_reserve(&memory, HUGE_BYTES), 0);
	assert_int_equal(vb_shm_map(memory, fd, HUGE_BYTES, true), EPROTO);
	vb_shm_unmap(memory, HUGE_BYTES);
	close(fd);
}

TEST(a_file_that_cannot_be_written_is_no_ring)
{
	int fd = foreign(BYTES, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	uint8_t *a = reserved();

	assert_int_not_equal(vb_shm_map(a, fd, BYTES, true), 0);
	assert_int_equal(vb_shm_map(a, fd, BYTES, false), 0);
	assert_int_equal(a[0], 0);
	vb_shm_unmap(a, BYTES);
	close(fd);
}

TEST(ours_keeps_its_size)
{
	int fd;

	assert_int_equal(vb_shm_create(&fd, BYTES), 0);
	assert_int_equal(ftruncate(fd, PAGE), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(fd, 2 * BYTES), -1);
	assert_int_equal(errno, EPERM);
	close(fd);
}

/* --- what is exported --- */

static bool future_writes_are_sealed(int fd)
{
	return fcntl(fd, F_GET_SEALS) & F_SEAL_FUTURE_WRITE;
}

/* The limit's signal would kill us. */
TEST(a_limit_of_file_sizes_is_an_error)
{
	struct rlimit before, low;
	void *memory;
	int fd, rc;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	low = before;
	low.rlim_cur = BYTES - 1;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	rc = vb_shm_create(&fd, BYTES);
	assert_int_equal(vb_shm_export(&fd, &memory, BYTES), EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(rc, EFBIG);
}

TEST(only_its_owner_writes_an_export)
{
	uint8_t *view = reserved(), *at;
	void *memory;
	int fd;

	assert_int_equal(vb_shm_export(&fd, &memory, BYTES), 0);
	if (!future_writes_are_sealed(fd))
		SKIP("no F_SEAL_FUTURE_WRITE: Linux older than 5.1");
	at = memory;
	assert_int_equal(vb_shm_map(view, fd, BYTES, false), 0);
	at[0] = 7;
	assert_int_equal(view[0], 7);
	/* Neither a new mapping, nor one made writable, nor write() gets there. */
	assert_int_not_equal(vb_shm_map(reserved(), fd, BYTES, true), 0);
	assert_int_equal(mprotect(view, BYTES, PROT_READ | PROT_WRITE), -1);
	assert_int_equal(write(fd, "x", 1), -1);
	assert_int_equal(errno, EPERM);
	assert_true(mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE), -1);
	/* The owner still does. */
	at[1] = 8;
	assert_int_equal(view[1], 8);
	vb_shm_unmap(view, BYTES);
	vb_shm_unmap(memory, BYTES);
	close(fd);
}

/* A child of fork has nothing of it: neither does it see what goes on, nor can it disturb. */
TEST(children_do_not_inherit)
{
	uint8_t *a = reserved(), *b = reserved();
	int fd, status;
	pid_t pid;

	assert_int_equal(vb_shm_create(&fd, BYTES), 0);
	assert_int_equal(vb_shm_map(b, fd, BYTES, true), 0);
	b[0] = 1;
	for (unsigned i = 0; i < 2; i++) {
		volatile uint8_t *at = i ? b : a;

		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			signal(SIGSEGV, SIG_DFL);
			_exit(*at != 99);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
#ifndef __SANITIZE_ADDRESS__
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
#endif
	}
	vb_shm_unmap(a, BYTES);
	vb_shm_unmap(b, BYTES);
	close(fd);
}

/* What is forgotten there stays out of reach, and nothing else gets into its place. */
TEST(nothing_takes_the_place_of_what_a_child_forgot)
{
	uint8_t *a = reserved();
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		vb_shm_forget(a, BYTES);
		_exit(mmap(a, BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
			   -1, 0) != MAP_FAILED);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	memset(a, 1, BYTES);
	vb_shm_unmap(a, BYTES);
}

/* --- bells --- */

static int bell, others;
static struct vb_bell_key key, others_key;
static struct vb_bell_target target;

static short events_of(int fd)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN | POLLRDHUP };

	return poll(&pollfd, 1, 0) < 0 ? POLLNVAL : pollfd.revents;
}

static int bell_begin(void **state)
{
	assert_int_equal(vb_bell_create(&bell, &key), 0);
	assert_int_equal(vb_bell_create(&others, &others_key), 0);
	vb_bell_aim(&target, &key);
	return 0;
}

static int bell_end(void **state)
{
	close(bell);
	close(others);
	return 0;
}

#define BELL(name) TEST_BETWEEN(name, bell_begin, bell_end)

BELL(a_bell_is_heard_until_it_is_hushed)
{
	assert_int_equal(events_of(bell), 0);
	vb_bell_ring(others, &target);
	vb_bell_ring(others, &target);
	assert_int_equal(events_of(bell), POLLIN);
	vb_bell_hush(bell);
	assert_int_equal(events_of(bell), 0);
	vb_bell_hush(bell);
	vb_bell_ring(others, &target);
	assert_int_equal(events_of(bell), POLLIN);
	assert_int_equal(events_of(others), 0);
}

/* Ringing never blocks, and one that rings all day is hushed like any other. */
BELL(it_may_be_rung_without_end)
{
	unsigned hushes = 0;

	for (unsigned i = 0; i < 100000; i++)
		vb_bell_ring(others, &target);
	assert_int_equal(events_of(bell), POLLIN);
	while (events_of(bell) & POLLIN) {
		vb_bell_hush(bell);
		assert_true(++hushes < 1000);
	}
}

BELL(we_can_ring_ourselves)
{
	for (unsigned i = 0; i < 1000; i++)
		vb_bell_ring(bell, &target);
	assert_int_equal(events_of(bell), POLLIN);
	vb_bell_hush(bell);
}

/* Its name anybody can see, and send to. */
BELL(who_does_not_know_the_word_wakes_nobody)
{
	struct vb_bell_target wrong = target;
	uint8_t octets[16] = { 0 };

	for (unsigned i = 0; i < 64; i++) {
		wrong.word = target.word ^ 1ull << i;
		vb_bell_ring(others, &wrong);
	}
	for (size_t bytes = 0; bytes < sizeof(octets); bytes++)
		sendto(others, octets, bytes, MSG_DONTWAIT, (struct sockaddr *)&target.address,
		       target.bytes);
	assert_int_equal(events_of(bell), 0);
	vb_bell_ring(others, &target);
	assert_int_equal(events_of(bell), POLLIN);
}

BELL(to_ring_the_dead_is_no_error)
{
	close(bell);
	vb_bell_ring(others, &target);
	assert_int_equal(vb_bell_create(&bell, &key), 0);
	vb_bell_ring(others, &target);
	assert_int_equal(events_of(bell), 0);
}

/* --- lines --- */

TEST(a_line_is_cut_where_one_end_is_closed)
{
	int ends[2], copy;

	assert_int_equal(vb_line_create(ends), 0);
	assert_true(fcntl(ends[0], F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(ends[1], F_GETFD) & FD_CLOEXEC);
	copy = dup(ends[1]);
	close(ends[1]);
	assert_false(vb_line_is_cut(ends[0]));
	/* What is said on it says nothing. */
	assert_int_equal(send(copy, "x", 1, 0), 1);
	assert_false(vb_line_is_cut(ends[0]));
	close(copy);
	assert_true(vb_line_is_cut(ends[0]));
	close(ends[0]);
}

TEST(a_line_can_be_cut)
{
	static const int ways[] = { SHUT_RD, SHUT_WR, SHUT_RDWR };
	int ends[2];

	assert_int_equal(vb_line_create(ends), 0);
	vb_line_cut(ends[0]);
	assert_true(vb_line_is_cut(ends[0]));
	assert_true(vb_line_is_cut(ends[1]));
	close(ends[0]);
	close(ends[1]);
	/* As one who means ill does it: by half, and that is seen at one end at least. */
	for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		assert_int_equal(vb_line_create(ends), 0);
		shutdown(ends[1], ways[i]);
		assert_true(vb_line_is_cut(ends[0]) || vb_line_is_cut(ends[1]));
		close(ends[0]);
		close(ends[1]);
	}
}

TEST(a_dead_process_is_seen_by_its_line)
{
	int ends[2], status;
	pid_t pid;

	assert_int_equal(vb_line_create(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(ends[0]);
		pause();
		_exit(0);
	}
	/* The child has the last of the other end. */
	close(ends[1]);
	assert_false(vb_line_is_cut(ends[0]));
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(vb_line_is_cut(ends[0]));
	close(ends[0]);
}
