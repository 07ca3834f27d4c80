/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/rdmacm/rs/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "abi/rdmacm/device.h"
#include "abi/rdmacm/id.h"
#include "abi/rdmacm/rs/connect.h"
#include "abi/rdmacm/rs/endpoint.h"
#include "abi/rdmacm/rs/flow.h"
#include "abi/rdmacm/rs/iomap.h"
#include "abi/rdmacm/rs/keepalive.h"
#include "abi/rdmacm/rs/option.h"
#include "base/check.h"

/* --- sockets made and freed --- */

static struct vb_rs_stream *stream_new(struct rdma_cm_id *id, const struct vb_rs_sizes *sizes)
{
	struct vb_rs_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->rs.type = &vb_rs_stream_type;
	s->rs.fd = id->channel->fd;
	s->rs.sizes = *sizes;
	s->id = id;
	pthread_mutex_init(&s->setting_up, NULL);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->turned, NULL);
	LIST_INIT(&s->watches);
	LIST_INIT(&s->mappings);
	fcntl(s->rs.fd, F_SETFL, O_NONBLOCK);
	return s;
}

int vb_rs_stream_make(int domain, struct vb_rs **made)
{
	struct rdma_cm_id *id;
	struct vb_rs_stream *s;

	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP))
		return errno;
	id->route.addr.src_addr.sa_family = (sa_family_t)domain;
	s = stream_new(id, &vb_rs_defaults);
	if (!s) {
		rdma_destroy_id(id);
		return ENOMEM;
	}
	*made = &s->rs;
	return 0;
}

struct vb_rs_stream *vb_rs_stream_wrap(struct rdma_cm_id *id, const struct vb_rs *listener)
{
	struct vb_rs_stream *s = stream_new(id, &listener->sizes);

	if (!s)
		return NULL;
	s->rs.is_ipv6 = listener->is_ipv6;
	s->rs.options = listener->options;
	if (s->rs.options.keepalive)
		vb_rs_keepalive_set(s, true);
	return s;
}

void vb_rs_stream_free(struct vb_rs_stream *s)
{
	vb_rs_keepalive_set(s, false);
	vb_rs_mappings_free(s);
	vb_rs_endpoint_free(s);
	rdma_destroy_id(s->id);
	free(s->route);
	pthread_cond_destroy(&s->turned);
	pthread_mutex_destroy(&s->lock);
	pthread_mutex_destroy(&s->setting_up);
	free(s);
}

/* --- one at a time --- */

int vb_rs_stream_begin(struct vb_rs_stream *s, bool *doing, uint64_t end_ns)
{
	pthread_mutex_lock(&s->lock);
	while (*doing && end_ns && vb_rs_turned_await(s, end_ns) != ETIMEDOUT)
		;
	if (*doing) {
		pthread_mutex_unlock(&s->lock);
		return EAGAIN;
	}
	*doing = true;
	return 0;
}

void vb_rs_stream_finish(struct vb_rs_stream *s, bool *doing)
{
	*doing = false;
	pthread_cond_broadcast(&s->turned);
	pthread_mutex_unlock(&s->lock);
}

/* To copy so much takes no longer than to drop the lock and take it again. */
enum { COPY_LOCKED = 2048 };

static void copy_begin(struct vb_rs_stream *s, uint32_t bytes)
{
	if (bytes > COPY_LOCKED)
		pthread_mutex_unlock(&s->lock);
}

static void copy_finish(struct vb_rs_stream *s, uint32_t bytes)
{
	if (bytes > COPY_LOCKED)
		pthread_mutex_lock(&s->lock);
}

/* --- sending --- */

/* The first WRITEs are small, so that the peer begins to read while we still copy. */
enum { STEP_FIRST = 2048, STEP_MAX = 65536 };

