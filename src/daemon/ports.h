/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_DAEMON_PORTS_H
#define VB_DAEMON_PORTS_H

/*
 * The port spaces of rdma_cm, one table for all processes of a hub: who has which port of which
 * address, and who takes requests there (rdma_bind_addr(3), rdma_listen(3)). Pure: no system call.
 */

#include <stdbool.h>
#include <stdint.h>

#include "hub/proto.h"

enum {
	VB_PORTS_MAX = 1 << 17, /* bindings in all */
	VB_PORTS_FIRST = 32768, /* what is given to those who ask for any: as Linux does */
	VB_PORTS_LAST = 60999,
};

struct vb_port_bound;

struct vb_ports {
	struct vb_port_bound *bucket[4096];
	unsigned count;
	uint32_t next; /* which of those to look at first; begins at random */
};

/* The first that has the port, so that this cannot be bound; NULL: there is none. */
const struct vb_hub_bind *vb_ports_in_way(struct vb_ports *ports, const struct vb_hub_bind *bind);

/*
 * Binds; what has the same slot, id, space and port is changed. known: it was bound under a hub
 * before us, so nobody is asked. *port: which it is. Returns 0; EADDRINUSE: that address and port
 * are bound; EADDRNOTAVAIL: the port is bound, and one of the two has all addresses, or no port is
 * free; ENOSPC: too many are bound; ENOMEM. After an error all is as it was.
 */
int vb_ports_bind(struct vb_ports *ports, const struct vb_hub_bind *bind, bool known,
		  uint16_t *port);

/* It has it no more; nothing happens if it never had. */
void vb_ports_unbind(struct vb_ports *ports, const struct vb_hub_unbind *unbind);

/* The slot's process is gone, and all that it had. */
void vb_ports_forget(struct vb_ports *ports, uint32_t slot);

/* Who takes requests for that port of that address; NULL. */
const struct vb_hub_bind *vb_ports_listener(const struct vb_ports *ports, uint32_t space,
					    uint16_t port, const uint8_t gid[VB_HUB_GID_BYTES]);

/* The same, by whichever address, of the port that is nearest to this one; NULL: none listens. */
const struct vb_hub_bind *vb_ports_nearest(const struct vb_ports *ports, uint32_t space,
					   uint16_t port);

/* Calls for each that listens until that returns false. */
void vb_ports_listeners(const struct vb_ports *ports,
			bool (*each)(void *arg, const struct vb_hub_bind *bind), void *arg);

void vb_ports_free(struct vb_ports *ports);

#endif
