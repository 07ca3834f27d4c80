/* SPDX-License-Identifier: BSD-2-Clause */
#include "hub/client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/lock.h"
#include "base/loose.h"
#include "base/probe.h"
#include "hub/channel.h"
#include "hub/client_internal.h"
#include "hub/client_ports.h"
#include "hub/client_reach.h"
#include "hub/client_rings.h"
#include "hub/holders.h"
#include "hub/program.h"
#include "hub/spawn.h"
#include "hub/words.h"

/* How long a hub may take from exec to listening before another is started. */
static const uint64_t spawn_patience_ns = 1000 * MS_NS;
static const uint64_t retry_min_ns = 1 * MS_NS, retry_max_ns = 500 * MS_NS;
/*
 * All clients see a hub die at the same moment. Each waits a random time up to this, so that most
 * of them find the next hub started already.
 */
static const uint64_t respawn_spread_ns = 16 * MS_NS;
/* How often a call that waits for the connection looks again: another thread may handle it. */
static const uint64_t look_ns = 20 * MS_NS;

enum { NEWS_PER_TURN = 64 };

void vb_hub_fds_close(int *fds, unsigned n)
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

static int watch(struct vb_hub_client *client, int op, int fd, uint32_t events)
{
	struct epoll_event event = {.events = events};

	return epoll_ctl(client->epoll_fd, op, fd, &event) ? vb_failed(errno, "epoll_ctl") : 0;
}

/* Stores why there is no hub, for all threads that wait for it. 0: nothing to report. */
static void trouble_set(struct vb_hub_client *client, int rc)
{
	if (rc && !vb_failure_of(rc))
		vb_failed_because(rc, strerror(rc));
	client->trouble = rc ? *vb_failure_of(rc) : (struct vb_failure){.error = 0};
}

static void retry_later(struct vb_hub_client *client)
{
	struct itimerspec timer = {
		.it_value = {(time_t)(client->retry_ns / (1000 * MS_NS)),
			     (long)(client->retry_ns % (1000 * MS_NS))},
	};

	if (timerfd_settime(client->timer_fd, 0, &timer, NULL))
		trouble_set(client, vb_failed(errno, "timerfd_settime"));
	client->retry_ns = vb_min_u64(2 * client->retry_ns, retry_max_ns);
}

static void disconnect(struct vb_hub_client *client)
{
	if (client->conn_fd != VB_FD_NONE) {
		/* Removed explicitly: a forked child's copy of the fd would keep it in the set. */
		epoll_ctl(client->epoll_fd, EPOLL_CTL_DEL, client->conn_fd, NULL);
		vb_fd_close(&client->conn_fd);
	}
	client->welcome = client->full = false;
}

/* Raises the soft limit on descriptors. Returns false if that fails. */
static bool limit_raise(struct rlimit *before)
{
	struct rlimit raised;

	if (getrlimit(RLIMIT_NOFILE, before) || before->rlim_cur == before->rlim_max)
		return false;
	raised = (struct rlimit){before->rlim_max, before->rlim_max};
	return !setrlimit(RLIMIT_NOFILE, &raised);
}

int vb_hub_fds_send(int fd, const struct vb_hub_msg *msg, const int *fds, unsigned n)
{
	struct rlimit before;
	int rc = vb_hub_send(fd, msg, fds, n);

	if (rc != ETOOMANYREFS || !limit_raise(&before))
		return rc;
	rc = vb_hub_send(fd, msg, fds, n);
	setrlimit(RLIMIT_NOFILE, &before);
	return rc;
}

/* Returns false if the socket is full. */
static bool tell(struct vb_hub_client *client, const struct vb_hub_msg *msg, const int *fds,
		 unsigned n, bool *told)
{
	int rc = vb_hub_fds_send(client->conn_fd, msg, fds, n);

	*told = !rc;
	return rc != EAGAIN;
}