/* The ring's next n octets, in one part or two. */
static int ring_parts(const struct vb_rs_out *out, uint32_t n, struct ibv_sge sges[2])
{
	uint32_t first = out->bytes - out->at < n ? out->bytes - out->at : n;

	sges[0] = (struct ibv_sge){(uintptr_t)(out->buffer + out->at), first, out->mr->lkey};
	sges[1] = (struct ibv_sge){(uintptr_t)out->buffer, n - first, out->mr->lkey};
	return first < n ? 2 : 1;
}

/* Locked. */
static int ring_write(struct vb_rs_stream *s, struct ibv_sge *sges, int count, uint32_t n,
		      const struct vb_rs_destination *to)
{
	struct vb_rs_out *out = &s->out;
	uint64_t addr = to ? to->addr : out->piece.addr;
	uint32_t key = to ? to->key : out->piece.key;
	uint32_t msg = to ? to->msg : vb_rs_msg(VB_RS_DATA, n);
	bool is_told = !to || to->is_told;

	out->at = (out->at + n) % out->bytes;
	out->free -= n;
	out->wrs_free--;
	if (!to) {
		out->piece.addr += n;
		out->piece.length -= n;
	}
	if (is_told)
		out->sent++;
	else
		msg = vb_rs_msg(VB_RS_WRITE, n);
	return vb_rs_write(s, sges, count, msg, is_told, addr, key);
}

int vb_rs_stream_write(struct vb_rs_stream *s, struct vb_rs_data *data, uint32_t step,
		       const struct vb_rs_destination *to, uint64_t end_ns)
{
	struct ibv_sge sges[2];
	uint32_t n;
	int rc, count;

	/* Once those before it are done, a WRITE needs no help of the peer's on this host. */
	if (to)
		vb_rs_turn(s);
	rc = vb_rs_can_send(s) ? 0 : vb_rs_wait(s, vb_rs_can_send, end_ns);
	if (!rc && !s->writable)
		rc = EPIPE;
	n = (uint32_t)vb_min_u64(vb_min_u64(step, data->left), s->out.free);
	if (!to)
		n = (uint32_t)vb_min_u64(n, s->out.piece.length);
	if (rc)
		return rc;
	/* What is free stays free: nobody else sends. */
	count = ring_parts(&s->out, n, sges);
	copy_begin(s, n);
	for (int i = 0; i < count; i++)
		vb_rs_gather((void *)(uintptr_t)sges[i].addr, data, sges[i].length);
	copy_finish(s, n);
	return ring_write(s, sges, count, n, to);
}

/* There is a connection, or none any more. */
static int ready(struct vb_rs_stream *s, uint64_t end_ns)
{
	if (vb_rs_is_connecting(s))
		return vb_rs_stream_go_on(s, end_ns);
	return s->phase < VB_RS_CONNECTED || s->phase == VB_RS_REFUSED ? ENOTCONN : 0;
}

/* What a socket says to who writes to it after the end. */
static int send_failure(const struct vb_rs_stream *s, int rc)
{
	if (rc != EPIPE)
		return rc;
	return s->phase == VB_RS_CONNECTED ? EPIPE : ECONNRESET;
}

static int stream_send(struct vb_rs *rs, struct vb_rs_data *data, int flags,
		       const struct sockaddr *to, socklen_t to_bytes)
{
	struct vb_rs_stream *s = vb_rs_stream_of(rs);
	uint64_t end_ns = vb_rs_wait_end_ns(rs, flags, &rs->options.send_time);
	uint32_t step = STEP_FIRST;
	int rc = to || to_bytes ? EISCONN : ready(s, end_ns);

	if (!rc)
		rc = vb_rs_stream_begin(s, &s->sending, end_ns);
	if (rc)
		return rc;
	/* Where there is room nobody would look whether the peer is still there. */
	vb_rs_glance(s);
	rc = vb_rs_mappings_tell(s, end_ns);
	while (!rc && data->left) {
		rc = vb_rs_stream_write(s, data, step, NULL, end_ns);
		if (step < STEP_MAX)
			step *= 2;
	}
	rc = send_failure(s, rc);
	vb_rs_stream_finish(s, &s->sending);
	return rc;
}

