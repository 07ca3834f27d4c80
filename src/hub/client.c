/* SPDX-License-Identifier: BSD-2-Clause */
#include "hub/client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fd.h"
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
/* Somebody is too busy to hear us: the pause before we say it again. */
static const uint64_t busy_ns = 3 * MS_NS;

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71 /* since Linux 5.14, later than some C libraries know */
#endif

enum {
	NONE = -1,
	STORE = 2, /* in the keeper: the memory of XRC domains */
	RINGS_MAX = 64,	 /* that wait for a turn; further ones wait in the socket */
	RINGS_SEEN = 64, /* the last ones that came */
};

struct held {
	uint16_t slot;
	bool told; /* the hub has heard how far the index is */
	uint32_t next_index;
	int name_fd; /* the slot is ours as long as this is open */
};

/* Another process sends to us. */
struct ring {
	uint16_t from, to;
	int fd;
	struct vb_hub_peer peer;
};

struct vb_hub_client {
	vb_lock lock;
	int epoll_fd; /* watches the next three; what the caller polls */
	int timer_fd; /* the next attempt to connect */
	int wake_fd;  /* an eventfd: rings wait for a turn */
	int conn_fd;  /* NONE while there is no hub */
	int keeper[VB_HUB_KEEPER_FDS];
	bool welcome;	       /* the hub on conn_fd has taken us in */
	bool full;	       /* conn_fd takes no more; epoll tells when it does */
	int error;	       /* why there is no hub, as far as we know */
	uint64_t spawn_ns;     /* not before that time do we start a hub */
	uint64_t retry_ns;     /* pause before the next attempt, doubled each time */
	uint64_t netns_cookie; /* 0: the kernel does not tell */
	struct vb_hub_spawn *spawn;
	struct held *held;
	unsigned held_n;
	bool offers;
	struct vb_hub_offer offer;
	vb_hub_ring_fn *ring_fn;
	void *ring_arg;
	void (*fatal_fn)(void *arg);
	void (*noted_fn)(void *arg);
	bool fatal, noted; /* wait for a turn, as rings do */
	bool delivering;     /* a turn is inside ring_fn */
	unsigned rings;	     /* that wait */
	unsigned ring_first; /* the oldest of them */
	struct ring ring[RINGS_MAX];
	unsigned seen_next;
	ino_t seen[RINGS_SEEN];
};

static void fds_close(int *fds, unsigned n)
{
	while (n--)
		vb_fd_close(&fds[n]);
}

static uint64_t random_below(uint64_t bound)
{
	uint64_t value;

	if (getrandom(&value, sizeof(value), GRND_NONBLOCK) != sizeof(value))
		value = vb_hub_now_ns();
	return value % bound;
}

static void watch(struct vb_hub_client *client, int op, int fd, uint32_t events)
{
	struct epoll_event event = {.events = events};

	epoll_ctl(client->epoll_fd, op, fd, &event);
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
		vb_fd_close(&client->conn_fd);
	}
	client->welcome = client->full = false;
}

/* Raise the soft limit on descriptors for a moment: false if it cannot be. */
static bool limit_raise(struct rlimit *before)
{
	struct rlimit raised;

	if (getrlimit(RLIMIT_NOFILE, before) || before->rlim_cur == before->rlim_max)
		return false;
	raised = (struct rlimit){before->rlim_max, before->rlim_max};
	return !setrlimit(RLIMIT_NOFILE, &raised);
}

/*
 * Send descriptors. The kernel counts the user's in flight, all slots among them, against the soft
 * limit of the process that sends one (unix(7), ETOOMANYREFS).
 */
static int fds_send(int fd, const struct vb_hub_msg *msg, const int *fds, unsigned n)
{
	struct rlimit before;
	int rc = vb_hub_send(fd, msg, fds, n);

	if (rc != ETOOMANYREFS || !limit_raise(&before))
		return rc;
	rc = vb_hub_send(fd, msg, fds, n);
	setrlimit(RLIMIT_NOFILE, &before);
	return rc;
}

