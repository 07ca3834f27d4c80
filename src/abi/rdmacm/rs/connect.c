/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/rdmacm/rs/connect.h"

#include <errno.h>
#include <string.h>

#include "abi/rdmacm/addr.h"
#include "abi/rdmacm/channel.h"
#include "abi/rdmacm/id.h"
#include "abi/rdmacm/rs/endpoint.h"
#include "abi/rdmacm/rs/flow.h"
#include "run/process/eventfd.h"

enum { RESOLVE_MS = 2000, RETRIES = 7 };

static int channel_wait(const struct vb_rs_stream *s, uint64_t end_ns)
{
	struct pollfd fd = {.fd = s->id->channel->fd, .events = POLLIN};
	int n = poll(&fd, 1, vb_rs_left_ms(end_ns));

	return n < 0 ? errno : n ? 0 : EAGAIN;
}

static int errno_of(int rc)
{
	return rc ? errno : 0;
}

/* --- asking --- */

static int addr_resolve(struct vb_rs_stream *s)
{
	return errno_of(rdma_resolve_addr(s->id, NULL, &s->id->route.addr.dst_addr, RESOLVE_MS));
}

static int route_resolve(struct vb_rs_stream *s)
{
	if (!s->route)
		return errno_of(rdma_resolve_route(s->id, RESOLVE_MS));
	return errno_of(rdma_set_option(s->id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, s->route,
					s->route_bytes));
}

static int ask(struct vb_rs_stream *s)
{
	uint8_t hello[VB_RS_HELLO_BYTES];
	struct rdma_conn_param param = {
		.private_data = hello,
		.private_data_len = sizeof(hello),
		.flow_control = 1,
		.retry_count = RETRIES,
		.rnr_retry_count = RETRIES,
	};
	int rc = vb_rs_endpoint_make(s);

	if (rc)
		return rc;
	vb_rs_endpoint_hello(s, hello);
	return errno_of(rdma_connect(s->id, &param));
}

/* What each phase begins with. ACCEPTING has begun when the socket comes to be. */
static int (*const begin[])(struct vb_rs_stream *s) = {
	[VB_RS_RESOLVING_ADDR] = addr_resolve,
	[VB_RS_RESOLVING_ROUTE] = route_resolve,
	[VB_RS_CONNECTING] = ask,
};

static void connected(struct vb_rs_stream *s)
{
	vb_rs_endpoint_settle(s);
	pthread_mutex_lock(&s->lock);
	s->phase = VB_RS_CONNECTED;
	s->readable = s->writable = true;
	/* The peer hears at once of the half that the hello does not tell. */
	vb_rs_credits_give(s);
	pthread_mutex_unlock(&s->lock);
}

/* The phase is over: 0, or with what it failed. */
static int finished(struct vb_rs_stream *s, int rc)
{
	const struct rdma_cm_event *event = s->id->event;

	/* Of a path that is given the event says what it would say of one that was asked for. */
	if (!rc && s->phase == VB_RS_CONNECTING)
		rc = vb_rs_endpoint_heard(s, event->param.conn.private_data,
					  event->param.conn.private_data_len);
	if (!rc && (s->phase == VB_RS_CONNECTING || s->phase == VB_RS_ACCEPTING))
		connected(s);
	return rc;
}

/* rc is of the phase: one after the other, until one takes waiting for. setting_up is held. */
static int go_on(struct vb_rs_stream *s, int rc)
{
	for (;;) {
		if (rc == EAGAIN)
			return EAGAIN;
		rc = finished(s, rc);
		if (rc || s->phase == VB_RS_CONNECTED)
			break;
		s->phase++;
		rc = begin[s->phase](s);
	}
	if (rc) {
		pthread_mutex_lock(&s->lock);
		vb_rs_end(s, VB_RS_REFUSED, rc);
		pthread_mutex_unlock(&s->lock);
	}
	return rc;
}

int vb_rs_stream_go_on(struct vb_rs_stream *s, uint64_t end_ns)
{
	int rc = 0;

	/* Who does not wait leaves it to those who do. */
	if (end_ns)
		pthread_mutex_lock(&s->setting_up);
	else if (pthread_mutex_trylock(&s->setting_up))
		return EAGAIN;
	while (vb_rs_is_connecting(s)) {
		rc = go_on(s, errno_of(vb_cma_complete(vb_cma_of(s->id))));
		if (rc != EAGAIN || !end_ns)
			break;
		rc = channel_wait(s, end_ns);
		if (rc)
			break;
	}
	if (!rc && s->phase == VB_RS_REFUSED)
		rc = ECONNREFUSED;
	pthread_mutex_unlock(&s->setting_up);
	return rc;
}

