/* SPDX-License-Identifier: BSD-2-Clause */
#include <fcntl.h>
#include <sys/un.h>

#include "hub/client_internal.h"
#include "intruder.h"
#include "reach_lib.h"

/*
 * Attackers: processes of the same user, under the same hub, in PID, mount and IPC namespaces of
 * their own. They speak as they like, and take what they can get; what is another's they do not.
 */

/* What an attacker knows of its victims, and how he is to try it. */
struct plan {
	struct sockaddr_un name; /* of the victim's slot, as /proc/net/unix shows it to all */
	socklen_t name_bytes;
	int name_type;
	unsigned victim, other; /* slots */
	enum fake {
		NO_SOCKET,
		ITS_OWN,
		OF_ANOTHER_KIND,
		OF_ANOTHER_NAMESPACE,
		NOTHING_SHOWN, /* with a mark only */
		FAKES
	} fake;
	int talk[2]; /* theirs, ours */
};

static void plan_make(struct plan *plan, const struct party *victim, const struct party *other)
{
	int fd = victim->client->held[0].name_fd;
	socklen_t bytes = sizeof(int);

	*plan = (struct plan){.name_bytes = sizeof(plan->name),
			      .victim = victim->slot.slot,
			      .other = other->slot.slot};
	assert_int_equal(getsockname(fd, (struct sockaddr *)&plan->name, &plan->name_bytes), 0);
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_TYPE, &plan->name_type, &bytes), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, plan->talk), 0);
}

/* --- in the attacker --- */

/* Anybody has a network namespace of his own who makes a user namespace first. */
static void other_netns(void)
{
	child_check(!unshare(CLONE_NEWNET) || !unshare(CLONE_NEWUSER | CLONE_NEWNET));
}

/* A socket of the victim's name. */
static int namesake(const struct plan *plan, int type, bool elsewhere)
{
	int pair[2], fd = VB_FD_NONE;
	pid_t pid;

	if (!elsewhere) {
		fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
		child_check(!bind(fd, (const struct sockaddr *)&plan->name, plan->name_bytes));
		return fd;
	}
	/* Made there, and sent from there. */
	child_check(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	pid = fork();
	if (!pid) {
		other_netns();
		jail_fd_send(pair[1], namesake(plan, type, false));
		_exit(0);
	}
	fd = jail_fd_take(pair[0]);
	waitpid(pid, NULL, 0);
	close(pair[0]);
	close(pair[1]);
	return fd;
}

static int fake_make(const struct plan *plan)
{
	int fd;

	switch (plan->fake) {
	case NO_SOCKET:
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	case ITS_OWN:
		intruder_slot(&fd);
		return fd;
	case OF_ANOTHER_KIND:
		return namesake(plan, SOCK_STREAM, false);
	case OF_ANOTHER_NAMESPACE:
		return namesake(plan, plan->name_type, true);
	default:
		return VB_FD_NONE;
	}
}

static int memory(const char *what)
{
	int fd = memfd_create(what, MFD_CLOEXEC);

	file_mark(fd, what, 666);
	return fd;
}

static void reach_as_another(void *arg)
{
	const struct plan *plan = arg;
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_REACH);
	int conn, ends[2], fds[VB_HUB_FDS_MAX];

	intruder_begin(plan->talk[0]);
	line_make(ends);
	fds[0] = memory("ring");
	fds[1] = ends[1];
	fds[2] = fake_make(plan);
	msg.reach.from = plan->victim;
	msg.reach.to = plan->other;
	conn = intruder_conn();
	child_check(!vb_hub_send(conn, &msg, fds, VB_HUB_REACH_FDS));
	msg = intruder_answer(conn, fds);
	child_check(msg.type == VB_HUB_REACHED && msg.reached.error == EPERM);
	/* Its line is nobody's. */
	close(ends[1]);
	child_check(poll(&(struct pollfd){ends[0], POLLRDHUP, 0}, 1, 1000) == 1);
}

static int client_conn(int token_fd)
{
	return intruder_client(token_fd, memory("export"));
}

/* With whatever it shows, it is disconnected. */
static void mark_as_another(void *arg)
{
	const struct plan *plan = arg;
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_MARK);
	int fds[VB_HUB_FDS_MAX], conn, ends[2], fake;
	unsigned n;

	intruder_begin(plan->talk[0]);
	fake = fake_make(plan);
	line_make(ends);
	conn = client_conn(ends[0]);
	msg.mark.slot = plan->victim;
	msg.mark.next_index = 4711;
	child_check(!vb_hub_send(conn, &msg, &fake, fake == VB_FD_NONE ? 0 : VB_HUB_MARK_FDS));
	child_check(vb_hub_recv_by(conn, &msg, fds, &n, vb_hub_now_ns() + 5000 * MS_NS) ==
		    ECONNRESET);
}

