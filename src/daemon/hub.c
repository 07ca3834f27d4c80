/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/hub.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "daemon/answers.h"
#include "daemon/cm.h"
#include "daemon/cm_rows.h"
#include "daemon/domains.h"
#include "daemon/hub_internal.h"
#include "daemon/starter.h"
#include "hub/channel.h"
#include "hub/maker.h"
#include "hub/program.h"
#include "hub/words.h"
#include "link/udp_socket.h"

enum {
	NONE = -1,
	CONNS_MIN = 2,
	CONN_FDS = 1 + CONN_KEEPS, /* descriptors of a connection, at most */
	OTHER_FDS = 12,		   /* those that belong to no connection and no slot */
	/*
	 * How much may be under way to a client that does not read: some 40 rings. Each has four
	 * descriptors that count against the user's limit on descriptors in flight, and a stopped
	 * process may stay stopped.
	 */
	CLIENT_BUFFER_BYTES = 16384,
	/*
	 * A killed process has not told its last index. It tells it now and then (client.h), so
	 * this many indices are skipped: old packets then hit no QP of the next holder.
	 */
	INDEX_SKIP = 256,
};

/* How long the clients of a dead hub may take to bring the keeper. */
static const uint64_t seek_ns = 1000 * MS_NS, seek_step_ns = 10 * MS_NS;
/* How long a process that wants to reach a slot waits for the slot's holder to contact us. */
static const uint64_t reach_ns = 1000 * MS_NS, reach_step_ns = 10 * MS_NS;
/* A dying process may close our connection before its slots' names: look again for this long. */
static const uint64_t collect_step_ns = 10 * MS_NS, collect_spell_ns = 1000 * MS_NS;
/* How long the clients of a dead hub may take to tell what they have. */
static const uint64_t heir_spell_ns = 5000 * MS_NS;
/* A connection on which nothing is said is closed after this time. */
static const uint64_t silence_ns = 5000 * MS_NS;
/* Pause before accepting again when no descriptors are left. */
static const uint64_t accept_pause_ns = 100 * MS_NS;

static uint32_t random_index(void)
{
	uint32_t value = 0;

	if (getrandom(&value, sizeof(value), GRND_NONBLOCK) != sizeof(value))
		value = (uint32_t)vb_hub_now_ns();
	return value % VB_HUB_INDICES;
}

bool vb_hub_slot_is_marked(const struct conn *conn, unsigned slot)
{
	return conn->slots[slot / SLOT_BITS] >> slot % SLOT_BITS & 1;
}

static void slot_mark(struct conn *conn, unsigned slot, bool on)
{
	uint64_t bit = 1ull << slot % SLOT_BITS;

	conn->slots[slot / SLOT_BITS] &= ~bit;
	conn->slots[slot / SLOT_BITS] |= on ? bit : 0;
}

struct conn *vb_hub_client_of(struct hub *hub, unsigned slot)
{
	for (unsigned i = 0; i < hub->conns; i++) {
		if (hub->conn[i].role == CLIENT && vb_hub_slot_is_marked(&hub->conn[i], slot))
			return &hub->conn[i];
	}
	return NULL;
}

unsigned vb_hub_clients_count(const struct hub *hub)
{
	unsigned n = 0;

	for (unsigned i = 0; i < hub->conns; i++)
		n += hub->conn[i].role == CLIENT;
	return n;
}

static void conn_fds_close(struct conn *conn)
{
	for (unsigned i = 0; i < CONN_KEEPS; i++) {
		if (conn->fds[i] != NONE)
			close(conn->fds[i]);
		conn->fds[i] = NONE;
	}
}

static void fds_close(const int *fds, unsigned n)
{
	while (n)
		close(fds[--n]);
}

static void why_fill(char why[VB_HUB_WHY_BYTES], int error)
{
	char words[VB_HUB_WHY_BYTES];

	vb_hub_text_copy(why, VB_HUB_WHY_BYTES, vb_failure_words(words, sizeof(words), error));
}

