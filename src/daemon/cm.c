/* SPDX-License-Identifier: BSD-2-Clause */

#include "daemon/cm.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/hub.h"
#include "hub/channel.h"
#include "link/udp_one.h"
#include "wire/icrc.h"
#include "wire/mad_frame.h"

_Static_assert((int)VB_HUB_MAD_BYTES == VB_MAD_FRAME_BYTES, "a frame fits a message");

/* Datagrams for slot 0 that are looked at before the next poll. */
enum { STRAYS_PER_TURN = 64 };

void vb_hub_mads_flush(struct conn *conn)
{
	const struct vb_hub_msg *msg;

	while ((msg = vb_fifo_first(&conn->mads)) && vb_hub_send(conn->fd, msg, NULL, 0) != EAGAIN)
		vb_fifo_drop(&conn->mads);
}

/* Has a process the slot, or has it died so recently that nobody has parted for it yet? */
static bool is_somebodys(const struct hub *hub, uint32_t slot)
{
	for (unsigned i = 0; i < hub->conns; i++) {
		if (vb_hub_slot_is_marked(&hub->conn[i], slot))
			return true;
	}
	return vb_slots_is_held(&hub->slots, slot);
}

static bool give(void *arg, uint32_t slot, const struct vb_path *path, const uint8_t *frame)
{
	struct hub *hub = arg;
	struct conn *conn = vb_hub_client_of(hub, slot);
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_MAD);

	/* The MAD is lost, and will be repeated. */
	if (!conn)
		return is_somebodys(hub, slot);
	msg.cm.mad.slot = slot;
	msg.cm.mad.flow_label = path->flow_label;
	msg.cm.mad.ifindex = path->ifindex;
	msg.cm.mad.sport = path->sport;
	msg.cm.mad.tclass = path->tclass;
	msg.cm.mad.hop_limit = path->hop_limit;
	memcpy(msg.cm.mad.src, path->src, VB_GID_BYTES);
	memcpy(msg.cm.mad.dst, path->dst, VB_GID_BYTES);
	memcpy(msg.cm.mad.frame, frame, VB_HUB_MAD_BYTES);
	if (conn->mads.count || vb_hub_send(conn->fd, &msg, NULL, 0) == EAGAIN)
		vb_fifo_put(&conn->mads, VB_HUB_MADS_MAX, &msg, vb_hub_msg_bytes(msg.type));
	return true;
}

static bool is_behind(void *arg, uint32_t slot)
{
	const struct conn *conn = vb_hub_client_of(arg, slot);

	return conn && conn->mads.count;
}

static void wire_send(void *arg, const struct vb_path *path, const uint8_t *frame)
{
	struct hub *hub = arg;

	vb_udp_one_send(hub->slots.fd[0], path, frame, VB_MAD_FRAME_BYTES);
}

/* To one of this host, where no wire is to be used. */
static void home_send(void *arg, const struct vb_path *path, const uint8_t *frame)
{
	struct hub *hub = arg;

	vb_mads_take(&hub->mads, path, frame, VB_MAD_FRAME_BYTES);
}

/*
 * Clients of the hub before us have not told all yet. Until then nobody is told that a port is
 * free, nor that nobody listens there: who asks asks again.
 */
static bool is_heir(void *arg)
{
	struct hub *hub = arg;
	bool due = false;

	if (!hub->heir_ns)
		return false;
	for (unsigned i = 0; i < hub->conns; i++)
		due |= hub->conn[i].role == CLIENT && hub->conn[i].ports_due;
	if (vb_hub_now_ns() > hub->heir_ns || (!due && !vb_hub_has_orphan(hub)))
		hub->heir_ns = 0;
	return hub->heir_ns;
}

static void told_one(struct conn *conn)
{
	conn->ports_due -= conn->ports_due > 0;
}

void vb_hub_cm_begin(struct hub *hub)
{
	hub->mads.host = (struct vb_mads_host){
		.give = give, .is_behind = is_behind, .is_heir = is_heir, .send = wire_send,
		.arg = hub,
	};
	hub->mads.ports = &hub->ports;
	/* Where one looks for a free port first: not where the last hub looked. */
	hub->ports.next = (uint32_t)vb_hub_now_ns();
}

static void stray_take(struct hub *hub, const struct vb_path *path, const uint8_t *frame,
		       uint32_t bytes)
{
	if (bytes != VB_MAD_FRAME_BYTES || !vb_icrc_check(path, frame, bytes, 0, NULL) ||
	    !vb_mads_take(&hub->mads, path, frame, bytes))
		hub->strays++;
}

void vb_hub_strays_take(struct hub *hub)
{
	static uint8_t octets[VB_UDP_ONE_BYTES];
	struct vb_path path;
	uint32_t each;
	int bytes;

	for (unsigned i = 0; i < STRAYS_PER_TURN; i++) {
		bytes = vb_udp_one_take(hub->slots.fd[0], octets, &path, &each);
		if (bytes < 0)
			return;
		for (int at = 0; at < bytes || at == 0; at += (int)each) {
			uint32_t left = (uint32_t)(bytes - at);

			stray_take(hub, &path, octets + at, left < each ? left : each);
			if (!each)
				break;
		}
	}
}

/*
 * Who has the port may have given it up, or died, before it was asked for: what he said is read
 * first. EAGAIN: he has gone, and it is free in a moment.
 */
