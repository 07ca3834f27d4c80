/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams: made, connected, used, half closed, lost. */
#include "rs.h"

#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- sockets --- */

/* rsocket: "PF_INET, PF_INET6, SOCK_STREAM, SOCK_DGRAM" */
static void there_are_two_families_and_two_types(void **state)
{
	static const int families[] = {AF_INET, AF_INET6}, types[] = {SOCK_STREAM, SOCK_DGRAM};

	for (int i = 0; i < 4; i++) {
		int fd = rsocket(families[i % 2], types[i / 2], 0);

		assert_true(fd >= 0);
		ct_works(rclose(fd));
	}
	ct_fails(rsocket(AF_UNIX, SOCK_STREAM, 0), EAFNOSUPPORT);
	ct_fails(rsocket(AF_INET, SOCK_RAW, 0), EPROTONOSUPPORT);
	ct_fails(rsocket(AF_INET, SOCK_STREAM, IPPROTO_UDP), EPROTONOSUPPORT);
	ct_fails(rsocket(AF_INET, SOCK_DGRAM, IPPROTO_TCP), EPROTONOSUPPORT);
}

/*
 * rsocket: "Rsocket functions match the name and function signature of socket calls, with the
 * exception that all function calls are prefixed with an 'r'."
 * rsocket: "Functions take the same parameters as that used for sockets."
 */
static void the_calls_have_the_types_of_those_of_sockets(void **state)
{
#define SAME(name) assert_true(__builtin_types_compatible_p(__typeof__(name), __typeof__(r##name)))
	SAME(socket);
	SAME(bind);
	SAME(listen);
	SAME(accept);
	SAME(connect);
	SAME(shutdown);
	SAME(close);
	SAME(recv);
	SAME(recvfrom);
	SAME(recvmsg);
	SAME(read);
	SAME(readv);
	SAME(send);
	SAME(sendto);
	SAME(sendmsg);
	SAME(write);
	SAME(writev);
	SAME(poll);
	SAME(select);
	SAME(getpeername);
	SAME(getsockname);
	SAME(setsockopt);
	SAME(getsockopt);
	SAME(fcntl);
}

static void what_is_no_rsocket_is_refused(void **state)
{
	struct sockaddr_storage addr;
	socklen_t bytes = sizeof(addr);
	struct sockaddr *at = (struct sockaddr *)&addr;
	struct iovec iov = {&addr, 1};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	int fds[2], value = 0;

	ct_works(pipe(fds));
	ct_fails(rbind(fds[0], rt_addr(0), rt_addr_bytes()), EBADF);
	ct_fails(rlisten(fds[0], 1), EBADF);
	ct_fails(raccept(fds[0], NULL, NULL), EBADF);
	ct_fails(rconnect(fds[0], rt_addr(1), rt_addr_bytes()), EBADF);
	ct_fails(rshutdown(fds[0], SHUT_RDWR), EBADF);
	ct_fails(rclose(fds[0]), EBADF);
	ct_fails(rrecv(fds[0], &addr, 1, 0), EBADF);
	ct_fails(rrecvfrom(fds[0], &addr, 1, 0, at, &bytes), EBADF);
	ct_fails(rrecvmsg(fds[0], &msg, 0), EBADF);
	ct_fails(rread(fds[0], &addr, 1), EBADF);
	ct_fails(rreadv(fds[0], &iov, 1), EBADF);
	ct_fails(rsend(fds[0], &addr, 1, 0), EBADF);
	ct_fails(rsendto(fds[0], &addr, 1, 0, rt_addr(1), rt_addr_bytes()), EBADF);
	ct_fails(rsendmsg(fds[0], &msg, 0), EBADF);
	ct_fails(rwrite(fds[0], &addr, 1), EBADF);
	ct_fails(rwritev(fds[0], &iov, 1), EBADF);
	ct_fails(rgetpeername(fds[0], at, &bytes), EBADF);
	ct_fails(rgetsockname(fds[0], at, &bytes), EBADF);
	ct_fails(rsetsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &value, sizeof(value)), EBADF);
	ct_fails(rgetsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &value, &bytes), EBADF);
	ct_fails(rfcntl(fds[0], F_GETFL), EBADF);
	ct_fails(riomap(fds[0], &addr, 1, PROT_NONE, 0, 0), EBADF);
	ct_fails(riounmap(fds[0], &addr, 1), EBADF);
	ct_fails((ssize_t)riowrite(fds[0], &addr, 1, 0, 0), EBADF);
	close(fds[0]);
	close(fds[1]);
	ct_fails(rclose(-1), EBADF);
}

