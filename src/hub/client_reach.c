/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Reaching other processes: questions to the hub for which no caller waits. Asking takes no lock
 * under which a thread waits or starts a hub. The answer is a message on a connection of its own,
 * which a turn takes in.
 */

#include "hub/client_reach.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/lock.h"
#include "base/loose.h"
#include "hub/channel.h"
#include "hub/client_internal.h"
#include "hub/client_requests.h"
#include "hub/client_rings.h"
#include "hub/words.h"

/* The pause before a question is repeated: the first, and the longest; it doubles each time. */
static const uint64_t again_min_ns = 3 * MS_NS, again_max_ns = 96 * MS_NS;
/* How often a thread that waits looks again: another thread may have taken in the answer. */
static const uint64_t look_ns = 1 * MS_NS;

void vb_hub_ring_files_close(struct vb_hub_ring_files *files)
{
	vb_fd_close(&files->ring_fd);
	vb_fd_close(&files->line_fd);
	vb_fd_close(&files->far_fd);
}

int vb_hub_asks_open(struct vb_hub_client *client)
{
	struct epoll_event event = {.events = EPOLLIN};

	vb_lock_init(&client->asks.lock, VB_RANK_HUB_ASKS);
	client->asks.timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (client->asks.timer_fd < 0)
		return vb_failed(errno, "timerfd_create");
	if (epoll_ctl(client->epoll_fd, EPOLL_CTL_ADD, client->asks.timer_fd, &event))
		return vb_failed(errno, "epoll_ctl");
	return 0;
}

void vb_hub_asks_forget(struct vb_hub_client *client)
{
	for (unsigned i = 0; i < VB_HUB_ASKS_MAX; i++) {
		struct vb_hub_ask *ask = &client->asks.ask[i];

		if (ask->state == VB_HUB_ASK_NONE)
			continue;
		vb_fd_close(&ask->conn_fd);
		vb_hub_ring_files_close(&ask->files);
	}
	vb_fd_close(&client->asks.timer_fd);
}

/* --- one question; asks.lock held --- */

static struct vb_hub_ask *ask_find(struct vb_hub_client *client, uint16_t from, uint16_t to)
{
	for (unsigned i = 0; i < VB_HUB_ASKS_MAX; i++) {
		struct vb_hub_ask *ask = &client->asks.ask[i];

		if (ask->state != VB_HUB_ASK_NONE && ask->from == from && ask->to == to)
			return ask;
	}
	return NULL;
}

static struct vb_hub_ask *ask_free(struct vb_hub_client *client)
{
	for (unsigned i = 0; i < VB_HUB_ASKS_MAX; i++) {
		if (client->asks.ask[i].state == VB_HUB_ASK_NONE)
			return &client->asks.ask[i];
	}
	return NULL;
}

static void hang_up(struct vb_hub_client *client, struct vb_hub_ask *ask)
{
	if (ask->conn_fd == VB_FD_NONE)
		return;
	/* Removed explicitly: a forked child's copy of the fd would keep it in the set. */
	epoll_ctl(client->epoll_fd, EPOLL_CTL_DEL, ask->conn_fd, NULL);
	vb_fd_close(&ask->conn_fd);
}

/* The name socket that holds our slot; it lives as long as the client. VB_FD_NONE: not our slot. */
static int name_of(const struct vb_hub_client *client, uint16_t slot)
{
	for (unsigned i = 0; i < client->held_n; i++) {
		if (client->held[i].slot == slot)
			return client->held[i].name_fd;
	}
	return VB_FD_NONE;
}

/* Sends the question. Returns 0, or why the hub did not get it. */
static int ask_send(struct vb_hub_client *client, struct vb_hub_ask *ask)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_REACH);
	const int fds[VB_HUB_REACH_FDS] = {ask->files.ring_fd, ask->files.far_fd,
					   name_of(client, ask->from)};
	struct epoll_event event = {.events = EPOLLIN};
	int fd, rc = vb_hub_connect(&fd);

	if (rc)
		return rc;
	msg.reach = (struct vb_hub_reach){ask->from, ask->to};
	rc = vb_hub_fds_send(fd, &msg, fds, VB_HUB_REACH_FDS);
	if (!rc && epoll_ctl(client->epoll_fd, EPOLL_CTL_ADD, fd, &event))
		rc = vb_failed(errno, "epoll_ctl");
	if (rc) {
		close(fd);
		return rc;
	}
	ask->conn_fd = fd;
	return 0;
}

