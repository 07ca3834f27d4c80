/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * How far apart the first two cores are just now: half a round trip of a cache line between two
 * threads, in ns, the median of many short measurements. Virtual machines move their cores between
 * near ones and far ones, and every figure with them; so this stands beside each run.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 1000
#define SAMPLES 101

static _Atomic uint32_t ball __attribute__((aligned(128)));

static void pin(unsigned core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(core, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* Odd numbers come back even. */
static void *returner(void *arg)
{
	pin(1);
	for (uint32_t i = 1; i < 2u * ROUNDS * SAMPLES; i += 2) {
		while (atomic_load_explicit(&ball, memory_order_acquire) != i)
			;
		atomic_store_explicit(&ball, i + 1, memory_order_release);
	}
	return arg;
}

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(void)
{
	double took[SAMPLES], start;
	pthread_t thread;
	uint32_t next = 1;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		puts("0");
		return 0;
	}
	pin(0);
	if (pthread_create(&thread, NULL, returner, NULL))
		return 1;
	for (unsigned s = 0; s < SAMPLES; s++) {
		start = now_ns();
		for (unsigned i = 0; i < ROUNDS; i++, next += 2) {
			atomic_store_explicit(&ball, next, memory_order_release);
			while (atomic_load_explicit(&ball, memory_order_acquire) != next + 1)
				;
		}
		took[s] = (now_ns() - start) / ROUNDS / 2;
	}
	pthread_join(thread, NULL);
	qsort(took, SAMPLES, sizeof(*took), compare);
	printf("%.0f\n", took[SAMPLES / 2]);
	return 0;
}