static void what_is_not_connected_neither_sends_nor_receives(void **state)
{
	struct sockaddr_storage addr;
	socklen_t bytes = sizeof(addr);
	int fd = rt_socket(SOCK_STREAM);
	char octet = 0;

	ct_fails(rsend(fd, &octet, 1, 0), ENOTCONN);
	ct_fails(rrecv(fd, &octet, 1, 0), ENOTCONN);
	ct_fails(rshutdown(fd, SHUT_WR), ENOTCONN);
	ct_fails(rgetpeername(fd, (struct sockaddr *)&addr, &bytes), ENOTCONN);
	ct_fails(raccept(fd, NULL, NULL), EINVAL);
	ct_works(rclose(fd));
}

/* --- connecting --- */

static void nobody_listens(void **state)
{
	int there = rt_listener(), fd = rt_socket(SOCK_STREAM);
	uint16_t port = rt_port(there);

	ct_works(rclose(there));
	ct_fails(rconnect(fd, rt_addr(port), rt_addr_bytes()), ECONNREFUSED);
	ct_works(rclose(fd));
}

/* rsocket: "MSG_DONTWAIT, MSG_PEEK, O_NONBLOCK" */
static void who_does_not_wait_learns_later(void **state)
{
	int there = rt_listener(), fd = rt_socket(SOCK_STREAM), child;
	struct sockaddr *to = rt_addr(rt_port(there));

	rt_nonblocking(there, true);
	ct_fails(raccept(there, NULL, NULL), EAGAIN);
	rt_nonblocking(fd, true);
	assert_int_equal(rfcntl(fd, F_GETFL), O_NONBLOCK);
	ct_fails(rconnect(fd, to, rt_addr_bytes()), EINPROGRESS);
	ct_fails(rconnect(fd, to, rt_addr_bytes()), EALREADY);
	ct_fails(rsend(fd, "x", 1, 0), EAGAIN);
	assert_int_equal(rt_poll(there, POLLIN, CT_WAIT_MS), POLLIN);
	child = raccept(there, NULL, NULL);
	assert_true(child >= 0);
	assert_int_equal(rt_connect_end(fd), 0);
	ct_works(rconnect(fd, to, rt_addr_bytes()));
	ct_fails(rconnect(fd, to, rt_addr_bytes()), EISCONN);
	ct_works(rclose(fd));
	ct_works(rclose(child));

	/* Refused. */
	ct_works(rclose(there));
	fd = rt_socket(SOCK_STREAM);
	rt_nonblocking(fd, true);
	assert_int_equal(rconnect(fd, to, rt_addr_bytes()), -1);
	/* Within a host it may be known at once. */
	if (errno != ECONNREFUSED)
		assert_int_equal(errno, EINPROGRESS);
	assert_true(rt_poll(fd, POLLOUT, CT_WAIT_MS) & POLLERR);
	assert_int_equal(rt_option_of(fd, SOL_SOCKET, SO_ERROR), ECONNREFUSED);
	assert_int_equal(rt_option_of(fd, SOL_SOCKET, SO_ERROR), 0);
	ct_fails(rsend(fd, "x", 1, 0), ENOTCONN);
	ct_works(rclose(fd));
}

