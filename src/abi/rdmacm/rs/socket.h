/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_RDMACM_RS_SOCKET_H
#define VB_ABI_RDMACM_RS_SOCKET_H

/*
 * What all rsockets have, streams (stream.h) and datagrams (dgram.h), and the table of them by
 * number. A socket is used by any thread; who closes it sees to it that nobody else uses it.
 * Functions return 0 or an errno, if nothing else is said.
 */

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>

#include "run/await.h"

/* How much of everything, with the defaults of rsocket(7)'s files. */
struct vb_rs_sizes {
	uint32_t send_bytes, receive_bytes;
	uint32_t sends, receives; /* places of the QP's queues */
	uint32_t inline_bytes;
	uint32_t maps;
};

/* Options that are kept. */
struct vb_rs_options {
	bool reuse, keepalive, oob_inline, no_delay, v6_only;
	unsigned keep_idle_s; /* 0: as the system has it for TCP */
	struct linger linger;
	struct timeval receive_time, send_time; /* how long a call waits; 0: without end */
};

/* The octets of a call, wherever they lie. */
struct vb_rs_data {
	const struct iovec *iov;
	size_t at;   /* octets of the first that are done */
	size_t left; /* octets in all */
};

struct vb_rs;

/*
 * Whoever is told when another thread takes a socket's news: a sleeping rpoll(), whose descriptor
 * is signalled, or a set (repoll/repoll.h), whose function is called with the socket's lock.
 */
struct vb_rs_watch {
	LIST_ENTRY(vb_rs_watch) link;
	struct vb_rs *rs; /* NULL: it is none, or has been closed */
	int wake_fd;
	void (*wake)(struct vb_rs_watch *watch); /* NULL: wake_fd is signalled */
};

LIST_HEAD(vb_rs_watches, vb_rs_watch);

/* All of them wake up. The socket's lock is held. */
void vb_rs_watches_wake(struct vb_rs_watches *watches);

/* The socket is closed. */
void vb_rs_watches_end(struct vb_rs_watches *watches);

/* What an rsocket of a type does. */
struct vb_rs_type {
	int (*bind)(struct vb_rs *rs, const struct sockaddr *addr, socklen_t bytes);
	int (*listen)(struct vb_rs *rs, int backlog);
	int (*accept)(struct vb_rs *rs, struct vb_rs **child);
	int (*connect)(struct vb_rs *rs, const struct sockaddr *addr, socklen_t bytes);
	/* What is done is gone from data; an error counts only if nothing is. */
	int (*send)(struct vb_rs *rs, struct vb_rs_data *data, int flags,
		    const struct sockaddr *to, socklen_t to_bytes);
	int (*receive)(struct vb_rs *rs, struct vb_rs_data *data, int flags,
		       struct sockaddr_storage *from);
	int (*shutdown)(struct vb_rs *rs, int how);
	void (*close)(struct vb_rs *rs);
	int (*name)(struct vb_rs *rs, bool of_peer, struct sockaddr_storage *addr);
	/* What else an option means, before it is kept. */
	int (*option)(struct vb_rs *rs, int level, int name, const void *value, socklen_t bytes);
	/*
	 * Events now, as far as the NIC has been turned (vb_rs_drive()). arm: what comes later
	 * makes one of the descriptors readable.
	 */
	short (*look)(struct vb_rs *rs, short events, bool arm);
	void (*fds)(struct vb_rs *rs, int fds[2]);
	/* There is an event that will make one of them readable, if it has not yet. */
	bool (*has_news)(struct vb_rs *rs);
	void (*news)(struct vb_rs *rs); /* it has, or one of them was readable */
	void (*watch)(struct vb_rs *rs, struct vb_rs_watch *watch);
	void (*unwatch)(struct vb_rs *rs, struct vb_rs_watch *watch);
	/* In the child of a fork: what is the parent's neither sends nor receives here. */
	void (*orphan)(struct vb_rs *rs);
};

struct vb_rs {
	const struct vb_rs_type *type;
	int fd;	   /* its number */
	bool is_ipv6;
	int flags; /* F_SETFL */
	int error; /* SO_ERROR */
	bool has_buffers; /* their sizes are settled */
	struct vb_rs_sizes sizes;
	struct vb_rs_options options;
};

/* The defaults. */
extern struct vb_rs_sizes vb_rs_defaults;
extern unsigned vb_rs_polling_us, vb_rs_wake_up_ms;

/* Reads the files below /etc/rdma/rsocket, once. */
void vb_rs_configure(void);

/* The socket with that number is in the table. ENOMEM or EMFILE. */
int vb_rs_insert(struct vb_rs *rs);
void vb_rs_remove(struct vb_rs *rs);

/* NULL: it is none of ours. */
struct vb_rs *vb_rs_of(int fd);

/*
 * Visits all of them, while other threads may close some: those that are visited stay until the
 * end. True: each visit was. False also, without one, if another thread is taking a socket out of
 * the table; or this thread, in whose midst a handler runs.
 */
bool vb_rs_each(bool (*visit)(struct vb_rs *rs));

/*
 * Until when a call waits that begins now: 0 not at all, VB_RS_FOREVER without end. time: one of
 * the options'.
 */
#define VB_RS_FOREVER UINT64_MAX
uint64_t vb_rs_wait_end_ns(const struct vb_rs *rs, int flags, const struct timeval *time);

/* What is left of that, as poll(2) has it: more than 0 until it is over. */
int vb_rs_left_ms(uint64_t end_ns);

/* How much of n octets lies in the data's next places. */
void vb_rs_gather(void *to, struct vb_rs_data *data, size_t n);
void vb_rs_scatter(struct vb_rs_data *data, const void *from, size_t n);

uint64_t vb_rs_now_ns(void);

/* The NIC takes in what has come; looking at a socket alone does not see to that. */
void vb_rs_drive(void);

/* poll(2), and the NIC is driven meanwhile; the timeout is vb_rs_wake_up_ms at most. */
int vb_rs_sleep(struct vb_awaited *awaited);

#endif
