/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/doctor/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "cli/cli.h"

int vb_cli_library_open(struct vb_cli_library *library)
{
	const struct {
		const char *name;
		void *function;
	} names[] = {
		{ "ibv_get_device_list", &library->device.get_list },
		{ "ibv_free_device_list", &library->device.free_list },
		{ "ibv_get_device_name", &library->device.get_name },
		{ "ibv_get_device_guid", &library->device.get_guid },
		{ "ibv_open_device", &library->device.open },
		{ "ibv_close_device", &library->device.close },
		{ "ibv_query_port", &library->port.query },
		{ "ibv_query_gid", &library->port.query_gid },
		{ "ibv_query_gid_type", &library->port.query_gid_type },
		{ "ibv_port_state_str", &library->port.state_str },
		{ "vb_port_mac", &library->port.mac },
		{ "ibv_alloc_pd", &library->object.alloc_pd },
		{ "ibv_reg_mr", &library->object.reg_mr },
		{ "ibv_create_cq", &library->object.create_cq },
		{ "ibv_create_qp", &library->object.create_qp },
		{ "ibv_modify_qp", &library->object.modify_qp },
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
