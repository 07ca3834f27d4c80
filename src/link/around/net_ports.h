/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_AROUND_NET_PORTS_H
#define VB_LINK_AROUND_NET_PORTS_H

/*
 * The ports of a modelled network, shared by all processes of a user that name the same one, also
 * across network namespaces. Of each port and direction one figure matters: when it has sent all
 * that it was given. The others are for who looks. Any thread; nothing is locked, so a process may
 * die at any time.
 *
 * The file is /dev/shm/verbatim-net.UID.NAME; the last process to leave removes it. Its format is
 * struct vb_net_port, read by tests/lib/net_ports.py as well.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/path.h"

enum { VB_NET_PORTS = 4096 }; /* addresses; more of them share the first one */

enum vb_net_ways {
	VB_NET_UP,   /* from the host */
	VB_NET_DOWN, /* to the host */
};

struct vb_net_way {
	_Atomic uint64_t done_ns; /* CLOCK_MONOTONIC */
	_Atomic uint64_t frames, bytes; /* queued, with all octets of the line */
	_Atomic uint64_t lost, marked;	/* frames */
	_Atomic uint64_t most_ns; /* the longest that anything had to wait */
};

struct vb_net_port {
	_Atomic uint64_t who; /* a hash of its address; 0: nobody's */
	_Atomic uint64_t gid[2];
	struct vb_net_way way[2]; /* by enum vb_net_ways */
};

/* What comes to a port. */
struct vb_net_load {
	uint64_t at_ns, takes_ns;
	uint64_t bytes;
	uint32_t frames;
};

struct vb_net_ports;

/* Returns 0, or a positive errno: of open(2), or EPERM where the file is not ours alone. */
int vb_net_ports_open(struct vb_net_ports **ports, const char *name);
void vb_net_ports_close(struct vb_net_ports *ports);

/* In a forked child: lets go of the memory. */
void vb_net_ports_forget(struct vb_net_ports *ports);

static inline void vb_net_count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* What an address has in one direction. It stays until the ports are closed. */
struct vb_net_way *vb_net_ports_way(struct vb_net_ports *ports, const uint8_t gid[VB_GID_BYTES],
				    enum vb_net_ways way);

/*
 * Queues what comes there. Returns false if more than most_ns of others are before it: nothing was
 * queued. *before_ns: how much is; *done_ns: when it has been sent.
 */
bool vb_net_way_queue(struct vb_net_way *way, const struct vb_net_load *load, uint64_t most_ns,
		      uint64_t *before_ns, uint64_t *done_ns);

#endif
