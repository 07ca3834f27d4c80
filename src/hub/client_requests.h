/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_HUB_CLIENT_REQUESTS_H
#define VB_HUB_CLIENT_REQUESTS_H

/* A client's requests whose callers wait for the answer. */

#include "hub/client.h"

/* A leased slot: the upper 10 bits of the QPNs, and the socket on which their frames arrive. */
struct vb_hub_slot {
	uint16_t slot;
	uint32_t next_index; /* the slot's next 14-bit QP index */
	int fd;		     /* UDP socket on port 4791, drained; the caller owns it */
};

/* Leases a slot. Returns 0, ENOSPC (all 1023 are taken), or as open. Any thread. */
int vb_hub_client_lease(struct vb_hub_client *, struct vb_hub_slot *);

/* --- for the client's other files --- */

/*
 * Is the error worth another try? EADDRINUSE is: a new hub found the port's sockets before we
 * connected and gave it their keeper.
 */
bool vb_hub_was_missing(int rc);

/*
 * Sends a request with fds_n descriptors in fds, and receives the answer of that type with its
 * descriptors. Each request has a connection of its own: so the answer reaches the thread that
 * waits for it, and the progress thread never receives another thread's answer. Not locked.
 */
int vb_hub_request(struct vb_hub_client *client, struct vb_hub_msg *msg, int fds[VB_HUB_FDS_MAX],
		   unsigned fds_n, enum vb_hub_type answer, uint64_t deadline_ns);

/* The same by a connection that the caller has. After an error it is of no more use. */
int vb_hub_request_by(struct vb_hub_client *client, int fd, struct vb_hub_msg *msg,
		      int fds[VB_HUB_FDS_MAX], unsigned fds_n, enum vb_hub_type answer,
		      uint64_t deadline_ns);

/* After a failed request: returns 0 if another try is worth it now, else the reason to give up. */
int vb_hub_again_wait(struct vb_hub_client *client, int rc, uint64_t deadline_ns);

/* Notes that time ran out with that error. Returns ETIMEDOUT. */
int vb_hub_out_of_time(int rc);

#endif
