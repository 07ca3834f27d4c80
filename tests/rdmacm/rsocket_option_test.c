/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of rsockets. */
#include "rs.h"

#include <infiniband/sa.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

static void flag(int fd, int level, int name)
{
	for (int value = 1; value >= 0; value--) {
		rt_option(fd, level, name, value);
		assert_int_equal(rt_option_of(fd, level, name), value);
	}
}

/*
 * rsocket: "SOL_SOCKET - SO_ERROR, SO_KEEPALIVE (flag supported, but ignored), SO_LINGER,
 * SO_OOBINLINE, SO_RCVBUF, SO_REUSEADDR, SO_SNDBUF"
 */
static void those_of_all_sockets_are_kept(void **state)
{
	int fd = rt_socket(SOCK_STREAM);
	struct timeval time = {3, 500000};
	struct linger linger = {0};
	socklen_t bytes = sizeof(linger);

	assert_int_equal(rt_option_of(fd, SOL_SOCKET, SO_ERROR), 0);
	flag(fd, SOL_SOCKET, SO_KEEPALIVE);
	flag(fd, SOL_SOCKET, SO_OOBINLINE);
	flag(fd, SOL_SOCKET, SO_REUSEADDR);
	rt_option(fd, SOL_SOCKET, SO_RCVBUF, 50000);
	assert_int_equal(rt_option_of(fd, SOL_SOCKET, SO_RCVBUF), 100000);
	rt_option(fd, SOL_SOCKET, SO_SNDBUF, 60000);
	assert_int_equal(rt_option_of(fd, SOL_SOCKET, SO_SNDBUF), 120000);
	ct_works(rgetsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &bytes));
	assert_int_equal(bytes, sizeof(linger));
	assert_int_equal(linger.l_onoff, 0);
	linger = (struct linger){1, 5};
	ct_works(rsetsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	linger = (struct linger){0};
	ct_works(rgetsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &bytes));
	assert_int_equal(linger.l_onoff, 1);
	assert_int_equal(linger.l_linger, 5);
	ct_works(rsetsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)));
	time = (struct timeval){0};
	bytes = sizeof(time);
	ct_works(rgetsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, &bytes));
	assert_int_equal(bytes, sizeof(time));
	assert_int_equal(time.tv_sec, 3);
	assert_int_equal(time.tv_usec, 500000);
	ct_works(rclose(fd));
}

/* rsocket: "IPPROTO_TCP - TCP_NODELAY, TCP_MAXSEG" */
static void those_of_tcp_are_kept(void **state)
{
	struct rt_pair pair = rt_pair_open();

	flag(pair.client, IPPROTO_TCP, TCP_NODELAY);
	assert_true(rt_option_of(pair.client, IPPROTO_TCP, TCP_MAXSEG) >= 256);
	rt_option(pair.client, IPPROTO_TCP, TCP_MAXSEG, 512);
	rt_option(pair.client, IPPROTO_TCP, TCP_KEEPIDLE, 33);
	assert_int_equal(rt_option_of(pair.client, IPPROTO_TCP, TCP_KEEPIDLE), 33);
	rt_option(pair.client, IPPROTO_TCP, TCP_KEEPINTVL, 3);
	rt_option(pair.client, IPPROTO_TCP, TCP_KEEPCNT, 3);
	rt_pair_close(pair);
}

/* rsocket: "IPPROTO_IPV6 - IPV6_V6ONLY" */
static void ipv6_alone_leaves_ipv4_to_others(void **state)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6};
	int six = rsocket(AF_INET6, SOCK_STREAM, 0), four = rsocket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in any4 = {.sin_family = AF_INET};
	socklen_t bytes = sizeof(any);

	assert_true(six >= 0 && four >= 0);
	flag(six, IPPROTO_IPV6, IPV6_V6ONLY);
	rt_option(six, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	ct_works(rbind(six, (struct sockaddr *)&any, sizeof(any)));
	ct_works(rlisten(six, 1));
	ct_works(rgetsockname(six, (struct sockaddr *)&any, &bytes));
	any4.sin_port = any.sin6_port;
	ct_works(rbind(four, (struct sockaddr *)&any4, sizeof(any4)));
	ct_works(rlisten(four, 1));
	ct_works(rclose(six));
	ct_works(rclose(four));
}

