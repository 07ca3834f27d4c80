/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Connections within a host, by TCP and by rdma_cm:
 *
 *   connect tcp|cm CORE CORE COUNT
 *
 * One after the other: us for each, median; and all at once: connections per second. A connection
 * counts from the making of its socket or id to its being established; the first kind, to its end.
 * Those of rdma_cm have no QPs: it is about connecting.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "bench.h"

enum {
	COUNT_MAX = 100000,
	BACKLOG = 1024,
	UNDER_WAY = 512, /* of those at once: within the backlog */
	RESOLVE_MS = 10000,
	EVENTS = 64,
};

static double us[COUNT_MAX];

/* Where the server is. */
static struct sockaddr_in there = {.sin_family = AF_INET, .sin_addr.s_addr = 0x0100007f};

/* By which a server says at which port it is. */
static int tell_fd;

static void tell(uint16_t port_be)
{
	if (write(tell_fd, &port_be, sizeof(port_be)) != sizeof(port_be))
		die("write");
}

/* --- TCP --- */

/* Who connects says nothing and closes; so does this side. */
static void tcp_serve(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), set = epoll_create1(0);
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd}, events[EVENTS];
	struct sockaddr_in at = there;
	socklen_t bytes = sizeof(at);

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, bytes) || listen(fd, BACKLOG) ||
	    getsockname(fd, (struct sockaddr *)&at, &bytes) ||
	    epoll_ctl(set, EPOLL_CTL_ADD, fd, &event))
		die("listen");
	tell(at.sin_port);
	for (;;) {
		int count = epoll_wait(set, events, EVENTS, -1);

		for (int i = 0; i < count; i++) {
			int one = events[i].data.fd;

			if (one != fd) {
				close(one);
				continue;
			}
			one = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
			event = (struct epoll_event){.events = EPOLLIN, .data.fd = one};
			if (one >= 0)
				epoll_ctl(set, EPOLL_CTL_ADD, one, &event);
		}
	}
}

static int tcp_begin(int flags)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
	/* So that ports do not wait for their last packets. */
	struct linger linger = {.l_onoff = 1};

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)))
		die("socket");
	if (connect(fd, (struct sockaddr *)&there, sizeof(there)) && errno != EINPROGRESS)
		die("connect");
	return fd;
}

static void tcp_ask_at_once(unsigned count)
{
	int *fds = calloc(count, sizeof(*fds)), set = epoll_create1(0);
	struct epoll_event event = {.events = EPOLLOUT}, events[EVENTS];

	for (unsigned begun = 0, done = 0; done < count;) {
		for (; begun < count && begun < done + UNDER_WAY; begun++) {
			fds[begun] = tcp_begin(SOCK_NONBLOCK);
			event.data.fd = fds[begun];
			if (epoll_ctl(set, EPOLL_CTL_ADD, fds[begun], &event))
				die("epoll_ctl");
		}
		for (int got = epoll_wait(set, events, EVENTS, -1); got > 0; done++)
			epoll_ctl(set, EPOLL_CTL_DEL, events[--got].data.fd, NULL);
	}
	for (unsigned i = 0; i < count; i++)
		close(fds[i]);
	free(fds);
}

static void tcp_ask_one(void)
{
	close(tcp_begin(0));
}

/* --- rdma_cm --- */

static struct rdma_event_channel *channel;

static struct rdma_conn_param param_of(unsigned number)
{
	return (struct rdma_conn_param){.qp_num = number + 1, .responder_resources = 1,
					.initiator_depth = 1, .retry_count = 7};
}

static void cm_serve(void)
{
	struct rdma_cm_id *listener;
	unsigned number = 0;

	channel = rdma_create_event_channel();
	if (!channel || rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, (struct sockaddr *)&there) ||
	    rdma_listen(listener, BACKLOG))
		die("rdma_listen");
	tell(rdma_get_src_port(listener));
	for (;;) {
		struct rdma_conn_param param = param_of(number++ & 0xfffff);
		struct rdma_cm_event *event;
		struct rdma_cm_id *over = NULL;

		if (rdma_get_cm_event(channel, &event))
			die("rdma_get_cm_event");
		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
			rdma_accept(event->id, &param);
		else if (event->event != RDMA_CM_EVENT_ESTABLISHED)
			over = event->id;
		if (event->event == RDMA_CM_EVENT_DISCONNECTED)
			rdma_disconnect(event->id);
		rdma_ack_cm_event(event);
		if (over)
			rdma_destroy_id(over);
	}
}