static void both_know_their_names(void **state)
{
	struct sockaddr_storage own, others, told;
	socklen_t bytes = sizeof(own), others_bytes = sizeof(others), told_bytes = sizeof(told);
	int there = rt_listener(), fd = rt_socket(SOCK_STREAM), child;

	rt_nonblocking(fd, true);
	ct_fails(rconnect(fd, rt_addr(rt_port(there)), rt_addr_bytes()), EINPROGRESS);
	child = raccept(there, (struct sockaddr *)&told, &told_bytes);
	assert_true(child >= 0);
	assert_int_equal(rt_connect_end(fd), 0);
	ct_works(rgetsockname(fd, (struct sockaddr *)&own, &bytes));
	ct_works(rgetpeername(child, (struct sockaddr *)&others, &others_bytes));
	assert_int_equal(bytes, rt_addr_bytes());
	assert_int_equal(others_bytes, rt_addr_bytes());
	assert_int_equal(told_bytes, rt_addr_bytes());
	assert_memory_equal(&own, &others, bytes);
	assert_memory_equal(&own, &told, bytes);
	ct_works(rgetpeername(fd, (struct sockaddr *)&others, &others_bytes));
	assert_memory_equal(&others, rt_addr(rt_port(there)), bytes);
	ct_works(rclose(fd));
	ct_works(rclose(child));
	ct_works(rclose(there));
}

/* --- data --- */

/* rsocket: "Rsocket APIs are intended to match the behavior of corresponding socket calls, except
 * where noted." */
static void each_call_sends_and_receives(void **state)
{
	struct rt_pair pair = rt_pair_open();
	char a[3], b[4];
	struct iovec out[] = {{"abc", 3}, {"", 0}, {"defg", 4}}, in[] = {{a, 3}, {b, 4}};
	struct msghdr said = {.msg_iov = out, .msg_iovlen = 3};
	struct msghdr heard = {.msg_iov = in, .msg_iovlen = 2};
	struct sockaddr_storage from;
	socklen_t bytes = sizeof(from);

	assert_int_equal(rsend(pair.client, "abc", 3, 0), 3);
	rt_expect(pair.server, "abc");
	assert_int_equal(rwrite(pair.server, "abcd", 4), 4);
	assert_int_equal(rread(pair.client, b, 4), 4);
	assert_memory_equal(b, "abcd", 4);
	assert_int_equal(rwritev(pair.client, out, 3), 7);
	assert_int_equal(rreadv(pair.server, in, 2), 7);
	assert_memory_equal(a, "abc", 3);
	assert_memory_equal(b, "defg", 4);
	memset(b, 0, sizeof(b));
	assert_int_equal(rsendmsg(pair.client, &said, 0), 7);
	assert_int_equal(rrecvmsg(pair.server, &heard, 0), 7);
	assert_memory_equal(b, "defg", 4);
	assert_int_equal(rsendto(pair.client, "xyz", 3, 0, NULL, 0), 3);
	assert_int_equal(rrecvfrom(pair.server, a, 3, 0, (struct sockaddr *)&from, &bytes), 3);
	assert_memory_equal(a, "xyz", 3);
	assert_int_equal(bytes, rt_addr_bytes());
	assert_int_equal(rsend(pair.client, "", 0, 0), 0);
	rt_pair_close(pair);
}

static void what_cannot_be_is_refused(void **state)
{
	struct rt_pair pair = rt_pair_open();
	char octet = 0, control[16] = {0};
	struct iovec iov = {&octet, 1}, much[] = {{&octet, PTRDIFF_MAX}, {&octet, 1}};
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = 16,
	};

	ct_fails(rsendto(pair.client, &octet, 1, 0, rt_addr(1), rt_addr_bytes()), EISCONN);
	ct_fails(rsend(pair.client, &octet, 1, MSG_OOB), EOPNOTSUPP);
	ct_fails(rrecv(pair.client, &octet, 1, MSG_OOB), EOPNOTSUPP);
	ct_fails(rsendmsg(pair.client, &msg, 0), EOPNOTSUPP);
	ct_fails(rrecvmsg(pair.client, &msg, 0), EOPNOTSUPP);
	ct_fails(rreadv(pair.client, &iov, -1), EINVAL);
	ct_fails(rwritev(pair.client, much, 2), EINVAL);
	ct_fails(rshutdown(pair.client, 17), EINVAL);
	ct_fails(rfcntl(pair.client, F_DUPFD, 0), EOPNOTSUPP);
	rt_pair_close(pair);
}