static void tenant_serve(struct hub *hub, struct conn *conn)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_GRANT);
	unsigned slot, n = 0;
	int name_fd, fds[VB_HUB_FDS_MAX];
	int rc = vb_slots_lend(&hub->slots, &slot, &name_fd);

	if (rc) {
		msg.grant.error = (uint32_t)rc;
	} else {
		struct lease *lease = &hub->lease[slot];

		lease->next_index = lease->indexed
					    ? (lease->next_index + INDEX_SKIP) % VB_HUB_INDICES
					    : random_index();
		lease->indexed = true;
		lease->since_ns = vb_hub_now_ns();
		/* The previous holder's death may not have been seen yet. */
		for (unsigned i = 0; i < hub->conns; i++)
			slot_mark(&hub->conn[i], slot, false);
		for (unsigned i = 0; i < hub->conns; i++)
			vb_links_forget(hub->conn[i].links, slot);
		vb_ports_forget(&hub->ports, slot);
		lease->program = conn->program;
		lease->number = ++hub->leases;
		msg.grant.slot = slot;
		msg.grant.next_index = lease->next_index;
		fds[n++] = hub->slots.fd[slot];
		fds[n++] = name_fd;
	}
	if (rc)
		why_fill(msg.grant.why, rc);
	/* If the answer does not arrive, the name closes with it, and the slot is free again. */
	vb_hub_send(conn->fd, &msg, fds, n);
	if (!rc)
		close(name_fd);
	conn->role = GONE;
}

static void client_serve(struct hub *hub, struct conn *conn)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_WELCOME);

	conn->welcome = true;
	if (vb_hub_send(conn->fd, &msg, hub->slots.keeper, VB_HUB_KEEPER_FDS))
		conn->role = GONE;
}

/* Answers those that waited for the sockets. */
static void waiting_serve(struct hub *hub)
{
	for (unsigned i = 0; i < hub->conns; i++) {
		struct conn *conn = &hub->conn[i];

		if (conn->role == TENANT)
			tenant_serve(hub, conn);
		else if (conn->role == CLIENT && !conn->welcome)
			client_serve(hub, conn);
	}
}

static void serve(struct hub *hub)
{
	hub->phase = SERVING;
	waiting_serve(hub);
}

/* Makes the hub leave for this reason; rc 0: does nothing. */
static void fail(struct hub *hub, int rc)
{
	if (rc && !vb_failure_of(rc))
		vb_failed_because(rc, strerror(rc));
	hub->failure = rc ? *vb_failure_of(rc) : (struct vb_failure){.error = 0};
}

static void waiting_refuse(struct hub *hub)
{
	int error = vb_failed_as(&hub->failure);

	for (unsigned i = 0; i < hub->conns; i++) {
		struct conn *conn = &hub->conn[i];
		struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_WELCOME);

		msg.welcome.error = (uint32_t)error;
		why_fill(msg.welcome.why, error);
		if (conn->role == TENANT) {
			msg = vb_hub_msg_make(VB_HUB_GRANT);
			msg.grant.error = (uint32_t)error;
			why_fill(msg.grant.why, error);
		}
		if (conn->role == TENANT || conn->role == CLIENT)
			vb_hub_send(conn->fd, &msg, NULL, 0);
	}
	hub->phase = LEAVING;
}

/*
 * Are the sockets of an earlier hub still open? Then nothing may be bound until a client brings the
 * keeper.
 */
static void seek(struct hub *hub)
{
	bool early = vb_hub_now_ns() < hub->start_ns + seek_ns;
	int rc = hub->failure.error;

	if (!rc) {
		rc = vb_udp_port_probe();
		if (rc == EADDRINUSE && early)
			return;
		if (!rc)
			rc = vb_slots_create(&hub->slots);
		fail(hub, rc);
	}
	/* The process that started us is to hear the reason, and has not connected yet. */
	if (rc && early && !vb_hub_clients_count(hub))
		return;
	if (rc) {
		waiting_refuse(hub);
		return;
	}
	serve(hub);
}

/*
 * Takes who the process says it is. In our own PID namespace the kernel's word counts, so that no
 * process passes for another.
 */
static void program_take(struct conn *conn, const struct vb_hub_program *said)
{
	pid_t pid;

	conn->program = *said;
	if (!said->pid_ns || said->pid_ns != vb_hub_pid_ns() || vb_hub_peer_check(conn->fd, &pid))
		return;
	if (pid)
		conn->program.pid = (uint32_t)pid;
	else
		conn->program.pid_ns = 0;
}

/* Each on_ function owns the descriptors that came with the message. */

