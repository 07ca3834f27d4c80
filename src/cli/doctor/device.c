/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/doctor/device.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "cli/doctor/child.h"

#define OPEN_NS 10000000000u

bool vb_doctor_gid(const struct vb_cli_library *library, struct ibv_context *context, int index,
		   union ibv_gid *gid)
{
	unsigned type = 0;

	/* As sysfs counts them: 0 is RoCE v1. */
	return !library->port.query_gid(context, 1, index, gid) && gid->global.interface_id &&
	       !library->port.query_gid_type(context, 1, (unsigned)index, &type) && type;
}

/* Do other hosts have a way to it? */
static bool is_far(const union ibv_gid *gid)
{
	struct in6_addr address;

	memcpy(&address, gid->raw, sizeof(address));
	if (IN6_IS_ADDR_V4MAPPED(&address))
		return gid->raw[12] != IN_LOOPBACKNET;
	return !IN6_IS_ADDR_LOOPBACK(&address);
}

static void gids_look(const struct vb_cli_library *library, struct ibv_context *context,
		      struct vb_doctor_device *device, int rows)
{
	union ibv_gid gid;

	for (int i = 0; i < rows; i++) {
		if (!vb_doctor_gid(library, context, i, &gid))
			continue;
		if (!device->gids++)
			vb_gid_text(device->gid, gid.raw);
		device->gids_far += is_far(&gid);
	}
}

static void device_look(const struct vb_cli_library *library, struct ibv_device *from,
			struct vb_doctor_device *device)
{
	struct ibv_context *context = library->device.open(from);
	struct ibv_port_attr port = { 0 };

	device->error = context ? 0 : errno ? errno : EIO;
	snprintf(device->name, sizeof(device->name), "%s", library->device.get_name(from));
	if (!context)
		return;
	library->port.query(context, 1, &port);
	device->active = port.state == IBV_PORT_ACTIVE;
	device->mtu = 128u << port.active_mtu;
	gids_look(library, context, device, port.gid_tbl_len);
	library->device.close(context);
}

static void devices_try(void *arg)
{
	struct vb_doctor_devices *devices = arg;
	struct vb_cli_library library;
	struct ibv_device **list = NULL;
	int count = 0;

	setenv("VERBATIM_LOG", "stderr", 1);
	devices->error = vb_cli_library_open(&library);
	if (!devices->error) {
		list = library.device.get_list(&count);
		devices->error = count ? 0 : errno ? errno : ENODEV;
	}
	for (int i = 0; i < count && i < VB_DOCTOR_DEVICES; i++) {
		device_look(&library, list[i], &devices->device[i]);
		devices->count++;
	}
	devices->looked = true;
}

void vb_doctor_look_devices(struct vb_doctor_facts *facts)
{
	struct vb_doctor_devices *devices = vb_doctor_shared(sizeof(*devices));
	struct vb_doctor_child child;
	char log[VB_DOCTOR_WORDS_BYTES] = "";

	if (!devices)
		return;
	if (!vb_doctor_child_start(&child, devices_try, devices))
		vb_doctor_child_end(&child, vb_doctor_now_ns() + OPEN_NS, log, sizeof(log));
	facts->devices = *devices;
	memcpy(facts->devices.log, log, sizeof(log));
}
