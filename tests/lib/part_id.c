/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * To be preloaded: perftest posts by ibv_wr_*(3) only on devices whose part numbers are in a list
 * of its own. PART_ID in the environment is the number that it sees.
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdlib.h>

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