static bool mark_send(struct vb_hub_client *client, struct vb_hub_held *held)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_MARK);

	msg.mark.slot = held->slot;
	msg.mark.next_index = held->next_index;
	if (!tell(client, &msg, &held->name_fd, held->shown ? 0 : VB_HUB_MARK_FDS, &held->told))
		return false;
	held->shown |= held->told;
	return true;
}

static bool link_send(struct vb_hub_client *client, struct vb_hub_told_link *link)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_LINK);

	msg.link = link->link;
	return tell(client, &msg, NULL, 0, &link->told);
}

void vb_hub_marks_send(struct vb_hub_client *client)
{
	bool room = true;

	if (client->conn_fd == VB_FD_NONE)
		return;
	for (unsigned i = 0; i < client->held_n && room; i++)
		room = client->held[i].told || mark_send(client, &client->held[i]);
	vb_lock_take(&client->links.lock);
	for (unsigned i = 0; i < client->links.n && room; i++)
		room = client->links.link[i].told || link_send(client, &client->links.link[i]);
	vb_lock_drop(&client->links.lock);
	room = room && vb_hub_ports_send(client);
	if (room == client->full)
		watch(client, EPOLL_CTL_MOD, client->conn_fd, room ? EPOLLIN : EPOLLIN | EPOLLOUT);
	client->full = !room;
}

static int offer_send(const struct vb_hub_client *client, int fd)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_OFFER);
	int fds[VB_HUB_OFFER_FDS] = {client->offer.token_fd, client->offer.export_fd};
	int rc;

	msg.offer.shm = client->offer.shm;
	msg.offer.why = client->offer.why;
	rc = vb_hub_fds_send(fd, &msg, fds, VB_HUB_OFFER_FDS);
	/* Without it, peers reach us by datagrams. */
	return rc == ETOOMANYREFS ? 0 : rc;
}

/* Says hello. With the marks of our slots, this is all that a new hub needs to know. */
static int greet(struct vb_hub_client *client, int fd)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_HELLO);
	int rc = ETOOMANYREFS;

	vb_hub_program_self(&msg.hello.program);
	msg.hello.ports = vb_hub_ports_untell(client);
	if (client->keeper[0] != VB_FD_NONE)
		rc = vb_hub_fds_send(fd, &msg, client->keeper, VB_HUB_KEEPER_FDS);
	/* The keeper may be missing: another client may be able to bring it. */
	if (rc == ETOOMANYREFS)
		rc = vb_hub_send(fd, &msg, NULL, 0);
	if (!rc && client->offers)
		rc = offer_send(client, fd);
	if (!rc)
		rc = vb_hub_records_send(client, fd);
	return rc;
}

/* False if this thread has moved to another network namespace, whose hub is not ours. */
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

/* Starts a hub, unless one was started just now and has not failed. */
static void hub_missing(struct vb_hub_client *client)
{
	uint64_t now = vb_hub_now_ns();
	int rc;

	if (now < client->spawn_ns) {
		rc = vb_hub_spawn_result(client->spawn);
		if (rc)
			trouble_set(client, rc);
		return;
	}
	rc = vb_hub_spawn_run(client->spawn);
	trouble_set(client, rc);
	client->spawn_ns = now + spawn_patience_ns;
	client->retry_ns = retry_min_ns;
}

/* Uses this connection. Returns 0, or an errno after which another attempt may succeed. */
static int adopt(struct vb_hub_client *client, int fd)
{
	int rc = greet(client, fd);

	if (rc)
		return rc;
	client->conn_fd = fd;
	rc = watch(client, EPOLL_CTL_ADD, fd, EPOLLIN);
	if (rc)
		client->conn_fd = VB_FD_NONE;
	return rc;
}

