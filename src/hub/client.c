/* SPDX-License-Identifier: BSD-2-Clause */
#include "hub/client.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/lock.h"
#include "hub/channel.h"
#include "hub/proto.h"
#include "hub/spawn.h"

#define MS_NS 1000000ull

static const uint64_t call_deadline_ns = 3000 * MS_NS;
/* How long a hub may take from exec to listening before somebody starts another. */
static const uint64_t spawn_patience_ns = 1000 * MS_NS;
static const uint64_t retry_min_ns = 1 * MS_NS, retry_max_ns = 500 * MS_NS;
/* All clients see a hub die at the same moment: most of them wait for another to start the next. */
static const uint64_t respawn_spread_ns = 16 * MS_NS;
/* A call that waits for the connection looks at least this often: another thread may handle it. */
static const uint64_t look_ns = 20 * MS_NS;

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71 /* since Linux 5.14, later than some C libraries know */
#endif

enum { NONE = -1 };

struct held {
	uint16_t slot;
	uint32_t next_index;
	int name_fd; /* the slot is ours as long as this is open */
};

struct vb_hub_client {
	vb_lock lock;
	int epoll_fd; /* watches conn_fd and timer_fd; what the caller polls */
	int timer_fd; /* the next attempt to connect */
	int conn_fd;  /* NONE while there is no hub */
	int keeper[VB_HUB_FDS_MAX];
	bool welcome;	       /* the hub on conn_fd has taken us in */
	int error;	       /* why there is no hub, as far as we know */
	uint64_t spawn_ns;     /* not before that time do we start a hub */
	uint64_t retry_ns;     /* pause before the next attempt, doubled each time */
	uint64_t netns_cookie; /* 0: the kernel does not tell */
	struct vb_hub_spawn *spawn;
	struct held *held;
	unsigned held_n;
};

static void fd_close(int *fd)
{
	if (*fd != NONE)
		close(*fd);
	*fd = NONE;
}

static void fds_close(int *fds, unsigned n)
{
	while (n--)
		fd_close(&fds[n]);
}

static uint64_t random_below(uint64_t bound)
{
	uint64_t value;

	if (getrandom(&value, sizeof(value), GRND_NONBLOCK) != sizeof(value))
		value = vb_hub_now_ns();
	return value % bound;
}

static void watch(struct vb_hub_client *client, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	epoll_ctl(client->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static void retry_later(struct vb_hub_client *client)
{
	struct itimerspec timer = {
		.it_value = {(time_t)(client->retry_ns / (1000 * MS_NS)),
			     (long)(client->retry_ns % (1000 * MS_NS))},
	};

	timerfd_settime(client->timer_fd, 0, &timer, NULL);
	client->retry_ns = vb_min_u64(2 * client->retry_ns, retry_max_ns);
}

static void disconnect(struct vb_hub_client *client)
{
	if (client->conn_fd != NONE) {
		/* By hand: a copy of the fd that a forked child has would stay in the set. */
		epoll_ctl(client->epoll_fd, EPOLL_CTL_DEL, client->conn_fd, NULL);
		fd_close(&client->conn_fd);
	}
	client->welcome = false;
}

/*
 * Hand over the keeper. The kernel counts the user's descriptors in flight, all slots among them,
 * against the soft limit of the process that sends one (unix(7), ETOOMANYREFS): raised for the
 * moment, if it must be.
 */
static int keeper_send(const struct vb_hub_client *client, int fd, const struct vb_hub_msg *hello)
{
	struct rlimit before, raised;
	int rc = vb_hub_send(fd, hello, client->keeper, VB_HUB_FDS_MAX);

	if (rc != ETOOMANYREFS || getrlimit(RLIMIT_NOFILE, &before))
		return rc;
	raised = (struct rlimit){before.rlim_max, before.rlim_max};
	setrlimit(RLIMIT_NOFILE, &raised);
	rc = vb_hub_send(fd, hello, client->keeper, VB_HUB_FDS_MAX);
	setrlimit(RLIMIT_NOFILE, &before);
	return rc;
}

/* Say hello, and what we hold: to a hub that has just started, this is all there is to know. */
static int greet(struct vb_hub_client *client, int fd)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_HELLO);
	char name[VB_HUB_COMM_BYTES] = "";
	int rc = ETOOMANYREFS;

	prctl(PR_GET_NAME, name);
	vb_hub_comm_copy(msg.hello.comm, name);
	if (client->keeper[0] != NONE)
		rc = keeper_send(client, fd, &msg);
	/* Without it if need be: another client may be able to bring it. */
	if (rc == ETOOMANYREFS)
		rc = vb_hub_send(fd, &msg, NULL, 0);
	for (unsigned i = 0; !rc && i < client->held_n; i++) {
		msg = vb_hub_msg_make(VB_HUB_MARK);
		msg.mark.slot = client->held[i].slot;
		msg.mark.next_index = client->held[i].next_index;
		/* A full socket is no failure: the rest is told with the next marks. */
		if (vb_hub_send(fd, &msg, NULL, 0))
			break;
	}
	return rc;
}