/* One event further with some id. True: that one is connected. */
static bool cm_advance(void)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	struct rdma_conn_param param;
	enum rdma_cm_event_type type;
	int rc = 0;

	if (rdma_get_cm_event(channel, &event))
		die("rdma_get_cm_event");
	id = event->id;
	type = event->event;
	rdma_ack_cm_event(event);
	param = param_of((unsigned)(uintptr_t)id->context);
	if (type == RDMA_CM_EVENT_ADDR_RESOLVED)
		rc = rdma_resolve_route(id, RESOLVE_MS);
	else if (type == RDMA_CM_EVENT_ROUTE_RESOLVED)
		rc = rdma_connect(id, &param);
	else if (type == RDMA_CM_EVENT_CONNECT_RESPONSE)
		rc = rdma_establish(id);
	else if (type != RDMA_CM_EVENT_DISCONNECTED && type != RDMA_CM_EVENT_TIMEWAIT_EXIT)
		rc = -1;
	if (rc)
		die(rdma_event_str(type));
	return type == RDMA_CM_EVENT_CONNECT_RESPONSE;
}

static struct rdma_cm_id *cm_begin(unsigned number)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(channel, &id, (void *)(uintptr_t)number, RDMA_PS_TCP) ||
	    rdma_resolve_addr(id, NULL, (struct sockaddr *)&there, RESOLVE_MS))
		die("rdma_resolve_addr");
	return id;
}

static void cm_ask_at_once(unsigned count)
{
	struct rdma_cm_id **ids = calloc(count, sizeof(*ids));

	for (unsigned begun = 0, done = 0; done < count;) {
		for (; begun < count && begun < done + UNDER_WAY; begun++)
			ids[begun] = cm_begin(begun);
		done += cm_advance();
	}
	for (unsigned i = 0; i < count; i++)
		rdma_destroy_id(ids[i]);
	free(ids);
}

static void cm_ask_one(void)
{
	static unsigned number;
	struct rdma_cm_id *id = cm_begin(++number & 0xfffff);

	while (!cm_advance())
		;
	rdma_destroy_id(id);
}

/* --- both --- */

static const struct way {
	const char *name;
	void (*serve)(void);
	void (*ask_one)(void);
	void (*ask_at_once)(unsigned count);
} ways[] = {
	{"tcp", tcp_serve, tcp_ask_one, tcp_ask_at_once},
	{"cm", cm_serve, cm_ask_one, cm_ask_at_once},
};

static const struct way *way_of(const char *name)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		if (!strcmp(name, ways[i].name))
			return &ways[i];
	}
	return NULL;
}

static void ask(const struct way *way, unsigned count)
{
	uint64_t begin_ns;

	for (unsigned i = 0; i < count; i++) {
		begin_ns = now_ns();
		way->ask_one();
		us[i] = (double)(now_ns() - begin_ns) / 1e3;
	}
	printf("each %.2f\n", median(us, count));
	begin_ns = now_ns();
	way->ask_at_once(count);
	printf("at_once %.0f\n", (double)count * 1e9 / (double)(now_ns() - begin_ns));
}

int main(int argc, char **argv)
{
	const struct way *way = argc == 5 ? way_of(argv[1]) : NULL;
	unsigned count = way ? (unsigned)atoi(argv[4]) : 0;
	struct rlimit limit;
	int fds[2];

	if (!count || count > COUNT_MAX) {
		fprintf(stderr, "connect tcp|cm CORE CORE COUNT\n");
		return 2;
	}
	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (pipe(fds))
		die("pipe");
	if (!fork_child()) {
		tell_fd = fds[1];
		pin(atoi(argv[3]));
		way->serve();
	}
	pin(atoi(argv[2]));
	if (read(fds[0], &there.sin_port, sizeof(there.sin_port)) != sizeof(there.sin_port))
		die("the server");
	if (way->serve == cm_serve && !(channel = rdma_create_event_channel()))
		die("rdma_create_event_channel");
	ask(way, count);
	return 0;
}
