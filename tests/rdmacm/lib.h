/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_RDMACM_LIB_H
#define VB_TESTS_RDMACM_LIB_H

/*
 * What the tests of rdma_cm share. They are programs like anybody's: they know <rdma/rdma_cma.h>
 * and link librdmacm and libibverbs, nothing else of this project. Each runs in a network namespace
 * of its own, with nothing but `lo` in it, which has another address than loopback's as well;
 * server and client are ids of one process.
 */

#define CT_OTHER_IP "192.0.2.17"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	CT_WAIT_MS = 20000, /* for what must come: long, because a sanitizer's run is slow */
	CT_QUIET_MS = 60,   /* for what must not come */
	CT_RESOLVE_MS = 2000,
};

/*
 * Runs the group in a namespace of its own; where there can be none, skips each test. CT_TEST in
 * the environment names those that are to run, with * and ? as wildcards. CT_IPV6: by ::1.
 */
#define ct_main(tests) ct_run(#tests, tests, sizeof(tests) / sizeof((tests)[0]))
int ct_run(const char *name, const struct CMUnitTest *tests, size_t count);

/* The call fails with this errno. */
#define ct_fails(call, err)                                                                       \
	do {                                                                                      \
		errno = 0;                                                                        \
		assert_int_equal(call, -1);                                                       \
		assert_int_equal(errno, err);                                                     \
	} while (0)
#define ct_works(call) assert_int_equal(call, 0)

/* Runs `verbatim ARGS` of the build that this test belongs to; what it prints goes to said. */
void ct_verbatim(const char *args, char *said, size_t bytes);

/* A socket that gets all packets of the loopback interface, with their IP headers; -1: none. */
int ct_ear(void);

/* --- addresses --- */

/* 127.0.0.1, or ::1; valid until the next call but three. */
struct sockaddr *ct_addr(uint16_t port);
struct sockaddr *ct_any(uint16_t port);
struct sockaddr *ct_addr_of(const char *ip, uint16_t port);
const char *ct_ip(void);
uint16_t ct_src_port(struct rdma_cm_id *id);

/* --- events --- */

struct rdma_event_channel *ct_channel(void);

/* The next event, which must come and be this one. The caller acknowledges. */
struct rdma_cm_event *ct_event(struct rdma_event_channel *channel, enum rdma_cm_event_type type);

/* The same, acknowledged; its status. */
int ct_pass(struct rdma_event_channel *channel, enum rdma_cm_event_type type);
void ct_no_event(struct rdma_event_channel *channel);
bool ct_readable(int fd, int ms);

/* --- ids --- */

struct rdma_cm_id *ct_id(struct rdma_event_channel *channel, enum rdma_port_space ps);

/* One that listens at ct_addr(), at a port that the library chose. */
struct rdma_cm_id *ct_listener(struct rdma_event_channel *channel, enum rdma_port_space ps);

/* One that has resolved address and route to there. */
struct rdma_cm_id *ct_client(struct rdma_event_channel *channel, enum rdma_port_space ps,
			     uint16_t port);

/* A QP as the port space has it, with CQs of the id's own. */
void ct_qp(struct rdma_cm_id *id);
enum ibv_qp_state ct_qp_state(struct rdma_cm_id *id);
struct ibv_qp_init_attr ct_qp_attr(void);

/* --- connections --- */

/* Both ends in this process, each with a channel of its own and a QP. */
struct ct_pair {
	struct rdma_event_channel *at_server, *at_client;
	struct rdma_cm_id *listener, *server, *client;
};

/* Up to the request, whose event is the server's to acknowledge; NULL: as the library has it. */
struct rdma_cm_event *ct_pair_ask(struct ct_pair *pair, enum rdma_port_space ps,
				  struct rdma_conn_param *param);

/* From there to ESTABLISHED on both sides, of RC. */
void ct_pair_accept(struct ct_pair *pair, struct rdma_conn_param *param);
void ct_pair_open(struct ct_pair *pair);
void ct_pair_part(struct ct_pair *pair);
void ct_pair_close(struct ct_pair *pair);

/* A message from one end arrives at the other. */
void ct_exchange(struct rdma_cm_id *from, struct rdma_cm_id *to);

#endif
