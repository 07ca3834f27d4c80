/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_HUB_CLIENT_H
#define VB_HUB_CLIENT_H

/*
 * A process's connection to the hub. Leases slots, exchanges what shared memory between processes
 * needs, notices when the hub dies, starts a new one and tells it which slots this process holds.
 * Every call that waits has a deadline.
 */

#include <stdbool.h>
#include <stdint.h>

#include "hub/proto.h"

struct vb_hub_client;

/* A leased slot: the upper 10 bits of the QPNs, and the socket on which their frames arrive. */
struct vb_hub_slot {
	uint16_t slot;
	uint32_t next_index; /* the slot's next 14-bit QP index */
	int fd;		     /* UDP socket on port 4791, drained; the caller owns it */
};

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
 * Sets what is called when this process's device is to fail: fatal, with open's arg, from
 * vb_hub_client_turn only and without any lock of the client. Before the first turn.
 */
void vb_hub_client_on_fatal(struct vb_hub_client *, void (*fatal)(void *arg));

/* The same for news in the log of XRC domains. */
void vb_hub_client_on_noted(struct vb_hub_client *, void (*noted)(void *arg));

/* Leases a slot. Returns 0, ENOSPC (all 1023 are taken), or as open. Any thread. */
int vb_hub_client_lease(struct vb_hub_client *, struct vb_hub_slot *);

/* A ring: a memfd, and both ends of its line, a socket pair that hangs up when one end is gone. */
struct vb_hub_ring_files {
	int ring_fd;
	int line_fd; /* our end */
	int far_fd;  /* the other's end, sent along with the ring */
};

/* Closes those that are open. */
void vb_hub_ring_files_close(struct vb_hub_ring_files *files);

/*
 * Receives the answers to questions (vb_hub_client_ask). came: rc and the files as described there;
 * the receiver sets the files that it takes over to VB_FD_NONE, and owns peer's descriptors if rc
 * is 0. over: the same may be asked again. Both are called in this order with open's arg, from
 * vb_hub_client_turn and vb_hub_client_await only, without any lock of the client. Several threads
 * may call them, each for a different question.
 */
struct vb_hub_answers {
	void (*came)(void *arg, uint16_t from, uint16_t to, struct vb_hub_ring_files *files,
		     int rc, const struct vb_hub_peer *peer);
	void (*over)(void *arg, uint16_t from, uint16_t to, int rc); /* may be NULL */
};

/* Before the first question. */
void vb_hub_client_on_answers(struct vb_hub_client *, const struct vb_hub_answers *);

/*
 * Asks the process that holds slot `to` to receive from our slot `from` through this ring. That
 * process is told before we are, and takes the ring in a turn of its own. Returns at once:
 * EINPROGRESS, and a later turn delivers the answer. Then the files that the client took over are
 * set to VB_FD_NONE; if the same question is already under way, it takes none. Any other errno
 * means that no answer will come: EAGAIN (too many questions under way), EINVAL (`from` is not
 * ours). Any thread.
 * The answer is 0; ENOENT (no process holds that slot); EOPNOTSUPP (one of the two does not want
 * shared memory or offers nothing; the other direction gets the same answer); EINVAL (both slots
 * are ours); EPERM (the hub does not believe that `from` is ours); ETIMEDOUT (for 3 s there was no
 * hub, or the holder took no more rings, or it has not contacted a new hub); or as lease. Even
 * after an error the other process may have received the ring. A stopped hub answers once it
 * continues.
 */
int vb_hub_client_ask(struct vb_hub_client *, uint16_t from, uint16_t to,
		      struct vb_hub_ring_files *files);

/*
 * Waits until that question is answered, and takes in the answer. Returns 0; EINPROGRESS if there
 * is no answer by until_ns (vb_hub_now_ns()). Any thread, without any lock that an answer needs.
 */
int vb_hub_client_await(struct vb_hub_client *, uint16_t from, uint16_t to, uint64_t until_ns);

/* When the oldest question under way was asked (vb_hub_now_ns()); UINT64_MAX: none. */
uint64_t vb_hub_client_asks_since(struct vb_hub_client *);

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

#endif