/* Tries to connect once; if that fails, the timer brings the next attempt. */
static void attempt(struct vb_hub_client *client)
{
	int fd, rc = vb_hub_connect(&fd);

	if (rc == ECONNREFUSED) {
		hub_missing(client);
	} else if (rc) {
		trouble_set(client, rc == EAGAIN ? 0 : rc);
	} else if (!netns_same(client, fd)) {
		close(fd);
	} else if ((rc = adopt(client, fd)) != 0) {
		close(fd);
		/* A hub that is just leaving is not worth a note. */
		if (rc != EPIPE && rc != ECONNRESET && rc != EAGAIN)
			trouble_set(client, rc);
	} else {
		for (unsigned i = 0; i < client->held_n; i++)
			client->held[i].told = client->held[i].shown = false;
		vb_lock_take(&client->links.lock);
		for (unsigned i = 0; i < client->links.n; i++)
			client->links.link[i].told = false;
		vb_lock_drop(&client->links.lock);
		client->hubs++;
		VB_PROBE(hub_found, client->hubs);
		vb_hub_marks_send(client);
		return;
	}
	retry_later(client);
}

/* The connection broke: looks for the next hub at once, and starts one a little later. */
static void hub_lost(struct vb_hub_client *client)
{
	bool known = client->welcome;

	VB_PROBE(hub_lost, client->hubs);
	disconnect(client);
	if (!known) {
		retry_later(client);
		return;
	}
	client->retry_ns = retry_min_ns;
	client->spawn_ns = vb_hub_now_ns() + random_below(respawn_spread_ns);
	attempt(client);
}

int vb_hub_refused(uint32_t error, const char why[VB_HUB_WHY_BYTES])
{
	if (!*why || error == EADDRINUSE)
		return vb_failed((int)error, "the hub");
	return vb_failed_words((int)error, "the hub: %s", why);
}

static void welcome_take(struct vb_hub_client *client, const struct vb_hub_msg *msg, const int *fds,
			 unsigned n)
{
	if (!n) {
		disconnect(client);
		trouble_set(client, vb_hub_refused(msg->welcome.error, msg->welcome.why));
		client->spawn_ns = vb_hub_now_ns() + spawn_patience_ns;
		retry_later(client);
		return;
	}
	vb_hub_fds_close(client->keeper, VB_HUB_KEEPER_FDS);
	memcpy(client->keeper, fds, sizeof(client->keeper));
	client->welcome = true;
	vb_hub_spawn_settle(client->spawn);
	trouble_set(client, 0);
	client->retry_ns = retry_min_ns;
	/* News noted while there was no hub reached no client. */
	client->news.noted |= client->on.noted != NULL;
	if (client->news.noted)
		eventfd_write(client->wake_fd, 1);
}

/*
 * Receives news. A hub that accepted us sends rings, and their senders do not learn that one did
 * not arrive. So if no descriptor is left under the soft limit, raises it for the call.
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

/* Takes what the hub has sent next. False: nothing waits, or there is another connection now. */
static bool news_take(struct vb_hub_client *client)
{
	int fds[VB_HUB_FDS_MAX];
	struct vb_hub_msg msg;
	unsigned n;
	int rc;

	if (client->conn_fd == VB_FD_NONE || client->news.rings == VB_HUB_RINGS_MAX ||
	    client->news.sample_fd != VB_FD_NONE)
		return false;
	rc = news_recv(client, &msg, fds, &n);
	if (rc == EAGAIN)
		return false;
	if (!rc && msg.type == VB_HUB_WELCOME) {
		welcome_take(client, &msg, fds, n);
		return true;
	}
	if (!rc && msg.type == VB_HUB_RING) {
		vb_hub_ring_take(client, &msg, fds);
		return true;
	}
	if (!rc && msg.type == VB_HUB_MAD) {
		if (client->on.mad)
			client->on.mad(client->news.ring_arg, &msg.cm.mad);
		return true;
	}
	if (!rc && msg.type == VB_HUB_CAPTURE && client->on.capture) {
		client->on.capture(client->news.ring_arg, fds[0]);
		return true;
	}
	if (!rc && (msg.type == VB_HUB_FATAL || msg.type == VB_HUB_NOTED)) {
		client->news.fatal |= msg.type == VB_HUB_FATAL;
		client->news.noted |= msg.type == VB_HUB_NOTED;
		eventfd_write(client->wake_fd, 1);
		return true;
	}
	if (!rc && msg.type == VB_HUB_SAMPLE) {
		client->news.sample_fd = fds[0];
		client->news.measure_s = msg.sample.ask.measure_s;
		eventfd_write(client->wake_fd, 1);
		return true;
	}
	if (!rc)
		vb_hub_fds_close(fds, n);
	/* Another hub would not help with this error: the callers are told. */
	if (rc && rc != ECONNRESET && rc != EPROTO)
		trouble_set(client, rc);
	hub_lost(client);
	return false;
}