static void on_hello(struct hub *hub, struct conn *conn, const struct vb_hub_msg *msg,
		     const int *fds, unsigned n)
{
	bool seeks = hub->phase == SEEKING && !hub->failure.error;
	bool adopted = n && seeks && !vb_slots_adopt(&hub->slots, fds);

	setsockopt(conn->fd, SOL_SOCKET, SO_SNDBUF, &(int){CLIENT_BUFFER_BYTES}, sizeof(int));
	program_take(conn, &msg->hello.program);
	conn->role = CLIENT;
	conn->ports_due = msg->hello.ports;
	if (adopted) {
		hub->heir_ns = vb_hub_now_ns() + heir_spell_ns;
		serve(hub);
		return;
	}
	fds_close(fds, n);
	if (hub->phase == SERVING)
		client_serve(hub, conn);
}

/*
 * Does the slot belong to this client? Only the holder has the slot's name and can show it. Once
 * per connection is enough, until the slot is leased to another.
 */
static bool mark_is_true(struct hub *hub, struct conn *conn, unsigned slot, const int *name_fd)
{
	if (conn->role != CLIENT)
		return false;
	if (!name_fd)
		return vb_hub_slot_is_marked(conn, slot);
	if (!vb_slots_lease_is(&hub->slots, slot, *name_fd))
		return false;
	/* It may have connected anew before we saw its last connection close. */
	for (unsigned i = 0; i < hub->conns; i++)
		slot_mark(&hub->conn[i], slot, false);
	slot_mark(conn, slot, true);
	return true;
}

static void on_mark(struct hub *hub, struct conn *conn, const struct vb_hub_msg *msg,
		    const int *fds, unsigned n)
{
	struct lease *lease = &hub->lease[msg->mark.slot];

	bool is_true = mark_is_true(hub, conn, msg->mark.slot, n ? fds : NULL);

	fds_close(fds, n);
	/* A client that is refused connects anew, and shows all its names. */
	if (!is_true) {
		conn->role = GONE;
		return;
	}
	lease->indexed = true;
	lease->next_index = msg->mark.next_index;
	lease->program = conn->program;
	if (!lease->since_ns)
		lease->since_ns = hub->start_ns;
}

static void on_lease(struct hub *hub, struct conn *conn, const struct vb_hub_msg *msg,
		     const int *fds, unsigned n)
{
	program_take(conn, &msg->lease.program);
	conn->role = TENANT;
	if (hub->phase == SERVING)
		tenant_serve(hub, conn);
}

static void on_offer(struct hub *hub, struct conn *conn, const struct vb_hub_msg *msg,
		     const int *fds, unsigned n)
{
	conn_fds_close(conn);
	memcpy(conn->fds, fds, n * sizeof(*fds));
	conn->shm = msg->offer.shm;
	conn->why = msg->offer.why;
	conn->proven = vb_hub_same_maker(conn->fd, fds[0]);
	if (conn->role != CLIENT)
		conn->role = GONE;
}

static void on_link(struct hub *hub, struct conn *conn, const struct vb_hub_msg *msg,
		    const int *fds, unsigned n)
{
	if (conn->role != CLIENT)
		conn->role = GONE;
	else if (vb_hub_slot_is_marked(conn, msg->link.from))
		vb_links_put(&conn->links, &msg->link);
}

static void reached_refuse(struct conn *conn, int error)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_REACHED);

	msg.reached.error = (uint32_t)error;
	vb_hub_send(conn->fd, &msg, NULL, 0);
	conn->role = GONE;
}

static void on_reach(struct hub *hub, struct conn *conn, const struct vb_hub_msg *msg,
		     const int *fds, unsigned n)
{
	bool first = conn->role == STRANGER;

	conn_fds_close(conn);
	memcpy(conn->fds, fds, sizeof(conn->fds));
	conn->reach = msg->reach;
	conn->lease = hub->lease[msg->reach.from].number;
	conn->since_ns = vb_hub_now_ns();
	conn->role = first ? ASKER : GONE;
	/* While seeking, we cannot check whose a name is. */
	if (first && hub->phase != SERVING)
		reached_refuse(conn, EAGAIN);
	else if (first && !vb_slots_lease_is(&hub->slots, msg->reach.from, fds[CONN_KEEPS]))
		reached_refuse(conn, EPERM);
	fds_close(fds + CONN_KEEPS, n - CONN_KEEPS);
}