/* Tells its slot, and is there until it is told to go. */
static void be_reached(const struct plan *plan, int token_fd)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_MARK);
	int conn = client_conn(token_fd), name_fd;
	char octet;

	msg.mark.slot = intruder_slot(&name_fd);
	child_check(!vb_hub_send(conn, &msg, &name_fd, VB_HUB_MARK_FDS));
	child_check(send(3, &msg.mark.slot, sizeof(msg.mark.slot), 0) == sizeof(msg.mark.slot));
	child_check(recv(3, &octet, 1, 0) == 1);
}

static void offer_anothers_token(void *arg)
{
	const struct plan *plan = arg;

	intruder_begin(plan->talk[0]);
	be_reached(plan, intruder_token_of(plan->victim));
}

static void offer_its_own_token(void *arg)
{
	const struct plan *plan = arg;
	int ends[2];

	intruder_begin(plan->talk[0]);
	line_make(ends);
	be_reached(plan, ends[0]);
}

static void link_from_another(void *arg)
{
	const struct plan *plan = arg;
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_LINK);
	int ends[2], conn;

	intruder_begin(plan->talk[0]);
	line_make(ends);
	conn = client_conn(ends[0]);
	msg.link.from = plan->victim;
	msg.link.to = plan->other;
	child_check(!vb_hub_send(conn, &msg, NULL, 0));
	/* That it was heard is sure when an answer comes to what was said behind it. */
	msg = vb_hub_msg_make(VB_HUB_HELLO);
	child_check(!vb_hub_send(conn, &msg, NULL, 0));
	child_check(intruder_answer(conn, (int[VB_HUB_FDS_MAX]){0}).type == VB_HUB_WELCOME);
	be_reached(plan, ends[0]);
}

/* --- the tests --- */

/* The victim's row of the hub's status. */
static struct vb_hub_row row_of(const struct party *party, unsigned *links)
{
	struct vb_hub_summary summary;
	struct vb_hub_row *rows, row = {.slot = 0};

	assert_int_equal(vb_hub_status_read(&summary, &rows), 0);
	for (unsigned i = 0; i < summary.rows; i++) {
		if (rows[i].slot == party->slot.slot)
			row = rows[i];
	}
	free(rows);
	assert_int_equal(row.slot, party->slot.slot);
	row.age_ms = 0;
	*links = summary.links;
	return row;
}

static bool attack(void (*part)(void *), struct plan *plan)
{
	pid_t pid = jail_start(part, plan);

	if (!pid)
		return false;
	assert_child_ok(pid);
	return true;
}

PARTIES(who_is_not_there_is_not_reached_from)
{
	struct plan plan;

	plan_make(&plan, a, b);
	for (plan.fake = 0; plan.fake < NOTHING_SHOWN; plan.fake++) {
		if (!attack(reach_as_another, &plan))
			SKIP(NO_JAIL);
		turn_for(b->client, 20);
		assert_int_equal(b->got_n, 0);
		assert_reaches(a, b, plan.fake);
		got_close(b);
	}
}

PARTIES(who_does_not_hold_a_slot_cannot_mark_it)
{
	struct vb_hub_row before, after;
	struct plan plan;
	unsigned links;

	plan_make(&plan, a, b);
	before = row_of(a, &links);
	for (plan.fake = 0; plan.fake < FAKES; plan.fake++) {
		if (!attack(mark_as_another, &plan))
			SKIP(NO_JAIL);
		after = row_of(a, &links);
		assert_memory_equal(&before, &after, sizeof(before));
		assert_reaches(b, a, plan.fake);
	}
}

/* Starts one that stays; its slot. 0: it could not be. */
static unsigned attacker_start(void (*part)(void *), struct plan *plan, pid_t *pid)
{
	uint32_t slot;

	*pid = jail_start(part, plan);
	if (!*pid)
		return 0;
	assert_true(poll(&(struct pollfd){plan->talk[1], POLLIN, 0}, 1, 5000) == 1);
	assert_int_equal(recv(plan->talk[1], &slot, sizeof(slot), 0), sizeof(slot));
	return slot;
}

static void attacker_end(struct plan *plan, pid_t pid)
{
	assert_int_equal(send(plan->talk[1], "!", 1, 0), 1);
	assert_child_ok(pid);
}