/* rsocket: "MSG_DONTWAIT, MSG_PEEK, O_NONBLOCK" */
static void one_need_not_wait_and_may_peek(void **state)
{
	struct rt_pair pair = rt_pair_open();
	char got[8];

	ct_fails(rrecv(pair.server, got, 1, MSG_DONTWAIT), EAGAIN);
	rt_nonblocking(pair.server, true);
	ct_fails(rrecv(pair.server, got, 1, 0), EAGAIN);
	ct_fails(rrecv(pair.server, got, 1, MSG_WAITALL), EAGAIN);
	rt_nonblocking(pair.server, false);
	rt_send(pair.client, "abcd", 4);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(rrecv(pair.server, got, 4, MSG_PEEK), 4);
		assert_memory_equal(got, "abcd", 4);
	}
	assert_int_equal(rrecv(pair.server, got, 3, 0), 3);
	assert_int_equal(rrecv(pair.server, got, 8, 0), 1);
	assert_int_equal(got[0], 'd');
	rt_pair_close(pair);
}

/* Nobody reads: a sender that does not wait is told so, and what it sent arrives. */
static void a_full_buffer_makes_wait(void **state)
{
	struct rt_pair pair = rt_pair_open();
	static char block[10000], got[sizeof(block)];
	size_t sent = 0;
	ssize_t n;

	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = (char)(i * 7);
	rt_nonblocking(pair.client, true);
	for (;;) {
		size_t at = sent % sizeof(block);

		n = rsend(pair.client, block + at, sizeof(block) - at, 0);
		if (n < 0)
			break;
		sent += (size_t)n;
	}
	assert_int_equal(errno, EAGAIN);
	/* Half of the buffer at least: the other half is told by a peer that has looked. */
	assert_true(sent >= 1 << 16);
	assert_int_equal(rt_poll(pair.client, POLLOUT, 0), 0);
	while (sent) {
		size_t step = sent < sizeof(block) ? sent : sizeof(block);

		rt_receive(pair.server, got, step);
		assert_memory_equal(got, block, step);
		sent -= step;
	}
	assert_int_equal(rt_poll(pair.client, POLLOUT, CT_WAIT_MS), POLLOUT);
	rt_pair_close(pair);
}

struct flow {
	int fd;
	uint32_t seed;
	size_t bytes;
	pthread_t thread;
};

static uint32_t next(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed;
}

enum { FLOW_BLOCK = 100000 };

static void *flow_send(void *arg)
{
	struct flow *flow = arg;
	uint32_t *block = malloc(FLOW_BLOCK);

	for (size_t left = flow->bytes; left; left -= FLOW_BLOCK) {
		for (size_t i = 0; i < FLOW_BLOCK / 4; i++)
			block[i] = next(&flow->seed);
		rt_send(flow->fd, block, FLOW_BLOCK);
	}
	free(block);
	return NULL;
}

static void *flow_receive(void *arg)
{
	struct flow *flow = arg;
	uint32_t *block = malloc(FLOW_BLOCK);
	size_t wrong = 0;

	for (size_t left = flow->bytes; left; left -= FLOW_BLOCK) {
		rt_receive(flow->fd, block, FLOW_BLOCK);
		for (size_t i = 0; i < FLOW_BLOCK / 4; i++)
			wrong += block[i] != next(&flow->seed);
	}
	free(block);
	assert_int_equal(wrong, 0);
	return NULL;
}

