/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_HUB_CLIENT_REACH_H
#define VB_HUB_CLIENT_REACH_H

/*
 * A client's questions for which no caller waits: may a slot of ours reach another's? Every
 * question has a deadline.
 */

#include "hub/client.h"

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

/* --- for the client's other files --- */

int vb_hub_asks_open(struct vb_hub_client *client);

/* As vb_hub_client_forget(). */
void vb_hub_asks_forget(struct vb_hub_client *client);

/* Takes in answers, and repeats questions whose time has come. No lock of the client held. */
void vb_hub_asks_turn(struct vb_hub_client *client);

#endif