/* False if this thread has moved to another network namespace, where the hub is not ours. */
static bool netns_same(struct vb_hub_client *client, int fd)
{
	uint64_t cookie = 0;
	socklen_t bytes = sizeof(cookie);

	if (getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &bytes))
		return true;
	if (!client->netns_cookie)
		client->netns_cookie = cookie;
	return client->netns_cookie == cookie;
}

/* Nobody listens: start a hub, unless one has been started just now. */
static void hub_missing(struct vb_hub_client *client)
{
	uint64_t now = vb_hub_now_ns();
	int rc;

	if (now < client->spawn_ns)
		return;
	rc = vb_hub_spawn_run(client->spawn);
	client->error = rc;
	client->spawn_ns = now + spawn_patience_ns;
	client->retry_ns = retry_min_ns;
}

/* One attempt to be connected; if it fails, the timer brings the next. */
static void attempt(struct vb_hub_client *client)
{
	int fd, rc = vb_hub_connect(&fd);

	if (rc == ECONNREFUSED) {
		hub_missing(client);
	} else if (rc) {
		client->error = rc == EAGAIN ? 0 : rc;
	} else if (!netns_same(client, fd) || greet(client, fd)) {
		close(fd);
	} else {
		client->conn_fd = fd;
		watch(client, fd);
		return;
	}
	retry_later(client);
}

/* The connection broke. The next hub is looked for at once and started a little later. */
static void hub_lost(struct vb_hub_client *client)
{
	bool known = client->welcome;

	disconnect(client);
	if (!known) {
		retry_later(client);
		return;
	}
	client->retry_ns = retry_min_ns;
	client->spawn_ns = vb_hub_now_ns() + random_below(respawn_spread_ns);
	attempt(client);
}

static void welcome_take(struct vb_hub_client *client, const struct vb_hub_msg *msg, const int *fds,
			 unsigned n)
{
	if (!n) {
		disconnect(client);
		client->error = (int)msg->welcome.error;
		client->spawn_ns = vb_hub_now_ns() + spawn_patience_ns;
		retry_later(client);
		return;
	}
	fds_close(client->keeper, VB_HUB_FDS_MAX);
	memcpy(client->keeper, fds, sizeof(client->keeper));
	client->welcome = true;
	client->error = 0;
	client->retry_ns = retry_min_ns;
}

static void turn_locked(struct vb_hub_client *client)
{
	int fds[VB_HUB_FDS_MAX];
	struct vb_hub_msg msg;
	uint64_t times;
	unsigned n;
	int rc;

	/* The timer runs only while there is no connection. */
	if (read(client->timer_fd, &times, sizeof(times)) == sizeof(times))
		attempt(client);
	if (client->conn_fd == NONE)
		return;
	rc = vb_hub_recv(client->conn_fd, &msg, fds, &n);
	if (rc == EAGAIN)
		return;
	if (!rc && msg.type == VB_HUB_WELCOME) {
		welcome_take(client, &msg, fds, n);
		return;
	}
	if (!rc)
		fds_close(fds, n);
	/* To wait for another hub would not help: whoever asks is told. */
	if (rc == EMFILE)
		client->error = rc;
	hub_lost(client);
}