static void turn_locked(struct vb_hub_client *client)
{
	uint64_t times;
	unsigned news = 0;

	/* The timer runs only while there is no connection. */
	if (read(client->timer_fd, &times, sizeof(times)) == sizeof(times))
		attempt(client);
	vb_hub_marks_send(client);
	while (news < NEWS_PER_TURN && news_take(client))
		news++;
}

int vb_hub_client_store(struct vb_hub_client *client, int *fd)
{
	int rc = 0;

	vb_lock_take(&client->lock);
	/* A process with a slot was accepted once, and so has the keeper. */
	if (client->keeper[VB_HUB_KEEPER_STORE] == VB_FD_NONE)
		rc = EAGAIN;
	else if ((*fd = fcntl(client->keeper[VB_HUB_KEEPER_STORE], F_DUPFD_CLOEXEC, 0)) < 0)
		rc = errno;
	vb_lock_drop(&client->lock);
	return rc;
}

/* With the lock held, except during the call. */
static void news_deliver(struct vb_hub_client *client, bool *news, void (*fn)(void *arg))
{
	*news = false;
	vb_hub_wake_hush(client);
	if (!fn)
		return;
	vb_lock_drop(&client->lock);
	fn(client->news.ring_arg);
	vb_lock_take(&client->lock);
}

/* The same for whoever wants to know how we are. */
static void sample_deliver(struct vb_hub_client *client)
{
	int fd = client->news.sample_fd;

	client->news.sample_fd = VB_FD_NONE;
	vb_hub_wake_hush(client);
	vb_lock_drop(&client->lock);
	if (client->on.sample)
		client->on.sample(client->news.ring_arg, fd, client->news.measure_s);
	close(fd);
	vb_lock_take(&client->lock);
}

static void turn(struct vb_hub_client *client)
{
	vb_hub_asks_turn(client);
	/* The progress thread does not wait for the lock: the work stays pending. */
	if (!vb_lock_try(&client->lock))
		return;
	/* turn_locked() sends these links; later ones wake us again. */
	if (atomic_exchange(&client->links.wait, false))
		vb_hub_wake_hush(client);
	turn_locked(client);
	if (!client->news.delivering)
		vb_hub_rings_deliver(client);
	if (client->news.fatal)
		news_deliver(client, &client->news.fatal, client->on.fatal);
	if (client->news.noted)
		news_deliver(client, &client->news.noted, client->on.noted);
	if (client->news.sample_fd != VB_FD_NONE)
		sample_deliver(client);
	vb_lock_drop(&client->lock);
}

void vb_hub_client_turn(struct vb_hub_client *client)
{
	vb_loose_begin();
	turn(client);
	vb_loose_end();
}

void vb_hub_client_receivers(struct vb_hub_client *client, const struct vb_hub_receivers *on)
{
	vb_lock_take(&client->lock);
	client->on = *on;
	vb_lock_drop(&client->lock);
}