/* Say what the hub has not heard of our slots. What finds no room is said when there is some. */
static void marks_send(struct vb_hub_client *client)
{
	bool full = false;

	if (client->conn_fd == NONE)
		return;
	for (unsigned i = 0; i < client->held_n && !full; i++) {
		struct held *held = &client->held[i];
		struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_MARK);
		int rc;

		if (held->told)
			continue;
		msg.mark.slot = held->slot;
		msg.mark.next_index = held->next_index;
		rc = vb_hub_send(client->conn_fd, &msg, NULL, 0);
		held->told = !rc;
		full = rc == EAGAIN;
	}
	if (full != client->full)
		watch(client, EPOLL_CTL_MOD, client->conn_fd, full ? EPOLLIN | EPOLLOUT : EPOLLIN);
	client->full = full;
}

static int offer_send(const struct vb_hub_client *client, int fd)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_OFFER);
	int fds[VB_HUB_OFFER_FDS] = {client->offer.bell_fd, client->offer.export_fd};
	int rc;

	msg.offer.shm = client->offer.shm;
	rc = fds_send(fd, &msg, fds, VB_HUB_OFFER_FDS);
	/* Without it we are reached by datagrams. */
	return rc == ETOOMANYREFS ? 0 : rc;
}

/*
 * Not that of the thread, which may be any: the one that greets another hub is our own. Nor that of
 * the process, which is valgrind's where the program runs in it.
 */
static void program_name(char comm[VB_HUB_COMM_BYTES])
{
	vb_hub_comm_copy(comm, program_invocation_short_name);
}

/* Say hello: with the marks of our slots, all there is to know for a hub that has just started. */
static int greet(struct vb_hub_client *client, int fd)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_HELLO);
	int rc = ETOOMANYREFS;

	program_name(msg.hello.comm);
	if (client->keeper[0] != NONE)
		rc = fds_send(fd, &msg, client->keeper, VB_HUB_KEEPER_FDS);
	/* Without it if need be: another client may be able to bring it. */
	if (rc == ETOOMANYREFS)
		rc = vb_hub_send(fd, &msg, NULL, 0);
	if (!rc && client->offers)
		rc = offer_send(client, fd);
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
		watch(client, EPOLL_CTL_ADD, fd, EPOLLIN);
		for (unsigned i = 0; i < client->held_n; i++)
			client->held[i].told = false;
		marks_send(client);
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
	fds_close(client->keeper, VB_HUB_KEEPER_FDS);
	memcpy(client->keeper, fds, sizeof(client->keeper));
	client->welcome = true;
	client->error = 0;
	client->retry_ns = retry_min_ns;
	/* Who noted something while there was no hub could tell nobody. */
	client->noted |= client->noted_fn != NULL;
	if (client->noted)
		eventfd_write(client->wake_fd, 1);
}

static bool slot_is_ours(const struct vb_hub_client *client, uint32_t slot)
{
	for (unsigned i = 0; i < client->held_n; i++) {
		if (client->held[i].slot == slot)
			return true;
	}
	return false;
}

/* In this process's own numbers: the hub may live in another PID namespace than we do. */
static uint32_t pid_here(int bell_fd, uint32_t pid_there)
{
	pid_t pid;

	return vb_hub_peer_check(bell_fd, &pid) ? pid_there : (uint32_t)pid;
}

/* Nobody waits there: the child of a fork has nothing to close. */
static void ring_clear(struct ring *ring)
{
	*ring = (struct ring){ .fd = NONE, .peer = { .bell_fd = NONE, .export_fd = NONE } };
}

/*
 * If a hub dies between telling us and telling the asker, he asks the next one, and the ring comes
 * again; by then there may be something in it that we have taken out. Files in memory do not get
 * the number of one that was there before.
 */
static bool ring_is_new(struct vb_hub_client *client, int fd)
{
	struct stat stat;

	if (fstat(fd, &stat))
		return true;
	for (unsigned i = 0; i < RINGS_SEEN; i++) {
		if (client->seen[i] == stat.st_ino)
			return false;
	}
	client->seen[client->seen_next++ % RINGS_SEEN] = stat.st_ino;
	return true;
}

/* Rings are handed on by a turn only: any other caller may hold locks that their receiver needs. */
static void ring_take(struct vb_hub_client *client, const struct vb_hub_msg *msg, int *fds)
{
	struct ring *ring = &client->ring[(client->ring_first + client->rings) % RINGS_MAX];

	if (!client->ring_fn || !slot_is_ours(client, msg->ring.to) ||
	    !ring_is_new(client, fds[0])) {
		fds_close(fds, VB_HUB_RING_FDS);
		return;
	}
	*ring = (struct ring){
		.from = (uint16_t)msg->ring.from,
		.to = (uint16_t)msg->ring.to,
		.fd = fds[0],
		.peer = {pid_here(fds[1], msg->ring.pid), fds[1], fds[2]},
	};
	if (client->rings++ == 0)
		eventfd_write(client->wake_fd, 1);
}

