/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams of rsockets. */
#include "rs.h"

#include <netinet/in.h>
#include <sys/wait.h>
#include <unistd.h>

static uint16_t port_of(const struct sockaddr_storage *addr)
{
	return ntohs(((const struct sockaddr_in *)addr)->sin_port);
}

static void send_to(int fd, const char *words, uint16_t port)
{
	assert_int_equal(rsendto(fd, words, strlen(words), 0, rt_addr(port), rt_addr_bytes()),
			 strlen(words));
}

/* One must come, with these words; where it is from. */
static uint16_t expect(int fd, const char *words)
{
	struct sockaddr_storage from;
	socklen_t bytes = sizeof(from);
	char got[100];

	assert_true(rt_poll(fd, POLLIN, CT_WAIT_MS) & POLLIN);
	assert_int_equal(rrecvfrom(fd, got, sizeof(got), 0, (struct sockaddr *)&from, &bytes),
			 strlen(words));
	assert_memory_equal(got, words, strlen(words));
	assert_int_equal(bytes, rt_addr_bytes());
	return port_of(&from);
}

/* The first go through the kernel, later ones from QP to QP. */
static void they_arrive_each_by_itself(void **state)
{
	int a = rt_bound(SOCK_DGRAM), b = rt_bound(SOCK_DGRAM);

	for (int i = 0; i < 20; i++) {
		send_to(a, "one", rt_port(b));
		assert_int_equal(expect(b, "one"), rt_port(a));
		send_to(b, "and another", rt_port(a));
		assert_int_equal(expect(a, "and another"), rt_port(b));
		send_to(a, "", rt_port(b));
		expect(b, "");
	}
	ct_works(rclose(a));
	ct_works(rclose(b));
}

static void each_call_takes_them(void **state)
{
	int a = rt_bound(SOCK_DGRAM), b = rt_bound(SOCK_DGRAM);
	struct sockaddr_storage from;
	char got[2][4];
	struct iovec out[] = {{"ab", 2}, {"cdef", 4}}, in[] = {{got[0], 4}, {got[1], 4}};
	struct msghdr said = {
		.msg_iov = out, .msg_iovlen = 2,
		.msg_name = rt_addr(rt_port(b)), .msg_namelen = rt_addr_bytes(),
	}, heard = {
		.msg_iov = in, .msg_iovlen = 2, .msg_name = &from, .msg_namelen = sizeof(from),
	};

	ct_fails(rrecv(b, got, 4, MSG_DONTWAIT), EAGAIN);
	assert_int_equal(rsendmsg(a, &said, 0), 6);
	assert_int_equal(rrecvmsg(b, &heard, 0), 6);
	assert_memory_equal(got, "abcdef", 6);
	assert_int_equal(port_of(&from), rt_port(a));
	send_to(a, "peeked at", rt_port(b));
	assert_int_equal(rt_poll(b, POLLIN, CT_WAIT_MS), POLLIN);
	assert_int_equal(rrecv(b, got, 6, MSG_PEEK), 6);
	/* What does not fit is lost, and what comes next is the next. */
	assert_int_equal(rrecv(b, got, 6, 0), 6);
	assert_memory_equal(got, "peeked", 6);
	ct_fails(rrecv(b, got, 4, MSG_DONTWAIT), EAGAIN);
	ct_fails(rlisten(a, 1), EOPNOTSUPP);
	ct_fails(raccept(a, NULL, NULL), EOPNOTSUPP);
	ct_works(rclose(a));
	ct_works(rclose(b));
}

