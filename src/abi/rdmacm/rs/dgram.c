/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/rdmacm/rs/dgram.h"

#include <errno.h>
#include <netinet/in.h>
#include <rdma/rsocket.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/rdmacm/addr.h"
#include "abi/rdmacm/device.h"
#include "abi/rdmacm/rs/dgram_peer.h"
#include "abi/rdmacm/rs/dgram_qp.h"
#include "base/check.h"
#include "nic/queue/channel.h"
#include "wire/rs.h"

enum {
	UDP_ARRIVALS_MAX = 64,
	UDP_LOOKS = 64, /* of those that found something, one looks at the UDP socket as well */
};

/* Who goes on sending says so often who it is: the peer may be another process by now. */
#define TELL_NS 1000000000u

static const struct vb_rs_type dgram_type;

int vb_rs_dgram_make(int domain, struct vb_rs **made)
{
	struct vb_rs_dgram *d;
	int rc = vb_cma_device(NULL);

	if (rc)
		return rc;
	d = calloc(1, sizeof(*d));
	if (!d)
		return ENOMEM;
	d->rs.fd = socket(domain, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (d->rs.fd < 0) {
		rc = errno;
		free(d);
		return rc;
	}
	d->rs.type = &dgram_type;
	d->rs.sizes = vb_rs_defaults;
	pthread_mutex_init(&d->lock, NULL);
	LIST_INIT(&d->watches);
	LIST_INIT(&d->qps);
	TAILQ_INIT(&d->arrivals);
	*made = &d->rs;
	return 0;
}

/* What has become known of the peer's absence is told once. */
static int error_take(struct vb_rs_dgram *d)
{
	int rc = d->rs.error;

	d->rs.error = 0;
	return rc;
}

/* --- the UDP socket --- */

/* Tells the peer our QP; with the data, if any. 0 or an errno. */
static int udp_send(struct vb_rs_dgram *d, const struct vb_rs_peer *peer, bool answers,
		    const void *data, size_t bytes)
{
	const struct sockaddr *from = &peer->qp->id->route.addr.src_addr;
	const struct sockaddr *to = (const struct sockaddr *)&peer->addr;
	struct vb_rs_first first = {
		.ipv4 = from->sa_family == AF_INET,
		.answers = answers,
		.qpn = peer->qp->id->qp->qp_num,
	};
	uint8_t header[VB_RS_FIRST_BYTES_MAX];
	struct iovec parts[] = {{header, 0}, {(void *)(uintptr_t)data, bytes}};
	struct msghdr msg = {.msg_iov = parts, .msg_iovlen = 2};

	if (first.ipv4)
		memcpy(first.addr, &((const struct sockaddr_in *)from)->sin_addr, 4);
	else
		memcpy(first.addr, &((const struct sockaddr_in6 *)from)->sin6_addr, 16);
	parts[0].iov_len = vb_rs_first_emit(&first, header);
	/* A connected UDP socket takes no address. */
	if (!d->connected) {
		msg.msg_name = (void *)(uintptr_t)to;
		msg.msg_namelen = vb_cma_sockaddr_bytes(to);
	}
	return sendmsg(d->rs.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? errno : 0;
}

static void from_fill(struct vb_rs_from *from, const struct sockaddr *addr)
{
	const struct sockaddr_in6 *in6 = (const void *)addr;
	const struct sockaddr_in *in = (const void *)addr;

	*from = (struct vb_rs_from){
		.ipv4 = addr->sa_family == AF_INET, .port = vb_cma_port_of(addr),
	};
	if (from->ipv4) {
		memcpy(from->addr, &in->sin_addr, 4);
	} else {
		from->flowinfo = in6->sin6_flowinfo;
		memcpy(from->addr, &in6->sin6_addr, 16);
	}
}

/* Queued as if it had come to a QP. What there is no memory for is lost, as datagrams are. */
static void udp_queue(struct vb_rs_dgram *d, const struct sockaddr *addr, const uint8_t *data,
		      size_t bytes)
{
	struct vb_rs_arrival *arrival = malloc(sizeof(*arrival) + VB_RS_FROM_BYTES_MAX + bytes);
	struct vb_rs_from from;
	unsigned header;

	if (!arrival)
		return;
	from_fill(&from, addr);
	arrival->qp = NULL;
	arrival->octets = (uint8_t *)(arrival + 1);
	header = vb_rs_from_emit(&from, arrival->octets);
	memcpy(arrival->octets + header, data, bytes);
	arrival->bytes = (uint32_t)(header + bytes);
	TAILQ_INSERT_TAIL(&d->arrivals, arrival, link);
	d->udp_arrivals++;
}

/* Reads one; false: there is none, or an error. Others' datagrams are not for us. */
static bool udp_take(struct vb_rs_dgram *d)
{
	uint8_t octets[VB_RS_DATAGRAM_BYTES];
	struct sockaddr_storage addr;
	struct sockaddr *from = (struct sockaddr *)&addr;
	socklen_t addr_bytes = sizeof(addr);
	struct vb_rs_first first;
	struct vb_rs_peer *peer;
	unsigned header;
	ssize_t n = recvfrom(d->rs.fd, octets, sizeof(octets), MSG_DONTWAIT, from, &addr_bytes);

	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			d->rs.error = errno;
		return false;
	}
	header = vb_rs_first_parse(&first, octets, (unsigned)n);
	if (!header || vb_rs_peer_get(d, from, &peer) ||
	    first.ipv4 != (peer->addr.ss_family == AF_INET))
		return true;
	/* Who answers may be another one than it was, and does not know us then. */
	if (vb_rs_peer_learn(peer, first.qpn) || !first.answers)
		udp_send(d, peer, true, NULL, 0);
	if (!first.answers)
		udp_queue(d, (struct sockaddr *)&peer->addr, octets + header, (size_t)n - header);
	return true;
}

static void udp_turn(struct vb_rs_dgram *d)
{
	while (d->udp_arrivals < UDP_ARRIVALS_MAX && udp_take(d))
		;
}

/* What there is. Locked. */
static void turn(struct vb_rs_dgram *d)
{
	if (d->is_orphan)
		return;
	vb_rs_qps_turn(d);
	if (TAILQ_EMPTY(&d->arrivals) || ++d->looks % UDP_LOOKS == 0)
		udp_turn(d);
}

/* --- names --- */

/* So that it can say from where it sends. */
static int port_ensure(struct vb_rs_dgram *d)
{
	struct sockaddr_storage addr;
	struct sockaddr *at = (struct sockaddr *)&addr;
	socklen_t bytes = sizeof(addr);

	if (d->port)
		return 0;
	if (getsockname(d->rs.fd, at, &bytes) ||
	    (!vb_cma_port_of(at) &&
	     (bind(d->rs.fd, at, bytes) || getsockname(d->rs.fd, at, &bytes))))
		return errno;
	d->port = vb_cma_port_of(at);
	return 0;
}

static int dgram_bind(struct vb_rs *rs, const struct sockaddr *addr, socklen_t bytes)
{
	return bind(rs->fd, addr, bytes) ? errno : 0;
}

static bool is_ip(const struct sockaddr *addr, socklen_t bytes)
{
	return (addr->sa_family == AF_INET || addr->sa_family == AF_INET6) &&
	       bytes >= vb_cma_sockaddr_bytes(addr);
}

static int dgram_connect(struct vb_rs *rs, const struct sockaddr *addr, socklen_t bytes)
{
	struct vb_rs_dgram *d = vb_rs_dgram_of(rs);
	struct vb_rs_peer *peer = NULL;
	int rc = 0;

	if (!addr || (addr->sa_family != AF_UNSPEC && !is_ip(addr, bytes)))
		return EAFNOSUPPORT;
	pthread_mutex_lock(&d->lock);
	if (addr->sa_family != AF_UNSPEC)
		rc = vb_rs_peer_get(d, addr, &peer);
	if (!rc && connect(rs->fd, addr, bytes))
		rc = errno;
	if (!rc)
		d->connected = peer;
	/* Who is connected no more may have lost its port. */
	if (!rc && !peer)
		d->port = 0;
	pthread_mutex_unlock(&d->lock);
	return rc;
}

static int dgram_name(struct vb_rs *rs, bool of_peer, struct sockaddr_storage *addr)
{
	socklen_t bytes = sizeof(*addr);
	int rc = of_peer ? getpeername(rs->fd, (struct sockaddr *)addr, &bytes)
			 : getsockname(rs->fd, (struct sockaddr *)addr, &bytes);

	return rc ? errno : 0;
}

/* Options that the UDP socket knows as well; its answer counts if only it knows them. */
static int dgram_option(struct vb_rs *rs, int level, int name, const void *value, socklen_t bytes)
{
	return setsockopt(rs->fd, level, name, value, bytes) ? errno : 0;
}

/* --- waiting --- */

static int wait_for(const struct vb_rs_dgram *d, short events, uint64_t end_ns)
{
	struct pollfd fd = {.fd = d->rs.fd, .events = events};
	int n = end_ns ? rpoll(&fd, 1, vb_rs_left_ms(end_ns)) : 0;

	return n < 0 ? errno : n ? 0 : EAGAIN;
}

static short events_of(const struct vb_rs_dgram *d, short wanted)
{
	/* Before there is a QP, there are as many places as ever. */
	bool can_send = !d->out_mr || d->out_count;

	bool can_receive = !TAILQ_EMPTY(&d->arrivals) || d->no_more_in || d->rs.error;

	return (short)((wanted & ((can_receive ? POLLIN : 0) | (can_send ? POLLOUT : 0))) |
		       (d->rs.error ? POLLERR : 0));
}

static short dgram_look(struct vb_rs *rs, short wanted, bool arm)
{
	struct vb_rs_dgram *d = vb_rs_dgram_of(rs);
	short events;

	pthread_mutex_lock(&d->lock);
	turn(d);
	events = events_of(d, wanted);
	if (!events && arm) {
		vb_rs_qps_arm(d);
		turn(d);
		events = events_of(d, wanted);
	}
	pthread_mutex_unlock(&d->lock);
	return events;
}

static void dgram_fds(struct vb_rs *rs, int fds[2])
{
	struct vb_rs_dgram *d = vb_rs_dgram_of(rs);

	pthread_mutex_lock(&d->lock);
	fds[0] = d->udp_arrivals < UDP_ARRIVALS_MAX ? rs->fd : -1;
	fds[1] = d->channel ? d->channel->fd : -1;
	pthread_mutex_unlock(&d->lock);
}

static bool dgram_has_news(struct vb_rs *rs)
{
	const struct vb_rs_dgram *d = vb_rs_dgram_of(rs);

	return d->channel && vb_channel_has_event((struct vb_channel *)d->channel);
}

static void dgram_news(struct vb_rs *rs)
{
	struct vb_rs_dgram *d = vb_rs_dgram_of(rs);

	pthread_mutex_lock(&d->lock);
	vb_rs_qps_news_take(d);
	udp_turn(d);
	vb_rs_watches_wake(&d->watches);
	pthread_mutex_unlock(&d->lock);
}

static void dgram_watch(struct vb_rs *rs, struct vb_rs_watch *watch)
{
	struct vb_rs_dgram *d = vb_rs_dgram_of(rs);

	pthread_mutex_lock(&d->lock);
	LIST_INSERT_HEAD(&d->watches, watch, link);
	pthread_mutex_unlock(&d->lock);
}

static void dgram_unwatch(struct vb_rs *rs, struct vb_rs_watch *watch)
{
	struct vb_rs_dgram *d = vb_rs_dgram_of(rs);

	pthread_mutex_lock(&d->lock);
	LIST_REMOVE(watch, link);
	pthread_mutex_unlock(&d->lock);
}

/* --- sending --- */

static int qp_send(struct vb_rs_dgram *d, const struct vb_rs_peer *peer, struct vb_rs_data *data)
{
	struct vb_rs_from from;
	size_t n = data->left;
	uint8_t *place;
	unsigned header;

	if (!d->out_count)
		return EAGAIN;
	from_fill(&from, &peer->qp->id->route.addr.src_addr);
	from.port = d->port;
	place = vb_rs_place_take(d);
	header = vb_rs_from_emit(&from, place);
	vb_rs_gather(place + header, data, n);
	return vb_rs_place_send(d, place, (uint32_t)(header + n), peer);
}

/* To peers that we have not heard of yet, so that they hear of us. */
static int first_send(struct vb_rs_dgram *d, const struct vb_rs_peer *peer,
		      struct vb_rs_data *data)
{
	uint8_t octets[VB_RS_DATAGRAM_BYTES];
	size_t n = data->left;

	vb_rs_gather(octets, data, n);
	return udp_send(d, peer, false, octets, n);
}

static void tell_again(struct vb_rs_dgram *d, struct vb_rs_peer *peer)
{
	uint64_t now_ns = vb_rs_now_ns();

	if (now_ns < peer->tell_ns)
		return;
	/* Who only sends reads its answer now. */
	udp_turn(d);
	if (peer->tell_ns)
		udp_send(d, peer, true, NULL, 0);
	peer->tell_ns = now_ns + TELL_NS;
}

static int send_once(struct vb_rs_dgram *d, struct vb_rs_data *data, const struct sockaddr *to)
{
	struct vb_rs_peer *peer = d->connected;
	int rc = to ? vb_rs_peer_get(d, to, &peer) : 0;
	size_t n = data->left, header;

	if (!rc)
		rc = error_take(d);
	if (rc)
		return rc;
	if (!peer)
		return EDESTADDRREQ;
	/* How long it may be does not depend on the way that it goes. */
	header = peer->addr.ss_family == AF_INET ? VB_RS_FIRST_IPV4_BYTES : VB_RS_FIRST_IPV6_BYTES;
	if (n > VB_RS_DATAGRAM_BYTES - header)
		return EMSGSIZE;
	rc = port_ensure(d);
	if (rc)
		return rc;
	if (!peer->ah)
		udp_turn(d);
	else if (!d->out_count)
		vb_rs_qps_turn(d);
	/* The kernel cuts what no packet has room for. */
	if (!peer->ah || VB_RS_FROM_BYTES_MAX + n > peer->qp->mtu_bytes)
		return first_send(d, peer, data);
	tell_again(d, peer);
	return qp_send(d, peer, data);
}

static int dgram_send(struct vb_rs *rs, struct vb_rs_data *data, int flags,
		      const struct sockaddr *to, socklen_t to_bytes)
{
	struct vb_rs_dgram *d = vb_rs_dgram_of(rs);
	uint64_t end_ns = vb_rs_wait_end_ns(rs, flags, &rs->options.send_time);
	const struct vb_rs_data whole = *data;
	int rc;

	if (to && !is_ip(to, to_bytes))
		return EAFNOSUPPORT;
	if (d->no_more_out)
		return EPIPE;
	do {
		*data = whole;
		pthread_mutex_lock(&d->lock);
		rc = send_once(d, data, to);
		pthread_mutex_unlock(&d->lock);
		if (rc != EAGAIN)
			break;
		rc = wait_for(d, POLLOUT, end_ns);
	} while (!rc);
	if (rc)
		*data = whole;
	return rc;
}

/* --- receiving --- */

static void from_tell(const struct vb_rs_from *from, struct sockaddr_storage *addr)
{
	struct sockaddr_in6 *in6 = (void *)addr;
	struct sockaddr_in *in = (void *)addr;

	memset(addr, 0, sizeof(*addr));
	addr->ss_family = from->ipv4 ? AF_INET : AF_INET6;
	vb_cma_port_set((struct sockaddr *)addr, from->port);
	if (from->ipv4) {
		memcpy(&in->sin_addr, from->addr, 4);
	} else {
		in6->sin6_flowinfo = from->flowinfo;
		memcpy(&in6->sin6_addr, from->addr, 16);
	}
}

/* The next that is for us: a connected socket hears its peer only. Locked. */
static struct vb_rs_arrival *arrival_next(struct vb_rs_dgram *d, struct sockaddr_storage *addr)
{
	struct vb_rs_arrival *arrival;
	struct vb_rs_from from;

	for (;;) {
		arrival = TAILQ_FIRST(&d->arrivals);
		if (!arrival)
			return NULL;
		vb_rs_from_parse(&from, arrival->octets, arrival->bytes);
		from_tell(&from, addr);
		if (!d->connected || vb_rs_peer_is_at(d->connected, (struct sockaddr *)addr))
			return arrival;
		TAILQ_REMOVE(&d->arrivals, arrival, link);
		vb_rs_arrival_done(d, arrival);
	}
}

static int receive_once(struct vb_rs_dgram *d, struct vb_rs_data *data, bool peek,
			struct sockaddr_storage *addr)
{
	struct vb_rs_arrival *arrival;
	struct vb_rs_from from;
	unsigned header;

	turn(d);
	arrival = arrival_next(d, addr);
	if (!arrival)
		return d->rs.error ? error_take(d) : EAGAIN;
	header = vb_rs_from_parse(&from, arrival->octets, arrival->bytes);
	vb_rs_scatter(data, arrival->octets + header,
		      vb_min_u64(data->left, arrival->bytes - header));
	if (peek)
		return 0;
	TAILQ_REMOVE(&d->arrivals, arrival, link);
	vb_rs_arrival_done(d, arrival);
	return 0;
}

static int dgram_receive(struct vb_rs *rs, struct vb_rs_data *data, int flags,
			 struct sockaddr_storage *from)
{
	struct vb_rs_dgram *d = vb_rs_dgram_of(rs);
	uint64_t end_ns = vb_rs_wait_end_ns(rs, flags, &rs->options.receive_time);
	struct sockaddr_storage addr = {.ss_family = AF_UNSPEC};
	int rc;

	do {
		pthread_mutex_lock(&d->lock);
		rc = receive_once(d, data, flags & MSG_PEEK, &addr);
		if (rc == EAGAIN && d->no_more_in)
			rc = 0;
		pthread_mutex_unlock(&d->lock);
		if (rc != EAGAIN)
			break;
		rc = wait_for(d, POLLIN, end_ns);
	} while (!rc);
	if (!rc && from)
		*from = addr;
	return rc;
}

/* --- ending --- */

static int dgram_shutdown(struct vb_rs *rs, int how)
{
	struct vb_rs_dgram *d = vb_rs_dgram_of(rs);

	if (shutdown(rs->fd, how))
		return errno;
	pthread_mutex_lock(&d->lock);
	d->no_more_in |= how != SHUT_WR;
	d->no_more_out |= how != SHUT_RD;
	vb_rs_watches_wake(&d->watches);
	pthread_mutex_unlock(&d->lock);
	return 0;
}

static void dgram_close(struct vb_rs *rs)
{
	struct vb_rs_dgram *d = vb_rs_dgram_of(rs);
	struct vb_rs_arrival *arrival;

	pthread_mutex_lock(&d->lock);
	vb_rs_watches_end(&d->watches);
	while ((arrival = TAILQ_FIRST(&d->arrivals))) {
		TAILQ_REMOVE(&d->arrivals, arrival, link);
		if (!arrival->qp)
			free(arrival);
	}
	vb_rs_peers_free(d);
	vb_rs_qps_free(d);
	pthread_mutex_unlock(&d->lock);
	close(rs->fd);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

/* The UDP socket is the parent's, too: the child takes nothing from it. */
static void dgram_orphan(struct vb_rs *rs)
{
	struct vb_rs_dgram *d = vb_rs_dgram_of(rs);

	pthread_mutex_init(&d->lock, NULL);
	LIST_INIT(&d->watches);
	d->no_more_in = d->no_more_out = d->is_orphan = true;
}

static const struct vb_rs_type dgram_type = {
	.bind = dgram_bind,
	.connect = dgram_connect,
	.send = dgram_send,
	.receive = dgram_receive,
	.shutdown = dgram_shutdown,
	.close = dgram_close,
	.name = dgram_name,
	.option = dgram_option,
	.look = dgram_look,
	.fds = dgram_fds,
	.has_news = dgram_has_news,
	.news = dgram_news,
	.watch = dgram_watch,
	.unwatch = dgram_unwatch,
	.orphan = dgram_orphan,
};
