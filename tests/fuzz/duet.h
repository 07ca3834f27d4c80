/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_DUET_H
#define VB_TESTS_DUET_H

/*
 * Two honest processes: one leads, the other follows, over one connection, and each looks at every
 * octet of what the other sends, writes and lets be read. Around their regions lie canaries. What
 * is not as it has to be ends the process with attack_fail().
 */

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct duet_device {
	struct ibv_context *ctx;
	union ibv_gid gid;
};

/* Canaries, what is nobody else's, canaries, what the other may write and read, canaries. */
struct duet_memory {
	uint8_t *map, *own, *open;
	size_t bytes; /* of each of the two */
	int fd;	      /* of the memfd that all of it lies in; -1: there is none */
};

struct duet_address {
	union ibv_gid gid;
	uint32_t qpn, rkey;
	uint64_t open;
};

struct duet_end {
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *own_mr, *open_mr;
	struct duet_memory memory;
	struct duet_address peer;
	uint64_t echoes, adds;
	bool sleeps; /* waits for events, and does not poll meanwhile */
};

struct duet_options {
	enum ibv_qp_type type; /* IBV_QPT_RC if 0 */
	size_t bytes;
	bool file;	  /* the memory is a memfd, which others can map */
	unsigned timeout; /* of the QP; 0 is for ever */
	bool sleeps;
};

enum { DUET_FD = 3, DUET_DEPTH = 16, DUET_ADD_BYTES = 8, DUET_PSN = 77 };

void duet_device_open(struct duet_device *device);
void duet_device_close(struct duet_device *device);

/* A QP in INIT, and what belongs to it. */
void duet_open(struct duet_end *end, struct duet_device *device,
	       const struct duet_options *options);
struct duet_address duet_address(const struct duet_end *end, const struct duet_device *device);

/* To RTS. 0 or an errno. */
int duet_connect(struct duet_end *end, const struct duet_address *peer, unsigned timeout);
void duet_close(struct duet_end *end);

/* Every octet around the regions is what it was. */
void duet_canaries(const struct duet_end *end, const char *whose);

/* One operation of the leader's, chosen by rng; it has come to its end. */
void duet_lead(struct duet_end *end, uint64_t *rng);

/* What the follower does about completions that are there. */
void duet_follow(struct duet_end *end);

/* Has to be called once, before the first duet_lead of the other. */
void duet_follow_begin(struct duet_end *end);

/*
 * A follower as a process of its own: this program executed anew with those arguments, which then
 * calls duet_follower(). fd: where the two meet, a socket, there DUET_FD; when that ends, the
 * follower does. apart: in a PID namespace of its own.
 */
pid_t duet_spawn(const char *const arguments[], bool apart, int *fd);
int duet_follower(bool sleeps);

/* Exchange addresses with a process that has been spawned and connect. */
void duet_meet(struct duet_end *end, struct duet_device *device, int fd, unsigned timeout);

/* It ends well, by itself, since the other end of fd is closed. */
void duet_part(pid_t pid, int fd);

/* Octets to and from a process that has been spawned; false: it is not there any more. */
bool duet_tell(int fd, const void *octets, size_t bytes);
bool duet_hear(int fd, void *octets, size_t bytes);

/* From now on no more than so many seconds may go by until the next call, or this is a hang. */
void duet_watch(unsigned seconds);

#endif
