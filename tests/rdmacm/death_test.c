/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Server and client are processes, driven to each step of a connection's life; then one of them,
 * both, or the hub is killed. Who is left hears what a kernel would say for the dead, and nothing
 * of the dead is left at the hub: ports, descriptors, memory, memberships.
 *
 * CT_SERVER_IP, CT_PEER_NETNS: where the server is found, and the client's network namespace, if
 * that is another one; the program then stays in its own.
 */

enum { SERVER, CLIENT, SIDES };

/* --- a side: it does what it is told, one order after the other --- */

struct order {
	char what;
	char ps; /* t, u */
	uint16_t port;
};

struct reply {
	int rc; /* 0, or an errno */
	enum rdma_cm_event_type event;
	int status;
	uint16_t port;
};

static struct {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id, *conn; /* conn: the server's end */
} own;

static const char *server_ip(void)
{
	const char *ip = getenv("CT_SERVER_IP");

	return ip ? ip : ct_ip();
}

static int result(int rc)
{
	return rc ? errno : 0;
}

static int make(const struct order *order)
{
	if (!own.channel)
		own.channel = rdma_create_event_channel();
	if (!own.channel || own.id)
		return own.channel ? 0 : errno;
	return result(rdma_create_id(own.channel, &own.id, NULL,
				     order->ps == 'u' ? RDMA_PS_UDP : RDMA_PS_TCP));
}

static int qp_make(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = ct_qp_attr();

	attr.qp_type = id->qp_type;
	return result(rdma_create_qp(id, NULL, &attr));
}

static int event_take(struct reply *reply)
{
	struct rdma_cm_event *event;
	int rc = 0;

	if (!ct_readable(own.channel->fd, CT_WAIT_MS))
		return ETIMEDOUT;
	if (rdma_get_cm_event(own.channel, &event))
		return errno;
	reply->event = event->event;
	reply->status = event->status;
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		own.conn = event->id;
		rc = qp_make(own.conn);
	}
	rdma_ack_cm_event(event);
	return rc;
}

static int resolve(const struct order *order, struct reply *reply)
{
	int rc = make(order);

	if (!rc)
		rc = result(rdma_resolve_addr(own.id, NULL, ct_addr_of(server_ip(), order->port),
					      CT_RESOLVE_MS));
	if (!rc)
		rc = event_take(reply);
	if (!rc)
		rc = result(rdma_resolve_route(own.id, CT_RESOLVE_MS));
	if (!rc)
		rc = event_take(reply);
	return rc ? rc : qp_make(own.id);
}

static int bind_to(const struct order *order, struct reply *reply)
{
	int rc = make(order);

	if (!rc)
		rc = result(rdma_bind_addr(own.id, ct_addr_of(server_ip(), order->port)));
	reply->port = rc ? 0 : ct_src_port(own.id);
	return rc;
}

static int join(const struct order *order, struct reply *reply)
{
	int rc = resolve(order, reply);

	if (!rc)
		rc = result(rdma_join_multicast(own.id, ct_addr_of("239.1.2.3", 0), NULL));
	return rc ? rc : event_take(reply);
}

static int obey(const struct order *order, struct reply *reply)
{
	struct rdma_cm_id *conn = own.conn ? own.conn : own.id;

	switch (order->what) {
	case 'B':
		return bind_to(order, reply);
	case 'L':
		return result(rdma_listen(own.id, 8));
	case 'R':
		return resolve(order, reply);
	case 'C':
		return result(rdma_connect(conn, NULL));
	case 'P': /* something waits to be fetched, and is left there */
		return ct_readable(own.channel->fd, CT_WAIT_MS) ? 0 : ETIMEDOUT;
	case 'W':
		return event_take(reply);
	case 'A':
	case 'a':
		return result(rdma_accept(conn, NULL));
	case 'D':
		return result(rdma_disconnect(conn));
	case 'M':
		return join(order, reply);
	default:
		return EINVAL;
	}
}

static void end(struct rdma_cm_id *id)
{
	if (!id)
		return;
	if (id->qp)
		rdma_destroy_qp(id);
	rdma_destroy_id(id);
}

static void netns_join(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || setns(fd, CLONE_NEWNET))
		_exit(1);
	close(fd);
}

static void side_run(int fd)
{
	struct order order;

	while (read(fd, &order, sizeof(order)) == sizeof(order)) {
		struct reply reply = {0};

		reply.rc = obey(&order, &reply);
		if (write(fd, &reply, sizeof(reply)) != sizeof(reply))
			break;
	}
	end(own.conn);
	end(own.id);
	if (own.channel)
		rdma_destroy_event_channel(own.channel);
	exit(0);
}