/* clang-format off */
static on_message *const handlers[VB_HUB_TYPES] = {
	[VB_HUB_HELLO]   = on_hello,
	[VB_HUB_OFFER]   = on_offer,
	[VB_HUB_MARK]    = on_mark,
	[VB_HUB_LINK]    = on_link,
	[VB_HUB_LEASE]   = on_lease,
	[VB_HUB_REACH]   = on_reach,
	[VB_HUB_STATUS]  = vb_hub_answer_status,
	[VB_HUB_STOP]    = vb_hub_answer_stop,
	[VB_HUB_FAIL]    = vb_hub_answer_fail,
	[VB_HUB_CAPTURE] = vb_hub_answer_capture,
	[VB_HUB_WHO]     = vb_hub_answer_who,
	[VB_HUB_DOMAINS] = vb_hub_answer_domains,
	[VB_HUB_NOTED]   = vb_hub_answer_noted,
	[VB_HUB_RECORDS] = vb_hub_answer_records,
	[VB_HUB_BIND]    = vb_hub_answer_bind,
	[VB_HUB_UNBIND]  = vb_hub_answer_unbind,
	[VB_HUB_MAD]     = vb_hub_answer_mad,
	[VB_HUB_CM]      = vb_hub_answer_cm,
	[VB_HUB_SAMPLE]  = vb_hub_answer_sample,
};
/* clang-format on */

/*
 * After its hello a client talks about slots, which we cannot check while seeking: its messages
 * wait in the socket.
 */
static bool is_heard(const struct hub *hub, const struct conn *conn)
{
	return conn->role != GONE && (hub->phase != SEEKING || conn->role != CLIENT);
}

void vb_hub_conn_read(struct hub *hub, struct conn *conn)
{
	while (is_heard(hub, conn)) {
		int fds[VB_HUB_FDS_MAX];
		struct vb_hub_msg msg;
		unsigned n;
		int rc = vb_hub_recv(conn->fd, &msg, fds, &n);

		if (rc == EAGAIN)
			return;
		if (!rc && handlers[msg.type]) {
			handlers[msg.type](hub, conn, &msg, fds, n);
			continue;
		}
		if (!rc)
			fds_close(fds, n);
		conn->role = GONE;
	}
}

/*
 * Sends the ring to the process to be reached. Returns 0, EAGAIN, or EINPROGRESS if that process is
 * gone.
 */
static int ring_send(struct hub *hub, const struct conn *asker, const struct conn *from,
		     struct conn *to)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_RING);
	int fds[VB_HUB_RING_FDS] = {asker->fds[0], asker->fds[1], from->fds[0], from->fds[1]};
	int rc;

	msg.ring.from = asker->reach.from;
	msg.ring.to = asker->reach.to;
	msg.ring.proven = from->proven;
	rc = vb_hub_send(to->fd, &msg, fds, VB_HUB_RING_FDS);
	hub->rings += !rc;
	if (rc == EPIPE || rc == ECONNRESET) {
		to->role = GONE;
		return EINPROGRESS;
	}
	/*
	 * It has not read the last ones yet, or too many descriptors are in flight: try again soon.
	 */
	return rc ? EAGAIN : 0;
}

/* Returns 0 with *to, which was told; EINPROGRESS if the slot's holder has not contacted us yet. */
static int asker_try(struct hub *hub, const struct conn *asker, struct conn **to)
{
	const struct vb_hub_reach *reach = &asker->reach;
	struct conn *from = vb_hub_client_of(hub, reach->from);

	*to = vb_hub_client_of(hub, reach->to);
	if (reach->from == reach->to)
		return EINVAL;
	/* The asker gave its slot up meanwhile, and another process has it. */
	if (asker->lease != hub->lease[reach->from].number)
		return EPERM;
	/* Read first: it may have disconnected. */
	if (*to)
		vb_hub_conn_read(hub, *to);
	if (!*to || (*to)->role == GONE)
		return vb_slots_is_held(&hub->slots, reach->to) ? EINPROGRESS : ENOENT;
	if (!from)
		return vb_slots_is_held(&hub->slots, reach->from) ? EINPROGRESS : EINVAL;
	if (from == *to)
		return EINVAL;
	if (!from->shm || !(*to)->shm)
		return EOPNOTSUPP;
	return ring_send(hub, asker, from, *to);
}