void vb_hub_client_turn(struct vb_hub_client *client)
{
	/* The progress thread waits for nobody; what is to be done now stays to be done. */
	if (!vb_lock_try(&client->lock))
		return;
	turn_locked(client);
	vb_lock_drop(&client->lock);
}

static int client_create(struct vb_hub_client **result)
{
	struct vb_hub_client *client = calloc(1, sizeof(*client));
	int rc;

	if (!client)
		return ENOMEM;
	vb_lock_init(&client->lock);
	client->conn_fd = client->keeper[0] = client->keeper[1] = NONE;
	client->retry_ns = retry_min_ns;
	client->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	client->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (client->epoll_fd < 0 || client->timer_fd < 0)
		rc = errno;
	else
		rc = vb_hub_spawn_create(&client->spawn);
	if (rc) {
		vb_hub_client_forget(client);
		return rc;
	}
	watch(client, client->timer_fd);
	*result = client;
	return 0;
}

/*
 * Wait for the answer on answer_fd (NONE: for nothing), handling news from the hub meanwhile: it
 * may need us to be connected before it can answer anybody. Whether we are, and if not, why.
 */
static int news_wait(struct vb_hub_client *client, int answer_fd, uint64_t deadline_ns)
{
	uint64_t now = vb_hub_now_ns();
	uint64_t wait_ns = deadline_ns > now ? vb_min_u64(deadline_ns - now, look_ns) : 0;
	struct pollfd fds[] = {{answer_fd, POLLIN, 0}, {client->epoll_fd, POLLIN, 0}};
	int rc;

	poll(fds, VB_ARRAY_LEN(fds), (int)(wait_ns / MS_NS) + 1);
	vb_lock_take(&client->lock);
	turn_locked(client);
	rc = client->welcome ? 0 : client->error ? client->error : EAGAIN;
	vb_lock_drop(&client->lock);
	return rc;
}

int vb_hub_client_open(struct vb_hub_client **result)
{
	uint64_t deadline_ns = vb_hub_now_ns() + call_deadline_ns;
	struct vb_hub_client *client = NULL;
	int rc = client_create(&client);

	if (rc)
		return rc;
	attempt(client);
	do {
		rc = news_wait(client, NONE, deadline_ns);
	} while (rc == EAGAIN && vb_hub_now_ns() < deadline_ns);
	if (rc) {
		vb_hub_client_close(client);
		return rc == EAGAIN ? ETIMEDOUT : rc;
	}
	*result = client;
	return 0;
}

static int held_add(struct vb_hub_client *client, const struct held *held)
{
	struct held *more;

	vb_lock_take(&client->lock);
	more = reallocarray(client->held, client->held_n + 1, sizeof(*more));
	if (more) {
		client->held = more;
		client->held[client->held_n++] = *held;
	}
	vb_lock_drop(&client->lock);
	return more ? 0 : ENOMEM;
}

static int answer_wait(struct vb_hub_client *client, int fd, struct vb_hub_msg *msg,
		       int fds[VB_HUB_FDS_MAX], unsigned *n, uint64_t deadline_ns)
{
	for (;;) {
		int rc = vb_hub_recv(fd, msg, fds, n);

		if (rc != EAGAIN)
			return rc;
		if (vb_hub_now_ns() >= deadline_ns)
			return ETIMEDOUT;
		news_wait(client, fd, deadline_ns);
	}
}

/*
 * Requests travel on connections of their own: the answer finds the thread that waits for it,
 * and the progress thread never reads another's mail.
 */