static int bind_free(struct hub *hub, const struct vb_hub_bind *bind, uint16_t *port)
{
	const struct vb_hub_bind *other = NULL, *last;
	struct conn *holder;

	do {
		last = other;
		other = bind->port ? vb_ports_in_way(&hub->ports, bind) : NULL;
		holder = other && other != last ? vb_hub_client_of(hub, other->slot) : NULL;
		if (holder)
			vb_hub_conn_read(hub, holder);
		if (holder && holder->role == GONE)
			return EAGAIN;
	} while (holder);
	return vb_ports_bind(&hub->ports, bind, false, port);
}

/* What the slot's client has given up before it asked is free. */
static int bind_asked(struct hub *hub, const struct vb_hub_bind *bind, int name_fd, uint16_t *port)
{
	struct conn *client;

	if (!vb_slots_lease_is(&hub->slots, bind->slot, name_fd))
		return EPERM;
	if (is_heir(hub))
		return EAGAIN;
	client = vb_hub_client_of(hub, bind->slot);
	if (client)
		vb_hub_conn_read(hub, client);
	return bind_free(hub, bind, port);
}

/*
 * Asked on a connection of its own, with the slot's name, which may ask again. A client that a hub
 * before us has allowed it tells so on its own connection, and is believed.
 */
void vb_hub_answer_bind(struct hub *hub, struct conn *conn, const struct vb_hub_msg *request,
			const int *fds, unsigned n)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_BOUND);
	const struct vb_hub_bind *bind = &request->cm.bind;
	bool known = conn->role == CLIENT;
	uint16_t port = 0;
	int rc;

	if (known ? !n && vb_hub_slot_is_marked(conn, bind->slot) : n == VB_HUB_BIND_FDS) {
		if (hub->phase != SERVING)
			rc = EAGAIN;
		else if (known)
			rc = vb_ports_bind(&hub->ports, bind, true, &port);
		else
			rc = bind_asked(hub, bind, fds[0], &port);
		msg.cm.bound.error = (uint32_t)rc;
		msg.cm.bound.port = port;
	} else {
		known = false;
		msg.cm.bound.error = EPERM;
	}
	if (n)
		close(fds[0]);
	if (known) {
		told_one(conn);
		return;
	}
	conn->since_ns = vb_hub_now_ns();
	if (vb_hub_send(conn->fd, &msg, NULL, 0) || msg.cm.bound.error == EPERM)
		conn->role = GONE;
}

void vb_hub_answer_records(struct hub *hub, struct conn *conn, const struct vb_hub_msg *msg,
			   const int *fds, unsigned n)
{
	vb_estate_unmap(conn->records);
	conn->records = conn->role == CLIENT ? vb_estate_map(fds[0]) : NULL;
	close(fds[0]);
	if (!conn->records)
		conn->role = GONE;
}

/* A client that connects anew tells again which ports it has, and lends its records again. */
void vb_hub_cm_gone(struct hub *hub, struct conn *conn)
{
	uint32_t first = 0;

	vb_fifo_clear(&conn->mads);
	for (uint32_t slot = 1; slot < VB_HUB_SLOTS_MAX; slot++) {
		if (!vb_hub_slot_is_marked(conn, slot))
			continue;
		vb_ports_forget(&hub->ports, slot);
		first = first ? first : slot;
	}
	if (first)
		vb_estates_add(&hub->estates, conn->records, first, vb_hub_now_ns());
	else
		vb_estate_unmap(conn->records);
	conn->records = NULL;
}

static bool is_held(void *arg, uint32_t slot)
{
	return vb_slots_is_held(&((struct hub *)arg)->slots, slot);
}

/* To a process of this host at once, and to others by the wire. */
static void farewell_send(void *arg, const struct vb_path *path, const uint8_t mad[VB_MAD_BYTES])
{
	uint8_t frame[VB_MAD_FRAME_BYTES];
	struct vb_path way = *path;

	way.sport = VB_ROCE_PORT;
	vb_mad_frame_emit(frame, &way, mad, 0);
	(path->local ? home_send : wire_send)(arg, &way, frame);
}

bool vb_hub_cm_settle(struct hub *hub)
{
	const struct vb_estates_host host = {is_held, farewell_send, hub};

	return vb_estates_settle(&hub->estates, &host, vb_hub_now_ns());
}

void vb_hub_answer_unbind(struct hub *hub, struct conn *conn, const struct vb_hub_msg *msg,
			  const int *fds, unsigned n)
{
	told_one(conn);
	if (conn->role == CLIENT && vb_hub_slot_is_marked(conn, msg->cm.unbind.slot))
		vb_ports_unbind(&hub->ports, &msg->cm.unbind);
	else
		conn->role = GONE;
}

/* From one process of this host to another, where no wire is to be used. */
void vb_hub_answer_mad(struct hub *hub, struct conn *conn, const struct vb_hub_msg *msg,
		       const int *fds, unsigned n)
{
	const struct vb_hub_mad *mad = &msg->cm.mad;
	struct vb_path path = {
		.flow_label = mad->flow_label, .ifindex = mad->ifindex, .sport = mad->sport,
		.tclass = mad->tclass, .hop_limit = mad->hop_limit,
	};

	if (conn->role != CLIENT || !vb_hub_slot_is_marked(conn, mad->slot)) {
		conn->role = GONE;
		return;
	}
	memcpy(path.src, mad->src, VB_GID_BYTES);
	memcpy(path.dst, mad->dst, VB_GID_BYTES);
	hub->mads.host.send = home_send;
	stray_take(hub, &path, mad->frame, VB_HUB_MAD_BYTES);
	hub->mads.host.send = wire_send;
}
