/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_HUB_CHANNEL_H
#define VB_HUB_CHANNEL_H

/*
 * The sockets on which hub and clients talk, and those by which slots are held. All names are
 * abstract, so they belong to the network namespace and vanish with their last descriptor, and they
 * hold the uid; a name can be taken by anybody, so both ends look at the other's credentials before
 * they say anything.
 *
 * What fails for a reason that people have to know of is noted (base/failure.h).
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "hub/proto.h"

/* CLOCK_MONOTONIC in ns. */
uint64_t vb_hub_now_ns(void);

/* Take the hub's name and listen. 0 and the fd, EADDRINUSE if there is a hub, or an errno. */
int vb_hub_listen(int *fd);

/*
 * Connect to the hub of this uid and network namespace, without waiting. 0 and the fd,
 * ECONNREFUSED (there is none), EAGAIN (it is too busy just now), EPERM (the name belongs to
 * another uid), or an errno.
 */
int vb_hub_connect(int *fd);

/*
 * Who listens by the name of the hub of that uid and protocol: the kernel's word, in numbers that
 * hold here (pid 0: it has none here). 0 or an errno. Says nothing to it.
 */
int vb_hub_who(uint32_t name_uid, int protocol, pid_t *pid, uint32_t *uid);

/* 0 and the peer's pid (0 if it has none here) if the peer has our own uid, EPERM otherwise. */
int vb_hub_peer_check(int fd, pid_t *pid);

/* The process at the other end is stopped, as far as /proc tells: it will not answer. */
bool vb_hub_is_stopped(int fd);

/* Whoever is at the other end has not answered in time: ETIMEDOUT, noted with who it is. */
int vb_hub_silent(int fd);

/*
 * The lease of a slot is a pair of sockets. A *name* does nothing but exist: whoever holds it holds
 * the slot, for as long as he lives, whatever becomes of the hub. A *watch* is connected to the
 * slot's name of this time, and tells whether somebody still holds that; it is the hub's, and goes
 * from one to the next. Nobody finds a slot by its name, which has random letters, so that nobody
 * can take it before us.
 */
int vb_hub_watch_make(int *fd);

/* Make a name for a slot, and have its watch look at that one from now on. 0 or an errno. */
int vb_hub_name_make(int *fd, unsigned slot, int watch_fd);

/* Does somebody hold the name that this watch looks at? */
bool vb_hub_watch_sees(int watch_fd);

/* Is that descriptor of somebody's the name that this watch looks at, and not one that looks so? */
bool vb_hub_watch_sees_this(int watch_fd, int name_fd);

/* Send without waiting. 0, EAGAIN, EPIPE (the other end is gone), ETOOMANYREFS (unix(7)) ... */
int vb_hub_send(int fd, const struct vb_hub_msg *msg, const int *fds, unsigned n);

/*
 * Receive without waiting. 0 and the checked message with its n descriptors, which the caller
 * owns; EAGAIN, ECONNRESET (the other end is gone), EMFILE (no room for its descriptors: it can be
 * received when there is), EPROTO (what came was no message). One thread at a time.
 */
int vb_hub_recv(int fd, struct vb_hub_msg *msg, int fds[VB_HUB_FDS_MAX], unsigned *n);

/* The same, waiting until deadline_ns at most: ETIMEDOUT. */
int vb_hub_recv_by(int fd, struct vb_hub_msg *msg, int fds[VB_HUB_FDS_MAX], unsigned *n,
		   uint64_t deadline_ns);

/* Wait until the fd is readable or deadline_ns has come, whatever signals arrive. */
void vb_hub_wait(int fd, uint64_t deadline_ns);

#endif