PARTIES(a_pid_is_told_of_who_has_made_the_token)
{
	struct vb_hub_peer peer;
	struct plan plan;
	unsigned slot;
	pid_t pid;

	plan_make(&plan, a, b);
	slot = attacker_start(offer_anothers_token, &plan, &pid);
	if (!slot)
		SKIP(NO_JAIL);
	assert_int_equal(reach(b, slot, 1, &peer), 0);
	assert_int_equal(peer.pid, 0);
	peer_close(&peer);
	attacker_end(&plan, pid);
	slot = attacker_start(offer_its_own_token, &plan, &pid);
	assert_int_equal(reach(b, slot, 1, &peer), 0);
	assert_int_not_equal(peer.pid, 0);
	assert_int_not_equal(peer.pid, getpid());
	peer_close(&peer);
	attacker_end(&plan, pid);
}

HUB_TEST(nobody_passes_for_another_process)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_LEASE);
	struct party leased = {.client = NULL}, *other;
	int conn, fds[VB_HUB_FDS_MAX];
	unsigned n, links;

	vb_hub_program_self(&msg.lease.program);
	if (!msg.lease.program.pid_ns)
		SKIP("/proc does not tell of our PID namespace");
	msg.lease.program.pid = (uint32_t)getppid();
	other = party_open(YES);
	assert_int_equal(vb_hub_connect(&conn), 0);
	assert_int_equal(vb_hub_send(conn, &msg, NULL, 0), 0);
	assert_int_equal(vb_hub_recv_by(conn, &msg, fds, &n, vb_hub_now_ns() + 5000 * MS_NS), 0);
	assert_int_equal(msg.type, VB_HUB_GRANT);
	assert_int_equal(msg.grant.error, 0);
	leased.slot.slot = (uint16_t)msg.grant.slot;
	assert_int_equal(row_of(&leased, &links).program.pid, getpid());
	while (n)
		close(fds[--n]);
	close(conn);
	party_close(other);
}

PARTIES(nobody_tells_of_anothers_links)
{
	struct plan plan;
	unsigned links;
	pid_t pid;

	plan_make(&plan, a, b);
	if (!attacker_start(link_from_another, &plan, &pid))
		SKIP(NO_JAIL);
	row_of(a, &links);
	assert_int_equal(links, 0);
	attacker_end(&plan, pid);
}

static void stop_it(void *arg)
{
	const struct plan *plan = arg;

	intruder_begin(plan->talk[0]);
	for (unsigned force = 0; force < 2; force++) {
		struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_STOP);
		int conn = intruder_conn(), fds[VB_HUB_FDS_MAX];

		msg.stop.force = force;
		child_check(!vb_hub_send(conn, &msg, NULL, 0));
		msg = intruder_answer(conn, fds);
		child_check(msg.type == VB_HUB_STOPPED && msg.stopped.error == EPERM);
	}
}

/* Whoever could not kill it does not stop it: he might take its place. */
HUB_TEST(the_hub_stops_for_its_own_pid_namespace_only)
{
	struct plan plan;
	pid_t pid;

	a = party_open(YES);
	plan_make(&plan, a, a);
	pid = hub_pid();
	if (!attack(stop_it, &plan))
		SKIP(NO_JAIL);
	assert_int_equal(hub_pid(), pid);
	party_close(a);
	hub_stop();
	assert_int_equal(hub_pid(), 0);
}

/* Who asks, and gives his slot up before he is answered, does not speak for its next holder. */
HUB_TEST(a_question_ends_with_the_slot_that_it_is_from)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_REACH);
	struct vb_hub_msg mark = vb_hub_msg_make(VB_HUB_MARK);
	int conn, to_conn, own_fd, to_fd, token[2], fds[VB_HUB_FDS_MAX];
	struct vb_hub_summary summary;
	struct party *heir;
	unsigned n;

	heir = party_open(YES);
	party_close(heir);
	/* Somebody has it who has not spoken yet: the question waits. */
	own_fd = -1;
	msg.reach.from = intruder_slot(&own_fd);
	msg.reach.to = mark.mark.slot = intruder_slot(&to_fd);
	line_make(token);
	fds[0] = memory("ring");
	fds[1] = token[1];
	fds[2] = own_fd;
	conn = intruder_conn();
	assert_int_equal(vb_hub_send(conn, &msg, fds, VB_HUB_REACH_FDS), 0);
	close(fds[0]);
	close(own_fd);
	assert_true(hub_summary(&summary));
	heir = party_open(YES);
	assert_int_equal(heir->slot.slot, msg.reach.from);
	to_conn = intruder_client(token[0], memory("export"));
	assert_int_equal(vb_hub_send(to_conn, &mark, &to_fd, VB_HUB_MARK_FDS), 0);
	msg = intruder_answer(conn, fds);
	assert_int_equal(msg.type, VB_HUB_REACHED);
	assert_int_not_equal(msg.reached.error, 0);
	assert_int_equal(vb_hub_recv(to_conn, &msg, fds, &n), EAGAIN);
	party_close(heir);
	close(conn);
	close(to_conn);
	close(to_fd);
	close(token[0]);
	close(token[1]);
}
