/* SPDX-License-Identifier: BSD-2-Clause */

/* The lock that processes share: who has it, who waits, who dies, in whatever namespaces. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "group.h"
#include "link/robust.h"

enum { BYTES = 8192, NO_NAMESPACE = 77 };

struct memory {
	_Atomic uint32_t held;
	uint64_t counted;
};

static int memory_fd;
static struct memory *memory;

static int begin(void **state)
{
	if (vb_robust_memory_make("test", BYTES, &memory_fd))
		return 1;
	memory = vb_robust_memory_map(memory_fd, BYTES);
	return memory == NULL;
}

static int end(void **state)
{
	vb_robust_memory_unmap(memory, BYTES);
	close(memory_fd);
	return 0;
}

#define LOCK_TEST(name) TEST_BETWEEN(name, begin, end)

static struct vb_robust_lock lock_open(void)
{
	struct vb_robust_lock lock;

	vb_check(!vb_robust_open(&lock, memory_fd, &memory->held));
	return lock;
}

/* --- a process that takes the lock, as number 1 of a PID namespace of its own --- */

struct party {
	pid_t pid; /* here */
	int told;  /* it writes here: before it takes the lock, and when it has it */
};

static void party_run(int told)
{
	struct vb_robust_lock lock = lock_open();

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	vb_check(getpid() == 1);
	vb_check(write(told, "1", 1) == 1);
	vb_robust_take(&lock);
	vb_check(write(told, "2", 1) == 1);
	pause();
	_exit(0);
}

static bool party_start(struct party *party)
{
	int told[2], born[2], status;
	pid_t parent;

	assert_int_equal(pipe(told), 0);
	assert_int_equal(pipe(born), 0);
	parent = fork();
	if (!parent) {
		pid_t pid;

		if (unshare(CLONE_NEWPID) && unshare(CLONE_NEWUSER | CLONE_NEWPID))
			_exit(NO_NAMESPACE);
		pid = fork();
		if (!pid)
			party_run(told[1]);
		vb_check(write(born[1], &pid, sizeof(pid)) == sizeof(pid));
		vb_check(waitpid(pid, NULL, 0) == pid);
		_exit(0);
	}
	close(told[1]);
	close(born[1]);
	party->told = told[0];
	status = read(born[0], &party->pid, sizeof(party->pid)) == sizeof(party->pid);
	close(born[0]);
	if (status)
		return true;
	assert_int_equal(waitpid(parent, &status, 0), parent);
	assert_int_equal(WEXITSTATUS(status), NO_NAMESPACE);
	return false;
}

static void party_expect(const struct party *party, char word)
{
	char is;

	assert_int_equal(read(party->told, &is, 1), 1);
	assert_int_equal(is, word);
}

/* It sleeps: with nothing else to do, it waits for the lock. */
static void party_wait_asleep(const struct party *party)
{
	char path[64], state = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)party->pid);
	while (state != 'S') {
		FILE *file = fopen(path, "re");

		assert_non_null(file);
		assert_int_equal(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
		fclose(file);
	}
}

static void party_kill(struct party *party)
{
	assert_int_equal(kill(party->pid, SIGKILL), 0);
	assert_true(wait(NULL) > 0);
	close(party->told);
}

LOCK_TEST(a_killed_waiter_is_not_the_holder)
{
	struct vb_robust_lock lock = lock_open();
	struct party holder, waiter;

	if (!party_start(&holder))
		SKIP("this system lets us make no PID namespace");
	party_expect(&holder, '1');
	party_expect(&holder, '2');
	assert_int_equal(vb_robust_try(&lock), VB_ROBUST_BUSY);
	assert_true(party_start(&waiter));
	party_expect(&waiter, '1');
	party_wait_asleep(&waiter);
	party_kill(&waiter);
	/* Whoever believed the holder dead would write beside it. */
	assert_int_equal(vb_robust_try(&lock), VB_ROBUST_BUSY);
	party_kill(&holder);
	assert_int_equal(vb_robust_take(&lock), VB_ROBUST_INHERITED);
	vb_robust_drop(&lock);
	assert_int_equal(vb_robust_try(&lock), VB_ROBUST_TAKEN);
	vb_robust_drop(&lock);
	vb_robust_close(&lock);
}