static void what_there_is_not_is_refused(void **state)
{
	int fd = rt_socket(SOCK_STREAM), value = 1;
	socklen_t bytes = sizeof(value);
	struct linger linger = {0};

	ct_fails(rsetsockopt(fd, SOL_SOCKET, SO_BROADCAST, &value, sizeof(value)), ENOPROTOOPT);
	ct_fails(rgetsockopt(fd, SOL_SOCKET, SO_BROADCAST, &value, &bytes), ENOPROTOOPT);
	ct_fails(rsetsockopt(fd, SOL_RDMA, 99, &value, sizeof(value)), ENOPROTOOPT);
	ct_fails(rgetsockopt(fd, SOL_RDMA, 99, &value, &bytes), ENOPROTOOPT);
	ct_fails(rsetsockopt(fd, 4711, 1, &value, sizeof(value)), ENOPROTOOPT);
	ct_fails(rsetsockopt(fd, SOL_SOCKET, SO_SNDBUF, &value, 1), EINVAL);
	ct_fails(rsetsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(int)), EINVAL);
	ct_fails(rsetsockopt(fd, SOL_SOCKET, SO_SNDBUF, NULL, sizeof(int)), EFAULT);
	ct_fails(rgetsockopt(fd, SOL_SOCKET, SO_SNDBUF, NULL, &bytes), EFAULT);
	ct_fails(rgetsockopt(fd, SOL_SOCKET, SO_SNDBUF, &value, NULL), EFAULT);
	value = 0;
	ct_fails(rsetsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &value, sizeof(value)), EINVAL);
	ct_works(rclose(fd));
}

/*
 * rsocket: "RDMA_SQSIZE - Integer size of the underlying send queue."
 * rsocket: "RDMA_RQSIZE - Integer size of the underlying receive queue."
 * rsocket: "RDMA_INLINE - Integer size of inline data."
 * rsocket: "RDMA_IOMAPSIZE - Integer number of remote IO mappings supported"
 * rsocket: "In addition to standard socket options, rsockets supports options specific to RDMA
 * devices and protocols."
 * rsocket: "These options are accessible through rsetsockopt using SOL_RDMA option level."
 * rsocket: "Applications can override default values programmatically through the rsetsockopt
 * routine."
 * rsocket: "If configuration files are not available, rsockets uses internal defaults."
 */
static void sizes_are_set_until_there_are_queues(void **state)
{
	static const int names[] = {RDMA_SQSIZE, RDMA_RQSIZE, RDMA_INLINE, RDMA_IOMAPSIZE};
	static const int defaults[] = {384, 384, 64, 0};
	int there = rt_listener(), fd = rt_socket(SOCK_STREAM), value = 20;
	struct rt_pair pair;

	for (int i = 0; i < 4; i++) {
		assert_int_equal(rt_option_of(fd, SOL_RDMA, names[i]), defaults[i]);
		rt_option(fd, SOL_RDMA, names[i], 32);
		assert_int_equal(rt_option_of(fd, SOL_RDMA, names[i]), 32);
		rt_option(there, SOL_RDMA, names[i], 48);
	}
	rt_option(fd, SOL_RDMA, RDMA_IOMAPSIZE, 300);
	assert_int_equal(rt_option_of(fd, SOL_RDMA, RDMA_IOMAPSIZE), 256);
	rt_option(fd, SOL_RDMA, RDMA_SQSIZE, 1000000);
	assert_int_equal(rt_option_of(fd, SOL_RDMA, RDMA_SQSIZE), 0xfffe);
	ct_works(rclose(fd));
	pair = rt_pair_at(there);
	/* The listener's are its children's. */
	for (int i = 0; i < 4; i++) {
		assert_true(rt_option_of(pair.server, SOL_RDMA, names[i]) >= 48);
		ct_fails(rsetsockopt(pair.server, SOL_RDMA, names[i], &value, sizeof(value)),
			 EINVAL);
	}
	rt_pair_close(pair);
	ct_works(rclose(there));
}

