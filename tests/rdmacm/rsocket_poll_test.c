/* SPDX-License-Identifier: BSD-2-Clause */
/* rpoll() and rselect(). */
#include "rs.h"

#include <sys/resource.h>
#include <unistd.h>

static int poll_all(struct pollfd *fds, nfds_t count, int ms)
{
	for (nfds_t i = 0; i < count; i++)
		fds[i].revents = -1;
	return rpoll(fds, count, ms);
}

/*
 * rsocket: "For applications which must mix rsocket fd's with standard socket fd's or opened files,
 * rpoll and rselect support polling both rsockets and normal fd's."
 */
static void rsockets_and_others_are_polled_together(void **state)
{
	struct rt_pair pair = rt_pair_open();
	int fds[2];
	char octet;

	ct_works(pipe(fds));
	{
		struct pollfd polled[] = {
			{.fd = fds[0], .events = POLLIN},
			{.fd = pair.server, .events = POLLIN},
			{.fd = -1, .events = POLLIN},
			{.fd = pair.client, .events = POLLOUT},
			{.fd = 1 << 20, .events = POLLIN},
		};

		assert_int_equal(poll_all(polled, 3, 0), 0);
		assert_int_equal(poll_all(polled, 3, CT_QUIET_MS), 0);
		assert_int_equal(write(fds[1], "x", 1), 1);
		assert_int_equal(poll_all(polled, 3, -1), 1);
		assert_int_equal(polled[0].revents, POLLIN);
		assert_int_equal(read(fds[0], &octet, 1), 1);
		rt_send(pair.client, "y", 1);
		assert_int_equal(poll_all(polled, 3, -1), 1);
		assert_int_equal(polled[1].revents, POLLIN);
		assert_int_equal(write(fds[1], "x", 1), 1);
		assert_int_equal(poll_all(polled, 5, -1), 4);
		assert_int_equal(polled[2].revents, 0);
		assert_int_equal(polled[3].revents, POLLOUT);
		assert_int_equal(polled[4].revents, POLLNVAL);
	}
	close(fds[0]);
	close(fds[1]);
	rt_pair_close(pair);
}

/*
 * rsocket: "For applications which must mix rsocket fd's with standard socket fd's or opened files,
 * rpoll and rselect support polling both rsockets and normal fd's."
 */
static void rsockets_and_others_are_selected_together(void **state)
{
	struct timeval none = {0, 0}, some = {0, 20000};
	struct rt_pair pair = rt_pair_open();
	fd_set reads, writes;
	int fds[2], limit;

	ct_works(pipe(fds));
	limit = (fds[0] > pair.client ? fds[0] : pair.client) + 1;
	limit = limit > pair.server ? limit : pair.server + 1;
	FD_ZERO(&reads);
	FD_ZERO(&writes);
	FD_SET(fds[0], &reads);
	FD_SET(pair.server, &reads);
	assert_int_equal(rselect(limit, &reads, NULL, NULL, &none), 0);
	FD_SET(fds[0], &reads);
	FD_SET(pair.server, &reads);
	assert_int_equal(rselect(limit, &reads, NULL, NULL, &some), 0);
	assert_false(FD_ISSET(fds[0], &reads));
	FD_SET(fds[0], &reads);
	FD_SET(pair.server, &reads);
	FD_SET(pair.client, &writes);
	rt_send(pair.client, "x", 1);
	assert_int_equal(write(fds[1], "x", 1), 1);
	assert_int_equal(rt_poll(pair.server, POLLIN, CT_WAIT_MS), POLLIN);
	assert_int_equal(rselect(limit, &reads, &writes, NULL, NULL), 3);
	assert_true(FD_ISSET(fds[0], &reads) && FD_ISSET(pair.server, &reads));
	assert_true(FD_ISSET(pair.client, &writes));
	ct_fails(rselect(-1, &reads, NULL, NULL, &none), EINVAL);
	close(fds[0]);
	close(fds[1]);
	FD_ZERO(&reads);
	FD_SET(fds[0], &reads);
	ct_fails(rselect(limit, &reads, NULL, NULL, &none), EBADF);
	rt_pair_close(pair);
}

struct later {
	pthread_t thread;
	int fd;
	void (*what)(int fd);
};

static void *do_later(void *arg)
{
	struct later *later = arg;

	usleep(20000);
	later->what(later->fd);
	return NULL;
}

static void begin(struct later *later, int fd, void (*what)(int fd))
{
	later->fd = fd;
	later->what = what;
	ct_works(pthread_create(&later->thread, NULL, do_later, later));
}

static void say(int fd)
{
	rt_send(fd, "x", 1);
}

static void shut(int fd)
{
	ct_works(rshutdown(fd, SHUT_WR));
}

static void leave(int fd)
{
	ct_works(rclose(fd));
}

static void swallow(int fd)
{
	static char block[1 << 16];

	rt_receive(fd, block, sizeof(block));
}