/* A thread sends and another receives, at both ends at once. CT_MB: so many, of 10^6 octets. */
static void much_goes_both_ways_at_once(void **state)
{
	const char *mb = getenv("CT_MB");
	size_t bytes = (mb ? (size_t)atol(mb) : 20) * 1000000;
	struct rt_pair pair = rt_pair_open();
	struct flow flows[] = {
		{pair.client, 1, bytes}, {pair.server, 1, bytes},
		{pair.server, 2, bytes}, {pair.client, 2, bytes},
	};

	for (int i = 0; i < 4; i++)
		ct_works(pthread_create(&flows[i].thread, NULL, i % 2 ? flow_receive : flow_send,
					&flows[i]));
	for (int i = 0; i < 4; i++)
		ct_works(pthread_join(flows[i].thread, NULL));
	rt_pair_close(pair);
}

/* --- the end --- */

static void one_way_may_end_before_the_other(void **state)
{
	struct rt_pair pair = rt_pair_open();
	char octet;

	rt_send(pair.client, "question", 8);
	ct_works(rshutdown(pair.client, SHUT_WR));
	ct_fails(rsend(pair.client, "x", 1, 0), EPIPE);
	rt_expect(pair.server, "question");
	assert_int_equal(rrecv(pair.server, &octet, 1, 0), 0);
	assert_int_equal(rt_poll(pair.server, POLLIN | POLLRDHUP, 0), POLLIN | POLLRDHUP);
	rt_send(pair.server, "answer", 6);
	rt_expect(pair.client, "answer");
	ct_works(rshutdown(pair.server, SHUT_WR));
	assert_int_equal(rrecv(pair.client, &octet, 1, 0), 0);
	rt_pair_close(pair);
}

static void what_was_sent_before_the_end_arrives(void **state)
{
	struct rt_pair pair = rt_pair_open();
	static char block[50000], got[sizeof(block)];

	memset(block, 'z', sizeof(block));
	rt_send(pair.client, block, sizeof(block));
	ct_works(rclose(pair.client));
	/* Who gives up at POLLHUP reads all of it first. */
	assert_int_equal(rt_poll(pair.server, POLLIN, CT_WAIT_MS), POLLIN);
	rt_receive(pair.server, got, sizeof(got));
	assert_memory_equal(got, block, sizeof(block));
	errno = 0;
	assert_int_equal(rrecv(pair.server, got, 1, 0), 0);
	assert_int_equal(errno, 0);
	assert_true(rt_poll(pair.server, POLLIN, 0) & POLLHUP);
	ct_fails(rsend(pair.server, "x", 1, 0), ECONNRESET);
	ct_works(rclose(pair.server));
}

static void reading_may_end_alone(void **state)
{
	struct rt_pair pair = rt_pair_open();
	char octet;

	ct_works(rshutdown(pair.server, SHUT_RD));
	assert_int_equal(rrecv(pair.server, &octet, 1, 0), 0);
	rt_send(pair.server, "still", 5);
	rt_expect(pair.client, "still");
	rt_pair_close(pair);
}

/* No signal is sent: to write to a closed one is only an error. */
static void a_broken_pipe_is_only_an_error(void **state)
{
	struct rt_pair pair = rt_pair_open();

	signal(SIGPIPE, SIG_DFL);
	ct_works(rshutdown(pair.client, SHUT_RDWR));
	ct_fails(rsend(pair.client, "x", 1, 0), ECONNRESET);
	rt_pair_close(pair);
}

/* In a process of its own, which is killed in the middle, or returns and closes nothing. */
static void client_of_its_own(int port_fd, const void *data, size_t bytes, bool returns)
{
	uint16_t port;
	int fd;

	if (read(port_fd, &port, sizeof(port)) != sizeof(port))
		_exit(1);
	fd = rsocket(rt_family(), SOCK_STREAM, 0);
	if (fd < 0 || rconnect(fd, rt_addr(port), rt_addr_bytes()) ||
	    rsend(fd, data, bytes, 0) != (ssize_t)bytes)
		_exit(2);
	if (returns)
		exit(0);
	for (;;)
		pause();
}

