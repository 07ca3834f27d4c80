/* SPDX-License-Identifier: BSD-2-Clause */
#include "hub/ordinary.h"

#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Kernel ABI (linux/ioprio.h, linux/mempolicy.h), which some headers lack. */
enum { IO_WHO_PROCESS = 1, IO_BY_NICE = 0, MEMORY_DEFAULT = 0 };

enum { TIMER_SLACK_NS = 50000, CPUS_MAX = 8192 };

static void policy_reset(void)
{
	const struct sched_param none = {0};

	sched_setscheduler(0, SCHED_OTHER, &none);
}

/* The kernel reduces the set to the CPUs that exist and that our cpuset allows. */
static void processors_reset(void)
{
	unsigned long all[CPUS_MAX / 8 / sizeof(unsigned long)];

	memset(all, 0xff, sizeof(all));
	sched_setaffinity(0, sizeof(all), (const cpu_set_t *)all);
}

/* Without privilege, RLIMIT_NICE bounds how far the nice value can be lowered. */
static void nice_reset(void)
{
	int nice = getpriority(PRIO_PROCESS, 0);

	for (int to = 0; to < nice && setpriority(PRIO_PROCESS, 0, to); to++)
		continue;
	if (nice < 0)
		setpriority(PRIO_PROCESS, 0, 0);
}

void vb_hub_ordinary(void)
{
	policy_reset();
	processors_reset();
	nice_reset();
	syscall(SYS_ioprio_set, IO_WHO_PROCESS, 0, IO_BY_NICE);
	syscall(SYS_set_mempolicy, MEMORY_DEFAULT, NULL, 0);
	prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
}
