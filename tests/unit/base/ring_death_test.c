/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A producer may die at any instruction: the consumer then finds a prefix of what it meant to send,
 * whole and right. A child publishes frames and is stepped through it, instruction by instruction;
 * what lies in the ring at each step is what would lie there if it were killed there. And at some
 * of them it is.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/ring.h"
#include "group.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLOW 1 /* many instructions stand for one */
#else
#define SLOW 0
#endif

enum { KILLS = SLOW ? 6 : 60, HEAD_BYTES = 16 };

/*
 * One of each kind: in the slot, empty, in the data, up to its end, and from its start; among them
 * the change from the last slot to the first.
 */
static const uint32_t payloads[] = { 40, 0, 41, 100, 128, 200, 8, 64 };

#define FRAMES (sizeof(payloads) / sizeof(payloads[0]))

static struct vb_ring_shared *shared;
static uint8_t octets[FRAMES][256]; /* what goes through, made beforehand */

/* Both ends stand four frames before the last slot's end, and 320 octets before the data's. */
static const uint32_t start = 3 * VB_RING_SLOTS - 4;
static const uint32_t data_start = 5 * VB_RING_DATA_BYTES - 320;

static int begin(void **state)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	assert_true(shared != MAP_FAILED);
	for (unsigned f = 0; f < FRAMES; f++) {
		for (unsigned i = 0; i < sizeof(octets[f]); i++)
			octets[f][i] = (uint8_t)(1 + f * 41 + i * 3);
	}
	return 0;
}

static int end(void **state)
{
	return munmap(shared, sizeof(*shared));
}

/* As after three rounds. */
static void ring_begin(void)
{
	memset(shared->data, 0xee, sizeof(shared->data));
	for (uint32_t i = 1; i <= VB_RING_SLOTS; i++)
		atomic_store(&shared->slot[vb_ring_slot_index(start - i)].mark, start - i + 1);
	atomic_store(&shared->tail, start);
}

static void publish_all(void)
{
	struct vb_ring_tx tx;

	vb_ring_tx_init(&tx, shared);
	tx.head = tx.tail = start;
	tx.data_head = tx.data_tail = data_start;
	for (unsigned f = 0; f < FRAMES; f++) {
		uint8_t *to = vb_ring_reserve(&tx, HEAD_BYTES, payloads[f]);

		memcpy(tx.octets, octets[f], HEAD_BYTES);
		memcpy(to, octets[f] + HEAD_BYTES, payloads[f]);
		vb_ring_publish(&tx, HEAD_BYTES, payloads[f]);
	}
}

/* What a consumer that begins now finds: the number of frames, all of them right. */
static unsigned frames_found(void)
{
	struct vb_ring_frame frame;
	struct vb_ring_rx rx = { .shared = NULL };
	unsigned found;

	vb_ring_rx_init(&rx, shared);
	atomic_store(&rx.next, start);
	atomic_store(&rx.told, start);
	rx.data_pos = rx.data_told = data_start;
	for (found = 0; vb_ring_take(&rx, &frame); found++) {
		assert_true(found < FRAMES);
		assert_int_equal(frame.head_bytes, HEAD_BYTES);
		assert_int_equal(frame.payload_bytes, payloads[found]);
		assert_memory_equal(frame.octets, octets[found], HEAD_BYTES);
		assert_memory_equal(frame.payload, octets[found] + HEAD_BYTES, payloads[found]);
		/* Fewer than would make it tell the producer. */
		assert_false(vb_ring_release(&rx));
	}
	assert_false(vb_ring_rx_is_broken(&rx));
	return found;
}

/* A child that waits to be stepped through publish_all(); 0 and errno if that is not allowed. */
static pid_t producer_start(void)
{
	int status;
	pid_t pid;

	ring_begin();
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(errno);
		raise(SIGSTOP);
		publish_all();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSTOPPED(status))
		return pid;
	errno = WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
	return 0;
}

/* One instruction further; false when the child has ended. */
static bool step(pid_t pid)
{
	int status;

	assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status)) {
		assert_int_equal(WEXITSTATUS(status), 0);
		return false;
	}
	assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
	return true;
}

static void skip_without_ptrace(void)
{
	SKIP("ptrace: %s", strerror(errno));
}

static unsigned steps; /* from the first frame to the end */

TEST_BETWEEN(each_instruction_leaves_a_prefix, begin, end)
{
	pid_t pid = producer_start();
	unsigned found, before = 0, gaps = 0, since = 0;

	if (!pid)
		skip_without_ptrace();
	for (steps = 0; step(pid); steps++) {
		/* Under a sanitizer only every so many are looked at. */
		if (SLOW && steps % 64)
			continue;
		found = frames_found();
		assert_true(found >= before);
		if (found > before)
			gaps++;
		since = found > before ? 0 : since + 1;
		before = found;
	}
	assert_int_equal(frames_found(), FRAMES);
	/* One instruction publishes one frame. */
	assert_true(SLOW || gaps == FRAMES);
	assert_true(since > 0);
}

TEST_BETWEEN(a_killed_producer_leaves_a_prefix, begin, end)
{
	unsigned seen = 0;

	for (unsigned kill_at = 0; kill_at < KILLS; kill_at++) {
		pid_t pid = producer_start();
		unsigned found;

		if (!pid)
			skip_without_ptrace();
		for (unsigned i = 0; i < (uint64_t)steps * kill_at / KILLS && step(pid); i++)
			;
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		found = frames_found();
		assert_true(found >= seen);
		seen = found;
	}
	assert_true(SLOW || seen > FRAMES / 2);
}
