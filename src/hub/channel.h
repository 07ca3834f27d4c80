/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_HUB_CHANNEL_H
#define VB_HUB_CHANNEL_H

/*
 * The sockets between hub and clients, and those that hold slots. All names are abstract and
 * contain the uid: they belong to the network namespace and vanish with their last descriptor. Any
 * process can take a name, so both ends check the other's credentials before they say anything.
 *
 * Failures that users need to know of are noted (base/failure.h).
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "hub/proto.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71 /* since Linux 5.14, later than some C libraries know */
#endif

/* CLOCK_MONOTONIC in ns. */
uint64_t vb_hub_now_ns(void);

/*
 * Takes the hub's name and listens. Returns 0 with *fd, EADDRINUSE if there is a hub, or an errno.
 */
int vb_hub_listen(int *fd);

/*
 * Connects to the hub of this uid and network namespace, without waiting. Returns 0 with *fd,
 * ECONNREFUSED (no hub), EAGAIN (the hub is busy), EPERM (the name belongs to another uid), or an
 * errno.
 */
int vb_hub_connect(int *fd);

/*
 * Finds the process that listens under the hub name of that uid and protocol, as the kernel reports
 * it, in this namespace's numbers (pid 0: it has none here). Sends it nothing. Returns 0 or an
 * errno.
 */
int vb_hub_who(uint32_t name_uid, int protocol, pid_t *pid, uint32_t *uid);

/* Returns 0 and the peer's pid (0 if it has none here) if the peer has our uid, else EPERM. */
int vb_hub_peer_check(int fd, pid_t *pid);

/* Is the process at the other end stopped, as far as /proc shows? Then it will not answer. */
bool vb_hub_is_stopped(int fd);

/*
 * Notes that the process at the other end did not answer in time, and which it is. Returns
 * ETIMEDOUT.
 */
int vb_hub_silent(int fd);

/*
 * The lease of a slot is a pair of sockets. A *name* only exists: the process that has it open
 * holds the slot, even if the hub dies. A *watch* is connected to the slot's current name and tells
 * whether that is still open; it belongs to the hub and is handed to the next hub. Names contain
 * random letters, so that no process can guess one and take it first.
 */
int vb_hub_watch_make(int *fd);

/* Makes a new name for a slot and connects its watch to it. Returns 0 or an errno. */
int vb_hub_name_make(int *fd, unsigned slot, int watch_fd);

/* Is the name that this watch is connected to still open in some process? */
bool vb_hub_watch_sees(int watch_fd);

/* Is this descriptor, received from a client, the very name that this watch is connected to? */
bool vb_hub_watch_sees_this(int watch_fd, int name_fd);

/*
 * Sends without waiting. Returns 0, EAGAIN, EPIPE (the other end is gone), ETOOMANYREFS (unix(7))
 * ...
 */
int vb_hub_send(int fd, const struct vb_hub_msg *msg, const int *fds, unsigned n);

/*
 * Receives without waiting. Returns 0 with the checked message and its n descriptors, which the
 * caller owns; EAGAIN; ECONNRESET (the other end is gone); EMFILE (no room for the descriptors: the
 * message stays and can be received later); EPROTO (invalid message). One thread at a time.
 */
int vb_hub_recv(int fd, struct vb_hub_msg *msg, int fds[VB_HUB_FDS_MAX], unsigned *n);

/* The same, but waits until deadline_ns at most. Also ETIMEDOUT. */
int vb_hub_recv_by(int fd, struct vb_hub_msg *msg, int fds[VB_HUB_FDS_MAX], unsigned *n,
		   uint64_t deadline_ns);

/* Waits until fd is readable or deadline_ns has come. Signals do not end it. */
void vb_hub_wait(int fd, uint64_t deadline_ns);

#endif