/*
 * What a welcome hub says is another's ring, and the other is not told if it does not arrive: with
 * no descriptor left under the soft limit, there are some above it.
 */
static int news_recv(struct vb_hub_client *client, struct vb_hub_msg *msg, int fds[VB_HUB_FDS_MAX],
		     unsigned *n)
{
	struct rlimit before;
	int rc = vb_hub_recv(client->conn_fd, msg, fds, n);

	if (rc != EMFILE || !client->welcome || !limit_raise(&before))
		return rc;
	rc = vb_hub_recv(client->conn_fd, msg, fds, n);
	setrlimit(RLIMIT_NOFILE, &before);
	return rc;
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
	marks_send(client);
	if (client->conn_fd == NONE || client->rings == RINGS_MAX)
		return;
	rc = news_recv(client, &msg, fds, &n);
	if (rc == EAGAIN)
		return;
	if (!rc && msg.type == VB_HUB_WELCOME) {
		welcome_take(client, &msg, fds, n);
		return;
	}
	if (!rc && msg.type == VB_HUB_RING) {
		ring_take(client, &msg, fds);
		return;
	}
	if (!rc && (msg.type == VB_HUB_FATAL || msg.type == VB_HUB_NOTED)) {
		client->fatal |= msg.type == VB_HUB_FATAL;
		client->noted |= msg.type == VB_HUB_NOTED;
		eventfd_write(client->wake_fd, 1);
		return;
	}
	if (!rc)
		fds_close(fds, n);
	/* To wait for another hub would not help: whoever asks is told. */
	if (rc == EMFILE)
		client->error = rc;
	hub_lost(client);
}

int vb_hub_client_store(struct vb_hub_client *client, int *fd)
{
	int rc = 0;

	vb_lock_take(&client->lock);
	/* Whoever has a slot was welcome once, and every hub since then has got what we hold. */
	if (client->keeper[STORE] == NONE)
		rc = EAGAIN;
	else if ((*fd = fcntl(client->keeper[STORE], F_DUPFD_CLOEXEC, 0)) < 0)
		rc = errno;
	vb_lock_drop(&client->lock);
	return rc;
}

/* With the lock held, but for the call. */
static void news_deliver(struct vb_hub_client *client, bool *news, void (*fn)(void *arg))
{
	eventfd_t times;

	*news = false;
	if (!client->rings && !client->fatal && !client->noted)
		eventfd_read(client->wake_fd, &times);
	if (!fn)
		return;
	vb_lock_drop(&client->lock);
	fn(client->ring_arg);
	vb_lock_take(&client->lock);
}

/* With the lock held, but for the calls. */
static void rings_deliver(struct vb_hub_client *client)
{
	eventfd_t times;

	client->delivering = true;
	while (client->rings) {
		struct ring *first = &client->ring[client->ring_first], ring = *first;

		ring_clear(first);
		client->ring_first = (client->ring_first + 1) % RINGS_MAX;
		if (--client->rings == 0 && !client->fatal && !client->noted)
			eventfd_read(client->wake_fd, &times);
		vb_lock_drop(&client->lock);
		client->ring_fn(client->ring_arg, ring.from, ring.to, ring.fd, &ring.peer);
		vb_lock_take(&client->lock);
	}
	client->delivering = false;
}

void vb_hub_client_turn(struct vb_hub_client *client)
{
	/* The progress thread waits for nobody; what is to be done now stays to be done. */
	if (!vb_lock_try(&client->lock))
		return;
	turn_locked(client);
	if (!client->delivering)
		rings_deliver(client);
	if (client->fatal)
		news_deliver(client, &client->fatal, client->fatal_fn);
	if (client->noted)
		news_deliver(client, &client->noted, client->noted_fn);
	vb_lock_drop(&client->lock);
}

void vb_hub_client_on_noted(struct vb_hub_client *client, void (*noted)(void *arg))
{
	vb_lock_take(&client->lock);
	client->noted_fn = noted;
	vb_lock_drop(&client->lock);
}

