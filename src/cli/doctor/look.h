/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_DOCTOR_LOOK_H
#define VB_CLI_DOCTOR_LOOK_H

/* Looks at this process and its surroundings, but the network (net.h) and devices (device.h). */

#include "cli/doctor/facts.h"

/* Everything is left as it was; a keeper of the view may run, and leaves by itself. */
void vb_doctor_look(struct vb_doctor_facts *facts);

#endif
