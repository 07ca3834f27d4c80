/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_INTRUDER_H
#define VB_TESTS_INTRUDER_H

/*
 * What an attacker does in his jail (jail.h) who is allowed to speak to the hub, and knows how: he
 * says what he likes. What goes wrong that should not ends him, with the line on stderr.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>

#include "hub/channel.h"
#include "hub/program.h"
#include "hub/proto.h"
#include "jail.h"

enum { INTRUDER_FD = 3 }; /* where he hears from who started him */

#define intruder_check(cond)                                                                \
	do {                                                                                \
		if (!(cond)) {                                                              \
			fprintf(stderr, "# intruder: %s:%d: %s: %s\n", __FILE__, __LINE__,  \
				#cond, strerror(errno));                                    \
			_exit(1);                                                           \
		}                                                                           \
	} while (0)

/* Of what his parent has open he has nothing but that. */
static inline void intruder_begin(int fd)
{
	intruder_check(dup2(fd, INTRUDER_FD) == INTRUDER_FD);
	intruder_check(!syscall(SYS_close_range, INTRUDER_FD + 1, ~0u, 0));
}

static inline uint64_t intruder_deadline(void)
{
	return vb_hub_now_ns() + 5000000000;
}

static inline int intruder_conn(void)
{
	int fd;

	intruder_check(!vb_hub_connect(&fd));
	return fd;
}

static inline struct vb_hub_msg intruder_answer(int conn, int fds[VB_HUB_FDS_MAX])
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_NOTED);
	unsigned n;

	intruder_check(!vb_hub_recv_by(conn, &msg, fds, &n, intruder_deadline()));
	return msg;
}

/* A slot of his own, by right. */
static inline uint32_t intruder_slot(int *name_fd)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_LEASE);
	int conn = intruder_conn(), fds[VB_HUB_FDS_MAX];

	intruder_check(!vb_hub_send(conn, &msg, NULL, 0));
	msg = intruder_answer(conn, fds);
	intruder_check(msg.type == VB_HUB_GRANT && !msg.grant.error);
	*name_fd = fds[1];
	close(conn);
	return msg.grant.slot;
}

/* A client's connection, with that offer. */
static inline int intruder_client(int token_fd, int export_fd)
{
	struct vb_hub_msg hello = vb_hub_msg_make(VB_HUB_HELLO);
	struct vb_hub_msg offer = vb_hub_msg_make(VB_HUB_OFFER);
	int conn = intruder_conn(), fds[VB_HUB_FDS_MAX] = {token_fd, export_fd};

	vb_hub_program_self(&hello.hello.program);
	offer.offer.shm = 1;
	intruder_check(!vb_hub_send(conn, &hello, NULL, 0));
	intruder_check(!vb_hub_send(conn, &offer, fds, VB_HUB_OFFER_FDS));
	intruder_check(intruder_answer(conn, fds).type == VB_HUB_WELCOME);
	return conn;
}

/* The token of whoever holds a slot: anybody may have it. */
static inline int intruder_token_of(uint32_t slot)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_WHO);
	int conn = intruder_conn(), fds[VB_HUB_FDS_MAX];

	msg.who.slot = slot;
	intruder_check(!vb_hub_send(conn, &msg, NULL, 0));
	msg = intruder_answer(conn, fds);
	intruder_check(msg.type == VB_HUB_WHOSE && !msg.whose.error);
	close(conn);
	return fds[0];
}

#endif
