/* SPDX-License-Identifier: BSD-2-Clause */

/* Epoll descriptors that hold rsockets: repoll_create(), repoll_ctl(), repoll_wait(). */

#include "lib.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* <rdma/rsocket.h> has them from rdma-core 65 on. */
int repoll_create(int flags);
int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int repoll_wait(int epfd, struct epoll_event *events, int max, int timeout);

enum { MOST = 8, MANY = 40 };

/* Two ends of a stream, neither of which waits, and a set. */
struct stream {
	int listener, server, client, set;
};

static int nonblocking(int fd)
{
	assert_true(fd >= 0);
	ct_works(rfcntl(fd, F_SETFL, O_NONBLOCK));
	return fd;
}

static int socket_new(void)
{
	return nonblocking(rsocket(ct_addr(0)->sa_family, SOCK_STREAM, 0));
}

static int listener_new(void)
{
	int fd = socket_new();

	ct_works(rbind(fd, ct_addr(0), sizeof(struct sockaddr_in6)));
	ct_works(rlisten(fd, MANY));
	return fd;
}

static void ctl(int set, int op, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event event = {.events = events, .data.u64 = data};

	ct_works(repoll_ctl(set, op, fd, &event));
}

static void add(int set, int fd, uint32_t events)
{
	ctl(set, EPOLL_CTL_ADD, fd, events, (uint64_t)fd);
}

/* What comes next, which must be this socket's; its events. */
static uint32_t next(int set, int fd)
{
	struct epoll_event event;

	assert_int_equal(repoll_wait(set, &event, 1, CT_WAIT_MS), 1);
	assert_int_equal(event.data.u64, fd);
	return event.events;
}

static void nothing(int set)
{
	struct epoll_event event;

	assert_int_equal(repoll_wait(set, &event, 1, CT_QUIET_MS), 0);
}

static int asker_new(int listener)
{
	struct sockaddr_storage addr;
	socklen_t bytes = sizeof(addr);
	int fd = socket_new();

	ct_works(rgetsockname(listener, (struct sockaddr *)&addr, &bytes));
	ct_fails(rconnect(fd, (struct sockaddr *)&addr, bytes), EINPROGRESS);
	return fd;
}

static struct stream stream_open(void)
{
	struct stream s = {.set = repoll_create(0), .listener = listener_new()};

	assert_true(s.set >= 0);
	s.client = asker_new(s.listener);
	add(s.set, s.listener, EPOLLIN);
	assert_int_equal(next(s.set, s.listener), EPOLLIN);
	s.server = nonblocking(raccept(s.listener, NULL, NULL));
	ctl(s.set, EPOLL_CTL_DEL, s.listener, 0, 0);
	add(s.set, s.client, EPOLLOUT);
	assert_int_equal(next(s.set, s.client), EPOLLOUT);
	ctl(s.set, EPOLL_CTL_DEL, s.client, 0, 0);
	return s;
}

/* The server hears of the client's end. */
static void stream_close(struct stream *s)
{
	rclose(s->client);
	rclose(s->server);
	rclose(s->listener);
	ct_works(rclose(s->set));
}

static void say(int fd)
{
	assert_int_equal(rsend(fd, "x", 1, 0), 1);
}

static void hear(int fd)
{
	char octet;

	assert_int_equal(rrecv(fd, &octet, 1, 0), 1);
}

static void a_connection_is_told_of_at_both_ends(void **state)
{
	struct stream s = stream_open();

	stream_close(&s);
}

static void what_can_be_read_is_told_until_it_is(void **state)
{
	struct stream s = stream_open();

	add(s.set, s.server, EPOLLIN);
	nothing(s.set);
	say(s.client);
	assert_int_equal(next(s.set, s.server), EPOLLIN);
	assert_int_equal(next(s.set, s.server), EPOLLIN);
	hear(s.server);
	nothing(s.set);
	say(s.client);
	assert_int_equal(next(s.set, s.server), EPOLLIN);
	stream_close(&s);
}

/* An edge that was seen before its event came is told by that as well. */
static void calm_down(int set)
{
	struct epoll_event event;

	repoll_wait(set, &event, 1, CT_QUIET_MS);
}

static void an_edge_is_told_once(void **state)
{
	struct stream s = stream_open();

	add(s.set, s.server, EPOLLIN | EPOLLET);
	for (int i = 0; i < MANY; i++) {
		say(s.client);
		assert_int_equal(next(s.set, s.server), EPOLLIN);
	}
	calm_down(s.set);
	nothing(s.set);
	for (int i = 0; i < MANY; i++)
		hear(s.server);
	say(s.client);
	assert_int_equal(next(s.set, s.server), EPOLLIN);
	calm_down(s.set);
	nothing(s.set);
	stream_close(&s);
}