/* --- both, seen from outside --- */

static struct side {
	pid_t pid; /* 0: it is dead, or was not born */
	int fd;
	bool stopped;
} sides[SIDES];

static struct {
	char ps;
	uint16_t port;
	const char *name;
} now;

static void side_begin(struct side *side, bool is_client)
{
	const char *netns = is_client ? getenv("CT_PEER_NETNS") : NULL;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	fflush(stdout);
	*side = (struct side){.pid = fork(), .fd = fds[0]};
	assert_true(side->pid >= 0);
	if (side->pid) {
		close(fds[1]);
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (unsigned i = 0; i < SIDES; i++) {
		if (sides[i].pid)
			close(sides[i].fd);
	}
	close(fds[0]);
	if (netns)
		netns_join(netns);
	side_run(fds[1]);
}

static void side_kill(struct side *side)
{
	if (!side->pid)
		return;
	kill(side->pid, SIGKILL);
	waitpid(side->pid, NULL, 0);
	close(side->fd);
	side->pid = 0;
}

/* It lets go of all, and ends well. */
static void side_end(struct side *side)
{
	int status;

	if (!side->pid)
		return;
	close(side->fd);
	assert_int_equal(waitpid(side->pid, &status, 0), side->pid);
	side->pid = 0;
	assert_int_equal(status, 0);
}

static struct reply tell(struct side *side, char what, uint16_t port)
{
	struct order order = {.what = what, .ps = now.ps, .port = port};
	struct reply reply;

	assert_int_equal(write(side->fd, &order, sizeof(order)), sizeof(order));
	assert_int_equal(read(side->fd, &reply, sizeof(reply)), sizeof(reply));
	return reply;
}

static void side_stop(struct side *side, bool stop)
{
	int status;

	if (!side->pid || side->stopped == stop)
		return;
	kill(side->pid, stop ? SIGSTOP : SIGCONT);
	if (stop)
		waitpid(side->pid, &status, WUNTRACED);
	side->stopped = stop;
}

static const struct {
	char letter;
	enum rdma_cm_event_type type;
} letters[] = {
	{'Q', RDMA_CM_EVENT_CONNECT_REQUEST}, {'E', RDMA_CM_EVENT_ESTABLISHED},
	{'D', RDMA_CM_EVENT_DISCONNECTED},    {'R', RDMA_CM_EVENT_REJECTED},
	{'U', RDMA_CM_EVENT_UNREACHABLE},     {'T', RDMA_CM_EVENT_TIMEWAIT_EXIT},
	{'X', RDMA_CM_EVENT_CONNECT_ERROR},
};

/* One of those, "R28|R4": by letter, and by status where one is given. */
static bool is_one_of(const struct reply *reply, const char *which)
{
	while (*which && *which != ' ') {
		for (size_t i = 0; i < sizeof(letters) / sizeof(*letters); i++) {
			char *behind;
			long status = strtol(which + 1, &behind, 10);

			if (letters[i].letter == *which && letters[i].type == reply->event &&
			    (behind == which + 1 || status == reply->status))
				return true;
		}
		which += strcspn(which, "| ");
		which += *which == '|';
	}
	return false;
}

static void event_expect(struct side *side, const char *which)
{
	struct reply reply = tell(side, 'W', 0);

	if (reply.rc)
		fail_msg("%s: no event, where %s should come: %s", now.name, which,
			 strerror(reply.rc));
	if (!is_one_of(&reply, which))
		fail_msg("%s: %s, status %d, where %s should come", now.name,
			 rdma_event_str(reply.event), reply.status, which);
}

/* What the client asked for is taken back: that is learnt here, or later by an event. */
static void accept_in_vain(struct side *side)
{
	if (!tell(side, 'a', 0).rc)
		event_expect(side, "R");
}

/*
 * Orders, each a side, s or c, and what it does; W has behind a colon what it is to be told. Z and
 * z stop it and let it go on.
 */
static void play(const char *script)
{
	for (; *script; script += strcspn(script, " "), script += *script == ' ') {
		struct side *side = &sides[*script == 'c' ? CLIENT : SERVER];
		char what = script[1];
		struct reply reply;

		if (what == 'Z' || what == 'z') {
			side_stop(side, what == 'Z');
		} else if (what == 'W') {
			event_expect(side, script + 3);
		} else if (what == 'a') {
			accept_in_vain(side);
		} else {
			reply = tell(side, what, now.port);
			if (reply.rc)
				fail_msg("%s: %.2s: %s", now.name, script, strerror(reply.rc));
			now.port = reply.port ? reply.port : now.port;
		}
	}
}

/* --- the hub, seen from outside --- */

static pid_t hub_pid(const char *netns)
{
	char self[512], command[1200];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int pid = 0;
	FILE *out;

	assert_true(n > 0);
	self[n] = 0;
	for (unsigned up = 0; up < 3; up++)
		*strrchr(self, '/') = 0;
	snprintf(command, sizeof(command), "%s%s%s %s/verbatim hub status 2>/dev/null",
		 netns ? "nsenter --net=" : "", netns ? netns : "", netns ? " --" : "", self);
	out = popen(command, "r");
	assert_non_null(out);
	while (fgets(command, sizeof(command), out))
		sscanf(command, "hub pid %d", &pid);
	pclose(out);
	return pid;
}

/* At the client's, if that is another one, there is none before the client asks. */
static void hubs_kill(void)
{
	const char *netns = getenv("CT_PEER_NETNS");
	pid_t here = hub_pid(NULL), there = netns ? hub_pid(netns) : 0;

	assert_true(here > 0);
	assert_int_equal(kill(here, SIGKILL), 0);
	if (there)
		assert_int_equal(kill(there, SIGKILL), 0);
}

/* How many records of processes it has mapped, and how many descriptors it has open. */
struct hub_use {
	pid_t pid;
	unsigned maps, fds;
};

static struct hub_use hub_use(void)
{
	struct hub_use use = {.pid = hub_pid(NULL)};
	char path[64], line[512];
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)use.pid);
	maps = fopen(path, "r");
	while (maps && fgets(line, sizeof(line), maps))
		use.maps += strstr(line, "verbatim-cm") != NULL;
	if (maps)
		fclose(maps);
	for (int fd = 0; fd < 4096; fd++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)use.pid, fd);
		use.fds += readlink(path, line, sizeof(line)) > 0;
	}
	return use;
}

