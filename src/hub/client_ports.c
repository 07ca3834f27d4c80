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
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_BIND);

	msg.cm.bind = port->bind;
	return vb_hub_send(client->conn_fd, &msg, NULL, 0);
}

bool vb_hub_ports_send(struct vb_hub_client *client)
{
	struct vb_hub_client_ports *ports = &client->ports;

	for (unsigned i = 0; ports->untold && i < VB_ARRAY_LEN(ports->bucket); i++) {
		for (struct vb_hub_port *port = ports->bucket[i]; port; port = port->next) {
			if (port->told)
				continue;
			if (port_send(client, port) == EAGAIN)
				return false;
			/* If the hub has gone, the next one is told. */
			port->told = true;
			ports->untold--;
		}
	}
	return true;
}

void vb_hub_ports_untell(struct vb_hub_client *client)
{
	struct vb_hub_client_ports *ports = &client->ports;

	for (unsigned i = 0; i < VB_ARRAY_LEN(ports->bucket); i++) {
		for (struct vb_hub_port *port = ports->bucket[i]; port; port = port->next)
			port->told = false;
	}
	ports->untold = ports->count;
}

void vb_hub_ports_free(struct vb_hub_client *client)
{
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

/* Remember what the hub has allowed. The place was made before, so that nothing can fail now. */
static void keep(struct vb_hub_client *client, const struct vb_hub_bind *bind,
		 struct vb_hub_port *place)
{
	struct vb_hub_port **at;

	vb_lock_take(&client->lock);
	at = find(client, bind);
	if (*at) {
		(*at)->bind = *bind;
		free(place);
	} else {
		*place = (struct vb_hub_port){.bind = *bind, .told = true};
		*at = place;
		client->ports.count++;
	}
	vb_lock_drop(&client->lock);
}

static int bind_once(struct vb_hub_client *client, struct vb_hub_bind *bind, uint64_t deadline_ns)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_BIND);
	const struct vb_hub_held *held;
	int fds[VB_HUB_FDS_MAX], rc;

	vb_lock_take(&client->lock);
	held = held_of(client, bind->slot);
	fds[0] = held ? held->name_fd : VB_FD_NONE;
	vb_lock_drop(&client->lock);
	if (fds[0] == VB_FD_NONE)
		return EINVAL;
	msg.cm.bind = *bind;
	rc = vb_hub_request(client, &msg, fds, VB_HUB_BIND_FDS, VB_HUB_BOUND, deadline_ns);
	if (rc)
		return rc;
	bind->port = msg.cm.bound.error ? bind->port : msg.cm.bound.port;
	return (int)msg.cm.bound.error;
}

int vb_hub_client_bind(struct vb_hub_client *client, struct vb_hub_bind *bind)
{
	uint64_t deadline_ns = vb_hub_now_ns() + VB_HUB_PATIENCE_NS;
	struct vb_hub_port *place = malloc(sizeof(*place));
	int rc = place ? EAGAIN : ENOMEM;

	while (rc == EAGAIN) {
		rc = bind_once(client, bind, deadline_ns);
		if (!rc) {
			keep(client, bind, place);
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
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_UNBIND);
	struct vb_hub_port **at, *port;

	vb_lock_take(&client->lock);
	at = find(client, bind);
	port = *at;
	if (port) {
		msg.cm.unbind = (struct vb_hub_unbind){port->bind.slot, port->bind.id,
						    port->bind.space, port->bind.port};
		*at = port->next;
		client->ports.count--;
		client->ports.untold -= !port->told;
		free(port);
		if (client->conn_fd != VB_FD_NONE)
			vb_hub_send(client->conn_fd, &msg, NULL, 0);
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
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_MAD);

	msg.cm.mad = *mad;
	vb_lock_take(&client->lock);
	if (client->conn_fd != VB_FD_NONE)
		vb_hub_send(client->conn_fd, &msg, NULL, 0);
	vb_lock_drop(&client->lock);
}

void vb_hub_client_on_mad(struct vb_hub_client *client,
			  void (*mad)(void *arg, const struct vb_hub_mad *))
{
	vb_lock_take(&client->lock);
	client->ports.mad_fn = mad;
	vb_lock_drop(&client->lock);
}