static void once_is_once_until_it_is_asked_for_again(void **state)
{
	struct stream s = stream_open();

	add(s.set, s.server, EPOLLIN | EPOLLONESHOT);
	say(s.client);
	assert_int_equal(next(s.set, s.server), EPOLLIN);
	say(s.client);
	nothing(s.set);
	ctl(s.set, EPOLL_CTL_MOD, s.server, EPOLLIN | EPOLLONESHOT, (uint64_t)s.server);
	assert_int_equal(next(s.set, s.server), EPOLLIN);
	nothing(s.set);
	stream_close(&s);
}

/* The kernel's descriptors keep the data that they came with. */
static void others_are_told_beside_them(void **state)
{
	struct stream s = stream_open();
	struct epoll_event events[MOST];
	int bell = eventfd(0, 0), ends[2];
	unsigned seen = 0;

	ct_works(pipe(ends));
	ctl(s.set, EPOLL_CTL_ADD, bell, EPOLLIN, 0);
	ctl(s.set, EPOLL_CTL_ADD, ends[0], EPOLLIN, 1);
	ctl(s.set, EPOLL_CTL_ADD, s.server, EPOLLIN, 2);
	nothing(s.set);
	ct_works(eventfd_write(bell, 1));
	assert_int_equal(repoll_wait(s.set, events, MOST, CT_WAIT_MS), 1);
	assert_int_equal(events[0].data.u64, 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	say(s.client);
	while (seen != 7) {
		int n = repoll_wait(s.set, events, MOST, CT_WAIT_MS);

		assert_true(n > 0);
		for (int i = 0; i < n; i++) {
			assert_int_equal(events[i].events, EPOLLIN);
			assert_true(events[i].data.u64 <= 2);
			seen |= 1u << events[i].data.u64;
		}
	}
	close(bell);
	close(ends[0]);
	close(ends[1]);
	stream_close(&s);
}

/* Nobody starves where there is room for one event only. */
static void each_gets_its_turn(void **state)
{
	struct stream s = stream_open();
	struct epoll_event event;
	int bell = eventfd(1, 0);
	unsigned seen = 0;

	ctl(s.set, EPOLL_CTL_ADD, bell, EPOLLIN, 0);
	ctl(s.set, EPOLL_CTL_ADD, s.server, EPOLLIN, 1);
	ctl(s.set, EPOLL_CTL_ADD, s.client, EPOLLOUT, 2);
	say(s.client);
	while (seen != 7) {
		assert_int_equal(repoll_wait(s.set, &event, 1, CT_WAIT_MS), 1);
		seen |= 1u << event.data.u64;
	}
	close(bell);
	stream_close(&s);
}

static void *later_say(void *arg)
{
	struct timespec while_ns = {.tv_nsec = CT_QUIET_MS * 1000000l};

	nanosleep(&while_ns, NULL);
	say(*(int *)arg);
	return NULL;
}

static void who_sleeps_is_woken(void **state)
{
	struct stream s = stream_open();
	pthread_t thread;

	add(s.set, s.server, EPOLLIN);
	for (int i = 0; i < 3; i++) {
		ct_works(pthread_create(&thread, NULL, later_say, &s.client));
		assert_int_equal(next(s.set, s.server), EPOLLIN);
		pthread_join(thread, NULL);
		hear(s.server);
	}
	stream_close(&s);
}

/* One that is added while another thread sleeps counts as well. */
static void *later_add(void *arg)
{
	struct timespec while_ns = {.tv_nsec = CT_QUIET_MS * 1000000l};
	const struct stream *s = arg;

	nanosleep(&while_ns, NULL);
	add(s->set, s->server, EPOLLIN);
	return NULL;
}

static void a_plain_descriptor_becomes_a_set_amid_a_sleep(void **state)
{
	struct stream s = stream_open();
	int first = s.set;
	pthread_t thread;

	s.set = repoll_create(0);
	say(s.client);
	ct_works(pthread_create(&thread, NULL, later_add, &s));
	assert_int_equal(next(s.set, s.server), EPOLLIN);
	pthread_join(thread, NULL);
	ct_works(rclose(first));
	stream_close(&s);
}

static uint64_t thread_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void who_waits_for_nothing_does_nothing(void **state)
{
	enum { WAIT_MS = 400 };
	struct stream s = stream_open();
	struct epoll_event event;
	uint64_t begin_ns;

	/* Data that nobody asked for, and a listener that is not served, among them. */
	say(s.client);
	rclose(asker_new(s.listener));
	add(s.set, s.server, EPOLLPRI);
	add(s.set, s.client, EPOLLIN);
	add(s.set, s.listener, EPOLLOUT);
	begin_ns = thread_ns();
	assert_int_equal(repoll_wait(s.set, &event, 1, WAIT_MS), 0);
	assert_true(thread_ns() - begin_ns < WAIT_MS * 1000000ull / 4);
	stream_close(&s);
}

static void the_peers_end_is_told(void **state)
{
	struct stream s = stream_open();

	add(s.set, s.server, EPOLLIN | EPOLLRDHUP);
	nothing(s.set);
	rclose(s.client);
	assert_true(next(s.set, s.server) & EPOLLRDHUP);
	s.client = -1;
	stream_close(&s);
}

static void a_refusal_is_told(void **state)
{
	int set = repoll_create(0), listener = listener_new(), fd = asker_new(listener);
	int error = 0;
	socklen_t bytes = sizeof(error);

	rclose(listener);
	add(set, fd, EPOLLOUT);
	assert_true(next(set, fd) & EPOLLERR);
	ct_works(rgetsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes));
	assert_int_equal(error, ECONNREFUSED);
	rclose(fd);
	rclose(set);
}

