/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_HUB_CLIENT_INTERNAL_H
#define VB_HUB_CLIENT_INTERNAL_H

/*
 * The inside of a client, for src/hub/client*.c only: client.c has the connection, client_rings.c
 * the rings that others send to us through, client_requests.c what is asked of the hub by those who
 * wait for the answer, client_reach.c what is asked by those who do not.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/failure.h"
#include "base/fd.h"
#include "base/lock.h"
#include "hub/client.h"
#include "hub/proto.h"

#define MS_NS 1000000ull

/* How long a call of a client may take. */
#define VB_HUB_CALL_NS (3000 * MS_NS)
/* What an open and a lease wait where the hub may just be slow: a busy machine is no failure. */
#define VB_HUB_PATIENCE_NS (30000 * MS_NS)

struct vb_hub_spawn;

enum {
	VB_HUB_RINGS_MAX = 64,	 /* that wait for a turn; further ones wait in the socket */
	VB_HUB_RINGS_SEEN = 64, /* the last ones that came */
	VB_HUB_ASKS_MAX = 64,	/* questions under way */
};

struct vb_hub_held {
	uint16_t slot;
	bool told;  /* the hub has heard how far the index is */
	bool shown; /* ... and has seen the name, on this connection */
	uint32_t next_index;
	int name_fd; /* the slot is ours as long as this is open */
};

struct vb_hub_told_link {
	bool told;
	struct vb_hub_link link;
};

/* Another process sends to us. */
struct vb_hub_client_ring {
	uint16_t from, to;
	int fd;
	struct vb_hub_peer peer;
};

enum vb_hub_ask_state {
	VB_HUB_ASK_NONE,
	VB_HUB_ASK_SENT,     /* the hub has it, or will when it goes on */
	VB_HUB_ASK_RESTS,    /* there was no hub, or somebody was too busy: it is asked again */
	VB_HUB_ASK_ANSWERED, /* and its owner is being told */
};

/* Somebody wants to reach another's slot. */
struct vb_hub_ask {
	enum vb_hub_ask_state state;
	uint16_t from, to;
	struct vb_hub_ring_files files;
	int conn_fd; /* SENT only */
	uint64_t since_ns, again_ns, pause_ns;
};

/* What we have told the hub of our links. */
struct vb_hub_client_links {
	vb_lock lock; /* inside the client's */
	struct vb_hub_told_link link[VB_HUB_LINKS_MAX];
	unsigned n;
	_Atomic bool wait; /* for a turn, since somebody had the client's lock */
};

/* What the hub has told us, and waits for a turn; whom it is for. */
struct vb_hub_client_news {
	vb_hub_ring_fn *ring_fn;
	void *ring_arg;
	void (*fatal_fn)(void *arg);
	void (*noted_fn)(void *arg);
	bool fatal, noted;
	bool delivering;     /* a turn is inside ring_fn */
	unsigned rings;	     /* that wait */
	unsigned ring_first; /* the oldest of them */
	struct vb_hub_client_ring ring[VB_HUB_RINGS_MAX];
	unsigned seen_next;
	ino_t seen[VB_HUB_RINGS_SEEN];
};

/* Questions under way (client_reach.c). */
struct vb_hub_client_asks {
	vb_lock lock; /* inside the client's; nobody waits for anything under it */
	int timer_fd;
	struct vb_hub_ask ask[VB_HUB_ASKS_MAX];
	struct vb_hub_answers answers;
};

struct vb_hub_client {
	vb_lock lock;
	int epoll_fd; /* watches the next three; what the caller polls */
	int timer_fd; /* the next attempt to connect */
	int wake_fd;  /* an eventfd: something waits for a turn */
	int conn_fd;  /* VB_FD_NONE while there is no hub */
	int keeper[VB_HUB_KEEPER_FDS];
	bool welcome;	       /* the hub on conn_fd has taken us in */
	bool full;	       /* conn_fd takes no more; epoll tells when it does */
	struct vb_failure trouble; /* why there is no hub; its error 0: nobody knows */
	uint64_t spawn_ns;     /* not before that time do we start a hub */
	uint64_t retry_ns;     /* pause before the next attempt, doubled each time */
	uint64_t netns_cookie; /* 0: the kernel does not tell */
	struct vb_hub_spawn *spawn;
	struct vb_hub_held *held;
	unsigned held_n;
	bool offers;
	struct vb_hub_offer offer;
	struct vb_hub_client_links links;
	struct vb_hub_client_news news;
	struct vb_hub_client_asks asks;
};

/* --- client.c: any of these with the client locked, if not said otherwise --- */

void vb_hub_fds_close(int *fds, unsigned n);

/*
 * Send descriptors. The kernel counts the user's in flight, all slots among them, against the soft
 * limit of the process that sends one (unix(7), ETOOMANYREFS).
 */
int vb_hub_fds_send(int fd, const struct vb_hub_msg *msg, const int *fds, unsigned n);

/* Say what the hub has not heard of our slots. What finds no room is said when there is some. */
void vb_hub_marks_send(struct vb_hub_client *client);

/* What a hub has told of an error, noted. Returns the error. */
int vb_hub_refused(uint32_t error, const char why[VB_HUB_WHY_BYTES]);

/*
 * Wait for the answer on answer_fd (VB_FD_NONE: for nothing), handling news from the hub meanwhile:
 * it may need us to be connected before it can answer anybody. Whether we are, and if not, why. Not
 * locked.
 */
int vb_hub_news_wait(struct vb_hub_client *client, int answer_fd, uint64_t deadline_ns);

/* --- client_requests.c --- */

/*
 * Is it worth another try? EADDRINUSE: the hub found sockets and not yet us, who have their keeper.
 */
bool vb_hub_was_missing(int rc);

/* There is no more time for what failed so: ETIMEDOUT, noted. */
int vb_hub_out_of_time(int rc);

/* --- client_reach.c --- */

int vb_hub_asks_open(struct vb_hub_client *client);

/* As vb_hub_client_forget(). */
void vb_hub_asks_forget(struct vb_hub_client *client);

/* Take in what answers there are, ask again what it is time for. No lock of the client held. */
void vb_hub_asks_turn(struct vb_hub_client *client);

/* --- client_rings.c --- */

/*
 * Which process a token is of, in this process's own numbers: the hub may live in another PID
 * namespace than we do. 0: it has none here, or is not proven to be it.
 */
uint32_t vb_hub_pid_here(int token_fd, bool proven);

void vb_hub_ring_clear(struct vb_hub_client_ring *ring);

/* Rings are handed on by a turn only: any other caller may hold locks that their receiver needs. */
void vb_hub_ring_take(struct vb_hub_client *client, const struct vb_hub_msg *msg, int *fds);

/* wake_fd is readable no more, unless something waits still. With the lock held. */
void vb_hub_wake_hush(struct vb_hub_client *client);

/* With the lock held, but for the calls. */
void vb_hub_rings_deliver(struct vb_hub_client *client);

#endif
