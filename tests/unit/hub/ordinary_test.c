/* SPDX-License-Identifier: BSD-2-Clause */

/* The hub is an ordinary process, whatever the one is that starts it. */
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "hub_lib.h"

enum { FIRST_PRIORITY = 1, OPENS = 10, CPU_SECONDS = 100 };

static int first_cpu(void)
{
	cpu_set_t here;
	int cpu = 0;

	vb_check(!sched_getaffinity(0, sizeof(here), &here));
	while (!CPU_ISSET(cpu, &here))
		cpu++;
	return cpu;
}

/* is_real_time: it has SCHED_FIFO, and never lets go of its processor. */
static void starter_run(int told_fd, void *is_real_time)
{
	const struct sched_param first = {.sched_priority = FIRST_PRIORITY};
	struct rlimit seconds = {CPU_SECONDS, RLIM_INFINITY};
	struct vb_hub_client *client;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(first_cpu(), &one);
	vb_check(!sched_setaffinity(0, sizeof(one), &one));
	if (*(bool *)is_real_time)
		vb_check(!sched_setscheduler(0, SCHED_FIFO, &first));
	else
		vb_check(nice(5) >= 0);
	/* A limit that is not to be raised stays as it is. */
	getrlimit(RLIMIT_CPU, &seconds);
	seconds.rlim_cur = CPU_SECONDS;
	vb_check(!setrlimit(RLIMIT_CPU, &seconds));
	prctl(PR_SET_TIMERSLACK, 1000000000ul);
	vb_check(!vb_hub_client_open(&client, NULL, NULL, NULL));
	vb_check(write(told_fd, "", 1) == 1);
	while (*(bool *)is_real_time)
		continue;
}

static pid_t starter_start(bool is_real_time)
{
	return child_tells(starter_run, &is_real_time, &(char){0}, 1);
}

static void assert_ordinary(pid_t hub)
{
	cpu_set_t ours, its;
	struct rlimit limit;

	assert_int_equal(sched_getscheduler(hub), SCHED_OTHER);
	assert_int_equal(sched_getaffinity(0, sizeof(ours), &ours), 0);
	assert_int_equal(sched_getaffinity(hub, sizeof(its), &its), 0);
	assert_true(CPU_EQUAL(&ours, &its));
	assert_int_equal(prlimit(hub, RLIMIT_CPU, NULL, &limit), 0);
	assert_int_equal(limit.rlim_cur, limit.rlim_max);
}

TEST(it_keeps_nothing_of_who_starts_it)
{
	char path[64], slack[32] = "";
	pid_t starter, hub;
	FILE *file;

	starter = starter_start(false);
	hub = hub_pid();
	assert_ordinary(hub);
	/* Only the privileged may be less nice than they were. */
	errno = 0;
	if (!geteuid() && !setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) - 1))
		assert_int_equal(getpriority(PRIO_PROCESS, (id_t)hub), 0);
	snprintf(path, sizeof(path), "/proc/%d/timerslack_ns", (int)hub);
	file = fopen(path, "re");
	if (file && fgets(slack, sizeof(slack), file))
		assert_int_equal(atol(slack), 50000);
	if (file)
		fclose(file);
	child_kill(starter);
	hub_stop();
}

/* It would not run as long as the starter does; and he, in turn, never lets go. */
TEST(one_who_never_sleeps_keeps_nobody_out)
{
	const struct sched_param first = {.sched_priority = FIRST_PRIORITY};
	const struct sched_param none = {0};
	struct vb_hub_client *client;
	pid_t starter;
	cpu_set_t here;

	if (sched_setscheduler(0, SCHED_FIFO, &first))
		SKIP("SCHED_FIFO: %s", strerror(errno));
	sched_setscheduler(0, SCHED_OTHER, &none);
	sched_getaffinity(0, sizeof(here), &here);
	if (CPU_COUNT(&here) < 2)
		SKIP("there is one processor, and it would be taken");
	starter = starter_start(true);
	assert_ordinary(hub_pid());
	for (unsigned i = 0; i < OPENS; i++) {
		client = client_open();
		slots_close((struct vb_hub_slot[]){slot_lease(client)}, 1);
		vb_hub_client_close(client);
	}
	child_kill(starter);
	hub_stop();
}

GROUP(hub_setup, NULL)
