/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_RDMACM_RS_H
#define VB_TESTS_RDMACM_RS_H

/* What the tests of rsockets share. Both ends are in this process, if nothing else is said. */

#include <poll.h>
#include <pthread.h>
#include <rdma/rsocket.h>

#include "lib.h"

int rt_family(void);
socklen_t rt_addr_bytes(void);
struct sockaddr *rt_addr(uint16_t port); /* ct_addr() */

/* An rsocket of the family of ct_addr(). */
int rt_socket(int type);

/* One that is bound to ct_addr(), at a port that the library chose. */
int rt_bound(int type);
int rt_listener(void);
uint16_t rt_port(int fd);

/* Two streams that are connected, and block. */
struct rt_pair {
	int server, client;
};

/* Goes on with a connect() that did not block; its outcome. */
int rt_connect_end(int client);
struct rt_pair rt_pair_at(int listener);
struct rt_pair rt_pair_open(void);
/* Options of level SOL_RDMA for both, in pairs that end with -1. */
struct rt_pair rt_pair_with(const int *options);
void rt_pair_close(struct rt_pair pair);

void rt_option(int fd, int level, int name, int value);
int rt_option_of(int fd, int level, int name);
void rt_nonblocking(int fd, bool on);

/* All of it, one way. */
void rt_send(int fd, const void *data, size_t bytes);
void rt_receive(int fd, void *data, size_t bytes);
void rt_expect(int fd, const char *words);

/* The events of one socket; waits for those that must come. */
short rt_poll(int fd, short events, int ms);

#endif
