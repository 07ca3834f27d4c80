/* SPDX-License-Identifier: BSD-2-Clause */
#include "hub/client_ports.h"

#include <errno.h>
#include <stdlib.h>

#include "base/check.h"
#include "hub/channel.h"
#include "hub/client_internal.h"
#include "hub/client_requests.h"

static struct vb_hub_port **find(struct vb_hub_client *client, const struct vb_hub_bind *bind)
{
	struct vb_hub_client_ports *ports = &client->ports;
	struct vb_hub_port **at = &ports->bucket[bind->id % VB_ARRAY_LEN(ports->bucket)];

	while (*at && ((*at)->bind.id != bind->id || (*at)->bind.slot != bind->slot))
		at = &(*at)->next;
	return at;
}

static int port_send(struct vb_hub_client *client, const struct vb_hub_port *port)
{
	const struct vb_hub_bind *bind = &port->bind;
	struct vb_hub_msg msg = vb_hub_msg_make(port->given_up ? VB_HUB_UNBIND : VB_HUB_BIND);

	if (port->given_up)
		msg.cm.unbind = (struct vb_hub_unbind){bind->slot, bind->id, bind->space,
						       bind->port};
	else
		msg.cm.bind = *bind;
	return vb_hub_send(client->conn_fd, &msg, NULL, 0);
}

static void untold_add(struct vb_hub_client *client, struct vb_hub_port *port)
{
	port->told = false;
	TAILQ_INSERT_TAIL(&client->ports.untold, port, link);
}

/* Of one that is given up this is the end. */
static void untold_remove(struct vb_hub_client *client, struct vb_hub_port *port)
{
	TAILQ_REMOVE(&client->ports.untold, port, link);
	port->told = true;
	if (port->given_up)
		free(port);
}

static int mad_send(const struct vb_hub_client *client, const struct vb_hub_mad *mad)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_MAD);

	msg.cm.mad = *mad;
	return vb_hub_send(client->conn_fd, &msg, NULL, 0);
}

bool vb_hub_ports_send(struct vb_hub_client *client)
{
	const struct vb_hub_mad *mad;
	int rc = 0;

	while (!TAILQ_EMPTY(&client->ports.untold)) {
		struct vb_hub_port *port = TAILQ_FIRST(&client->ports.untold);

		if (port_send(client, port) == EAGAIN)
			return false;
		/* If the hub has gone, the next one is told. */
		untold_remove(client, port);
	}
	while ((mad = vb_fifo_first(&client->ports.mads)) && !rc) {
		rc = mad_send(client, mad);
		if (!rc)
			vb_fifo_drop(&client->ports.mads);
	}
	return rc != EAGAIN;
}

uint32_t vb_hub_ports_untell(struct vb_hub_client *client)
{
	struct vb_hub_client_ports *ports = &client->ports;
	struct vb_hub_port *untold;
	uint32_t count = 0;

	for (unsigned i = 0; i < VB_ARRAY_LEN(ports->bucket); i++) {
		for (struct vb_hub_port *port = ports->bucket[i]; port; port = port->next) {
			if (port->told)
				untold_add(client, port);
		}
	}
	TAILQ_FOREACH(untold, &ports->untold, link)
		count++;
	return count;
}

void vb_hub_ports_free(struct vb_hub_client *client)
{
	vb_fifo_clear(&client->ports.mads);
	while (!TAILQ_EMPTY(&client->ports.untold))
		untold_remove(client, TAILQ_FIRST(&client->ports.untold));
	for (unsigned i = 0; i < VB_ARRAY_LEN(client->ports.bucket); i++) {
		while (client->ports.bucket[i]) {
			struct vb_hub_port *port = client->ports.bucket[i];

			client->ports.bucket[i] = port->next;
			free(port);
		}
	}
}

static const struct vb_hub_held *held_of(const struct vb_hub_client *client, uint32_t slot)
{
	for (unsigned i = 0; i < client->held_n; i++) {
		if (client->held[i].slot == slot)
			return &client->held[i];
	}
	return NULL;
}

/*
 * Remember what a hub has allowed, the last one or one before. The place was made before, so that
 * nothing can fail now.
 */
static void keep(struct vb_hub_client *client, const struct vb_hub_bind *bind,
		 struct vb_hub_port *place, unsigned hubs)
{
	struct vb_hub_port **at;

	vb_lock_take(&client->lock);
	at = find(client, bind);
	if (*at) {
		free(place);
	} else {
		*place = (struct vb_hub_port){.told = true};
		*at = place;
	}
	(*at)->bind = *bind;
	if (client->hubs != hubs && (*at)->told) {
		untold_add(client, *at);
		vb_hub_marks_send(client);
	}
	vb_lock_drop(&client->lock);
}