/* --- receiving --- */

/* Copies what is ready, and may leave it there. Locked; receiving. */
static void copy_out(struct vb_rs_stream *s, struct vb_rs_data *data, uint32_t ready, bool peek)
{
	struct vb_rs_in *in = &s->in;
	uint32_t at = in->at, total = (uint32_t)vb_min_u64(ready, data->left), n;

	copy_begin(s, total);
	for (uint32_t left = total; left; left -= n, at = (at + n) % in->bytes) {
		n = (uint32_t)vb_min_u64(left, in->bytes - at);
		vb_rs_scatter(data, in->buffer + at, n);
	}
	copy_finish(s, total);
	if (peek)
		return;
	in->at = at;
	in->ready -= total;
	in->spent += total;
	vb_rs_credits_give(s);
}

static int stream_receive(struct vb_rs *rs, struct vb_rs_data *data, int flags,
			  struct sockaddr_storage *from)
{
	struct vb_rs_stream *s = vb_rs_stream_of(rs);
	uint64_t end_ns = vb_rs_wait_end_ns(rs, flags, &rs->options.receive_time);
	bool more = data->left;
	int rc = ready(s, end_ns);

	if (from)
		*from = s->id->route.addr.dst_storage;
	if (!rc)
		rc = vb_rs_stream_begin(s, &s->receiving, end_ns);
	if (rc)
		return rc;
	while (!rc && more) {
		uint32_t n;

		rc = s->in.ready ? 0 : vb_rs_wait(s, vb_rs_can_receive, end_ns);
		n = s->in.ready;
		if (!rc && !n && s->phase == VB_RS_BROKEN)
			rc = s->rs.error ? s->rs.error : ECONNRESET;
		if (!rc && n)
			copy_out(s, data, n, flags & MSG_PEEK);
		more = n && data->left && (flags & MSG_WAITALL) && !(flags & MSG_PEEK);
	}
	vb_rs_stream_finish(s, &s->receiving);
	return rc;
}

/* --- ending --- */

enum { LAST_WORD_MS = 1000 };

/* Its end is not said: the peer's connection manager finds that nobody is left. */
static bool is_to_reset(const struct vb_rs_stream *s)
{
	return s->rs.options.linger.l_onoff && !s->rs.options.linger.l_linger;
}

/* What the peer is told, if anything: it hears once that both directions are over. Locked. */
static int end_say(struct vb_rs_stream *s, int how)
{
	bool read = s->readable && how == SHUT_WR, write = s->writable && how == SHUT_RD;
	uint32_t said = read ? VB_RS_SHUTDOWN : VB_RS_DISCONNECT;
	bool same = read == s->readable && write == s->writable;
	int rc = 0;

	s->readable = read;
	s->writable = write;
	if (write || same)
		return 0;
	if (!vb_rs_can_control(s))
		rc = vb_rs_wait(s, vb_rs_can_control, VB_RS_FOREVER);
	if (!rc && s->phase == VB_RS_CONNECTED)
		rc = vb_rs_say(s, vb_rs_msg(VB_RS_CONTROL, said));
	if (!rc)
		rc = vb_rs_wait(s, vb_rs_all_sent, VB_RS_FOREVER);
	return rc;
}