static void what_is_closed_is_in_no_set(void **state)
{
	struct stream s = stream_open();

	add(s.set, s.server, EPOLLIN);
	say(s.client);
	assert_int_equal(next(s.set, s.server), EPOLLIN);
	rclose(s.server);
	nothing(s.set);
	s.server = -1;
	stream_close(&s);
}

static void what_cannot_be_is_refused(void **state)
{
	struct stream s = stream_open();
	struct epoll_event event = {.events = EPOLLIN};
	int ends[2];

	ct_works(pipe(ends));
	ct_fails(repoll_ctl(s.set, EPOLL_CTL_MOD, s.server, &event), ENOENT);
	ct_fails(repoll_ctl(s.set, EPOLL_CTL_DEL, s.server, &event), ENOENT);
	ct_fails(repoll_ctl(s.set, 77, s.server, &event), EINVAL);
	ct_fails(repoll_ctl(s.set, EPOLL_CTL_ADD, s.server, NULL), EFAULT);
	add(s.set, s.server, EPOLLIN);
	ct_fails(repoll_ctl(s.set, EPOLL_CTL_ADD, s.server, &event), EEXIST);
	ct_fails(repoll_ctl(ends[0], EPOLL_CTL_ADD, s.server, &event), EINVAL);
	ct_fails(repoll_ctl(-1, EPOLL_CTL_ADD, s.server, &event), EBADF);
	ct_fails(repoll_wait(s.set, &event, 0, 0), EINVAL);
	ct_fails(repoll_wait(ends[0], &event, 1, 0), EINVAL);
	ct_fails(repoll_create(~EPOLL_CLOEXEC), EINVAL);
	close(ends[0]);
	close(ends[1]);
	stream_close(&s);
}

static void many_are_told_each(void **state)
{
	int set = repoll_create(0), listener = listener_new(), clients[MANY], servers[MANY];
	unsigned heard = 0;

	for (int i = 0; i < MANY; i++) {
		clients[i] = asker_new(listener);
		add(set, listener, EPOLLIN);
		assert_int_equal(next(set, listener), EPOLLIN);
		servers[i] = nonblocking(raccept(listener, NULL, NULL));
		ctl(set, EPOLL_CTL_DEL, listener, 0, 0);
		add(set, clients[i], EPOLLOUT);
		assert_int_equal(next(set, clients[i]), EPOLLOUT);
		ctl(set, EPOLL_CTL_DEL, clients[i], 0, 0);
	}
	for (int i = 0; i < MANY; i++) {
		add(set, servers[i], EPOLLIN);
		say(clients[i]);
	}
	while (heard < MANY) {
		struct epoll_event events[MOST];
		int n = repoll_wait(set, events, MOST, CT_WAIT_MS);

		assert_true(n > 0);
		for (int i = 0; i < n; i++, heard++)
			hear((int)events[i].data.u64);
	}
	nothing(set);
	for (int i = 0; i < MANY; i++) {
		rclose(clients[i]);
		rclose(servers[i]);
	}
	rclose(listener);
	rclose(set);
}

int main(void)
{
	const struct CMUnitTest epoll[] = {
		cmocka_unit_test(a_connection_is_told_of_at_both_ends),
		cmocka_unit_test(what_can_be_read_is_told_until_it_is),
		cmocka_unit_test(an_edge_is_told_once),
		cmocka_unit_test(once_is_once_until_it_is_asked_for_again),
		cmocka_unit_test(others_are_told_beside_them),
		cmocka_unit_test(each_gets_its_turn),
		cmocka_unit_test(who_sleeps_is_woken),
		cmocka_unit_test(a_plain_descriptor_becomes_a_set_amid_a_sleep),
		cmocka_unit_test(who_waits_for_nothing_does_nothing),
		cmocka_unit_test(the_peers_end_is_told),
		cmocka_unit_test(a_refusal_is_told),
		cmocka_unit_test(what_is_closed_is_in_no_set),
		cmocka_unit_test(what_cannot_be_is_refused),
		cmocka_unit_test(many_are_told_each),
	};

	return ct_main(epoll);
}
