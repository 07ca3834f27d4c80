/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_HUB_CLIENT_INTERNAL_H
#define VB_HUB_CLIENT_INTERNAL_H

/*
 * A client's state, for src/hub/client*.c only. What each of these files offers the others stands
 * at the end of its header.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/failure.h"
#include "base/fd.h"
#include "base/fifo.h"
#include "base/lock.h"
#include "hub/client.h"
#include "hub/client_reach.h"
#include "hub/proto.h"

#define MS_NS 1000000ull

/* How long a call of a client may take. */
#define VB_HUB_CALL_NS (3000 * MS_NS)
/* How long open and lease wait for a slow hub: a busy machine is not an error. */
#define VB_HUB_PATIENCE_NS (30000 * MS_NS)

struct vb_hub_spawn;

enum {
	VB_HUB_RINGS_MAX = 64,	 /* waiting for a turn; further ones wait in the socket */
	VB_HUB_RINGS_SEEN = 64, /* how many received rings are remembered */
	VB_HUB_ASKS_MAX = 64,	/* questions under way */
};

struct vb_hub_held {
	uint16_t slot;
	bool told;  /* the hub knows next_index */
	bool shown; /* ... and has seen the name, on this connection */
	uint32_t next_index;
	int name_fd; /* the slot is ours while this is open */
};

struct vb_hub_port {
	struct vb_hub_port *next;      /* in its bucket; one that is given up is in none */
	TAILQ_ENTRY(vb_hub_port) link; /* in untold, if it is not told */
	struct vb_hub_bind bind;
	bool told, given_up;
};

TAILQ_HEAD(vb_hub_untold, vb_hub_port);

struct vb_hub_told_link {
	bool told;
	struct vb_hub_link link;
};

/* A ring received from another process. */
struct vb_hub_client_ring {
	uint16_t from, to;
	int fd;
	struct vb_hub_peer peer;
};

enum vb_hub_ask_state {
	VB_HUB_ASK_NONE,
	VB_HUB_ASK_SENT,     /* the hub has it, or will when it continues */
	VB_HUB_ASK_RESTS,    /* no hub, or a busy receiver: will be asked again */
	VB_HUB_ASK_ANSWERED, /* its owner is being told */
};

/* A question: may our slot `from` reach another's slot `to`? */
struct vb_hub_ask {
	enum vb_hub_ask_state state;
	uint16_t from, to;
	struct vb_hub_ring_files files;
	int conn_fd; /* in state SENT only */
	uint64_t since_ns, again_ns, pause_ns;
};

/* What we told the hub of our links. */
struct vb_hub_client_links {
	vb_lock lock; /* taken inside the client's lock */
	struct vb_hub_told_link link[VB_HUB_LINKS_MAX];
	unsigned n;
	_Atomic bool wait; /* news for a turn: the client's lock was taken */
};

/* News from the hub that wait for a turn, and their receivers. */
struct vb_hub_client_news {
	vb_hub_ring_fn *ring_fn;
	void *ring_arg;
	bool fatal, noted;
	int sample_fd; /* where to tell how we are; VB_FD_NONE: nobody has asked */
	uint32_t measure_s;
	bool delivering;     /* a turn is calling ring_fn */
	unsigned rings;	     /* rings that wait */
	unsigned ring_first; /* the oldest of them */
	struct vb_hub_client_ring ring[VB_HUB_RINGS_MAX];
	unsigned seen_next;
	ino_t seen[VB_HUB_RINGS_SEEN];
};

/* Questions under way (client_reach.c). */
struct vb_hub_client_asks {
	vb_lock lock; /* taken inside the client's lock; no thread waits for anything under it */
	int timer_fd;
	struct vb_hub_ask ask[VB_HUB_ASKS_MAX];
	struct vb_hub_answers answers;
};

/* What a program has bound, and MADs for which the hub had no room (client_ports.c). */
struct vb_hub_client_ports {
	struct vb_hub_port *bucket[1024];
	struct vb_hub_untold untold;
	int asks_fd;	/* a connection by which ports were asked for; VB_FD_NONE: none is idle */
	int records_fd; /* the caller's; VB_FD_NONE: there are none */
	struct vb_fifo mads;
};

struct vb_hub_client {
	vb_lock lock;
	int epoll_fd; /* contains the next three; polled by the caller */
	int timer_fd; /* the next attempt to connect */
	int wake_fd;  /* an eventfd: something waits for a turn */
	int conn_fd;  /* VB_FD_NONE while there is no hub */
	int keeper[VB_HUB_KEEPER_FDS];
	bool welcome;	       /* the hub on conn_fd has accepted us */
	bool full;	       /* conn_fd accepts no more; epoll tells when it does */
	struct vb_failure trouble; /* why there is no hub; error 0: unknown */
	uint64_t spawn_ns;     /* no hub is started before this time */
	uint64_t retry_ns;     /* pause before the next attempt, doubled each time */
	uint64_t netns_cookie; /* 0: the kernel does not tell */
	unsigned hubs;	       /* how many we have connected to */
	struct vb_hub_spawn *spawn;
	struct vb_hub_held *held;
	unsigned held_n;
	bool offers;
	struct vb_hub_offer offer;
	struct vb_hub_receivers on;
	struct vb_hub_client_links links;
	struct vb_hub_client_news news;
	struct vb_hub_client_asks asks;
	struct vb_hub_client_ports ports;
};

#endif
