/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_HUB_CLIENT_H
#define VB_HUB_CLIENT_H

/*
 * A process's connection to the hub. Leases slots (client_requests.h), exchanges what shared memory
 * between processes needs (client_reach.h), notices when the hub dies, starts a new one and tells
 * it which slots this process holds. Every call that waits has a deadline.
 */

#include <stdbool.h>
#include <stdint.h>

#include "hub/proto.h"

struct vb_hub_client;

/*
 * What this process offers to those that want to reach it. token: a unix socket made by this
 * process; by it the kernel tells others our PID in their own namespace. export: passed on as it
 * is.
 */
struct vb_hub_offer {
	int token_fd, export_fd;
	bool shm; /* false: reaches nobody by shared memory, and is reached by nobody */
	enum vb_hub_link_why why; /* ... for this reason */
};

/* What another process offers. The receiver owns the descriptors. */
struct vb_hub_peer {
	uint32_t pid; /* 0 if it has none in our PID namespace, or is not proven */
	int line_fd;  /* with a received ring: our end of its line; otherwise none */
	int export_fd;
	/* Only in answers, also with EOPNOTSUPP: */
	struct vb_hub_program program; /* its pid 0: there is none */
	enum vb_hub_link_why why;      /* with EOPNOTSUPP */
	bool why_is_there;	       /* the reason lies with the other process */
};

/*
 * Another process sends to our slot `to` through this ring, from its slot `from`. The callee owns
 * all descriptors. Called from vb_hub_client_turn only, one call at a time and in the order in
 * which the others asked, without any lock of the client. Once for each ring; of several rings
 * between the same two slots the last counts.
 */
typedef void vb_hub_ring_fn(void *arg, uint16_t from, uint16_t to, int ring_fd,
			    const struct vb_hub_peer *peer);

/*
 * Connects to the hub of this uid and network namespace; starts it if there is none. offer: NULL if
 * shared memory is not wanted (ring may be NULL then); its descriptors stay the caller's and must
 * stay open until close. Reads the environment, which no later call does.
 * Returns 0, EADDRINUSE (another program holds port 4791 here), ENOENT (no verbatimd found), EAGAIN
 * (fork(2) has no resources), EMFILE or EFBIG (the hub cannot work with the limits it would
 * inherit: RLIMIT_NOFILE, RLIMIT_FSIZE), ETIMEDOUT, EPERM (another uid has the hub's name), or
 * another positive errno.
 */
int vb_hub_client_open(struct vb_hub_client **, const struct vb_hub_offer *offer,
		       vb_hub_ring_fn *ring, void *arg);

/*
 * What is called with open's arg, where it is not NULL. fatal: this process's device is to fail;
 * noted: there is news in the log of XRC domains; sample: somebody wants to know how this process
 * is, and gets VB_HUB_SAMPLED by answer_fd, which stays the client's (measure_s: it will ask
 * again that soon; 0: perhaps not); these from vb_hub_client_turn only and without any lock of the
 * client. mad: one has come; capture: somebody asks for one by this socket, which is the callee's;
 * both by any thread, with the client locked.
 */
struct vb_hub_receivers {
	void (*fatal)(void *arg), (*noted)(void *arg);
	void (*sample)(void *arg, int answer_fd, uint32_t measure_s);
	void (*mad)(void *arg, const struct vb_hub_mad *mad);
	void (*capture)(void *arg, int fd);
};

/* Before the first turn, and before the first bind. */
void vb_hub_client_receivers(struct vb_hub_client *, const struct vb_hub_receivers *);

/*
 * Tells the hub by which link we reach a peer, for status; replaces what was told about the same
 * peer before. Tells at most VB_HUB_LINKS_MAX. Never waits. Any thread.
 */
void vb_hub_client_link(struct vb_hub_client *, const struct vb_hub_link *);

/*
 * Tells the hub the slot's next QP index: at least every 256 indices, and before close. Without it
 * the hub skips that many when it leases the slot again. Any thread.
 */
void vb_hub_client_mark(struct vb_hub_client *, uint16_t slot, uint32_t next_index);

/*
 * The memory of the XRC domains, which all clients of a uid and network namespace share while one
 * of them lives. Returns 0 with a descriptor that the caller owns, or a positive errno. Any thread.
 */
int vb_hub_client_store(struct vb_hub_client *, int *fd);

/* The fd to poll (POLLIN): readable when the hub sends something or is gone. */
int vb_hub_client_fd(struct vb_hub_client *);

/*
 * Called when that fd is readable. Handles what came, replaces a dead hub, and delivers received
 * rings. Never waits (except for a vfork); what it could not finish makes the fd readable again.
 * Any thread.
 */
void vb_hub_client_turn(struct vb_hub_client *);

/*
 * In a forked child: drops the connection without telling the hub. Takes no lock, and touches
 * nothing that the parent still uses.
 */
void vb_hub_client_forget(struct vb_hub_client *);

/* Gives all slots back. The caller closes their UDP sockets before. */
void vb_hub_client_close(struct vb_hub_client *);

/* --- for the client's other files: with the client locked, unless stated otherwise --- */

void vb_hub_fds_close(int *fds, unsigned n);

/*
 * Sends descriptors. The kernel counts all descriptors in flight of the user, all slots among them,
 * against the soft limit of the sender (unix(7), ETOOMANYREFS): the limit is raised meanwhile.
 */
int vb_hub_fds_send(int fd, const struct vb_hub_msg *msg, const int *fds, unsigned n);

/* Tells the hub what it does not know of our slots. What finds no room is sent later. */
void vb_hub_marks_send(struct vb_hub_client *client);

/* Notes an error that the hub reported. Returns it. */
int vb_hub_refused(uint32_t error, const char why[VB_HUB_WHY_BYTES]);

/*
 * Waits for the answer on answer_fd (VB_FD_NONE: for nothing) and handles news from the hub
 * meanwhile, since the hub may need us connected before it can answer. Returns 0 if we are
 * connected, else why not. Not locked.
 */
int vb_hub_news_wait(struct vb_hub_client *client, int answer_fd, uint64_t deadline_ns);

#endif