static int stream_shutdown(struct vb_rs *rs, int how)
{
	struct vb_rs_stream *s = vb_rs_stream_of(rs);
	bool over;
	int rc = 0;

	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		return EINVAL;
	if (s->phase == VB_RS_LISTENING) {
		if (how != SHUT_WR)
			vb_rs_stream_deafen(s);
		return 0;
	}
	/* A matter of one message. */
	if (s->phase == VB_RS_ACCEPTING)
		vb_rs_stream_go_on(s, VB_RS_FOREVER);
	if (s->phase < VB_RS_CONNECTED)
		return ENOTCONN;
	pthread_mutex_lock(&s->lock);
	if (s->phase == VB_RS_CONNECTED)
		rc = end_say(s, how);
	over = s->phase == VB_RS_OVER;
	if (over)
		vb_rs_arm(s);
	pthread_mutex_unlock(&s->lock);
	/* Whoever waits for completions gets those of the receives. */
	if (over)
		vb_rs_endpoint_stop(s);
	return rc;
}

/* The peer's, by which the connection is one: it is parted from as such. Not for ever. */
static void last_word_await(struct vb_rs_stream *s)
{
	struct pollfd fd = {.fd = s->id->channel->fd, .events = POLLIN};

	if (vb_rs_stream_go_on(s, 0) == EAGAIN && poll(&fd, 1, LAST_WORD_MS) == 1)
		vb_rs_stream_go_on(s, 0);
}

static void stream_close(struct vb_rs *rs)
{
	struct vb_rs_stream *s = vb_rs_stream_of(rs);

	if (s->phase == VB_RS_ACCEPTING)
		last_word_await(s);
	if (s->phase == VB_RS_CONNECTED && !is_to_reset(s))
		stream_shutdown(rs, SHUT_RDWR);
	pthread_mutex_lock(&s->lock);
	vb_rs_watches_end(&s->watches);
	pthread_mutex_unlock(&s->lock);
	vb_rs_stream_free(s);
}

/* --- a process that ends --- */

#define LEAVE_NS 1000000000u

/* Who has the lock may be the thread that ends the process. */
static bool try_lock(struct vb_rs *rs)
{
	return rs->type == &vb_rs_stream_type && !pthread_mutex_trylock(&vb_rs_stream_of(rs)->lock);
}

static bool part(struct vb_rs *rs)
{
	struct vb_rs_stream *s = vb_rs_stream_of(rs);

	if (!try_lock(rs))
		return true;
	if (s->phase == VB_RS_CONNECTED)
		vb_rs_turn(s);
	if (s->phase == VB_RS_CONNECTED && vb_rs_can_control(s) && !is_to_reset(s))
		vb_rs_say(s, vb_rs_msg(VB_RS_CONTROL, VB_RS_DISCONNECT));
	s->readable = s->writable = false;
	pthread_mutex_unlock(&s->lock);
	return true;
}

/* True: there is nothing to wait for. */
static bool has_parted(struct vb_rs *rs)
{
	struct vb_rs_stream *s = vb_rs_stream_of(rs);
	bool parted;

	if (!try_lock(rs))
		return true;
	if (s->phase == VB_RS_CONNECTED)
		vb_rs_turn(s);
	parted = s->phase != VB_RS_CONNECTED || vb_rs_all_sent(s);
	pthread_mutex_unlock(&s->lock);
	return parted;
}

void vb_rs_leave(void)
{
	uint64_t end_ns = vb_rs_now_ns() + LEAVE_NS;

	if (vb_cma_is_gone())
		return;
	while (!vb_rs_each(part) && vb_rs_now_ns() < end_ns)
		sched_yield();
	while (!vb_rs_each(has_parted) && vb_rs_now_ns() < end_ns)
		sched_yield();
}

/* --- the rest --- */

static int stream_name(struct vb_rs *rs, bool of_peer, struct sockaddr_storage *addr)
{
	const struct rdma_addr *known = &vb_rs_stream_of(rs)->id->route.addr;

	if (of_peer && vb_rs_stream_of(rs)->phase < VB_RS_ACCEPTING)
		return ENOTCONN;
	*addr = of_peer ? known->dst_storage : known->src_storage;
	return 0;
}

