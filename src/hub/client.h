/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_HUB_CLIENT_H
#define VB_HUB_CLIENT_H

/*
 * A process's connection to the hub: leases slots, notices the hub's death, starts it again and
 * tells it what this process holds. Every call has a deadline; none blocks for ever.
 */

#include <stdint.h>

struct vb_hub_client;

/* A leased slot: the upper 10 bits of the QPNs, and the socket on which their frames arrive. */
struct vb_hub_slot {
	uint16_t slot;
	uint32_t next_index; /* where the slot's 14-bit QP indices go on counting */
	int fd;		     /* UDP socket on port 4791, drained; the caller owns it */
};

/*
 * Connect to the hub of this uid and network namespace; start it if there is none.
 * 0, or EADDRINUSE (somebody else holds port 4791 here), ENOENT (no verbatimd to start),
 * ETIMEDOUT, EPERM (the hub's name is taken by another uid), or another positive errno. The
 * environment is read here and never again.
 */
int vb_hub_client_open(struct vb_hub_client **);

/* Lease a slot. 0, ENOSPC (all 1023 taken), or as open. Any thread. */
int vb_hub_client_lease(struct vb_hub_client *, struct vb_hub_slot *);

/*
 * Tell the hub how far the slot's indices have counted: at least every 256 indices, and before
 * close. A hub that was not told skips that many when it lends the slot again. Any thread.
 */
void vb_hub_client_mark(struct vb_hub_client *, uint16_t slot, uint32_t next_index);

/* The fd to poll (POLLIN): readable when the hub says something or is gone. */
int vb_hub_client_fd(struct vb_hub_client *);

/*
 * Called when that fd is readable: handles what came; a dead hub is replaced here. Never waits
 * (but for a vfork), and what it could not finish makes the fd readable again. Any thread.
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