static int files_make(struct vb_hub_client *client)
{
	int rc;

	client->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (client->epoll_fd < 0)
		return vb_failed(errno, "epoll_create1");
	client->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (client->timer_fd < 0)
		return vb_failed(errno, "timerfd_create");
	client->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (client->wake_fd < 0)
		return vb_failed(errno, "eventfd");
	rc = watch(client, EPOLL_CTL_ADD, client->timer_fd, EPOLLIN);
	if (!rc)
		rc = watch(client, EPOLL_CTL_ADD, client->wake_fd, EPOLLIN);
	if (!rc)
		rc = vb_hub_asks_open(client);
	return rc;
}

static int client_create(struct vb_hub_client **result)
{
	struct vb_hub_client *client = calloc(1, sizeof(*client));
	int rc;

	if (!client)
		return vb_failed(ENOMEM, "calloc");
	vb_lock_init(&client->lock, VB_RANK_HUB);
	vb_lock_init(&client->links.lock, VB_RANK_HUB_LINKS);
	client->conn_fd = client->epoll_fd = client->timer_fd = client->wake_fd = VB_FD_NONE;
	client->asks.timer_fd = client->news.sample_fd = VB_FD_NONE;
	TAILQ_INIT(&client->ports.untold);
	client->ports.records_fd = client->ports.asks_fd = VB_FD_NONE;
	for (unsigned i = 0; i < VB_HUB_KEEPER_FDS; i++)
		client->keeper[i] = VB_FD_NONE;
	for (unsigned i = 0; i < VB_HUB_RINGS_MAX; i++)
		vb_hub_ring_clear(&client->news.ring[i]);
	client->retry_ns = retry_min_ns;
	rc = files_make(client);
	if (!rc)
		rc = vb_hub_spawn_create(&client->spawn);
	if (rc) {
		vb_hub_client_forget(client);
		return rc;
	}
	*result = client;
	return 0;
}

int vb_hub_news_wait(struct vb_hub_client *client, int answer_fd, uint64_t deadline_ns)
{
	uint64_t now = vb_hub_now_ns();
	uint64_t wait_ns = deadline_ns > now ? vb_min_u64(deadline_ns - now, look_ns) : 0;
	struct pollfd fds[] = {{answer_fd, POLLIN, 0},
			       {client->timer_fd, POLLIN, 0},
			       {0, POLLIN, 0}};
	int rc;

	/*
	 * Not epoll_fd, which is also readable when rings wait for a turn. If another thread
	 * replaces the connection meanwhile, this wakes up too early or looks again soon.
	 */
	vb_lock_take(&client->lock);
	fds[2].fd = client->news.rings == VB_HUB_RINGS_MAX ? VB_FD_NONE : client->conn_fd;
	vb_lock_drop(&client->lock);
	vb_lock_order_wait("the hub's news");
	poll(fds, VB_ARRAY_LEN(fds), (int)(wait_ns / MS_NS) + 1);
	vb_loose_begin();
	vb_lock_take(&client->lock);
	turn_locked(client);
	rc = client->welcome ? 0 : client->trouble.error ? vb_failed_as(&client->trouble) : EAGAIN;
	vb_lock_drop(&client->lock);
	vb_loose_end();
	return rc;
}

/* The error to report. EAGAIN here means that no reason was seen, or one that may have passed. */
static int why_not_open(struct vb_hub_client *client, int rc)
{
	if (rc == EADDRINUSE)
		return vb_holders_failed();
	if (rc != EAGAIN || client->trouble.error)
		return rc;
	return client->conn_fd != VB_FD_NONE ? vb_hub_silent(client->conn_fd)
					     : vb_hub_spawn_silent(client->spawn);
}

/*
 * Might the hub still come? It may be short of CPU time, as we may be. A stopped hub, or one that
 * ended right after its start, is not waited for.
 */
