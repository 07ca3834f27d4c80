/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_DAEMON_HUB_INTERNAL_H
#define VB_DAEMON_HUB_INTERNAL_H

/*
 * The hub's state, for hub.c, which has the connections, slot holders and ring requests, and for
 * answers.c.
 */

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/fifo.h"
#include "daemon/estates.h"
#include "daemon/links.h"
#include "daemon/mads.h"
#include "daemon/slots.h"
#include "hub/proto.h"

#define MS_NS 1000000ull

enum {
	CONNS_MAX = 4096,
	CONN_KEEPS = 2, /* descriptors kept for a connection: an offer; a ring and its line */
	SLOT_BITS = 64,
};

enum phase {
	SEEKING, /* port 4791 is taken: by the sockets of a dead hub, or by another program */
	SERVING,
	LEAVING,
};

enum role {
	STRANGER, /* has sent nothing yet */
	CLIENT,
	TENANT, /* wants a slot once we serve */
	ASKER,	/* wants to reach a slot once its holder is known */
	GONE,	/* to be closed at the end of the turn */
};

struct conn {
	int fd;
	enum role role;
	bool welcome; /* CLIENT: was sent the keeper */
	bool shm;     /* CLIENT: can be reached through shared memory; fds has its offer */
	bool proven;  /* CLIENT: the process at the other end made the token */
	uint32_t why; /* ... or the reason why not (enum vb_hub_link_why) */
	uint32_t ports_due; /* CLIENT: so many that it had under the last hub are still to come */
	struct vb_links *links;
	struct vb_fifo mads; /* CLIENT: for which there was no room */
	struct vb_cm_records *records; /* CLIENT: of what it has connected by rdma_cm, or NULL */
	uint64_t since_ns;
	struct vb_hub_program program;
	struct vb_hub_reach reach;		      /* ASKER: its question ... */
	/* ... valid while `from` has this lease number */
	uint64_t lease;
	int fds[CONN_KEEPS];			      /* CLIENT: token, export; ASKER: ring, line */
	uint64_t slots[VB_HUB_SLOTS_MAX / SLOT_BITS]; /* CLIENT: slots whose names it has shown */
};

struct lease {
	bool indexed; /* next_index comes from the holder */
	uint32_t next_index;
	uint64_t number; /* counts this hub's leases */
	uint64_t since_ns;
	struct vb_hub_program program;
};

struct hub {
	int listen_fd;
	struct vb_failure failure; /* why it leaves, if error is not 0 */
	enum phase phase;
	/* started; last had connections; accepts again */
	uint64_t idle_ns, start_ns, busy_ns, accept_ns;
	uint64_t leases, strays, rings;
	struct vb_slots slots;
	struct vb_ports ports;
	struct vb_estate *estates; /* of those who have gone, and perhaps died */
	struct vb_mads mads;
	struct lease lease[VB_HUB_SLOTS_MAX];
	uint64_t heir_ns;    /* until when we wait for what the last hub knew; 0: all is told */
	uint64_t collect_ns; /* until when to collect from the dead; 0: no collection */
	unsigned conns, conns_max;
	struct conn conn[CONNS_MAX];
	struct pollfd pollfd[CONNS_MAX + 2];
};

/* Handles a message of one type. Owns the descriptors that came with it. */
typedef void on_message(struct hub *hub, struct conn *conn, const struct vb_hub_msg *msg,
			const int *fds, unsigned n);

#endif