/* A membership of the kernel's, for 239.1.2.3. */
static bool is_joined(void)
{
	FILE *igmp = fopen("/proc/self/net/igmp", "r");
	char line[256];
	bool found = false;

	while (igmp && fgets(line, sizeof(line), igmp))
		found |= strstr(line, "030201EF") != NULL;
	if (igmp)
		fclose(igmp);
	return found;
}

/*
 * Of the dead nothing is left: the hub has no records of them and no more descriptors than before,
 * and others get their ports.
 */
static void expect_no_trace(bool same_hub)
{
	static struct hub_use before;
	struct hub_use use = hub_use();
	int rc = EADDRINUSE;

	side_begin(&sides[SERVER], false);
	for (unsigned i = 0; i < 1000 && now.port && rc == EADDRINUSE; i++) {
		rc = tell(&sides[SERVER], 'B', now.port).rc;
		if (rc)
			usleep(20000);
	}
	assert_int_equal(now.port ? rc : 0, 0);
	if (now.port)
		assert_int_equal(tell(&sides[SERVER], 'L', 0).rc, 0);
	side_end(&sides[SERVER]);
	for (unsigned i = 0; i < 1000; i++) {
		use = hub_use();
		if (!use.maps && (!same_hub || use.pid != before.pid || use.fds <= before.fds))
			break;
		usleep(20000);
	}
	assert_int_equal(use.maps, 0);
	if (same_hub && use.pid == before.pid)
		assert_true(use.fds <= before.fds);
	else
		before = use;
	assert_false(is_joined());
}

/* --- the steps --- */

/*
 * to: how one gets there. Then what is left to hear or do: for the server when the client is dead,
 * for the client when the server is, and for both when it was the hub. NULL: nothing is to die.
 */
