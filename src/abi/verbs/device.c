/* SPDX-License-Identifier: BSD-2-Clause */
/* The device list, and properties known without opening a device. */
#include "abi/verbs/device.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/verbs/abi.h"
#include "run/address/guid.h"
#include "run/process/topology.h"

/*
 * Direct-verbs libraries take the pointer for the first part of rdma-core's own, larger structure,
 * and read beyond it. They find zeros there: no provider, so none of theirs.
 */
struct device_in_process {
	struct ibv_device ibv;
	uint8_t behind[1024];
};

static struct device_in_process devices[VB_TOPOLOGY_DEVICES_MAX];
static unsigned device_count;

/* What is known without opening it. A persona that cannot be read is reported by who opens. */
static void device_fill(struct ibv_device *device, const struct vb_topology_device *said,
			const struct vb_env *env)
{
	char why[VB_TOPOLOGY_FILE_WHY_BYTES];
	struct vb_persona persona;

	device->node_type = IBV_NODE_CA;
	device->transport_type = IBV_TRANSPORT_IB;
	if (vb_persona_read(&persona, said, env, why) == 0) {
		device->node_type = persona.node_type;
		device->transport_type = persona.transport_type;
	}
	/* Nothing exists at these paths unless `verbatim run` shows a view. */
	snprintf(device->name, sizeof(device->name), "%s", said->name);
	snprintf(device->dev_name, sizeof(device->dev_name), "uverbs%u", said->uverbs);
	snprintf(device->dev_path, sizeof(device->dev_path),
		 "/sys/class/infiniband_verbs/uverbs%u", said->uverbs);
	snprintf(device->ibdev_path, sizeof(device->ibdev_path), "/sys/class/infiniband/%s",
		 said->name);
}

static void devices_fill(void)
{
	const struct vb_topology *topology = vb_topology_here();
	char why[VB_ENV_WHY_BYTES];
	struct vb_env env;

	if (vb_env_read(&env, vb_env_here(), why) != 0)
		env = (struct vb_env){ .seeded = false };
	for (unsigned i = 0; topology && i < topology->count; i++)
		device_fill(&devices[i].ibv, &topology->device[i], &env);
	device_count = topology ? topology->count : 0;
}

/* How many there are. They are found out once, so that their pointers stay. */
static unsigned count_get(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, devices_fill);
	return device_count;
}

struct ibv_device *vb_abi_device_at(unsigned row)
{
	return row < count_get() ? &devices[row].ibv : NULL;
}

bool vb_abi_device_row(const struct ibv_device *device, unsigned *row)
{
	unsigned count = count_get();

	for (*row = 0; *row < count; ++*row) {
		if (device == &devices[*row].ibv)
			return true;
	}
	return false;
}

struct ibv_device **ibv_get_device_list(int *num_devices)
{
	unsigned count = count_get();
	struct ibv_device **list = calloc(count + 1u, sizeof(*list));

	if (num_devices)
		*num_devices = list ? (int)count : 0;
	if (!list) {
		errno = ENOMEM;
		return NULL;
	}
	for (unsigned i = 0; i < count; i++)
		list[i] = &devices[i].ibv;
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
	unsigned row;

	return vb_abi_device_row(dev, &row) ? vb_guid_of_device(vb_topology_here(), row) : 0;
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