static void a_connected_one_hears_its_peer_alone(void **state)
{
	int a = rt_bound(SOCK_DGRAM), b = rt_bound(SOCK_DGRAM), c = rt_bound(SOCK_DGRAM);
	struct sockaddr_storage peer;
	struct sockaddr none = {.sa_family = AF_UNSPEC};
	socklen_t bytes = sizeof(peer);

	ct_fails(rsend(a, "x", 1, 0), EDESTADDRREQ);
	ct_fails(rgetpeername(a, (struct sockaddr *)&peer, &bytes), ENOTCONN);
	ct_works(rconnect(a, rt_addr(rt_port(b)), rt_addr_bytes()));
	ct_works(rgetpeername(a, (struct sockaddr *)&peer, &bytes));
	assert_int_equal(port_of(&peer), rt_port(b));
	assert_int_equal(rsend(a, "to b", 4, 0), 4);
	expect(b, "to b");
	send_to(c, "from c", rt_port(a));
	send_to(b, "from b", rt_port(a));
	assert_int_equal(expect(a, "from b"), rt_port(b));
	ct_works(rconnect(a, &none, sizeof(none)));
	ct_fails(rsend(a, "x", 1, 0), EDESTADDRREQ);
	ct_works(rclose(a));
	ct_works(rclose(b));
	ct_works(rclose(c));
}

/* As long by each way, whatever the MTU. */
static void they_have_a_greatest_length(void **state)
{
	const size_t most = rt_family() == AF_INET ? 2032 : 2020;
	int a = rt_bound(SOCK_DGRAM), b = rt_bound(SOCK_DGRAM);
	static uint8_t out[4096], in[sizeof(out)];

	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (uint8_t)(i * 3);
	ct_works(rconnect(a, rt_addr(rt_port(b)), rt_addr_bytes()));
	ct_works(rconnect(b, rt_addr(rt_port(a)), rt_addr_bytes()));
	for (int i = 0; i < 5; i++) {
		for (size_t n = most - 20; n <= most; n++) {
			assert_int_equal(rsend(a, out, n, 0), n);
			assert_int_equal(rrecv(b, in, sizeof(in), 0), n);
			assert_memory_equal(in, out, n);
		}
		ct_fails(rsend(a, out, most + 1, 0), EMSGSIZE);
		assert_int_equal(rsend(b, "back", 4, 0), 4);
		expect(a, "back");
	}
	ct_works(rclose(a));
	ct_works(rclose(b));
}

/* A connected one learns that nobody is there, from the kernel. */
static void nobody_is_there(void **state)
{
	int a = rt_bound(SOCK_DGRAM), b = rt_bound(SOCK_DGRAM);
	uint16_t port = rt_port(b);
	char octet;

	ct_works(rclose(b));
	ct_works(rconnect(a, rt_addr(port), rt_addr_bytes()));
	assert_int_equal(rsend(a, "x", 1, 0), 1);
	assert_true(rt_poll(a, POLLIN, CT_WAIT_MS) & POLLERR);
	ct_fails(rrecv(a, &octet, 1, 0), ECONNREFUSED);
	ct_fails(rrecv(a, &octet, 1, MSG_DONTWAIT), EAGAIN);
	ct_fails(rsendto(a, "x", 1, 0, ct_addr_of("198.51.100.1", 1), sizeof(struct sockaddr_in)),
		 rt_family() == AF_INET ? ENETUNREACH : EINVAL);
	ct_works(rclose(a));
}

/* Who takes another's place is found again by whoever goes on sending. */
static void a_peer_may_come_again(void **state)
{
	int a = rt_bound(SOCK_DGRAM), b = rt_bound(SOCK_DGRAM);
	uint16_t port = rt_port(b);

	send_to(a, "hello", port);
	expect(b, "hello");
	send_to(b, "hello", rt_port(a));
	expect(a, "hello");
	ct_works(rclose(b));
	b = rt_socket(SOCK_DGRAM);
	ct_works(rbind(b, rt_addr(port), rt_addr_bytes()));
	do
		send_to(a, "again", port);
	while (!rt_poll(b, POLLIN, 50));
	expect(b, "again");
	ct_works(rclose(a));
	ct_works(rclose(b));
}

