/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/devices.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "cli/cli.h"
#include "cli/doctor/library.h"
#include "cli/settings.h"
#include "run/process/topology.h"

static void gids_print(const struct vb_cli_library *library, struct ibv_context *context, int n)
{
	char text[VB_ADDRESS_BYTES];
	union ibv_gid gid;
	unsigned type = 1;

	for (int i = 0; i < n; i++) {
		if (library->port.query_gid(context, 1, i, &gid) || !(gid.global.interface_id))
			continue;
		/* As sysfs counts them: 0 is RoCE v1. */
		library->port.query_gid_type(context, 1, (unsigned)i, &type);
		printf("  gid %-3d  %s%s\n", i, vb_gid_text(text, gid.raw),
		       type ? "" : "  (RoCE v1, which is not spoken)");
	}
}

/* What VERBATIM_DEVICES says of the device, and this machine does not have. */
static void places_print(const char *name, bool active)
{
	char why[VB_TOPOLOGY_FILE_WHY_BYTES], wrong[VB_ENV_WHY_BYTES], text[VB_ADDRESS_BYTES];
	const struct vb_topology_device *device;
	struct vb_topology topology;
	struct vb_env env;

	if (vb_env_read(&env, vb_env_here(), wrong) || vb_topology_read(&topology, &env, why))
		return;
	for (unsigned i = 0; i < topology.count; i++) {
		device = &topology.device[i];
		for (unsigned k = 0; k < device->place_count && !strcmp(device->name, name); k++) {
			const struct vb_topology_place *place = &device->place[k];

			if (*place->interface && !if_nametoindex(place->interface))
				printf("  there is no interface %s here: ip link shows those that "
				       "there are\n", place->interface);
			else if (!*place->interface && !active)
				printf("  no interface that is up has the address %s\n",
				       vb_gid_text(text, place->address));
		}
	}
}

static int device_print(const struct vb_cli_library *library, struct ibv_device *device)
{
	struct ibv_context *context = library->device.open(device);
	struct ibv_port_attr port = {0};
	const char *named = getenv("VERBATIM_DEVICES");
	uint8_t mac[6];

	if (!context) {
		vb_cli_error("%s cannot be opened: %s", library->device.get_name(device),
			     strerror(errno));
		return VB_CLI_FAILED;
	}
	library->port.query(context, 1, &port);
	printf("%s  guid %016" PRIx64 "  port 1 %s, MTU %d\n", library->device.get_name(device),
	       be64toh(library->device.get_guid(device)), library->port.state_str(port.state),
	       128 << port.active_mtu);
	library->port.mac(library->device.get_guid(device), mac);
	printf("  mac      %02x:%02x:%02x:%02x:%02x:%02x\n", mac[0], mac[1], mac[2], mac[3], mac[4],
	       mac[5]);
	gids_print(library, context, port.gid_tbl_len);
	if (port.state != IBV_PORT_ACTIVE)
		puts(named ? "  no interface of this device is up, so there is no GID"
			   : "  no interface is up here, so there is no GID: ip link set lo up");
	places_print(library->device.get_name(device), port.state == IBV_PORT_ACTIVE);
	library->device.close(context);
	return VB_CLI_OK;
}

int vb_cli_devices(int argc, char **argv)
{
	const char *log = getenv("VERBATIM_LOG");
	struct ibv_device **devices;
	struct vb_cli_library library;
	int n, status = VB_CLI_OK;

	if (argc != 1) {
		fputs("usage: verbatim devices\n", stderr);
		return VB_CLI_USAGE;
	}
	if (vb_cli_settings_check())
		return VB_CLI_FAILED;
	/*
	 * The library reports only in its log why there is no device. An empty value counts as not
	 * set.
	 */
	if (!log || !*log)
		setenv("VERBATIM_LOG", "stderr", 1);
	if (vb_cli_library_open(&library))
		return VB_CLI_FAILED;
	devices = library.device.get_list(&n);
	if (!devices || n == 0) {
		vb_cli_error("no devices: %s", devices ? "VERBATIM_DEVICES" : strerror(errno));
		return VB_CLI_FAILED;
	}
	for (int i = 0; i < n && !status; i++)
		status = device_print(&library, devices[i]);
	library.device.free_list(devices);
	return status;
}