void vb_hub_client_on_fatal(struct vb_hub_client *client, void (*fatal)(void *arg))
{
	vb_lock_take(&client->lock);
	client->fatal_fn = fatal;
	vb_lock_drop(&client->lock);
}

static int client_create(struct vb_hub_client **result)
{
	struct vb_hub_client *client = calloc(1, sizeof(*client));
	int rc;

	if (!client)
		return ENOMEM;
	vb_lock_init(&client->lock);
	client->conn_fd = NONE;
	for (unsigned i = 0; i < VB_HUB_KEEPER_FDS; i++)
		client->keeper[i] = NONE;
	for (unsigned i = 0; i < RINGS_MAX; i++)
		ring_clear(&client->ring[i]);
	client->retry_ns = retry_min_ns;
	client->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	client->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	client->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (client->epoll_fd < 0 || client->timer_fd < 0 || client->wake_fd < 0)
		rc = errno;
	else
		rc = vb_hub_spawn_create(&client->spawn);
	if (rc) {
		vb_hub_client_forget(client);
		return rc;
	}
	watch(client, EPOLL_CTL_ADD, client->timer_fd, EPOLLIN);
	watch(client, EPOLL_CTL_ADD, client->wake_fd, EPOLLIN);
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
	struct pollfd fds[] = {{answer_fd, POLLIN, 0},
			       {client->timer_fd, POLLIN, 0},
			       {0, POLLIN, 0}};
	int rc;

	/*
	 * Not epoll_fd, which says also that rings wait for a turn. Should another thread replace
	 * the connection meanwhile, we wake up too early or look again soon.
	 */
	vb_lock_take(&client->lock);
	fds[2].fd = client->rings == RINGS_MAX ? NONE : client->conn_fd;
	vb_lock_drop(&client->lock);
	poll(fds, VB_ARRAY_LEN(fds), (int)(wait_ns / MS_NS) + 1);
	vb_lock_take(&client->lock);
	turn_locked(client);
	rc = client->welcome ? 0 : client->error ? client->error : EAGAIN;
	vb_lock_drop(&client->lock);
	return rc;
}

int vb_hub_client_open(struct vb_hub_client **result, const struct vb_hub_offer *offer,
		       vb_hub_ring_fn *ring, void *arg)
{
	uint64_t deadline_ns = vb_hub_now_ns() + call_deadline_ns;
	struct vb_hub_client *client = NULL;
	int rc = client_create(&client);

	if (rc)
		return rc;
	if (offer) {
		client->offers = true;
		client->offer = *offer;
		client->ring_fn = ring;
		client->ring_arg = arg;
	}
	attempt(client);
	do {
		rc = news_wait(client, NONE, deadline_ns);
	} while (rc == EAGAIN && vb_hub_now_ns() < deadline_ns);
	if (rc) {
		/* There was no reason to give up, or one that might have passed: fork(2)'s. */
		if (rc == EAGAIN && !client->error)
			rc = ETIMEDOUT;
		vb_hub_client_close(client);
		return rc;
	}
	*result = client;
	return 0;
}