static void asker_serve(struct hub *hub, struct conn *asker)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_REACHED);
	struct conn *to;
	int rc = asker_try(hub, asker, &to);

	if (rc == EINPROGRESS) {
		if (vb_hub_now_ns() - asker->since_ns < reach_ns)
			return;
		rc = ETIMEDOUT;
	}
	msg.reached.error = (uint32_t)rc;
	if (to && to->role != GONE)
		msg.reached.program = to->program;
	if (!rc)
		msg.reached.proven = to->proven;
	if (rc == EOPNOTSUPP) {
		const struct conn *from = vb_hub_client_of(hub, asker->reach.from);

		msg.reached.there = from->shm;
		msg.reached.why = from->shm ? to->why : from->why;
	}
	/* If the answer does not arrive, the question comes again. */
	vb_hub_send(asker->fd, &msg, rc ? NULL : to->fds, rc ? 0 : VB_HUB_OFFER_FDS);
	asker->role = GONE;
}

/* After reading everything that was sent before the questions. */
static void askers_serve(struct hub *hub)
{
	for (unsigned i = 0; i < hub->conns; i++) {
		if (hub->conn[i].role == ASKER)
			asker_serve(hub, &hub->conn[i]);
	}
}

/* accept(2): most errors concern the new connection only. */
static void accept_failed(struct hub *hub, int error)
{
	if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM)
		hub->accept_ns = vb_hub_now_ns() + accept_pause_ns;
	if (error == EPERM || error == ENOSYS) {
		fail(hub, vb_failed(error, "accept4"));
		hub->phase = LEAVING;
	}
}

