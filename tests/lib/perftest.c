/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * To be preloaded by perftest's programs.
 *
 * They post by ibv_wr_*(3) only on devices whose part numbers are in a list of their own. PART_ID
 * in the environment is the number that they see.
 *
 * They measure the processor's frequency for each row that they print, and spin for 0.22 s of
 * gettimeofday(2), which they call for nothing else. That is most of what a short test costs, so
 * this clock goes faster; their figures, which no test looks at, are lower by as much.
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

#define CLOCK_SPEED 20

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	int (*real)(struct ibv_context *, struct ibv_device_attr *) =
		(int (*)(struct ibv_context *, struct ibv_device_attr *))dlsym(RTLD_NEXT,
									       "ibv_query_device");
	const char *part_id = getenv("PART_ID");
	int err = real(context, attr);

	if (!err && part_id)
		attr->vendor_part_id = (uint32_t)atoi(part_id);
	return err;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
	struct timespec now;

	(void)zone;
	if (clock_gettime(CLOCK_MONOTONIC, &now))
		return -1;
	now.tv_nsec *= CLOCK_SPEED;
	time->tv_sec = now.tv_sec * CLOCK_SPEED + now.tv_nsec / 1000000000;
	time->tv_usec = now.tv_nsec % 1000000000 / 1000;
	return 0;
}
