/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_AROUND_NET_PORTS_H
#define VB_LINK_AROUND_NET_PORTS_H

/*
 * The ports of a modelled network, shared by all processes of a user that name the same one, also
 * across network namespaces. Of each port and direction only one figure is kept: when it has sent
 * everything that it was given. Any thread; nothing is locked, so a process may die at any time.
 *
 * The file is /dev/shm/verbatim-net.UID.NAME; the last process to leave removes it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/path.h"

enum { VB_NET_PORTS = 4096 }; /* addresses; more of them share the first one */

enum vb_net_way {
	VB_NET_UP,   /* from the host */
	VB_NET_DOWN, /* to the host */
};

struct vb_net_ports;

/* Returns 0, or a positive errno: of open(2), or EPERM where the file is not ours alone. */
int vb_net_ports_open(struct vb_net_ports **ports, const char *name);
void vb_net_ports_close(struct vb_net_ports *ports);

/* In a forked child: lets go of the memory. */
void vb_net_ports_forget(struct vb_net_ports *ports);

/*
 * Queues at the port of an address what comes at at_ns and takes so long to send. Returns false if
 * more than most_ns of others are before it: nothing was queued. *before_ns: how much is; *done_ns:
 * when it has been sent.
 */
bool vb_net_ports_queue(struct vb_net_ports *ports, const uint8_t gid[VB_GID_BYTES],
			enum vb_net_way way, uint64_t at_ns, uint64_t takes_ns, uint64_t most_ns,
			uint64_t *before_ns, uint64_t *done_ns);

#endif
