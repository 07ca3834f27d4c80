/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BENCH_H
#define VB_BENCH_H

/* Shared by the small programs of the benchmark: clock, CPU pinning, median, termination. */

#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = 128 }; /* two cache lines, which the prefetcher fetches in pairs */

static inline _Noreturn void die(const char *what)
{
	perror(what);
	_exit(1);
}

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Pins the calling thread to a core, or unpins it if core is negative. */
static inline void pin(int core)
{
	cpu_set_t set;

	if (core < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(core, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
}

/* Memory shared with child processes. */
static inline void *shared_new(size_t bytes)
{
	int flags = MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE;
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

/* Forks; the child ends with its parent. */
static inline pid_t fork_child(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		die("fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
	}
	return pid;
}

static inline int double_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts the values, too. */
static inline double median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), double_compare);
	return values[count / 2];
}

#endif
