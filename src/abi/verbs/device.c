/* SPDX-License-Identifier: BSD-2-Clause */
/* The device list, and properties known without opening a device. */
#include "abi/verbs/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/verbs/abi.h"
#include "run/address/guid.h"

/*
 * Direct-verbs libraries take the pointer for the first part of rdma-core's own, larger structure,
 * and read beyond it. They find zeros there: no provider, so none of theirs.
 */
struct device_in_process {
	struct ibv_device ibv;
	uint8_t behind[1024];
};

/*
 * Nothing exists at these paths (unless `verbatim run` provides it), as programs that look there
 * see.
 */
static struct device_in_process device = {
	.ibv = {
		.node_type = IBV_NODE_CA,
		.transport_type = IBV_TRANSPORT_IB,
		.name = "verbatim0",
		.dev_name = "uverbs0",
		.dev_path = "/sys/class/infiniband_verbs/uverbs0",
		.ibdev_path = "/sys/class/infiniband/verbatim0",
	},
};

struct ibv_device *vb_abi_device(void)
{
	return &device.ibv;
}

struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct ibv_device **list = calloc(2, sizeof(*list));

	if (num_devices)
		*num_devices = list ? 1 : 0;
	if (!list) {
		errno = ENOMEM;
		return NULL;
	}
	list[0] = &device.ibv;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *dev)
{
	return dev->name;
}

/* The index is the kernel's, which does not have this device. */
int ibv_get_device_index(struct ibv_device *dev)
{
	return -1;
}

__be64 ibv_get_device_guid(struct ibv_device *dev)
{
	return vb_guid_get();
}

/* --- sysfs, which librdmacm and others read through these functions --- */

const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

const char *ibv_get_sysfs_path(void)
{
	return "/sys";
}

/*
 * Reads a file without the newline at its end, zero-terminated. Returns the octets read; -1 with
 * errno.
 */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	char path[IBV_SYSFS_PATH_MAX * 2];
	size_t got;
	FILE *stream;
	int used;

	used = snprintf(path, sizeof(path), "%s/%s", dir, file);
	if (used < 0 || (size_t)used >= sizeof(path) || size == 0)
		return vb_abi_minus_one(EINVAL);
	stream = fopen(path, "re");
	if (!stream)
		return -1;
	got = fread(buf, 1, size, stream);
	fclose(stream);
	if (got > 0 && buf[got - 1] == '\n')
		got--;
	if (got < size)
		buf[got] = '\0';
	return (int)got;
}