static const struct step {
	const char *name, *to, *client_dead, *server_dead, *hub_dead;
	char ps;
} steps[] = {
	{"bound", "sB", NULL, "", "sL cR cC sW:Q sA cW:E sW:E", 't'},
	{"listening", "sB sL", NULL, "", "cR cC sW:Q sA cW:E sW:E", 't'},
	/* 28 if the request came to it before its end was noticed. */
	{"resolved", "sB sL cR", "", "cC cW:R8|R28", "cC sW:Q sA cW:E sW:E", 't'},
	{"REQ sent", "sB sL cR sZ cC", "sW:Q sa", "cW:R28", "sW:Q sA cW:E sW:E", 't'},
	{"REQ received", "sB sL cR cC sP", "sW:Q sa", "cW:R28", "sW:Q sA cW:E sW:E", 't'},
	{"REQ fetched", "sB sL cR cC sW:Q", "sa", "cW:R28", "sA cW:E sW:E", 't'},
	{"REP sent", "sB sL cR cC sW:Q cZ sA", "sW:R4", "cW:X|E cW:R28", "cW:E sW:E", 't'},
	{"REP received", "sB sL cR cC sW:Q sA cP", "sW:R28", "cW:X|E cW:R28", "cW:E sW:E", 't'},
	{"established", "sB sL cR cC sW:Q sA cW:E sW:E", "sW:D", "cW:D", "cD sW:D sD cW:D", 't'},
	{"DREQ sent", "sB sL cR cC sW:Q sA cW:E sW:E sZ cD", "sW:D", "cW:D", "sW:D sD cW:D", 't'},
	{"DREQ received", "sB sL cR cC sW:Q sA cW:E sW:E cD sW:D", "sD", "cW:D", "sD cW:D", 't'},
	{"timewait", "sB sL cR cC sW:Q sA cW:E sW:E cD sW:D sD cW:D", "sW:T", "cW:T",
	 "cW:T sW:T", 't'},
	{"SIDR_REQ sent", "sB sL cR sZ cC", "sW:Q sA", "cW:U2", "sW:Q sA cW:E", 'u'},
	{"SIDR_REQ fetched", "sB sL cR cC sW:Q", "sA", "cW:U2", "sA cW:E", 'u'},
	{"SIDR_REP received", "sB sL cR cC sW:Q sA cW:E", "", "", "", 'u'},
	{"group joined", "sM", NULL, "", "", 'u'},
};

enum who { THE_CLIENT, THE_SERVER, BOTH, HUB, SERVER_AND_HUB, WHOS };

static const char *const who_names[WHOS] = {
	"the client dies", "the server dies", "both die", "the hub dies", "server and hub die",
};

struct death {
	const struct step *step;
	enum who who;
	char name[96];
};

/* A third process asks who was listening before the hub died: that port is not free. */
static void expect_still_listening(void)
{
	struct side third;
	struct reply reply;

	side_begin(&third, false);
	reply = tell(&third, 'B', now.port);
	assert_true(reply.rc == EADDRINUSE || reply.rc == EADDRNOTAVAIL);
	side_kill(&third);
}

static void kill_who(enum who who)
{
	if (who == HUB || who == SERVER_AND_HUB)
		hubs_kill();
	if (who == THE_CLIENT || who == BOTH)
		side_kill(&sides[CLIENT]);
	if (who == THE_SERVER || who == BOTH || who == SERVER_AND_HUB)
		side_kill(&sides[SERVER]);
	side_stop(&sides[CLIENT], false);
	side_stop(&sides[SERVER], false);
}

static void they_die(void **state)
{
	const struct death *death = *state;
	const struct step *step = death->step;

	now.ps = step->ps;
	now.port = 0;
	now.name = death->name;
	side_begin(&sides[SERVER], false);
	side_begin(&sides[CLIENT], true);
	play(step->to);
	kill_who(death->who);
	if (death->who == THE_CLIENT)
		play(step->client_dead);
	else if (death->who == THE_SERVER)
		play(step->server_dead);
	else if (death->who == HUB)
		play(step->hub_dead);
	if (death->who == HUB && strstr(step->to, "sL"))
		expect_still_listening();
	if (death->who == SERVER_AND_HUB)
		side_kill(&sides[CLIENT]);
	side_end(&sides[CLIENT]);
	side_end(&sides[SERVER]);
	expect_no_trace(death->who != HUB && death->who != SERVER_AND_HUB);
}

static int leave(void **state)
{
	side_kill(&sides[CLIENT]);
	side_kill(&sides[SERVER]);
	return 0;
}

static bool is_possible(const struct step *step, enum who who)
{
	if (strstr(step->to, "sM") && (getenv("CT_IPV6") || getenv("CT_SERVER_IP")))
		return false;
	return step->client_dead || (who != THE_CLIENT && who != BOTH);
}

int main(void)
{
	enum { MAX = WHOS * sizeof(steps) / sizeof(*steps) };
	static struct CMUnitTest tests[MAX];
	static struct death deaths[MAX];
	size_t count = 0;

	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		for (enum who who = 0; who < WHOS; who++) {
			struct death *death = &deaths[count];

			if (!is_possible(&steps[i], who))
				continue;
			*death = (struct death){.step = &steps[i], .who = who};
			snprintf(death->name, sizeof(death->name), "%s: %s", steps[i].name,
				 who_names[who]);
			tests[count++] = (struct CMUnitTest){
				.name = death->name,
				.test_func = they_die,
				.teardown_func = leave,
				.initial_state = death,
			};
		}
	}
	if (getenv("CT_PEER_NETNS"))
		return _cmocka_run_group_tests("death", tests, count, NULL, NULL);
	return ct_run("death", tests, count);
}