struct other {
	int there, child;
	pid_t pid;
};

static struct other other_begin(const void *data, size_t bytes, bool returns)
{
	struct other other;
	uint16_t port;
	int fds[2];

	ct_works(pipe(fds));
	other.pid = fork();
	if (!other.pid)
		client_of_its_own(fds[0], data, bytes, returns);
	assert_true(other.pid > 0);
	other.there = rt_listener();
	port = rt_port(other.there);
	assert_int_equal(write(fds[1], &port, sizeof(port)), sizeof(port));
	other.child = raccept(other.there, NULL, NULL);
	assert_true(other.child >= 0);
	close(fds[0]);
	close(fds[1]);
	return other;
}

static void other_end(struct other other)
{
	ct_works(rclose(other.child));
	ct_works(rclose(other.there));
}

static void a_peer_that_exits_has_said_all(void **state)
{
	static char block[70000], got[sizeof(block)];
	struct other other;

	memset(block, 'e', sizeof(block));
	other = other_begin(block, sizeof(block), true);
	rt_receive(other.child, got, sizeof(got));
	assert_memory_equal(got, block, sizeof(block));
	assert_int_equal(rrecv(other.child, got, 1, 0), 0);
	assert_int_equal(waitpid(other.pid, NULL, 0), other.pid);
	other_end(other);
}

static void a_peer_that_is_killed_has_ended(void **state)
{
	struct other other = other_begin("here", 4, false);
	char octet;

	rt_expect(other.child, "here");
	ct_works(kill(other.pid, SIGKILL));
	assert_int_equal(waitpid(other.pid, NULL, 0), other.pid);
	ct_fails(rrecv(other.child, &octet, 1, 0), ECONNRESET);
	ct_fails(rsend(other.child, "x", 1, 0), ECONNRESET);
	other_end(other);
}

/* --- a process that ends while a thread of it closes sockets --- */

enum { LEAVERS = 4, CLOSED_AT_ONCE = 64, FREED = 0x80 };

/* Tells its port, and takes whoever comes, until it is killed. */
static void peer_of_leavers(int port_fd)
{
	int listener = rt_listener();
	uint16_t port = rt_port(listener);

	if (write(port_fd, &port, sizeof(port)) != sizeof(port))
		_exit(1);
	for (;;)
		raccept(listener, NULL, NULL);
}

static void *close_on_and_on(void *arg)
{
	int fds[CLOSED_AT_ONCE];

	for (;;) {
		for (unsigned i = 0; i < CLOSED_AT_ONCE; i++)
			fds[i] = rsocket(rt_family(), SOCK_STREAM, 0);
		for (unsigned i = 0; i < CLOSED_AT_ONCE; i++)
			rclose(fds[i]);
	}
	return arg;
}

/* Both threads on one core: then either stands still anywhere while the other goes on. */
static bool share_a_core(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	return !sched_setaffinity(0, sizeof(one), &one);
}

/* Its last words are never acknowledged, since its peer is stopped: so the end takes a while. */
static void leave_amid_closing(uint16_t port, int connected_fd, int go_fd)
{
	int fd = rsocket(rt_family(), SOCK_STREAM, 0);
	pthread_t thread;
	char octet = 0;

	signal(SIGSEGV, SIG_DFL);  /* else cmocka goes on here with the next test */
	mallopt(M_PERTURB, FREED); /* what is freed is no socket any more */
	if (fd < 0 || rconnect(fd, rt_addr(port), rt_addr_bytes()) || !share_a_core() ||
	    write(connected_fd, &octet, 1) != 1 || read(go_fd, &octet, 1) != 1 ||
	    pthread_create(&thread, NULL, close_on_and_on, NULL))
		_exit(1);
	exit(0);
}

