/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_DOCTOR_DEVICE_H
#define VB_CLI_DOCTOR_DEVICE_H

/* Looks at the devices as programs get them: a child opens each by our library. */

#include "cli/doctor/facts.h"
#include "cli/doctor/library.h"

/* Starts a hub if none runs. */
void vb_doctor_look_devices(struct vb_doctor_facts *facts);

/* A row of the GID table that QPs can use: RoCE v2. False: there is none with that number. */
bool vb_doctor_gid(const struct vb_cli_library *library, struct ibv_context *context, int index,
		   union ibv_gid *gid);

#endif