static int held_add(struct vb_hub_client *client, const struct held *held)
{
	struct held *more, *less;

	vb_lock_take(&client->lock);
	more = calloc(client->held_n + 1, sizeof(*more));
	if (more) {
		/* The child of a fork reads the one or the other, and both are whole. */
		less = client->held;
		if (less)
			memcpy(more, less, client->held_n * sizeof(*more));
		more[client->held_n] = *held;
		client->held = more;
		client->held_n++;
		free(less);
		marks_send(client);
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
 * Send a request, with fds_n descriptors of ours in fds, and get the answer of that type and its.
 * Requests travel on connections of their own: the answer finds the thread that waits for it,
 * and the progress thread never reads another's mail.
 */
static int ask(struct vb_hub_client *client, struct vb_hub_msg *msg, int fds[VB_HUB_FDS_MAX],
	       unsigned fds_n, enum vb_hub_type answer, uint64_t deadline_ns)
{
	int fd, rc;

	rc = vb_hub_connect(&fd);
	if (rc)
		return rc;
	rc = fds_send(fd, msg, fds, fds_n);
	if (!rc)
		rc = answer_wait(client, fd, msg, fds, &fds_n, deadline_ns);
	close(fd);
	if (rc || msg->type == answer)
		return rc;
	fds_close(fds, fds_n);
	return EPROTO;
}

static int lease_once(struct vb_hub_client *client, struct vb_hub_slot *slot, uint64_t deadline_ns)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_LEASE);
	int fds[VB_HUB_FDS_MAX], rc;
	struct held held;

	program_name(msg.lease.comm);
	rc = ask(client, &msg, fds, 0, VB_HUB_GRANT, deadline_ns);
	if (rc || msg.grant.error)
		return rc ? rc : (int)msg.grant.error;
	held = (struct held){
		.slot = (uint16_t)msg.grant.slot,
		.next_index = msg.grant.next_index,
		.name_fd = fds[1],
	};
	rc = held_add(client, &held);
	if (rc) {
		fds_close(fds, VB_HUB_GRANT_FDS);
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

/* After a request came to nothing: 0 if it is worth another try now, or the reason to give up. */
static int again_wait(struct vb_hub_client *client, int rc, uint64_t deadline_ns)
{
	uint64_t now = vb_hub_now_ns();

	if (!hub_was_missing(rc))
		return rc;
	rc = news_wait(client, NONE, rc == EAGAIN ? now + busy_ns : deadline_ns);
	if (rc && !hub_was_missing(rc))
		return rc;
	return now < deadline_ns ? 0 : ETIMEDOUT;
}

int vb_hub_client_lease(struct vb_hub_client *client, struct vb_hub_slot *slot)
{
	uint64_t deadline_ns = vb_hub_now_ns() + call_deadline_ns;
	int rc;

	do {
		rc = lease_once(client, slot, deadline_ns);
		if (!rc)
			return 0;
		rc = again_wait(client, rc, deadline_ns);
	} while (!rc);
	return rc;
}

static int reach_once(struct vb_hub_client *client, const struct vb_hub_reach *reach, int ring_fd,
		      struct vb_hub_peer *peer, uint64_t deadline_ns)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_REACH);
	int fds[VB_HUB_FDS_MAX] = {ring_fd}, rc;

	msg.reach = *reach;
	rc = ask(client, &msg, fds, 1, VB_HUB_REACHED, deadline_ns);
	if (rc || msg.reached.error)
		return rc ? rc : (int)msg.reached.error;
	*peer = (struct vb_hub_peer){pid_here(fds[0], msg.reached.pid), fds[0], fds[1]};
	return 0;
}

int vb_hub_client_reach(struct vb_hub_client *client, uint16_t from, uint16_t to, int ring_fd,
			struct vb_hub_peer *peer)
{
	uint64_t deadline_ns = vb_hub_now_ns() + call_deadline_ns;
	const struct vb_hub_reach reach = {from, to};
	int rc;

	do {
		rc = reach_once(client, &reach, ring_fd, peer, deadline_ns);
		if (!rc)
			return 0;
		rc = again_wait(client, rc, deadline_ns);
	} while (!rc);
	return rc;
}

void vb_hub_client_mark(struct vb_hub_client *client, uint16_t slot, uint32_t next_index)
{
	vb_lock_take(&client->lock);
	for (unsigned i = 0; i < client->held_n; i++) {
		struct held *held = &client->held[i];

		if (held->slot != slot)
			continue;
		held->next_index = next_index % VB_HUB_INDICES;
		held->told = false;
	}
	marks_send(client);
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
		vb_fd_close(&client->held[i].name_fd);
	for (unsigned i = 0; i < RINGS_MAX; i++) {
		vb_fd_close(&client->ring[i].fd);
		vb_fd_close(&client->ring[i].peer.bell_fd);
		vb_fd_close(&client->ring[i].peer.export_fd);
	}
	fds_close(client->keeper, VB_HUB_KEEPER_FDS);
	vb_fd_close(&client->conn_fd);
	vb_fd_close(&client->wake_fd);
	vb_fd_close(&client->timer_fd);
	vb_fd_close(&client->epoll_fd);
	vb_hub_spawn_destroy(client->spawn);
	free(client->held);
	free(client);
}

void vb_hub_client_close(struct vb_hub_client *client)
{
	/* Closing is all there is to tell: the slots' names go, and with them the leases. */
	vb_hub_client_forget(client);
}