static void each_way_may_be_shut(void **state)
{
	int a = rt_bound(SOCK_DGRAM), b = rt_bound(SOCK_DGRAM);
	char octet;

	ct_fails(rshutdown(a, SHUT_RDWR), ENOTCONN);
	ct_works(rconnect(a, rt_addr(rt_port(b)), rt_addr_bytes()));
	ct_works(rshutdown(a, SHUT_WR));
	ct_fails(rsend(a, "x", 1, 0), EPIPE);
	send_to(b, "still heard", rt_port(a));
	expect(a, "still heard");
	ct_works(rshutdown(a, SHUT_RD));
	assert_int_equal(rrecv(a, &octet, 1, 0), 0);
	ct_works(rclose(a));
	ct_works(rclose(b));
}

static void options_are_those_of_udp_and_of_queues(void **state)
{
	int fd = rt_bound(SOCK_DGRAM), value = 16;

	rt_option(fd, SOL_SOCKET, SO_BROADCAST, 1);
	assert_int_equal(rt_option_of(fd, SOL_SOCKET, SO_BROADCAST), 1);
	assert_int_equal(rt_option_of(fd, SOL_SOCKET, SO_TYPE), SOCK_DGRAM);
	rt_option(fd, SOL_RDMA, RDMA_SQSIZE, 16);
	assert_int_equal(rt_option_of(fd, SOL_RDMA, RDMA_SQSIZE), 16);
	send_to(fd, "to itself", rt_port(fd));
	expect(fd, "to itself");
	ct_fails(rsetsockopt(fd, SOL_RDMA, RDMA_SQSIZE, &value, sizeof(value)), EINVAL);
	ct_works(rclose(fd));
}

static void the_child_of_a_fork_leaves_them_to_its_parent(void **state)
{
	int a = rt_bound(SOCK_DGRAM), b = rt_bound(SOCK_DGRAM), status;
	pid_t pid;

	for (int i = 0; i < 2; i++) {
		send_to(a, "hello", rt_port(b));
		pid = fork();
		if (!pid) {
			char got[8];

			assert_int_equal(rrecv(b, got, sizeof(got), 0), 0);
			ct_fails(rsendto(a, "x", 1, 0, rt_addr(rt_port(b)), rt_addr_bytes()),
				 EPIPE);
			ct_works(rclose(a));
			ct_works(rclose(b));
			exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		expect(b, "hello");
		send_to(b, "hello", rt_port(a));
		expect(a, "hello");
	}
	ct_works(rclose(a));
	ct_works(rclose(b));
}

/* Many at once: those that there is no room for are lost, the others are whole and in order. */
static void a_burst_is_taken_as_far_as_there_is_room(void **state)
{
	int a = rt_bound(SOCK_DGRAM), b = rt_bound(SOCK_DGRAM);
	uint32_t number, last = 0, got = 0;

	ct_works(rconnect(a, rt_addr(rt_port(b)), rt_addr_bytes()));
	ct_works(rconnect(b, rt_addr(rt_port(a)), rt_addr_bytes()));
	assert_int_equal(rsend(a, "hello", 5, 0), 5);
	expect(b, "hello");
	assert_int_equal(rsend(b, "hello", 5, 0), 5);
	expect(a, "hello");
	for (number = 1; number <= 2000; number++)
		assert_int_equal(rsend(a, &number, sizeof(number), 0), sizeof(number));
	while (rrecv(b, &number, sizeof(number), MSG_DONTWAIT) == sizeof(number)) {
		assert_true(number > last);
		last = number;
		got++;
	}
	assert_int_equal(errno, EAGAIN);
	assert_true(got >= 32);
	ct_works(rclose(a));
	ct_works(rclose(b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(they_arrive_each_by_itself),
		cmocka_unit_test(each_call_takes_them),
		cmocka_unit_test(a_connected_one_hears_its_peer_alone),
		cmocka_unit_test(they_have_a_greatest_length),
		cmocka_unit_test(nobody_is_there),
		cmocka_unit_test(a_peer_may_come_again),
		cmocka_unit_test(each_way_may_be_shut),
		cmocka_unit_test(options_are_those_of_udp_and_of_queues),
		cmocka_unit_test(the_child_of_a_fork_leaves_them_to_its_parent),
		cmocka_unit_test(a_burst_is_taken_as_far_as_there_is_room),
	};

	return ct_main(tests);
}