/* How many of them end with another status than 0. Their peer is stopped meanwhile. */
static unsigned leavers_fail(pid_t peer, const pid_t *leaver, int go_fd)
{
	static const char octets[LEAVERS];
	unsigned failed = 0;
	int status;

	ct_works(kill(peer, SIGSTOP));
	assert_int_equal(waitpid(peer, &status, WUNTRACED), peer);
	assert_int_equal(write(go_fd, octets, sizeof(octets)), sizeof(octets));
	for (unsigned i = 0; i < LEAVERS; i++)
		failed += waitpid(leaver[i], &status, 0) != leaver[i] || status;
	ct_works(kill(peer, SIGKILL));
	assert_int_equal(waitpid(peer, NULL, 0), peer);
	return failed;
}

/* close(2), exit(3): any thread may do either. */
static void a_process_may_end_while_it_closes(void **state)
{
	int of_peer[2], connected[2], go[2];
	pid_t peer, leaver[LEAVERS];
	uint16_t port;
	char octet;

	ct_works(pipe(of_peer));
	ct_works(pipe(connected));
	ct_works(pipe(go));
	peer = fork();
	if (!peer)
		peer_of_leavers(of_peer[1]);
	assert_int_equal(read(of_peer[0], &port, sizeof(port)), sizeof(port));
	for (unsigned i = 0; i < LEAVERS; i++) {
		leaver[i] = fork();
		if (!leaver[i])
			leave_amid_closing(port, connected[1], go[0]);
		assert_int_equal(read(connected[0], &octet, 1), 1);
	}
	assert_int_equal(leavers_fail(peer, leaver, go[1]), 0);
	for (unsigned i = 0; i < 2; i++) {
		close(of_peer[i]);
		close(connected[i]);
		close(go[i]);
	}
}

/* What is the parent's is not the child's, which may have its own. */
static void child_of_a_fork(struct rt_pair parents)
{
	struct rt_pair own;
	char octet;

	ct_fails(rsend(parents.client, "x", 1, 0), ECONNRESET);
	ct_fails(rrecv(parents.server, &octet, 1, 0), ECONNRESET);
	ct_works(rclose(parents.client));
	ct_works(rclose(parents.server));
	own = rt_pair_open();
	rt_send(own.client, "mine", 4);
	rt_expect(own.server, "mine");
	rt_pair_close(own);
	exit(0);
}

/* rsocket: "Support for fork() is limited, but available." */
static void the_child_of_a_fork_has_its_own(void **state)
{
	struct rt_pair pair = rt_pair_open();
	int status;
	pid_t pid;

	/* The child closes both, with the word that the server has not taken yet. */
	ct_readable(pair.server, CT_WAIT_MS);
	pid = fork();
	if (!pid)
		child_of_a_fork(pair);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	rt_send(pair.client, "ours", 4);
	rt_expect(pair.server, "ours");
	rt_pair_close(pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_are_two_families_and_two_types),
		cmocka_unit_test(the_calls_have_the_types_of_those_of_sockets),
		cmocka_unit_test(what_is_no_rsocket_is_refused),
		cmocka_unit_test(what_is_not_connected_neither_sends_nor_receives),
		cmocka_unit_test(nobody_listens),
		cmocka_unit_test(who_does_not_wait_learns_later),
		cmocka_unit_test(both_know_their_names),
		cmocka_unit_test(each_call_sends_and_receives),
		cmocka_unit_test(what_cannot_be_is_refused),
		cmocka_unit_test(one_need_not_wait_and_may_peek),
		cmocka_unit_test(a_full_buffer_makes_wait),
		cmocka_unit_test(much_goes_both_ways_at_once),
		cmocka_unit_test(one_way_may_end_before_the_other),
		cmocka_unit_test(what_was_sent_before_the_end_arrives),
		cmocka_unit_test(reading_may_end_alone),
		cmocka_unit_test(a_broken_pipe_is_only_an_error),
		cmocka_unit_test(a_peer_that_is_killed_has_ended),
		cmocka_unit_test(a_peer_that_exits_has_said_all),
		cmocka_unit_test(a_process_may_end_while_it_closes),
		cmocka_unit_test(the_child_of_a_fork_has_its_own),
	};

	return ct_main(tests);
}