static int connect_begin(struct vb_rs_stream *s, const struct sockaddr *addr, socklen_t bytes)
{
	if (s->phase == VB_RS_CONNECTED)
		return s->is_answer_due ? 0 : EISCONN;
	if (s->phase == VB_RS_REFUSED && s->is_answer_due)
		return ECONNREFUSED;
	if (s->phase != VB_RS_IDLE || !addr)
		return EINVAL;
	if ((addr->sa_family != AF_INET && addr->sa_family != AF_INET6) ||
	    bytes < vb_cma_sockaddr_bytes(addr))
		return EAFNOSUPPORT;
	memcpy(&s->id->route.addr.dst_storage, addr, vb_cma_sockaddr_bytes(addr));
	s->phase = VB_RS_RESOLVING_ADDR;
	return go_on(s, addr_resolve(s));
}

int vb_rs_stream_connect(struct vb_rs *rs, const struct sockaddr *addr, socklen_t bytes)
{
	struct vb_rs_stream *s = vb_rs_stream_of(rs);
	uint64_t end_ns = vb_rs_wait_end_ns(rs, 0, &rs->options.send_time);
	bool again;
	int rc = EAGAIN;

	pthread_mutex_lock(&s->setting_up);
	again = vb_rs_is_connecting(s);
	if (!again)
		rc = connect_begin(s, addr, bytes);
	pthread_mutex_unlock(&s->setting_up);
	/* Who asks again goes on with what was begun, and learns how it ended. */
	if (rc == EAGAIN && (again || end_ns))
		rc = vb_rs_stream_go_on(s, end_ns);
	if (rc == EAGAIN)
		rc = again ? EALREADY : EINPROGRESS;
	s->is_answer_due = rc == EALREADY || rc == EINPROGRESS;
	return rc;
}

/* --- listening --- */

int vb_rs_stream_bind(struct vb_rs *rs, const struct sockaddr *addr, socklen_t bytes)
{
	struct vb_rs_stream *s = vb_rs_stream_of(rs);

	if (!addr || bytes < vb_cma_sockaddr_bytes(addr))
		return EINVAL;
	return errno_of(rdma_bind_addr(s->id, (struct sockaddr *)addr));
}

int vb_rs_stream_listen(struct vb_rs *rs, int backlog)
{
	struct vb_rs_stream *s = vb_rs_stream_of(rs);
	int rc;

	if (s->phase == VB_RS_LISTENING)
		return 0;
	if (s->phase != VB_RS_IDLE)
		return EINVAL;
	rc = errno_of(rdma_listen(s->id, backlog));
	if (!rc)
		s->phase = VB_RS_LISTENING;
	return rc;
}

/* Answers what was asked. The peer's last word is awaited by whoever uses the socket. */
static int answer(struct vb_rs_stream *s)
{
	const struct rdma_conn_param *asked = &s->id->event->param.conn;
	uint8_t hello[VB_RS_HELLO_BYTES];
	struct rdma_conn_param param = *asked;
	int rc = vb_rs_endpoint_make(s);

	if (!rc)
		rc = vb_rs_endpoint_heard(s, asked->private_data, asked->private_data_len);
	if (rc)
		return rc;
	vb_rs_endpoint_hello(s, hello);
	param.private_data = hello;
	param.private_data_len = sizeof(hello);
	rc = errno_of(rdma_accept(s->id, &param));
	s->phase = VB_RS_ACCEPTING;
	if (!rc)
		connected(s);
	return rc == EAGAIN ? 0 : rc;
}

void vb_rs_stream_deafen(struct vb_rs_stream *s)
{
	pthread_mutex_lock(&s->setting_up);
	vb_cma_id_deafen(vb_cma_of(s->id));
	s->phase = VB_RS_DEAF;
	/* Nobody fetches events of it any more: its descriptor stays readable. */
	vb_eventfd_signal(s->id->channel->fd);
	pthread_mutex_unlock(&s->setting_up);
}

/* NULL with *rc 0: who asked cannot be served, and the next may be. */
static struct vb_rs_stream *request_take(struct vb_rs_stream *listener, int *rc)
{
	struct rdma_cm_id *id;
	struct vb_rs_stream *child;

	pthread_mutex_lock(&listener->setting_up);
	*rc = listener->phase == VB_RS_LISTENING ? errno_of(rdma_get_request(listener->id, &id))
						 : EINVAL;
	pthread_mutex_unlock(&listener->setting_up);
	if (*rc)
		return NULL;
	child = vb_rs_stream_wrap(id, &listener->rs);
	if (!child) {
		rdma_destroy_id(id);
		*rc = ENOMEM;
		return NULL;
	}
	if (!answer(child))
		return child;
	rdma_reject(id, NULL, 0);
	vb_rs_stream_free(child);
	return NULL;
}

int vb_rs_stream_accept(struct vb_rs *rs, struct vb_rs **made)
{
	struct vb_rs_stream *listener = vb_rs_stream_of(rs), *child;
	uint64_t end_ns = vb_rs_wait_end_ns(rs, 0, &rs->options.receive_time);
	int rc = 0;

	while (!rc) {
		child = request_take(listener, &rc);
		if (child) {
			*made = &child->rs;
			return 0;
		}
		if (rc == EAGAIN && end_ns)
			rc = channel_wait(listener, end_ns);
	}
	return rc;
}