static void a_sleeper_is_woken(void **state)
{
	struct rt_pair pair = rt_pair_open();
	static char block[1 << 16];
	struct later later;
	char octet;

	begin(&later, pair.client, say);
	assert_int_equal(rt_poll(pair.server, POLLIN, -1), POLLIN);
	ct_works(pthread_join(later.thread, NULL));
	rt_receive(pair.server, &octet, 1);

	/* For room: it has been read. */
	rt_nonblocking(pair.client, true);
	while (rsend(pair.client, block, sizeof(block), 0) > 0)
		;
	assert_int_equal(errno, EAGAIN);
	begin(&later, pair.server, swallow);
	assert_int_equal(rt_poll(pair.client, POLLOUT, -1), POLLOUT);
	ct_works(pthread_join(later.thread, NULL));
	rt_pair_close(pair);

	pair = rt_pair_open();
	begin(&later, pair.client, shut);
	assert_int_equal(rt_poll(pair.server, POLLIN, -1), POLLIN);
	ct_works(pthread_join(later.thread, NULL));
	assert_int_equal(rrecv(pair.server, &octet, 1, 0), 0);
	rt_pair_close(pair);

	pair = rt_pair_open();
	begin(&later, pair.client, leave);
	assert_int_equal(rt_poll(pair.server, 0, -1), POLLHUP);
	ct_works(pthread_join(later.thread, NULL));
	ct_works(rclose(pair.server));
}

static void *hear_one(void *arg)
{
	rt_expect(*(int *)arg, "x");
	return NULL;
}

/* Another thread receives what wakes both; whoever polls sees the rest. */
static void two_threads_may_wait_for_one_socket(void **state)
{
	for (int i = 0; i < 50; i++) {
		struct rt_pair pair = rt_pair_open();
		pthread_t other;

		ct_works(pthread_create(&other, NULL, hear_one, &pair.server));
		rt_send(pair.client, "x", 1);
		usleep(i * 100);
		rt_send(pair.client, "x", 1);
		assert_int_equal(rt_poll(pair.server, POLLIN, -1), POLLIN);
		ct_works(pthread_join(other, NULL));
		rt_expect(pair.server, "x");
		rt_pair_close(pair);
	}
}

/* --- many --- */

enum { MANY = 500, FDS_EACH = 6 };

struct crowd {
	int clients[MANY], servers[MANY];
	unsigned count;
};

static unsigned room(void)
{
	struct rlimit limit;

	ct_works(getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = limit.rlim_max;
	ct_works(setrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = limit.rlim_cur / FDS_EACH - 20;
	return limit.rlim_cur < MANY ? (unsigned)limit.rlim_cur : MANY;
}

/* Answers whatever asks, until each has been answered so often. */
static void *serve(void *arg)
{
	struct crowd *crowd = arg;
	struct pollfd *fds = calloc(crowd->count, sizeof(*fds));
	unsigned left = crowd->count * 3;

	for (unsigned i = 0; i < crowd->count; i++)
		fds[i] = (struct pollfd){.fd = crowd->servers[i], .events = POLLIN};
	while (left) {
		assert_true(rpoll(fds, crowd->count, -1) > 0);
		for (unsigned i = 0; i < crowd->count; i++) {
			uint32_t number;

			if (!(fds[i].revents & POLLIN))
				continue;
			rt_receive(fds[i].fd, &number, sizeof(number));
			rt_send(fds[i].fd, &number, sizeof(number));
			left--;
		}
	}
	free(fds);
	return NULL;
}

static void one_serves_many(void **state)
{
	struct crowd crowd = {.count = room()};
	int there = rt_listener();
	pthread_t server;
	uint32_t number;

	for (unsigned i = 0; i < crowd.count; i++) {
		struct rt_pair pair = rt_pair_at(there);

		crowd.clients[i] = pair.client;
		crowd.servers[i] = pair.server;
	}
	ct_works(pthread_create(&server, NULL, serve, &crowd));
	for (int round = 0; round < 3; round++) {
		for (unsigned i = 0; i < crowd.count; i++)
			rt_send(crowd.clients[i], &i, sizeof(i));
		for (unsigned i = 0; i < crowd.count; i++) {
			rt_receive(crowd.clients[i], &number, sizeof(number));
			assert_int_equal(number, i);
		}
	}
	ct_works(pthread_join(server, NULL));
	for (unsigned i = 0; i < crowd.count; i++) {
		ct_works(rclose(crowd.clients[i]));
		ct_works(rclose(crowd.servers[i]));
	}
	ct_works(rclose(there));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rsockets_and_others_are_polled_together),
		cmocka_unit_test(rsockets_and_others_are_selected_together),
		cmocka_unit_test(a_sleeper_is_woken),
		cmocka_unit_test(two_threads_may_wait_for_one_socket),
		cmocka_unit_test(one_serves_many),
	};

	return ct_main(tests);
}