/* Queues and buffers as small and odd as they come: the data does not notice. */
static void the_smallest_sizes_suffice(void **state)
{
	static char block[30000], got[sizeof(block)];
	struct rt_pair pair = rt_pair_with((const int[]){RDMA_SQSIZE, 1, RDMA_RQSIZE, 1,
							 RDMA_INLINE, 0, -1});

	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = (char)(i * 13);
	for (int round = 0; round < 5; round++) {
		for (size_t at = 0; at < sizeof(block); at += 3000) {
			rt_send(pair.client, block + at, 3000);
			rt_receive(pair.server, got + at, 3000);
		}
		assert_memory_equal(got, block, sizeof(block));
	}
	rt_pair_close(pair);
}

/* rsocket: "RDMA_ROUTE - struct ibv_path_data of path record for connection." */
static void a_route_may_be_taken_from_one_and_given_to_another(void **state)
{
	struct ibv_path_data path, again;
	socklen_t bytes = sizeof(path);
	int there = rt_listener();
	struct rt_pair pair = rt_pair_at(there), second = {.client = rt_socket(SOCK_STREAM)};

	ct_works(rgetsockopt(pair.client, SOL_RDMA, RDMA_ROUTE, &path, &bytes));
	assert_int_equal(bytes, sizeof(path));
	assert_true(path.path.mtu & 0x3f);
	path.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
	ct_works(rsetsockopt(second.client, SOL_RDMA, RDMA_ROUTE, &path, sizeof(path)));
	bytes = 1;
	ct_fails(rgetsockopt(second.client, SOL_RDMA, RDMA_ROUTE, &again, &bytes), EINVAL);
	bytes = sizeof(again);
	ct_works(rgetsockopt(second.client, SOL_RDMA, RDMA_ROUTE, &again, &bytes));
	assert_memory_equal(&again, &path, sizeof(path));
	rt_nonblocking(second.client, true);
	ct_fails(rconnect(second.client, rt_addr(rt_port(there)), rt_addr_bytes()), EINPROGRESS);
	second.server = raccept(there, NULL, NULL);
	assert_true(second.server >= 0);
	assert_int_equal(rt_connect_end(second.client), 0);
	rt_send(second.client, "by that way", 11);
	rt_expect(second.server, "by that way");
	rt_pair_close(second);
	rt_pair_close(pair);
	ct_works(rclose(there));
}

/* A second of silence, and the peer is asked; it answers without its program. */
static void keepalive_keeps_it_alive(void **state)
{
	struct rt_pair pair = rt_pair_open();

	rt_option(pair.client, IPPROTO_TCP, TCP_KEEPIDLE, 1);
	rt_option(pair.client, SOL_SOCKET, SO_KEEPALIVE, 1);
	assert_int_equal(rt_poll(pair.client, POLLIN, 2500), 0);
	rt_send(pair.server, "awake", 5);
	rt_expect(pair.client, "awake");
	rt_pair_close(pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(those_of_all_sockets_are_kept),
		cmocka_unit_test(those_of_tcp_are_kept),
		cmocka_unit_test(ipv6_alone_leaves_ipv4_to_others),
		cmocka_unit_test(what_there_is_not_is_refused),
		cmocka_unit_test(sizes_are_set_until_there_are_queues),
		cmocka_unit_test(the_smallest_sizes_suffice),
		cmocka_unit_test(a_route_may_be_taken_from_one_and_given_to_another),
		cmocka_unit_test(keepalive_keeps_it_alive),
	};

	return ct_main(tests);
}