static int grant_ask(struct vb_hub_client *client, struct vb_hub_msg *msg, int fds[VB_HUB_FDS_MAX],
		     uint64_t deadline_ns)
{
	char name[VB_HUB_COMM_BYTES] = "";
	int fd, rc;
	unsigned n;

	rc = vb_hub_connect(&fd);
	if (rc)
		return rc;
	*msg = vb_hub_msg_make(VB_HUB_LEASE);
	prctl(PR_GET_NAME, name);
	vb_hub_comm_copy(msg->lease.comm, name);
	rc = vb_hub_send(fd, msg, NULL, 0);
	if (!rc)
		rc = answer_wait(client, fd, msg, fds, &n, deadline_ns);
	close(fd);
	if (rc)
		return rc;
	if (msg->type == VB_HUB_GRANT)
		return (int)msg->grant.error;
	fds_close(fds, n);
	return EPROTO;
}

static int lease_once(struct vb_hub_client *client, struct vb_hub_slot *slot, uint64_t deadline_ns)
{
	int fds[VB_HUB_FDS_MAX], rc;
	struct vb_hub_msg msg;
	struct held held;

	rc = grant_ask(client, &msg, fds, deadline_ns);
	if (rc)
		return rc;
	held = (struct held){(uint16_t)msg.grant.slot, msg.grant.next_index, fds[1]};
	rc = held_add(client, &held);
	if (rc) {
		fds_close(fds, VB_HUB_FDS_MAX);
		return rc;
	}
	*slot = (struct vb_hub_slot){held.slot, held.next_index, fds[0]};
	return 0;
}

/* EADDRINUSE: the hub found sockets and not yet us, who have their keeper. */
static bool hub_was_missing(int rc)
{
	return rc == ECONNREFUSED || rc == ECONNRESET || rc == EPIPE || rc == EAGAIN ||
	       rc == EADDRINUSE;
}

int vb_hub_client_lease(struct vb_hub_client *client, struct vb_hub_slot *slot)
{
	uint64_t deadline_ns = vb_hub_now_ns() + call_deadline_ns;

	for (;;) {
		int rc = lease_once(client, slot, deadline_ns);

		if (!hub_was_missing(rc))
			return rc;
		rc = news_wait(client, NONE, deadline_ns);
		if (rc && !hub_was_missing(rc))
			return rc;
		if (vb_hub_now_ns() >= deadline_ns)
			return ETIMEDOUT;
	}
}

void vb_hub_client_mark(struct vb_hub_client *client, uint16_t slot, uint32_t next_index)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_MARK);

	msg.mark.slot = slot;
	msg.mark.next_index = next_index % VB_HUB_INDICES;
	vb_lock_take(&client->lock);
	for (unsigned i = 0; i < client->held_n; i++) {
		if (client->held[i].slot == slot)
			client->held[i].next_index = msg.mark.next_index;
	}
	/* Unheard marks are repeated to the next hub, or overtaken by later ones. */
	if (client->conn_fd != NONE)
		vb_hub_send(client->conn_fd, &msg, NULL, 0);
	vb_lock_drop(&client->lock);
}

int vb_hub_client_fd(struct vb_hub_client *client)
{
	return client->epoll_fd;
}

void vb_hub_client_forget(struct vb_hub_client *client)
{
	if (!client)
		return;
	/*
	 * Another thread of the parent may have held the lock when it forked, so it is not
	 * taken; and the epoll set is shared with the parent, so nothing is removed from it.
	 */
	for (unsigned i = 0; i < client->held_n; i++)
		fd_close(&client->held[i].name_fd);
	fds_close(client->keeper, VB_HUB_FDS_MAX);
	fd_close(&client->conn_fd);
	fd_close(&client->timer_fd);
	fd_close(&client->epoll_fd);
	vb_hub_spawn_destroy(client->spawn);
	free(client->held);
	free(client);
}

void vb_hub_client_close(struct vb_hub_client *client)
{
	/* Closing is all there is to tell: the slots' names go, and with them the leases. */
	vb_hub_client_forget(client);
}
