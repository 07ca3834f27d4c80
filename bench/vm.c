/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The cost of accessing another process's memory by a system call: the limit of one-sided
 * operations on memory that is not shared. The other process spins on that memory.
 *
 *   vm write|read A B OCTETS     one process_vm_writev or process_vm_readv: median, us
 */
#include <stdbool.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "bench.h"

#define CALLS_MAX 20000
#define TOTAL_NS 150000000u

/* Once the child has written, it has pages of its own at its parent's addresses. */
static _Noreturn void target(volatile uint8_t *memory, size_t octets, volatile int *ready, int core)
{
	pin(core);
	memset((uint8_t *)memory, 2, octets);
	*ready = 1;
	for (;;)
		(void)*memory;
}

int main(int argc, char **argv)
{
	static double took_us[CALLS_MAX];
	size_t octets = argc == 5 ? strtoul(argv[4], NULL, 0) : 0, count = 0;
	bool write = argc > 1 && !strcmp(argv[1], "write");
	uint8_t *local, *remote;
	volatile int *ready;
	uint64_t begin, start;
	ssize_t n;
	pid_t pid;

	if (!octets || (!write && strcmp(argv[1], "read"))) {
		fputs("usage: vm write|read CORE CORE OCTETS\n", stderr);
		return 2;
	}
	local = aligned_alloc(4096, (octets + 4095) & ~(size_t)4095);
	remote = aligned_alloc(4096, (octets + 4095) & ~(size_t)4095);
	ready = shared_new(sizeof(*ready));
	if (!local || !remote)
		die("aligned_alloc");
	memset(local, 1, octets);
	pid = fork_child();
	if (!pid)
		target(remote, octets, ready, atoi(argv[3]));
	pin(atoi(argv[2]));
	while (!*ready)
		;
	begin = now_ns();
	for (start = begin; count < CALLS_MAX && start - begin < TOTAL_NS; count++) {
		struct iovec here = {local, octets}, there = {remote, octets};

		n = write ? process_vm_writev(pid, &here, 1, &there, 1, 0)
			  : process_vm_readv(pid, &here, 1, &there, 1, 0);
		took_us[count] = (double)(now_ns() - start) / 1e3;
		if (n != (ssize_t)octets)
			die(write ? "process_vm_writev" : "process_vm_readv");
		start = now_ns();
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	printf("%.3f\n", median(took_us, count));
	return 0;
}
