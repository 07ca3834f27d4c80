/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All of it in children where SIGSEGV and SIGBUS are blocked: a single fault would kill them.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "group.h"
#include "run/memory/memtouch.h"

enum { PAGE = 4096, AREA = 4 * PAGE, FINE = 42, WRONG = 43, SKIPPED = 44 };

/* Pages: open, to be read only, forbidden, none at all. */
static uint8_t *area;

static int status_of(void (*body)(void))
{
	int status;
	pid_t pid;

	area = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(area, 7, AREA);
	mprotect(area + PAGE, PAGE, PROT_READ);
	mprotect(area + 2 * PAGE, PAGE, PROT_NONE);
	munmap(area + 3 * PAGE, PAGE);
	pid = fork();
	if (pid == 0) {
		sigset_t faults;

		sigemptyset(&faults);
		sigaddset(&faults, SIGSEGV);
		sigaddset(&faults, SIGBUS);
		sigprocmask(SIG_BLOCK, &faults, NULL);
		alarm(20);
		body();
		_exit(FINE);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	munmap(area, 3 * PAGE);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void must(int holds)
{
	if (!holds)
		_exit(WRONG);
}

static void touch(void)
{
	uint64_t word = 0x1122334455667788;

	for (unsigned i = 0; i < PAGE; i += 1365) {
		must(vb_memtouch(area + i, false) && vb_memtouch(area + i, true));
		must(vb_memtouch(area + PAGE + i, false) && !vb_memtouch(area + PAGE + i, true));
		for (unsigned page = 2; page < 4; page++)
			must(!vb_memtouch(area + page * PAGE + i, false) &&
			     !vb_memtouch(area + page * PAGE + i, true));
	}
	must(!vb_memtouch(NULL, false) && !vb_memtouch(NULL, true));
	must(!vb_memtouch((void *)(1ull << 63), false));
	must(vb_memtouch((uint8_t *)&word + 3, true) && word == 0x1122334455667788);
}

TEST(pages_are_touched_without_a_signal)
{
	assert_int_equal(status_of(touch), FINE);
}

static void copy(void)
{
	static const size_t sizes[] = { 0, 1, 8, 63, 64, 65, 257, 4096, 5000, 20000 };
	static uint8_t from[20000 + 64], to[sizeof(from)];

	errno = 77;
	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i * 7 + (i >> 8));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t n = sizes[i], edge = n < PAGE ? n : PAGE;

		memset(to, 0xee, sizeof(to));
		must(vb_memtouch_copy(to + i, from + 3, n) && !memcmp(to + i, from + 3, n) &&
		     to[i + n] == 0xee);
		must(vb_memtouch_copy(area + PAGE - edge, from, edge) &&
		     !memcmp(area + PAGE - edge, from, edge));
		must(vb_memtouch_copy(to, area + PAGE - edge, edge) && !memcmp(to, from, edge));
		if (!n)
			continue;
		must(!vb_memtouch_copy(area + PAGE - edge + 1, from, edge));
		must(!vb_memtouch_copy(area + PAGE, from, n) &&
		     !vb_memtouch_copy(area + 2 * PAGE, from, n) &&
		     !vb_memtouch_copy(area + 3 * PAGE, from, n) &&
		     !vb_memtouch_copy(NULL, from, n));
		must(!vb_memtouch_copy(to, area + 2 * PAGE - edge + 1, edge) &&
		     !vb_memtouch_copy(to, area + 3 * PAGE, n) &&
		     !vb_memtouch_copy(to, NULL, n) &&
		     !vb_memtouch_copy(to, (void *)(1ull << 63), n));
	}
	must(errno == 77);
}

TEST(a_copy_meets_what_is_not_there)
{
	assert_int_equal(status_of(copy), FINE);
}

/* As some containers have it. */
static void copy_confined(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
		_exit(SKIPPED);
	copy();
}

TEST(a_copy_goes_where_debuggers_calls_are_forbidden)
{
	int status = status_of(copy_confined);

	if (status == SKIPPED)
		SKIP("this kernel lets us make no filter");
	assert_int_equal(status, FINE);
}
