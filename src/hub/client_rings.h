/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_HUB_CLIENT_RINGS_H
#define VB_HUB_CLIENT_RINGS_H

/* The rings that a client receives from other processes. For src/hub/client*.c only. */

#include "hub/client_internal.h"

/*
 * The PID, in this process's namespace, of the process that made a token; the hub may live in
 * another namespace. 0: it has none here, or is not proven to be the maker.
 */
uint32_t vb_hub_pid_here(int token_fd, bool proven);

void vb_hub_ring_clear(struct vb_hub_client_ring *ring);

/* Stores a ring. Only a turn delivers it: other callers may hold locks that the receiver needs. */
void vb_hub_ring_take(struct vb_hub_client *client, const struct vb_hub_msg *msg, int *fds);

/* Makes wake_fd unreadable, unless something still waits. With the lock held. */
void vb_hub_wake_hush(struct vb_hub_client *client);

/* Delivers the stored rings. With the lock held, except during the calls. */
void vb_hub_rings_deliver(struct vb_hub_client *client);

#endif