static short events_of(const struct vb_rs_stream *s, short wanted)
{
	short events = 0;

	if (vb_rs_can_receive(s))
		events |= POLLIN;
	if (vb_rs_can_send(s))
		events |= POLLOUT;
	if (!s->readable)
		events |= POLLRDHUP;
	events &= wanted;
	/* What came before the end is read first, by programs that look for POLLHUP as well. */
	if (s->phase == VB_RS_OVER && !s->in.ready)
		events |= POLLHUP;
	else if (s->phase > VB_RS_OVER)
		events |= POLLERR;
	return events;
}

static short stream_look(struct vb_rs *rs, short wanted, bool arm)
{
	struct vb_rs_stream *s = vb_rs_stream_of(rs);
	struct pollfd fd = {.fd = rs->fd, .events = wanted & POLLIN};
	short events;

	if (vb_rs_is_connecting(s))
		vb_rs_stream_go_on(s, 0);
	if (s->phase == VB_RS_LISTENING)
		return poll(&fd, 1, 0) == 1 ? fd.revents : 0;
	if (s->phase == VB_RS_DEAF)
		return POLLHUP | (wanted & POLLOUT);
	if (s->phase < VB_RS_CONNECTED)
		return 0;
	pthread_mutex_lock(&s->lock);
	vb_rs_glance(s);
	events = events_of(s, wanted);
	if (!events && arm) {
		vb_rs_arm(s);
		vb_rs_glance(s);
		events = events_of(s, wanted);
	} else if (!events) {
		vb_rs_idle(s);
	}
	pthread_mutex_unlock(&s->lock);
	return events;
}

static bool stream_has_news(struct vb_rs *rs)
{
	return vb_rs_has_news(vb_rs_stream_of(rs));
}

static void stream_news(struct vb_rs *rs)
{
	struct vb_rs_stream *s = vb_rs_stream_of(rs);

	pthread_mutex_lock(&s->lock);
	vb_rs_news_take(s);
	pthread_mutex_unlock(&s->lock);
}

static void stream_fds(struct vb_rs *rs, int fds[2])
{
	struct vb_rs_stream *s = vb_rs_stream_of(rs);

	fds[0] = s->id->channel->fd;
	fds[1] = s->phase >= VB_RS_CONNECTED && s->channel ? s->channel->fd : -1;
}

static void stream_watch(struct vb_rs *rs, struct vb_rs_watch *watch)
{
	struct vb_rs_stream *s = vb_rs_stream_of(rs);

	pthread_mutex_lock(&s->lock);
	LIST_INSERT_HEAD(&s->watches, watch, link);
	pthread_mutex_unlock(&s->lock);
}

static void stream_unwatch(struct vb_rs *rs, struct vb_rs_watch *watch)
{
	struct vb_rs_stream *s = vb_rs_stream_of(rs);

	pthread_mutex_lock(&s->lock);
	LIST_REMOVE(watch, link);
	pthread_mutex_unlock(&s->lock);
}

/* Threads that are not here may have held the locks. */
static void stream_orphan(struct vb_rs *rs)
{
	struct vb_rs_stream *s = vb_rs_stream_of(rs);

	pthread_mutex_init(&s->setting_up, NULL);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->turned, NULL);
	s->sending = s->receiving = s->asleep = false;
	LIST_INIT(&s->watches);
	vb_rs_end(s, VB_RS_BROKEN, ECONNRESET);
}

const struct vb_rs_type vb_rs_stream_type = {
	.bind = vb_rs_stream_bind,
	.listen = vb_rs_stream_listen,
	.accept = vb_rs_stream_accept,
	.connect = vb_rs_stream_connect,
	.send = stream_send,
	.receive = stream_receive,
	.shutdown = stream_shutdown,
	.close = stream_close,
	.name = stream_name,
	.option = vb_rs_stream_option,
	.look = stream_look,
	.fds = stream_fds,
	.has_news = stream_has_news,
	.news = stream_news,
	.watch = stream_watch,
	.unwatch = stream_unwatch,
	.orphan = stream_orphan,
};
