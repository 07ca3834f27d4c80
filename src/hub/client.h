/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_HUB_CLIENT_H
#define VB_HUB_CLIENT_H

/*
 * A process's connection to the hub: leases slots, exchanges with other processes what shared
 * memory between them needs, notices the hub's death, starts it again and tells it what this
 * process holds. Every call that waits has a deadline; none blocks for ever.
 */

#include <stdbool.h>
#include <stdint.h>

#include "hub/proto.h"

struct vb_hub_client;

/* A leased slot: the upper 10 bits of the QPNs, and the socket on which their frames arrive. */
struct vb_hub_slot {
	uint16_t slot;
	uint32_t next_index; /* where the slot's 14-bit QP indices go on counting */
	int fd;		     /* UDP socket on port 4791, drained; the caller owns it */
};

/*
 * What this process gives to those that want to reach it. token: a unix socket that this process
 * made, by which the kernel tells others in their own numbers which process that is. export: what
 * it is good for is theirs to know.
 */
struct vb_hub_offer {
	int token_fd, export_fd;
	bool shm; /* false: nobody shall reach us, and we reach nobody */
	enum vb_hub_link_why why; /* ... for this reason */
};

/* What another process offers. The descriptors belong to whoever receives this. */
struct vb_hub_peer {
	uint32_t pid; /* 0 if it cannot be seen from our PID namespace, or proven to be it */
	int line_fd;  /* of a ring that came: our end of its line; otherwise none */
	int export_fd;
	/* Of an answer only, and there after EOPNOTSUPP as well: */
	struct vb_hub_program program; /* its pid 0: there is none */
	enum vb_hub_link_why why;      /* of EOPNOTSUPP */
	bool why_is_there;	       /* the reason is the other's */
};

/*
 * Another process sends to our slot `to` through this ring, from its slot `from`. Owns all
 * descriptors. Called from vb_hub_client_turn only, one at a time and in the order in which the
 * others asked, without any lock of the client. Once for each ring; should the same two slots come
 * with another one, the later counts.
 */
typedef void vb_hub_ring_fn(void *arg, uint16_t from, uint16_t to, int ring_fd,
			    const struct vb_hub_peer *peer);

/*
 * Connect to the hub of this uid and network namespace; start it if there is none. offer: NULL if
 * shared memory is out of the question; its descriptors stay the caller's, and must stay open
 * until close. ring may be NULL then.
 * 0, or EADDRINUSE (somebody else holds port 4791 here), ENOENT (no verbatimd to start), EAGAIN
 * (no process can be made for it, as fork(2) says), EMFILE, EFBIG (it inherits limits that it
 * cannot work with: RLIMIT_NOFILE, RLIMIT_FSIZE), ETIMEDOUT, EPERM (the hub's name is taken by
 * another uid), or another positive errno. The environment is read here and never again.
 */
int vb_hub_client_open(struct vb_hub_client **, const struct vb_hub_offer *offer,
		       vb_hub_ring_fn *ring, void *arg);

/*
 * Somebody wants this process's device to fail: fatal is called with open's arg, from
 * vb_hub_client_turn only and without any lock of the client. Before the first turn.
 */
void vb_hub_client_on_fatal(struct vb_hub_client *, void (*fatal)(void *arg));

/*
 * There may be something new in the log of XRC domains: as on_fatal. Before the first turn.
 */
void vb_hub_client_on_noted(struct vb_hub_client *, void (*noted)(void *arg));

/* Lease a slot. 0, ENOSPC (all 1023 taken), or as open. Any thread. */
int vb_hub_client_lease(struct vb_hub_client *, struct vb_hub_slot *);

/* A ring, a memfd, and the two ends of its line, which hangs up when either of them is gone. */
struct vb_hub_ring_files {
	int ring_fd;
	int line_fd; /* our end */
	int far_fd;  /* the other's, which goes with the ring */
};

/* Those that are there. */
void vb_hub_ring_files_close(struct vb_hub_ring_files *files);

