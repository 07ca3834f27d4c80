/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_LINKS_PORT_H
#define VB_RUN_LINKS_PORT_H

/* A slot's socket, and the links that the settings put around it. */

#include <stdint.h>

#include "hub/client_requests.h"
#include "link/around/net.h"
#include "link/link.h"
#include "run/faults/faults.h"
#include "run/process/env.h"

struct vb_port {
	uint16_t slot;
	int fd; /* owned by the link */
	struct vb_link *link;
	/* the link's second descriptor, as last told to sleepers (under the rx right) */
	int rx_fd_seen;
};

struct vb_port_maker {
	const struct vb_env *env;
	struct vb_faults *faults; /* NULL: there is no script */
	vb_net_marked *marked; /* with arg */
	void *arg;
};

/*
 * Puts links on a slot's socket, which is the port's from then on, whatever it returns. index: the
 * how manieth port of the process it is. Returns 0, or the errno of a link, in words if a setting
 * is to blame (base/failure.h).
 */
int vb_port_open(struct vb_port *port, const struct vb_port_maker *by,
		 const struct vb_hub_slot *slot, unsigned index);

/* The octets that its socket can hold. */
uint32_t vb_port_rx_buffer(const struct vb_port *port);

#endif