/* Receives the answer. EAGAIN: it has not come, or the hub itself answered EAGAIN. */
static int ask_recv(struct vb_hub_client *client, struct vb_hub_ask *ask, struct vb_hub_peer *peer)
{
	struct vb_hub_msg msg;
	int fds[VB_HUB_FDS_MAX], rc;
	unsigned n;

	rc = vb_hub_recv(ask->conn_fd, &msg, fds, &n);
	if (rc == EAGAIN)
		return EAGAIN;
	hang_up(client, ask);
	if (rc)
		return rc;
	if (msg.type != VB_HUB_REACHED) {
		vb_hub_fds_close(fds, n);
		return EPROTO;
	}
	*peer = (struct vb_hub_peer){
		.line_fd = VB_FD_NONE,
		.export_fd = VB_FD_NONE,
		.program = msg.reached.program,
		.why = msg.reached.why,
		.why_is_there = msg.reached.there,
	};
	if (msg.reached.error)
		return (int)msg.reached.error;
	peer->pid = vb_hub_pid_here(fds[0], msg.reached.proven);
	peer->export_fd = fds[1];
	vb_fd_close(&fds[0]);
	return 0;
}

static void timer_set(struct vb_hub_client *client)
{
	struct itimerspec timer = {.it_value = {0, 0}};
	uint64_t first_ns = UINT64_MAX;

	for (unsigned i = 0; i < VB_HUB_ASKS_MAX; i++) {
		const struct vb_hub_ask *ask = &client->asks.ask[i];

		if (ask->state == VB_HUB_ASK_RESTS)
			first_ns = vb_min_u64(first_ns, ask->again_ns);
	}
	if (first_ns != UINT64_MAX)
		timer.it_value = (struct timespec){(time_t)(first_ns / (1000 * MS_NS)),
						   (long)(first_ns % (1000 * MS_NS))};
	timerfd_settime(client->asks.timer_fd, TFD_TIMER_ABSTIME, &timer, NULL);
}

/*
 * Decides what follows a failure. Returns EINPROGRESS if the question will be repeated, else the
 * outcome. A question that the hub has and does not answer is not repeated.
 */
static int ask_rest(struct vb_hub_client *client, struct vb_hub_ask *ask, int rc, uint64_t now_ns)
{
	if (!vb_hub_was_missing(rc))
		return rc;
	if (now_ns >= ask->since_ns + VB_HUB_CALL_NS)
		return vb_hub_out_of_time(rc);
	ask->state = VB_HUB_ASK_RESTS;
	ask->again_ns = now_ns + ask->pause_ns;
	ask->pause_ns = vb_min_u64(2 * ask->pause_ns, again_max_ns);
	timer_set(client);
	return EINPROGRESS;
}

/* Advances a question as far as possible. Returns EINPROGRESS or the outcome. */
static int ask_step(struct vb_hub_client *client, struct vb_hub_ask *ask, struct vb_hub_peer *peer)
{
	uint64_t now_ns = vb_hub_now_ns();
	int rc;

	if (ask->state == VB_HUB_ASK_RESTS) {
		if (now_ns < ask->again_ns)
			return EINPROGRESS;
		ask->state = VB_HUB_ASK_SENT;
		rc = ask_send(client, ask);
		return rc ? ask_rest(client, ask, rc, now_ns) : EINPROGRESS;
	}
	rc = ask_recv(client, ask, peer);
	if (rc == EAGAIN && ask->conn_fd != VB_FD_NONE)
		return EINPROGRESS;
	return rc ? ask_rest(client, ask, rc, now_ns) : 0;
}

/* --- all questions --- */

/*
 * Hands an outcome to its owner, without the lock; in this state no other thread touches the
 * question.
 */
static void answer_deliver(struct vb_hub_client *client, struct vb_hub_ask *ask, int rc,
			   const struct vb_hub_peer *peer)
{
	const uint16_t from = ask->from, to = ask->to;

	client->asks.answers.came(client->news.ring_arg, from, to, &ask->files, rc, peer);
	vb_hub_ring_files_close(&ask->files);
	vb_lock_take(&client->asks.lock);
	ask->state = VB_HUB_ASK_NONE;
	vb_lock_drop(&client->asks.lock);
	if (client->asks.answers.over)
		client->asks.answers.over(client->news.ring_arg, from, to, rc);
}