LOCK_TEST(a_waiter_gets_it_from_the_dead)
{
	struct party holder, waiter;

	if (!party_start(&holder))
		SKIP("this system lets us make no PID namespace");
	party_expect(&holder, '1');
	party_expect(&holder, '2');
	assert_true(party_start(&waiter));
	party_expect(&waiter, '1');
	party_wait_asleep(&waiter);
	party_kill(&holder);
	party_expect(&waiter, '2');
	party_kill(&waiter);
}

/* What is written there decides nothing. */
LOCK_TEST(it_does_not_go_by_what_stands_there)
{
	struct vb_robust_lock a = lock_open(), b = lock_open();

	memset(memory, 0xff, BYTES);
	assert_int_equal(vb_robust_take(&a), VB_ROBUST_INHERITED);
	memset(memory, 0, BYTES);
	assert_int_equal(vb_robust_try(&b), VB_ROBUST_BUSY);
	vb_robust_drop(&a);
	assert_int_equal(vb_robust_try(&b), VB_ROBUST_TAKEN);
	vb_robust_drop(&b);
	vb_robust_close(&a);
	vb_robust_close(&b);
}

/* A copy of the descriptor, in another thread's hands or a child's, changes nothing. */
LOCK_TEST(copies_of_the_descriptor_do_not_matter)
{
	struct vb_robust_lock a = lock_open(), b = lock_open();

	assert_int_equal(vb_robust_take(&a), VB_ROBUST_TAKEN);
	close(dup(memory_fd));
	close(dup(a.fd));
	assert_int_equal(vb_robust_try(&b), VB_ROBUST_BUSY);
	vb_robust_drop(&a);
	vb_robust_close(&a);
	vb_robust_close(&b);
}

static void assert_child_ok(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Without /proc. */
LOCK_TEST(it_holds_among_processes_without_files_of_their_own)
{
	struct vb_robust_lock lock = lock_open();
	pid_t pid;

	lock.own_file = false;
	assert_int_equal(vb_robust_take(&lock), VB_ROBUST_TAKEN);
	pid = fork();
	if (!pid) {
		lock = lock_open();
		lock.own_file = false;
		vb_check(vb_robust_try(&lock) == VB_ROBUST_BUSY);
		_exit(0);
	}
	assert_child_ok(pid);
	vb_robust_drop(&lock);
	pid = fork();
	if (!pid) {
		lock = lock_open();
		lock.own_file = false;
		vb_check(vb_robust_take(&lock) == VB_ROBUST_TAKEN);
		_exit(0);
	}
	assert_child_ok(pid);
	assert_int_equal(vb_robust_take(&lock), VB_ROBUST_INHERITED);
	vb_robust_drop(&lock);
	vb_robust_close(&lock);
}

/* --- the memory --- */

LOCK_TEST(nobody_changes_its_size)
{
	assert_int_equal(ftruncate(memory_fd, 0), -1);
	assert_int_equal(ftruncate(memory_fd, 2 * BYTES), -1);
	assert_int_equal(fcntl(memory_fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	memory->counted++;
}

LOCK_TEST(other_memory_is_not_mapped)
{
	static const unsigned kinds[] = {0, MFD_ALLOW_SEALING, MFD_ALLOW_SEALING | MFD_HUGETLB};
	static const int seals[] = {0, F_SEAL_SHRINK, F_SEAL_SHRINK | F_SEAL_GROW};
	int fd;

	assert_null(vb_robust_memory_map(memory_fd, BYTES + 1));
	assert_null(vb_robust_memory_map(STDIN_FILENO, BYTES));
	for (unsigned i = 0; i < VB_ARRAY_LEN(kinds); i++) {
		for (unsigned k = 0; k < VB_ARRAY_LEN(seals); k++) {
			fd = memfd_create("other", MFD_CLOEXEC | kinds[i]);
			if (fd < 0 || ftruncate(fd, 2 << 20))
				continue;
			fcntl(fd, F_ADD_SEALS, seals[k]);
			assert_null(vb_robust_memory_map(fd, BYTES));
			close(fd);
		}
	}
	/* All the seals, and pages that may run out. */
	fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
	if (fd < 0)
		return;
	assert_int_equal(ftruncate(fd, 2 << 20), 0);
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	assert_null(vb_robust_memory_map(fd, BYTES));
	close(fd);
}
