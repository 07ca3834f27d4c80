/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/devices.h"

#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/path.h"
#include "cli/cli.h"
#include "cli/settings.h"

/*
 * Asks our own library, as any program would, and so shows what programs get. The functions are
 * looked up with dlsym(), since this command is not linked with libibverbs.
 */
struct library {
	struct ibv_device **(*get_device_list)(int *);
	void (*free_device_list)(struct ibv_device **);
	const char *(*get_device_name)(struct ibv_device *);
	uint64_t (*get_device_guid)(struct ibv_device *);
	struct ibv_context *(*open_device)(struct ibv_device *);
	int (*close_device)(struct ibv_context *);
	int (*query_port)(struct ibv_context *, uint8_t, struct ibv_port_attr *);
	int (*query_gid)(struct ibv_context *, uint8_t, int, union ibv_gid *);
	int (*query_gid_type)(struct ibv_context *, uint8_t, unsigned, unsigned *);
	const char *(*port_state_str)(enum ibv_port_state);
	void (*port_mac)(uint8_t mac[6]); /* of our port */
};

static int library_open(struct library *library)
{
	const struct {
		const char *name;
		void *function;
	} names[] = {
		{"ibv_get_device_list", &library->get_device_list},
		{"ibv_free_device_list", &library->free_device_list},
		{"ibv_get_device_name", &library->get_device_name},
		{"ibv_get_device_guid", &library->get_device_guid},
		{"ibv_open_device", &library->open_device},
		{"ibv_close_device", &library->close_device},
		{"ibv_query_port", &library->query_port},
		{"ibv_query_gid", &library->query_gid},
		{"ibv_query_gid_type", &library->query_gid_type},
		{"ibv_port_state_str", &library->port_state_str},
		{"vb_port_mac", &library->port_mac},
	};
	char dir[PATH_MAX], file[PATH_MAX + 32];
	void *handle;

	if (vb_cli_library_dir(dir)) {
		vb_cli_error("our libibverbs.so.1 is not where it should be");
		return ENOENT;
	}
	snprintf(file, sizeof(file), "%s/libibverbs.so.1", dir);
	handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	for (unsigned i = 0; handle && i < VB_ARRAY_LEN(names); i++) {
		void *symbol = dlsym(handle, names[i].name);

		if (!symbol)
			handle = NULL;
		memcpy(names[i].function, &symbol, sizeof(symbol));
	}
	if (handle)
		return 0;
	vb_cli_error("%s", dlerror());
	return ENOENT;
}

static void gids_print(const struct library *library, struct ibv_context *context, int n)
{
	char text[VB_ADDRESS_BYTES];
	union ibv_gid gid;
	unsigned type = 1;

	for (int i = 0; i < n; i++) {
		if (library->query_gid(context, 1, i, &gid) || !(gid.global.interface_id))
			continue;
		/* As sysfs counts them: 0 is RoCE v1. */
		library->query_gid_type(context, 1, (unsigned)i, &type);
		printf("  gid %-3d  %s%s\n", i, vb_gid_text(text, gid.raw),
		       type ? "" : "  (RoCE v1, which is not spoken)");
	}
}

static int device_print(const struct library *library, struct ibv_device *device)
{
	struct ibv_context *context = library->open_device(device);
	struct ibv_port_attr port = {0};
	const char *named = getenv("VERBATIM_DEVICES");
	uint8_t mac[6];

	if (!context) {
		vb_cli_error("%s cannot be opened: %s", library->get_device_name(device),
			     strerror(errno));
		return VB_CLI_FAILED;
	}
	library->query_port(context, 1, &port);
	printf("%s  guid %016" PRIx64 "  port 1 %s, MTU %d\n", library->get_device_name(device),
	       be64toh(library->get_device_guid(device)), library->port_state_str(port.state),
	       128 << port.active_mtu);
	library->port_mac(mac);
	printf("  mac      %02x:%02x:%02x:%02x:%02x:%02x\n", mac[0], mac[1], mac[2], mac[3], mac[4],
	       mac[5]);
	gids_print(library, context, port.gid_tbl_len);
	if (port.state != IBV_PORT_ACTIVE)
		puts(named ? "  no interface of this device is up, so there is no GID"
			   : "  no interface is up here, so there is no GID: ip link set lo up");
	library->close_device(context);
	return VB_CLI_OK;
}

int vb_cli_devices(int argc, char **argv)
{
	const char *log = getenv("VERBATIM_LOG");
	struct ibv_device **devices;
	struct library library;
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
	if (library_open(&library))
		return VB_CLI_FAILED;
	devices = library.get_device_list(&n);
	if (!devices || n == 0) {
		vb_cli_error("no devices: %s", devices ? "VERBATIM_DEVICES" : strerror(errno));
		return VB_CLI_FAILED;
	}
	for (int i = 0; i < n && !status; i++)
		status = device_print(&library, devices[i]);
	library.free_device_list(devices);
	return status;
}