static bool may_still_open(const struct vb_hub_client *client, uint64_t waited_ns)
{
	if (waited_ns < VB_HUB_CALL_NS)
		return true;
	if (client->conn_fd != VB_FD_NONE ? vb_hub_is_stopped(client->conn_fd)
					  : vb_hub_spawn_ended(client->spawn))
		return false;
	return waited_ns < VB_HUB_PATIENCE_NS;
}

int vb_hub_client_open(struct vb_hub_client **result, const struct vb_hub_offer *offer,
		       vb_hub_ring_fn *ring, void *arg)
{
	uint64_t start_ns = vb_hub_now_ns();
	struct vb_hub_client *client = NULL;
	int rc = client_create(&client);

	if (rc)
		return rc;
	client->news.ring_arg = arg;
	if (offer) {
		client->offers = true;
		client->offer = *offer;
		client->news.ring_fn = ring;
	}
	attempt(client);
	do {
		rc = vb_hub_news_wait(client, VB_FD_NONE, start_ns + VB_HUB_PATIENCE_NS);
	} while (rc == EAGAIN && may_still_open(client, vb_hub_now_ns() - start_ns));
	if (rc) {
		rc = why_not_open(client, rc);
		vb_hub_client_close(client);
		return rc;
	}
	*result = client;
	return 0;
}

void vb_hub_client_mark(struct vb_hub_client *client, uint16_t slot, uint32_t next_index)
{
	vb_lock_take(&client->lock);
	for (unsigned i = 0; i < client->held_n; i++) {
		struct vb_hub_held *held = &client->held[i];

		if (held->slot != slot)
			continue;
		held->next_index = next_index % VB_HUB_INDICES;
		held->told = false;
	}
	vb_hub_marks_send(client);
	vb_lock_drop(&client->lock);
}

void vb_hub_client_link(struct vb_hub_client *client, const struct vb_hub_link *link)
{
	unsigned i;

	vb_lock_take(&client->links.lock);
	for (i = 0; i < client->links.n; i++) {
		const struct vb_hub_link *old = &client->links.link[i].link;

		if (old->to == link->to && !memcmp(old->gid, link->gid, sizeof(old->gid)))
			break;
	}
	if (i < VB_HUB_LINKS_MAX) {
		client->links.link[i] = (struct vb_hub_told_link){.link = *link};
		client->links.n += i == client->links.n;
	}
	vb_lock_drop(&client->links.lock);
	/* The lock's holder may be starting a hub: leave it to a turn. */
	if (!vb_lock_try(&client->lock)) {
		atomic_store(&client->links.wait, true);
		eventfd_write(client->wake_fd, 1);
		return;
	}
	vb_hub_marks_send(client);
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
	 * The lock is not taken: another thread of the parent may have held it at the fork. Nothing
	 * is removed from the epoll set, which is shared with the parent.
	 */
	for (unsigned i = 0; i < client->held_n; i++)
		vb_fd_close(&client->held[i].name_fd);
	for (unsigned i = 0; i < VB_HUB_RINGS_MAX; i++) {
		vb_fd_close(&client->news.ring[i].fd);
		vb_fd_close(&client->news.ring[i].peer.line_fd);
		vb_fd_close(&client->news.ring[i].peer.export_fd);
	}
	vb_fd_close(&client->news.sample_fd);
	vb_hub_asks_forget(client);
	vb_hub_fds_close(client->keeper, VB_HUB_KEEPER_FDS);
	vb_fd_close(&client->conn_fd);
	vb_fd_close(&client->wake_fd);
	vb_fd_close(&client->timer_fd);
	vb_fd_close(&client->epoll_fd);
	vb_hub_spawn_destroy(client->spawn);
	vb_fd_close(&client->ports.asks_fd);
	vb_hub_ports_free(client);
	free(client->held);
	free(client);
}

void vb_hub_client_close(struct vb_hub_client *client)
{
	/* Closing tells the hub enough: the slots' names vanish, and with them the leases. */
	vb_hub_client_forget(client);
}
