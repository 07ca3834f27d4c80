/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/rspreload/migrate.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>

#include "abi/rspreload/calls.h"
#include "abi/rspreload/config.h"
#include "base/check.h"
#include "run/process/signals.h"

enum { RETRY_MS = 2 };

/* --- either side --- */

/* What the application has set. */
static void options_copy(int fd, int rs)
{
	static const int copied[][2] = {
		{SOL_SOCKET, SO_KEEPALIVE}, {SOL_SOCKET, SO_LINGER}, {SOL_SOCKET, SO_RCVTIMEO},
		{SOL_SOCKET, SO_SNDTIMEO}, {IPPROTO_TCP, TCP_NODELAY},
	};
	int flags = vb_real()->fcntl(fd, F_GETFL);

	for (unsigned i = 0; i < VB_ARRAY_LEN(copied); i++) {
		char value[sizeof(struct timeval)];
		socklen_t bytes = sizeof(value);

		if (!vb_real()->getsockopt(fd, copied[i][0], copied[i][1], value, &bytes))
			VB_RS_CALL(setsockopt(rs, copied[i][0], copied[i][1], value, bytes));
	}
	VB_RS_CALL(fcntl(rs, F_SETFL, flags & O_NONBLOCK));
}

/* The rsocket takes the connection's place, and TCP's ends. */
static void done(int fd, struct vb_front *front, int rs)
{
	options_copy(fd, rs);
	if (front->epfd >= 0) {
		if (!VB_RS_CALL(vb_rs_set_ctl(front->epfd, EPOLL_CTL_ADD, rs, front->asked_fd,
						&front->asked)))
			vb_front_set_mark(front->epfd);
	}
	front->rs = rs;
	vb_real()->shutdown(fd, SHUT_RDWR);
}

static int rsocket_make(int domain)
{
	int rs = vb_rsockets_load() ? VB_RS_CALL(socket(domain, SOCK_STREAM, 0)) : -1;

	if (rs >= 0)
		vb_config_apply(rs);
	return rs;
}

/* --- passive --- */

static bool tcp_has(int fd, short events)
{
	struct pollfd tcp = {.fd = fd, .events = events};

	return vb_real()->poll(&tcp, 1, 0) != 0;
}

/* Any address, the connection's port. */
static socklen_t place_of(int fd, struct sockaddr_storage *addr)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)addr;
	struct sockaddr_in *in = (struct sockaddr_in *)addr;
	socklen_t bytes = sizeof(*addr);
	in_port_t port;

	if (vb_real()->getsockname(fd, (struct sockaddr *)addr, &bytes))
		return 0;
	port = addr->ss_family == AF_INET6 ? in6->sin6_port : in->sin_port;
	bytes = addr->ss_family == AF_INET6 ? sizeof(*in6) : sizeof(*in);
	memset(addr, 0, sizeof(*addr));
	if (bytes == sizeof(*in6))
		*in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = port};
	else
		*in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = port};
	return bytes;
}