static void accept_all(struct hub *hub)
{
	while (hub->conns < hub->conns_max) {
		struct conn conn = {.since_ns = vb_hub_now_ns(), .fds = {NONE, NONE}};
		pid_t pid;

		conn.fd = accept4(hub->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (conn.fd < 0) {
			accept_failed(hub, errno);
			return;
		}
		vb_starter_leave();
		if (vb_hub_peer_check(conn.fd, &pid))
			close(conn.fd);
		else
			hub->conn[hub->conns++] = conn;
	}
}

/* Closes connections marked GONE or silent; the order of the others does not matter. */
static void sweep(struct hub *hub)
{
	uint64_t now = vb_hub_now_ns();

	for (unsigned i = 0; i < hub->conns;) {
		struct conn *conn = &hub->conn[i];
		bool silent = conn->role == STRANGER && now - conn->since_ns > silence_ns;

		if (conn->role != GONE && !silent) {
			i++;
			continue;
		}
		/* Only a client may leave slots behind, and not who has just asked something. */
		if (conn->welcome) {
			hub->collect_ns = now + collect_spell_ns;
			vb_hub_cm_gone(hub, conn);
		}
		conn_fds_close(conn);
		vb_links_free(&conn->links);
		close(conn->fd);
		*conn = hub->conn[--hub->conns];
	}
	if (hub->conns)
		hub->busy_ns = now;
}

bool vb_hub_has_orphan(const struct hub *hub)
{
	uint64_t marked[VB_HUB_SLOTS_MAX / SLOT_BITS] = {0};

	for (unsigned i = 0; i < hub->conns; i++) {
		for (unsigned k = 0; k < VB_ARRAY_LEN(marked); k++)
			marked[k] |= hub->conn[i].slots[k];
	}
	for (unsigned slot = 1; slot < hub->slots.bound; slot++) {
		if (hub->slots.open[slot] && !(marked[slot / SLOT_BITS] >> slot % SLOT_BITS & 1))
			return true;
	}
	return false;
}

/*
 * Takes back what dead processes had, slots and parts of XRC domains: for some time after a client
 * has gone, and after our start. If no process can have had anything, that time ends at once.
 */
static void collect(struct hub *hub)
{
	if (!hub->collect_ns || hub->phase != SERVING)
		return;
	vb_slots_shut(&hub->slots);
	if (vb_hub_cm_settle(hub))
		return;
	if (vb_domains_collect(&hub->slots) &&
	    (vb_hub_now_ns() > hub->collect_ns ||
	     (!vb_domains_any(&hub->slots.domains) && !vb_hub_has_orphan(hub))))
		hub->collect_ns = 0;
}

static int poll_timeout_ms(const struct hub *hub)
{
	uint64_t now = vb_hub_now_ns(), until = now + silence_ns;

	if (hub->phase == SEEKING)
		until = now + seek_step_ns;
	for (unsigned i = 0; i < hub->conns; i++) {
		if (hub->conn[i].role == ASKER)
			until = vb_min_u64(until, now + reach_step_ns);
	}
	if (hub->collect_ns > now)
		until = vb_min_u64(until, now + collect_step_ns);
	if (hub->accept_ns > now)
		until = vb_min_u64(until, hub->accept_ns);
	if (!hub->conns)
		until = vb_min_u64(until, hub->busy_ns + hub->idle_ns);
	return until <= now ? 0 : (int)((until - now) / MS_NS + 1);
}

static short events_awaited(const struct hub *hub, const struct conn *conn)
{
	return (short)((is_heard(hub, conn) ? POLLIN : 0) | (conn->mads.count ? POLLOUT : 0));
}

static void turn(struct hub *hub)
{
	struct pollfd *listener = &hub->pollfd[0], *strays = &hub->pollfd[1];
	struct pollfd *conns = &hub->pollfd[2];
	bool full = hub->conns == hub->conns_max || vb_hub_now_ns() < hub->accept_ns;
	unsigned n = hub->conns;
	int ready;

	/* poll() skips negative descriptors. */
	*listener = (struct pollfd){.fd = full ? -1 : hub->listen_fd, .events = POLLIN};
	*strays = (struct pollfd){.fd = hub->slots.bound ? hub->slots.fd[0] : -1, .events = POLLIN};
	for (unsigned i = 0; i < n; i++)
		conns[i] = (struct pollfd){.fd = hub->conn[i].fd,
					   .events = events_awaited(hub, &hub->conn[i])};
	ready = poll(hub->pollfd, n + 2, poll_timeout_ms(hub));
	if (ready < 0 && errno == EINTR)
		return;
	if (ready < 0) {
		fail(hub, vb_failed(errno, "poll"));
		hub->phase = LEAVING;
		return;
	}
	/* A holder that is not connected goes unnoticed. */
	if (!ready && !hub->collect_ns)
		hub->collect_ns = vb_hub_now_ns();
	for (unsigned i = 0; i < n; i++) {
		if (conns[i].revents & POLLOUT)
			vb_hub_mads_flush(&hub->conn[i]);
		if (conns[i].revents & POLLIN)
			vb_hub_conn_read(hub, &hub->conn[i]);
		else if (conns[i].revents & ~POLLOUT)
			hub->conn[i].role = GONE;
	}
	if (strays->revents)
		vb_hub_strays_take(hub);
	if (listener->revents)
		accept_all(hub);
	if (hub->phase == SEEKING)
		seek(hub);
	askers_serve(hub);
	sweep(hub);
	collect(hub);
}

/*
 * Half of our descriptors are for slots; the rest bounds the connections. A client needs two
 * connections at once to ask for anything. With fewer than that *enough is false: one connection is
 * accepted, only to say so.
 */
static unsigned conns_max(bool *enough)
{
	struct rlimit limit;

	*enough = !getrlimit(RLIMIT_NOFILE, &limit) &&
		  limit.rlim_cur >= 2 * (OTHER_FDS + CONNS_MIN * CONN_FDS);
	if (!*enough)
		return 1;
	return (unsigned)vb_min_u64((limit.rlim_cur / 2 - OTHER_FDS) / CONN_FDS, CONNS_MAX);
}

int vb_hub_serve(int listen_fd, uint64_t idle_ns)
{
	struct hub *hub = calloc(1, sizeof(*hub));
	bool enough;
	int rc;

	if (!hub)
		return ENOMEM;
	hub->conns_max = conns_max(&enough);
	if (!enough)
		fail(hub, vb_failed(EMFILE, "sockets for slots and connections"));
	hub->listen_fd = listen_fd;
	hub->idle_ns = idle_ns;
	hub->start_ns = hub->busy_ns = vb_hub_now_ns();
	hub->collect_ns = hub->start_ns + collect_spell_ns;
	vb_hub_cm_begin(hub);
	seek(hub);
	while (hub->phase != LEAVING) {
		turn(hub);
		if (!hub->conns && vb_hub_now_ns() - hub->busy_ns >= idle_ns)
			hub->phase = LEAVING;
	}
	rc = vb_failed_as(&hub->failure);
	vb_ports_free(&hub->ports);
	vb_estates_free(&hub->estates);
	free(hub);
	return rc;
}