void vb_hub_asks_turn(struct vb_hub_client *client)
{
	uint64_t times;

	if (read(client->asks.timer_fd, &times, sizeof(times)) < 0 && errno != EAGAIN)
		return;
	for (unsigned i = 0; i < VB_HUB_ASKS_MAX; i++) {
		struct vb_hub_peer peer = {.line_fd = VB_FD_NONE, .export_fd = VB_FD_NONE};
		struct vb_hub_ask *ask = &client->asks.ask[i];
		int rc = EINPROGRESS;

		vb_lock_take(&client->asks.lock);
		if (ask->state == VB_HUB_ASK_SENT || ask->state == VB_HUB_ASK_RESTS)
			rc = ask_step(client, ask, &peer);
		if (rc != EINPROGRESS)
			ask->state = VB_HUB_ASK_ANSWERED;
		vb_lock_drop(&client->asks.lock);
		if (rc != EINPROGRESS)
			answer_deliver(client, ask, rc, &peer);
	}
}

static int ask_locked(struct vb_hub_client *client, uint16_t from, uint16_t to,
		      struct vb_hub_ring_files *files)
{
	struct vb_hub_ask *ask;
	int rc;

	if (ask_find(client, from, to))
		return EINPROGRESS;
	if (name_of(client, from) == VB_FD_NONE)
		return EINVAL;
	ask = ask_free(client);
	if (!ask)
		return EAGAIN;
	*ask = (struct vb_hub_ask){
		.state = VB_HUB_ASK_SENT,
		.from = from,
		.to = to,
		.files = *files,
		.conn_fd = VB_FD_NONE,
		.since_ns = vb_hub_now_ns(),
		.pause_ns = again_min_ns,
	};
	rc = ask_send(client, ask);
	if (rc)
		rc = ask_rest(client, ask, rc, ask->since_ns);
	if (rc && rc != EINPROGRESS) {
		ask->state = VB_HUB_ASK_NONE;
		return rc;
	}
	*files = (struct vb_hub_ring_files){VB_FD_NONE, VB_FD_NONE, VB_FD_NONE};
	return EINPROGRESS;
}

int vb_hub_client_ask(struct vb_hub_client *client, uint16_t from, uint16_t to,
		      struct vb_hub_ring_files *files)
{
	int rc;

	vb_lock_take(&client->asks.lock);
	rc = ask_locked(client, from, to, files);
	vb_lock_drop(&client->asks.lock);
	return rc;
}

uint64_t vb_hub_client_asks_since(struct vb_hub_client *client)
{
	uint64_t since_ns = UINT64_MAX;

	vb_lock_take(&client->asks.lock);
	for (unsigned i = 0; i < VB_HUB_ASKS_MAX; i++) {
		if (client->asks.ask[i].state != VB_HUB_ASK_NONE)
			since_ns = vb_min_u64(since_ns, client->asks.ask[i].since_ns);
	}
	vb_lock_drop(&client->asks.lock);
	return since_ns;
}

int vb_hub_client_await(struct vb_hub_client *client, uint16_t from, uint16_t to, uint64_t until_ns)
{
	for (;;) {
		struct pollfd answer = {.fd = VB_FD_NONE, .events = POLLIN};
		uint64_t now_ns = vb_hub_now_ns(), left_ns;
		const struct vb_hub_ask *ask;
		struct timespec left;

		vb_loose_begin();
		vb_hub_asks_turn(client);
		vb_loose_end();
		vb_lock_take(&client->asks.lock);
		ask = ask_find(client, from, to);
		if (ask && ask->state == VB_HUB_ASK_SENT)
			answer.fd = ask->conn_fd;
		vb_lock_drop(&client->asks.lock);
		if (!ask)
			return 0;
		if (now_ns >= until_ns)
			return EINPROGRESS;
		left_ns = vb_min_u64(until_ns - now_ns, look_ns);
		left = (struct timespec){0, (long)left_ns};
		vb_lock_order_wait("the hub's answer");
		ppoll(&answer, 1, &left, NULL);
	}
}

void vb_hub_client_on_answers(struct vb_hub_client *client, const struct vb_hub_answers *answers)
{
	client->asks.answers = *answers;
}
