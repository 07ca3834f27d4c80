/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_DAEMON_HUB_INTERNAL_H
#define VB_DAEMON_HUB_INTERNAL_H

/*
 * The inside of the hub, for src/daemon only: hub.c has the connections, and who holds and reaches
 * what; answers.c answers what anybody of this user may ask.
 */

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"
#include "daemon/links.h"
#include "daemon/slots.h"
#include "hub/proto.h"

#define MS_NS 1000000ull

enum {
	CONNS_MAX = 4096,
	CONN_KEEPS = 2, /* descriptors that came on a connection: an offer; a ring and its line */
	SLOT_BITS = 64,
};

enum phase {
	SEEKING, /* port 4791 is taken: by the sockets of a dead hub, or by a stranger */
	SERVING,
	LEAVING,
};

enum role {
	STRANGER, /* has said nothing yet */
	CLIENT,
	TENANT, /* wants a slot, as soon as we serve */
	ASKER,	/* wants to reach a slot, as soon as we know whose it is */
	GONE,	/* to be closed at the end of the turn */
};

struct conn {
	int fd;
	enum role role;
	bool welcome; /* CLIENT: has been sent the keeper */
	bool shm;     /* CLIENT: can be reached through shared memory, with what is in fds */
	bool proven;  /* CLIENT: the process that made its token is the one at the other end */
	uint32_t why; /* ... or this is why not (enum vb_hub_link_why) */
	struct vb_links *links;
	uint64_t since_ns;
	struct vb_hub_program program;
	struct vb_hub_reach reach;		      /* ASKER: to do ... */
	uint64_t lease;				      /* ... as long as this is who has `from` */
	int fds[CONN_KEEPS];			      /* CLIENT: token, export; ASKER: ring, line */
	uint64_t slots[VB_HUB_SLOTS_MAX / SLOT_BITS]; /* CLIENT: those it has shown to be its own */
};

struct lease {
	bool indexed; /* next_index is known, not made up */
	uint32_t next_index;
	uint64_t number; /* of the leases of this hub, the one by which the slot is held */
	uint64_t since_ns;
	struct vb_hub_program program;
};

struct hub {
	int listen_fd;
	struct vb_failure failure; /* why it leaves, if its error is not 0 */
	enum phase phase;
	uint64_t idle_ns, start_ns, busy_ns, accept_ns; /* started; last seen busy; accepts again */
	uint64_t leases, strays, rings;
	struct vb_slots slots;
	struct lease lease[VB_HUB_SLOTS_MAX];
	uint64_t collect_ns; /* until when to look for what the dead have; 0: not at all */
	unsigned conns, conns_max;
	struct conn conn[CONNS_MAX];
	struct pollfd pollfd[CONNS_MAX + 2];
};

/* What is done with a message of one type; the descriptors that came with it are its own now. */
typedef void on_message(struct hub *hub, struct conn *conn, const struct vb_hub_msg *msg,
			const int *fds, unsigned n);

/* --- hub.c --- */

/* Who has shown that the slot is his; NULL if nobody has, as far as we have listened. */
struct conn *vb_hub_client_of(struct hub *hub, unsigned slot);

unsigned vb_hub_clients_count(const struct hub *hub);

/* --- answers.c: these come without descriptors --- */

on_message vb_hub_answer_status;
on_message vb_hub_answer_stop;
on_message vb_hub_answer_fail;
on_message vb_hub_answer_who;
on_message vb_hub_answer_domains;
on_message vb_hub_answer_noted;

#endif
