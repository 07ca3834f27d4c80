/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/memory/memtouch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/check.h"
#include "base/ring.h"

/* A write of this size to an empty pipe never blocks. */
enum { CHUNK_BYTES = 4096 };

/* Size of the kernel's signal set, which sigprocmask reads before it checks `how`. */
enum { SET_BYTES = 8, HOW_NOT = -1 };

/*
 * The kernel has no call for this question, so two calls with no effect answer it. For reading:
 * sigprocmask with an invalid `how` fails only after reading the set. For writing: a futex
 * operation that adds no bits to the word. It wakes those who wait for the value 0, which they
 * check again themselves.
 */
bool vb_memtouch(const void *at, bool write)
{
	uintptr_t set = (uintptr_t)at & -(uintptr_t)SET_BYTES;
	uint32_t word = 0;

	/* That call takes NULL for "no set". */
	if (!write)
		return set && (syscall(SYS_rt_sigprocmask, HOW_NOT, set, NULL, SET_BYTES) == 0 ||
			       errno != EFAULT);
	return syscall(SYS_futex, &word, FUTEX_WAKE_OP_PRIVATE, 0, NULL,
		       (uintptr_t)at & -sizeof(word),
		       FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, 0)) >= 0;
}

/*
 * Within one piece the kernel may copy cache lines in any order, and a reader that spins on the
 * last octet must find all others there: the octets on the last line are a separate piece.
 */
static void split(struct iovec into[2], uint8_t *to, size_t bytes)
{
	size_t tail = vb_min_u64(bytes, (((uintptr_t)to + bytes - 1) % VB_RING_LINE_BYTES) + 1);

	into[0] = (struct iovec){ to, bytes - tail };
	into[1] = (struct iovec){ to + bytes - tail, tail };
}

/* System calls without libc, whose read and write are cancellation points: our locks are held. */
static bool by_pipe(int in, int out, uint8_t *to, const uint8_t *from, size_t bytes)
{
	struct iovec into[2];

	for (size_t n; bytes; to += n, from += n, bytes -= n) {
		n = vb_min_u64(bytes, CHUNK_BYTES);
		split(into, to, n);
		if (syscall(SYS_write, in, from, n) != (long)n ||
		    syscall(SYS_readv, out, into, 2) != (long)n)
			return false;
	}
	return true;
}

/* For sandboxes that forbid process_vm_readv, even on oneself. */
static bool by_own_pipe(uint8_t *to, const uint8_t *from, size_t bytes)
{
	int end[2];
	bool done;

	if (pipe2(end, O_CLOEXEC) != 0)
		return false;
	done = by_pipe(end[1], end[0], to, from, bytes);
	syscall(SYS_close, end[0]);
	syscall(SYS_close, end[1]);
	return done;
}

bool vb_memtouch_copy(void *to, const void *from, size_t bytes)
{
	struct iovec into[2], source = { (void *)(uintptr_t)from, bytes };
	int saved_errno = errno;
	long done;

	if (!bytes)
		return true;
	split(into, to, bytes);
	done = syscall(SYS_process_vm_readv, getpid(), into, 2, &source, 1, 0);
	if (done < 0 && errno != EFAULT && errno != ENOMEM)
		done = by_own_pipe(to, from, bytes) ? (long)bytes : -1;
	errno = saved_errno;
	return done == (long)bytes;
}
