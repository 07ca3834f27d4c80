/* SPDX-License-Identifier: BSD-2-Clause */
#include "rs.h"

#include <fcntl.h>

int rt_family(void)
{
	return strchr(ct_ip(), ':') ? AF_INET6 : AF_INET;
}

socklen_t rt_addr_bytes(void)
{
	return rt_family() == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

struct sockaddr *rt_addr(uint16_t port)
{
	return ct_addr(port);
}

int rt_socket(int type)
{
	int fd = rsocket(rt_family(), type, 0);

	assert_true(fd >= 0);
	return fd;
}

int rt_bound(int type)
{
	int fd = rt_socket(type);

	ct_works(rbind(fd, rt_addr(0), rt_addr_bytes()));
	return fd;
}

int rt_listener(void)
{
	int fd = rt_bound(SOCK_STREAM);

	ct_works(rlisten(fd, 0));
	return fd;
}

uint16_t rt_port(int fd)
{
	struct sockaddr_storage addr;
	socklen_t bytes = sizeof(addr);

	ct_works(rgetsockname(fd, (struct sockaddr *)&addr, &bytes));
	assert_int_equal(bytes, rt_addr_bytes());
	return ntohs(((struct sockaddr_in *)&addr)->sin_port);
}

int rt_connect_end(int client)
{
	assert_true(rt_poll(client, POLLOUT, CT_WAIT_MS));
	return rt_option_of(client, SOL_SOCKET, SO_ERROR);
}

static void meet(int listener, struct rt_pair *pair)
{
	rt_nonblocking(pair->client, true);
	ct_fails(rconnect(pair->client, rt_addr(rt_port(listener)), rt_addr_bytes()), EINPROGRESS);
	pair->server = raccept(listener, NULL, NULL);
	assert_true(pair->server >= 0);
	assert_int_equal(rt_connect_end(pair->client), 0);
	rt_nonblocking(pair->client, false);
}

struct rt_pair rt_pair_at(int listener)
{
	struct rt_pair pair = {.client = rt_socket(SOCK_STREAM)};

	meet(listener, &pair);
	return pair;
}

struct rt_pair rt_pair_open(void)
{
	return rt_pair_with((const int[]){-1});
}

struct rt_pair rt_pair_with(const int *options)
{
	int listener = rt_listener();
	struct rt_pair pair = {.client = rt_socket(SOCK_STREAM)};

	for (; *options >= 0; options += 2) {
		rt_option(listener, SOL_RDMA, options[0], options[1]);
		rt_option(pair.client, SOL_RDMA, options[0], options[1]);
	}
	meet(listener, &pair);
	ct_works(rclose(listener));
	return pair;
}

void rt_pair_close(struct rt_pair pair)
{
	ct_works(rclose(pair.client));
	ct_works(rclose(pair.server));
}

void rt_option(int fd, int level, int name, int value)
{
	ct_works(rsetsockopt(fd, level, name, &value, sizeof(value)));
}

int rt_option_of(int fd, int level, int name)
{
	int value = -1;
	socklen_t bytes = sizeof(value);

	ct_works(rgetsockopt(fd, level, name, &value, &bytes));
	assert_int_equal(bytes, sizeof(value));
	return value;
}

void rt_nonblocking(int fd, bool on)
{
	ct_works(rfcntl(fd, F_SETFL, on ? O_NONBLOCK : 0));
}

void rt_send(int fd, const void *data, size_t bytes)
{
	assert_int_equal(rsend(fd, data, bytes, 0), bytes);
}

void rt_receive(int fd, void *data, size_t bytes)
{
	assert_int_equal(rrecv(fd, data, bytes, MSG_WAITALL), bytes);
}

void rt_expect(int fd, const char *words)
{
	char got[256];

	assert_true(strlen(words) < sizeof(got));
	rt_receive(fd, got, strlen(words));
	assert_memory_equal(got, words, strlen(words));
}

short rt_poll(int fd, short events, int ms)
{
	struct pollfd poll_fd = {.fd = fd, .events = events};
	int n = rpoll(&poll_fd, 1, ms);

	assert_true(n >= 0);
	assert_int_equal(n, poll_fd.revents != 0);
	return poll_fd.revents;
}