/* A connection that an earlier question has left, or a new one. */
static int asks_fd_take(struct vb_hub_client *client, int *fd, bool *is_new)
{
	vb_lock_take(&client->lock);
	*fd = client->ports.asks_fd;
	client->ports.asks_fd = VB_FD_NONE;
	vb_lock_drop(&client->lock);
	*is_new = *fd == VB_FD_NONE;
	return *is_new ? vb_hub_connect(fd) : 0;
}

static void asks_fd_leave(struct vb_hub_client *client, int fd)
{
	vb_lock_take(&client->lock);
	if (client->ports.asks_fd == VB_FD_NONE)
		client->ports.asks_fd = fd;
	else
		vb_fd_close(&fd);
	vb_lock_drop(&client->lock);
}

static int ask(struct vb_hub_client *client, struct vb_hub_bind *bind, int name_fd,
	       uint64_t deadline_ns)
{
	struct vb_hub_msg msg;
	bool is_new;
	int fd, rc;

	do {
		int fds[VB_HUB_FDS_MAX] = {name_fd};

		rc = asks_fd_take(client, &fd, &is_new);
		if (rc)
			return rc;
		msg = vb_hub_msg_make(VB_HUB_BIND);
		msg.cm.bind = *bind;
		rc = vb_hub_request_by(client, fd, &msg, fds, VB_HUB_BIND_FDS, VB_HUB_BOUND,
				       deadline_ns);
		if (rc)
			vb_fd_close(&fd);
		/* The hub does not keep an idle one for ever. */
	} while (!is_new && (rc == EPIPE || rc == ECONNRESET));
	if (rc)
		return rc;
	asks_fd_leave(client, fd);
	bind->port = msg.cm.bound.error ? bind->port : msg.cm.bound.port;
	return (int)msg.cm.bound.error;
}

/* *hubs: how many have been ours before this one is asked. */
static int bind_once(struct vb_hub_client *client, struct vb_hub_bind *bind, unsigned *hubs,
		     uint64_t deadline_ns)
{
	const struct vb_hub_held *held;
	int name_fd;
	bool told;

	vb_lock_take(&client->lock);
	held = held_of(client, bind->slot);
	name_fd = held ? held->name_fd : VB_FD_NONE;
	*hubs = client->hubs;
	told = TAILQ_EMPTY(&client->ports.untold);
	vb_lock_drop(&client->lock);
	if (name_fd == VB_FD_NONE)
		return EINVAL;
	/* What has been given up is free first: it may be what is wanted. */
	return told ? ask(client, bind, name_fd, deadline_ns) : EAGAIN;
}

int vb_hub_client_bind(struct vb_hub_client *client, struct vb_hub_bind *bind)
{
	uint64_t deadline_ns = vb_hub_now_ns() + VB_HUB_PATIENCE_NS;
	struct vb_hub_port *place = malloc(sizeof(*place));
	int rc = place ? EAGAIN : ENOMEM;
	unsigned hubs;

	while (rc == EAGAIN) {
		rc = bind_once(client, bind, &hubs, deadline_ns);
		if (!rc) {
			keep(client, bind, place, hubs);
			return 0;
		}
		/* The port is somebody's, not the hub's own. */
		if (rc != EADDRINUSE && !vb_hub_again_wait(client, rc, deadline_ns))
			rc = EAGAIN;
	}
	free(place);
	return rc;
}

void vb_hub_client_unbind(struct vb_hub_client *client, const struct vb_hub_bind *bind)
{
	struct vb_hub_port **at, *port;

	vb_lock_take(&client->lock);
	at = find(client, bind);
	port = *at;
	if (port) {
		*at = port->next;
		port->given_up = true;
		/* The hub is told, even if that has to wait for room, or for the next hub. */
		if (port->told)
			untold_add(client, port);
		vb_hub_marks_send(client);
	}
	vb_lock_drop(&client->lock);
}

int vb_hub_records_send(const struct vb_hub_client *client, int conn_fd)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_RECORDS);
	int rc = 0;

	if (client->ports.records_fd != VB_FD_NONE)
		rc = vb_hub_fds_send(conn_fd, &msg, &client->ports.records_fd, VB_HUB_RECORDS_FDS);
	/* Without them our peers learn of our death by themselves. */
	return rc == ETOOMANYREFS ? 0 : rc;
}

void vb_hub_client_records(struct vb_hub_client *client, int fd)
{
	vb_lock_take(&client->lock);
	client->ports.records_fd = fd;
	if (client->conn_fd != VB_FD_NONE)
		vb_hub_records_send(client, client->conn_fd);
	vb_lock_drop(&client->lock);
}

void vb_hub_client_mad(struct vb_hub_client *client, const struct vb_hub_mad *mad)
{
	vb_lock_take(&client->lock);
	/* Behind what waits: a new hub is to know first whose it is. */
	if (client->conn_fd == VB_FD_NONE || client->full || mad_send(client, mad)) {
		vb_fifo_put(&client->ports.mads, VB_HUB_MADS_MAX, mad, sizeof(*mad));
		vb_hub_marks_send(client);
	}
	vb_lock_drop(&client->lock);
}
