/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_DOCTOR_NET_H
#define VB_CLI_DOCTOR_NET_H

/* Looks at what is needed of the network: the port, UDP sockets, the hub, packet sockets. */

#include "cli/doctor/facts.h"

/* Before anything starts a hub, which takes the port. */
void vb_doctor_look_net(struct vb_doctor_facts *facts);

#endif
