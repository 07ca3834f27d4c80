/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/answers.h"

#include <errno.h>
#include <unistd.h>

#include "daemon/hub.h"
#include "hub/channel.h"
#include "hub/procs.h"
#include "hub/program.h"

static void row_fill(struct vb_hub_row *row, struct hub *hub, unsigned slot)
{
	const struct lease *lease = &hub->lease[slot];
	const struct conn *client = vb_hub_client_of(hub, slot);
	uint64_t since_ns = lease->since_ns ? lease->since_ns : hub->start_ns;

	row->slot = slot;
	row->next_index = lease->next_index;
	row->age_ms = (vb_hub_now_ns() - since_ns) / MS_NS;
	row->shm = client && client->shm;
	row->program = lease->program;
}

void vb_hub_answer_status(struct hub *hub, struct conn *conn, const struct vb_hub_msg *request,
		      const int *fds, unsigned n)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_SUMMARY);
	uint16_t held[VB_HUB_SLOTS_MAX];
	unsigned helds = 0;

	for (unsigned slot = 1; slot < hub->slots.bound; slot++) {
		if (vb_slots_is_held(&hub->slots, slot))
			held[helds++] = (uint16_t)slot;
	}
	vb_hub_program_self(&msg.summary.program);
	msg.summary.age_ms = (vb_hub_now_ns() - hub->start_ns) / MS_NS;
	msg.summary.leases = hub->leases;
	msg.summary.strays = hub->strays;
	msg.summary.rings = hub->rings;
	msg.summary.sockets = hub->slots.bound;
	msg.summary.clients = vb_hub_clients_count(hub);
	msg.summary.rows = helds;
	for (unsigned i = 0; i < hub->conns; i++)
		msg.summary.links += vb_links_count(hub->conn[i].links);
	vb_hub_send(conn->fd, &msg, NULL, 0);
	for (unsigned i = 0; i < helds; i += VB_HUB_ROWS_MAX) {
		msg = vb_hub_msg_make(VB_HUB_ROWS);
		while (msg.rows.count < VB_HUB_ROWS_MAX && i + msg.rows.count < helds) {
			row_fill(&msg.rows.row[msg.rows.count], hub, held[i + msg.rows.count]);
			msg.rows.count++;
		}
		vb_hub_send(conn->fd, &msg, NULL, 0);
	}
	for (unsigned i = 0; i < hub->conns; i++)
		vb_links_send(hub->conn[i].links, conn->fd);
	conn->role = GONE;
}

/*
 * Only processes that could end us by a signal may stop us; those in a PID namespace below ours or
 * beside it could not, and must not take our place. (A process has a number in each namespace above
 * its own.)
 */
static bool may_stop(const struct conn *conn)
{
	pid_t pid;

	return !vb_hub_peer_check(conn->fd, &pid) && pid &&
	       vb_procs_depth(pid) == vb_procs_depth(getpid());
}

void vb_hub_answer_stop(struct hub *hub, struct conn *conn, const struct vb_hub_msg *request,
		    const int *fds, unsigned n)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_STOPPED);

	msg.stopped.clients = vb_hub_clients_count(hub);
	if (!may_stop(conn))
		msg.stopped.error = EPERM;
	else if (msg.stopped.clients && !request->stop.force)
		msg.stopped.error = EBUSY;
	else
		hub->phase = LEAVING;
	vb_hub_send(conn->fd, &msg, NULL, 0);
	conn->role = GONE;
}

/* Passes news on to the process that a request names, and answers whether it could. */
static void tell(struct hub *hub, struct conn *conn, const struct vb_hub_msg *request,
		 const struct vb_hub_msg *news, const int *fds, unsigned n)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_FAILED);

	msg.failed.error = ESRCH;
	for (unsigned i = 0; i < hub->conns; i++) {
		const struct conn *to = &hub->conn[i];

		if (to->role == CLIENT && to->welcome && to->program.pid == request->fail.pid &&
		    to->program.pid_ns == request->fail.pid_ns)
			msg.failed.error = vb_hub_send(to->fd, news, fds, n) ? EAGAIN : 0;
	}
	vb_hub_send(conn->fd, &msg, NULL, 0);
	conn->role = GONE;
}

void vb_hub_answer_fail(struct hub *hub, struct conn *conn, const struct vb_hub_msg *request,
		    const int *fds, unsigned n)
{
	const struct vb_hub_msg fatal = vb_hub_msg_make(VB_HUB_FATAL);

	tell(hub, conn, request, &fatal, NULL, 0);
}

void vb_hub_answer_capture(struct hub *hub, struct conn *conn, const struct vb_hub_msg *request,
		       const int *fds, unsigned n)
{
	tell(hub, conn, request, request, fds, n);
	close(fds[0]);
}

void vb_hub_answer_who(struct hub *hub, struct conn *conn, const struct vb_hub_msg *request,
		   const int *fds, unsigned n)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_WHOSE);
	const struct conn *client = vb_hub_client_of(hub, request->who.slot);
	bool there = client && client->proven;

	msg.whose.error = there ? 0 : ESRCH;
	vb_hub_send(conn->fd, &msg, there ? &client->fds[0] : NULL, there);
	conn->role = GONE;
}

void vb_hub_answer_domains(struct hub *hub, struct conn *conn, const struct vb_hub_msg *request,
		       const int *fds, unsigned n)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_MEMORY);
	bool there = hub->phase == SERVING;

	msg.memory.error = there ? 0 : EAGAIN;
	vb_hub_send(conn->fd, &msg, there ? &hub->slots.keeper[VB_HUB_KEEPER_STORE] : NULL, there);
	conn->role = GONE;
}

void vb_hub_answer_noted(struct hub *hub, struct conn *conn, const struct vb_hub_msg *news,
		     const int *fds, unsigned n)
{
	/* A client whose socket is full has enough to read, and will look when it gets there. */
	for (unsigned i = 0; i < hub->conns; i++) {
		const struct conn *to = &hub->conn[i];

		if (to->role == CLIENT && to->welcome)
			vb_hub_send(to->fd, news, NULL, 0);
	}
	conn->role = GONE;
}

void vb_hub_answer_sample(struct hub *hub, struct conn *conn, const struct vb_hub_msg *question,
		      const int *fds, unsigned n)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_SAMPLES);

	for (unsigned i = 0; i < hub->conns; i++) {
		const struct conn *to = &hub->conn[i];

		if (to->role == CLIENT && to->welcome)
			msg.sample.asked.asked += !vb_hub_send(to->fd, question, fds, n);
	}
	for (unsigned i = 0; i < n; i++)
		close(fds[i]);
	vb_hub_send(conn->fd, &msg, NULL, 0);
	conn->role = GONE;
}