/* A listener for this peer alone. The port may be another child's for a moment. -1: none. */
static int listener_make(int fd)
{
	struct sockaddr_storage addr;
	socklen_t bytes = place_of(fd, &addr);
	int on = 1, rs;

	while (bytes && !tcp_has(fd, POLLRDHUP)) {
		rs = rsocket_make(addr.ss_family);
		if (rs < 0)
			return -1;
		VB_RS_CALL(setsockopt(rs, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
		/* Who has asked may have gone meanwhile. */
		VB_RS_CALL(fcntl(rs, F_SETFL, O_NONBLOCK));
		if (!VB_RS_CALL(bind(rs, (struct sockaddr *)&addr, bytes)) &&
		    !VB_RS_CALL(listen(rs, 1)))
			return rs;
		bytes = errno == EADDRINUSE || errno == EADDRNOTAVAIL ? bytes : 0;
		VB_RS_CALL(close(rs));
		vb_real()->poll(NULL, 0, bytes ? RETRY_MS : 0);
	}
	return -1;
}

/* What the peer makes of it: an rsocket, or -1 if it goes on by TCP, or away. */
static int peer_await(int fd, int listener)
{
	struct pollfd fds[] = {{.fd = listener, .events = POLLIN},
			       {.fd = fd, .events = POLLIN | POLLRDHUP}};
	const uint32_t ready = 0;
	int rs = -1;

	if (vb_real()->send(fd, &ready, sizeof(ready), MSG_NOSIGNAL) != sizeof(ready))
		return -1;
	do {
		if (VB_RS_CALL(poll(fds, VB_ARRAY_LEN(fds), -1)) > 0 && fds[0].revents)
			rs = VB_RS_CALL(accept(listener, NULL, NULL));
	} while (rs < 0 && !fds[1].revents);
	return rs;
}

void vb_migrate_invite(int fd, struct vb_front *front)
{
	int listener, rs;

	front->state = VB_FRONT_PLAIN;
	listener = listener_make(fd);
	if (listener < 0)
		return;
	rs = peer_await(fd, listener);
	VB_RS_CALL(close(listener));
	if (rs >= 0)
		done(fd, front, rs);
}

/* --- active --- */

/*
 * A thread of ours goes where connections are invited. The application may be busy elsewhere, and
 * whoever invites lets others wait meanwhile, the application's own peers perhaps.
 */
struct guest {
	LIST_ENTRY(guest) link;
	struct vb_front *front; /* the guest counts as one of its numbers */
	int tcp;		/* a number of our own */
};

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t gone; /* one has migrated, or never will */
	LIST_HEAD(, guest) guests;
	nfds_t count;
	int wake_fd;
	bool has_thread;
} active = {.mutex = PTHREAD_MUTEX_INITIALIZER, .gone = PTHREAD_COND_INITIALIZER, .wake_fd = -1};

/* The peer has said that it listens. The socket's own error is left to the application. */
static bool is_invited(int fd)
{
	struct pollfd tcp = {.fd = fd, .events = POLLIN};
	uint32_t said = 1;

	return vb_real()->poll(&tcp, 1, 0) == 1 && !(tcp.revents & POLLERR) &&
	       vb_real()->recv(fd, &said, sizeof(said), MSG_PEEK | MSG_DONTWAIT) == sizeof(said) &&
	       !said;
}

/* Without an rsocket it goes on by TCP, where the invitation is no data. -1: none. */
static int invitation_follow(int fd)
{
	struct sockaddr_storage addr;
	socklen_t bytes = sizeof(addr);
	uint32_t said;
	int rs;

	if (!is_invited(fd) || vb_real()->getpeername(fd, (struct sockaddr *)&addr, &bytes))
		return -1;
	vb_real()->recv(fd, &said, sizeof(said), MSG_DONTWAIT);
	rs = rsocket_make(addr.ss_family);
	if (rs < 0 || !VB_RS_CALL(connect(rs, (struct sockaddr *)&addr, bytes)))
		return rs;
	VB_RS_CALL(close(rs));
	return -1;
}

static void active_lock(void)
{
	vb_handlers_hold();
	pthread_mutex_lock(&active.mutex);
}

static void active_unlock(void)
{
	pthread_mutex_unlock(&active.mutex);
	vb_handlers_release();
}

static void guest_serve(struct guest *guest)
{
	struct vb_front *front = guest->front;
	int rs = invitation_follow(guest->tcp);

	active_lock();
	LIST_REMOVE(guest, link);
	active.count--;
	if (rs >= 0)
		done(guest->tcp, front, rs);
	else if (front->epfd >= 0)
		vb_real()->epoll_ctl(front->epfd, EPOLL_CTL_ADD, front->asked_fd, &front->asked);
	front->state = VB_FRONT_PLAIN;
	pthread_cond_broadcast(&active.gone);
	active_unlock();
	vb_real()->close(guest->tcp);
	vb_front_release(front);
	free(guest);
}

/* All guests, and what wakes the thread. NULL: no memory. */
static struct pollfd *places_make(struct guest ***guests, nfds_t *count)
{
	struct pollfd *fds;
	struct guest *guest;
	nfds_t n = 1;

	active_lock();
	fds = calloc(active.count + 1, sizeof(*fds) + sizeof(guest));
	*guests = fds ? (struct guest **)(fds + active.count + 1) : NULL;
	if (fds)
		fds[0] = (struct pollfd){.fd = active.wake_fd, .events = POLLIN};
	LIST_FOREACH(guest, &active.guests, link) {
		if (!fds)
			break;
		fds[n] = (struct pollfd){.fd = guest->tcp, .events = POLLIN | POLLRDHUP};
		(*guests)[n++] = guest;
	}
	active_unlock();
	*count = n;
	return fds;
}

static void *serve(void *arg)
{
	for (;;) {
		struct guest **guests;
		nfds_t count;
		struct pollfd *fds = places_make(&guests, &count);
		eventfd_t times;

		vb_real()->poll(fds, fds ? count : 0, fds ? -1 : RETRY_MS);
		if (fds && fds[0].revents)
			eventfd_read(active.wake_fd, &times);
		for (nfds_t i = 1; fds && i < count; i++) {
			/* Nobody is left to migrate, or something has come. */
			if (fds[i].revents || guests[i]->front->numbers == 1)
				guest_serve(guests[i]);
		}
		free(fds);
	}
	return arg;
}

/* Locked. */
static bool thread_ensure(void)
{
	sigset_t before;
	pthread_t thread;

	if (active.wake_fd < 0)
		active.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (active.has_thread || active.wake_fd < 0)
		return active.has_thread;
	vb_signals_defer(&before);
	active.has_thread = !pthread_create(&thread, NULL, serve, NULL);
	vb_signals_restore(&before);
	if (active.has_thread)
		pthread_detach(thread);
	return active.has_thread;
}

void vb_migrate_wake(void)
{
	if (active.wake_fd >= 0)
		eventfd_write(active.wake_fd, 1);
}

void vb_migrate_invited(int fd, struct vb_front *front)
{
	struct guest *guest = malloc(sizeof(*guest));
	int tcp = vb_real()->fcntl(fd, F_DUPFD_CLOEXEC, 0);

	active_lock();
	if (guest && tcp >= 0 && thread_ensure()) {
		*guest = (struct guest){.front = front, .tcp = tcp};
		atomic_fetch_add(&front->numbers, 1);
		front->state = VB_FRONT_ACTIVE;
		if (front->epfd >= 0)
			vb_real()->epoll_ctl(front->epfd, EPOLL_CTL_DEL, fd, NULL);
		LIST_INSERT_HEAD(&active.guests, guest, link);
		active.count++;
		guest = NULL;
		tcp = -1;
	}
	active_unlock();
	vb_migrate_wake();
	if (tcp >= 0)
		vb_real()->close(tcp);
	free(guest);
}

int vb_migrate_await(int fd, struct vb_front *front, int timeout_ms)
{
	struct pollfd tcp = {.fd = fd, .events = POLLIN | POLLRDHUP};
	int found = vb_real()->poll(&tcp, 1, timeout_ms);

	if (found <= 0)
		return found < 0 ? errno : EAGAIN;
	active_lock();
	while (front->state == VB_FRONT_ACTIVE)
		pthread_cond_wait(&active.gone, &active.mutex);
	active_unlock();
	return 0;
}

bool vb_migrate_ctl(struct vb_front *front, int epfd, int op, int fd, struct epoll_event *event,
		    int *rc)
{
	bool is_member, is_active;

	active_lock();
	is_active = front->state == VB_FRONT_ACTIVE;
	is_member = front->epfd == epfd;
	*rc = 0;
	if (is_active && is_member == (op == EPOLL_CTL_ADD)) {
		errno = is_member ? EEXIST : ENOENT;
		*rc = -1;
	} else if (is_active) {
		front->epfd = op == EPOLL_CTL_DEL ? -1 : epfd;
		front->asked_fd = fd;
		if (op != EPOLL_CTL_DEL)
			front->asked = *event;
	}
	active_unlock();
	return is_active;
}

void vb_migrate_forget(void)
{
	pthread_mutex_init(&active.mutex, NULL);
	pthread_cond_init(&active.gone, NULL);
	LIST_INIT(&active.guests);
	active.count = 0;
	active.has_thread = false;
	active.wake_fd = -1;
}
