/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_HUB_CLIENT_PORTS_H
#define VB_HUB_CLIENT_PORTS_H

/* Ports of rdma_cm's, and MADs. */

#include <stdbool.h>

#include "hub/client.h"

/*
 * Binds a port of rdma_cm's for the id that bind names (docs/hub.md), or changes the flags of what
 * is bound so. Sets bind->port. Returns 0, EADDRINUSE, EADDRNOTAVAIL, ENOSPC (too many), or as
 * lease. Any thread.
 */
int vb_hub_client_bind(struct vb_hub_client *, struct vb_hub_bind *bind);

/* Gives up what was bound so. Any thread. */
void vb_hub_client_unbind(struct vb_hub_client *, const struct vb_hub_bind *bind);

/*
 * Sends a MAD to a process of this host, itself included. Where the hub has no room for it, or is
 * not there, it waits in its order. What a dying hub has is lost. Any thread.
 */
void vb_hub_client_mad(struct vb_hub_client *, const struct vb_hub_mad *mad);

/*
 * Lends the hub memory with the records of what this process has connected (daemon/estates.h), and
 * every hub after that. The descriptor stays the caller's, and stays open until close.
 */
void vb_hub_client_records(struct vb_hub_client *, int fd);

/* --- for the client's other files, with the client locked --- */

/* Tells the hub of ports that it does not know, and of MADs. False: it has no more room. */
bool vb_hub_ports_send(struct vb_hub_client *client);

/* The next hub knows of none. Returns how many messages will tell it. */
uint32_t vb_hub_ports_untell(struct vb_hub_client *client);

/* A new hub is told of the records. 0 or an errno. */
int vb_hub_records_send(const struct vb_hub_client *client, int conn_fd);

void vb_hub_ports_free(struct vb_hub_client *client);

#endif
