/* SPDX-License-Identifier: BSD-2-Clause */

/* Files that processes share, which of them are mapped, and bells. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "link/shm.h"
#include "skip.h"

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

static void two_mappings_are_one_memory(void **state)
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

static void what_is_reserved_is_zeros(void **state)
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
static void what_is_blanked_is_shared_no_longer(void **state)
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
static void a_file_that_may_shrink_is_refused(void **state)
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

static void a_file_of_another_size_is_refused(void **state)
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

static void what_is_no_memory_file_is_refused(void **state)
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
static void huge_pages_are_refused(void **state)
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

static void a_file_that_cannot_be_written_is_no_ring(void **state)
{
	int fd = foreign(BYTES, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	uint8_t *a = reserved();

	assert_int_not_equal(vb_shm_map(a, fd, BYTES, true), 0);
	assert_int_equal(vb_shm_map(a, fd, BYTES, false), 0);
	assert_int_equal(a[0], 0);
	vb_shm_unmap(a, BYTES);
	close(fd);
}

static void ours_keeps_its_size(void **state)
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
static void a_limit_of_file_sizes_is_an_error(void **state)
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

static void only_its_owner_writes_an_export(void **state)
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
static void children_do_not_inherit(void **state)
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
static void nothing_takes_the_place_of_what_a_child_forgot(void **state)
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

static int inner, outer;

static short events_of(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	assert_true(poll(&p, 1, 0) >= 0);
	return p.revents;
}

static int bell_begin(void **state)
{
	return vb_bell_create(&inner, &outer);
}

static int bell_end(void **state)
{
	close(inner);
	close(outer);
	return 0;
}

static void a_bell_is_heard_until_it_is_hushed(void **state)
{
	assert_int_equal(events_of(inner), 0);
	vb_bell_ring(outer);
	vb_bell_ring(outer);
	assert_int_equal(events_of(inner), POLLIN);
	vb_bell_hush(inner);
	assert_int_equal(events_of(inner), 0);
	vb_bell_hush(inner);
	vb_bell_ring(outer);
	assert_int_equal(events_of(inner), POLLIN);
}

/* Ringing never blocks, and one that rings all day is hushed like any other. */
static void it_may_be_rung_without_end(void **state)
{
	unsigned hushes = 0;

	for (unsigned i = 0; i < 100000; i++)
		vb_bell_ring(outer);
	assert_int_equal(events_of(inner), POLLIN);
	while (events_of(inner) & POLLIN) {
		vb_bell_hush(inner);
		assert_true(++hushes < 1000);
	}
}

static void copies_of_the_outer_end_ring_too(void **state)
{
	int copy = dup(outer);

	close(outer);
	outer = copy;
	vb_bell_ring(outer);
	assert_int_equal(events_of(inner), POLLIN);
}

static void the_owner_s_end_is_seen_at_once(void **state)
{
	int copy = dup(outer);

	assert_false(vb_bell_is_dead(outer));
	assert_false(events_of(outer) & POLLHUP);
	vb_bell_ring(outer);
	assert_false(vb_bell_is_dead(outer));
	close(inner);
	assert_true(events_of(outer) & POLLHUP);
	assert_true(vb_bell_is_dead(outer));
	assert_true(vb_bell_is_dead(copy));
	/* To ring there is no error, and no signal. */
	vb_bell_ring(outer);
	inner = copy;
}

/* What the owner says through its end is no sign of death, nor is that a peer has gone. */
static void others_may_come_and_go(void **state)
{
	int copy = dup(outer);

	close(copy);
	assert_false(vb_bell_is_dead(outer));
	assert_int_equal(events_of(inner), 0);
	assert_int_equal(send(inner, "x", 1, 0), 1);
	assert_false(vb_bell_is_dead(outer));
}

static void a_dead_owner_s_process_is_seen(void **state)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		pause();
		_exit(0);
	}
	/* The child has the last inner end. */
	close(inner);
	inner = open("/dev/null", O_RDONLY);
	assert_false(vb_bell_is_dead(outer));
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(vb_bell_is_dead(outer));
}

#define BELL(name) cmocka_unit_test_setup_teardown(name, bell_begin, bell_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_mappings_are_one_memory),
		cmocka_unit_test(a_limit_of_file_sizes_is_an_error),
		cmocka_unit_test(what_is_reserved_is_zeros),
		cmocka_unit_test(what_is_blanked_is_shared_no_longer),
		cmocka_unit_test(a_file_that_may_shrink_is_refused),
		cmocka_unit_test(a_file_of_another_size_is_refused),
		cmocka_unit_test(what_is_no_memory_file_is_refused),
		cmocka_unit_test(huge_pages_are_refused),
		cmocka_unit_test(a_file_that_cannot_be_written_is_no_ring),
		cmocka_unit_test(ours_keeps_its_size),
		cmocka_unit_test(only_its_owner_writes_an_export),
		cmocka_unit_test(children_do_not_inherit),
		cmocka_unit_test(nothing_takes_the_place_of_what_a_child_forgot),
		BELL(a_bell_is_heard_until_it_is_hushed),
		BELL(it_may_be_rung_without_end),
		BELL(copies_of_the_outer_end_ring_too),
		BELL(the_owner_s_end_is_seen_at_once),
		BELL(others_may_come_and_go),
		BELL(a_dead_owner_s_process_is_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