/*
 * What became of a question (vb_hub_client_ask). came: rc as there, with its files, of which the
 * receiver takes over those that it sets to VB_FD_NONE, and with peer's descriptor, which is the
 * receiver's, if rc is 0. over: from now on the same may be asked again. Both are called one after
 * the other with open's arg, from vb_hub_client_turn and vb_hub_client_await only, without any lock
 * of the client; several threads may be in there, with a question each.
 */
struct vb_hub_answers {
	void (*came)(void *arg, uint16_t from, uint16_t to, struct vb_hub_ring_files *files,
		     int rc, const struct vb_hub_peer *peer);
	void (*over)(void *arg, uint16_t from, uint16_t to, int rc); /* may be NULL */
};

/* Before the first question. */
void vb_hub_client_on_answers(struct vb_hub_client *, const struct vb_hub_answers *);

/*
 * Have the process that holds slot `to` receive from our slot `from` through this ring. It is told
 * before we are, and takes the ring when it gets to it. Nobody waits: EINPROGRESS, and the answer
 * comes to a turn. The files that the client has taken over are set to VB_FD_NONE then, which it
 * leaves as they are where the same is under way already. Any other errno: it cannot be asked
 * (EAGAIN: too much is under way; EINVAL: `from` is not ours), and there will be no answer. Any
 * thread.
 * The answer is 0; ENOENT (nobody holds that slot); EOPNOTSUPP (one of the two does not want it, or
 * offers nothing: asked the other way round, the answer is the same); EINVAL (both slots are ours);
 * EPERM (the hub does not believe that `from` is ours); ETIMEDOUT (for 3 s there was no hub, or its
 * holder took no more rings; or that one has been silent since the hub is new); or as lease. After
 * an error it may still have got the ring. A hub that is stopped answers when it goes on.
 */
int vb_hub_client_ask(struct vb_hub_client *, uint16_t from, uint16_t to,
		      struct vb_hub_ring_files *files);

/*
 * Wait until that is answered, and take the answer in: 0; EINPROGRESS: it is not, by until_ns of
 * vb_hub_now_ns(). Any thread, without any lock that an answer needs.
 */
int vb_hub_client_await(struct vb_hub_client *, uint16_t from, uint16_t to, uint64_t until_ns);

/* When the oldest question was asked that is under way, as vb_hub_now_ns(); UINT64_MAX: none is. */
uint64_t vb_hub_client_asks_since(struct vb_hub_client *);

/*
 * Tell the hub by which link we reach somebody, for status: instead of what was told of the same
 * one before. Beyond VB_HUB_LINKS_MAX nothing is told. Never waits. Any thread.
 */
void vb_hub_client_link(struct vb_hub_client *, const struct vb_hub_link *);

/*
 * Tell the hub how far the slot's indices have counted: at least every 256 indices, and before
 * close. A hub that was not told skips that many when it lends the slot again. Any thread.
 */
void vb_hub_client_mark(struct vb_hub_client *, uint16_t slot, uint32_t next_index);

/*
 * The memory in which XRC domains live, the same for all clients of a uid and network namespace as
 * long as one of them lives: a descriptor of the caller's. 0 or a positive errno. Any thread.
 */
int vb_hub_client_store(struct vb_hub_client *, int *fd);

/* The fd to poll (POLLIN): readable when the hub says something or is gone. */
int vb_hub_client_fd(struct vb_hub_client *);

/*
 * Called when that fd is readable: handles what came; a dead hub is replaced here, and others'
 * rings are handed to the caller. Never waits (but for a vfork), and what it could not finish makes
 * the fd readable again. Any thread.
 */
void vb_hub_client_turn(struct vb_hub_client *);

/*
 * In the child of a fork: forget the connection without telling the hub anything. Takes no lock,
 * and touches nothing that the parent still uses.
 */
void vb_hub_client_forget(struct vb_hub_client *);

/* Give all slots back. Their UDP sockets are the caller's to close, before this. */
void vb_hub_client_close(struct vb_hub_client *);

#endif
