/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_DAEMON_HUB_H
#define VB_DAEMON_HUB_H

/*
 * The hub: a single-threaded poll loop that answers clients (docs/hub.md). All its state can be
 * recovered by the next hub from the kernel and the clients.
 */

#include <stdbool.h>
#include <stdint.h>

/*
 * Serves on a listening socket until no client has been connected for idle_ns, or one asks it to
 * stop. Returns 0, or a positive errno if it cannot serve: EADDRINUSE (another program has port
 * 4791), ENOMEM, ...
 */
int vb_hub_serve(int listen_fd, uint64_t idle_ns);

/* --- for answers.c, cm.c --- */

struct hub;
struct conn;

/* The client that has shown the slot's name; NULL: none so far. */
struct conn *vb_hub_client_of(struct hub *hub, unsigned slot);

/* Handles what the connection has sent so far. */
void vb_hub_conn_read(struct hub *hub, struct conn *conn);

/* Is there an open slot that no connected client holds? Its holder has died, or will contact us. */
bool vb_hub_has_orphan(const struct hub *hub);

unsigned vb_hub_clients_count(const struct hub *hub);

/* Has that client shown that the slot is its own? */
bool vb_hub_slot_is_marked(const struct conn *conn, unsigned slot);

#endif
