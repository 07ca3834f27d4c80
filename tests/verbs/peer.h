/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_VERBS_PEER_H
#define VB_TESTS_VERBS_PEER_H

/*
 * Another process, which does as it is told: the far end of connections that are to go from one
 * process to another. It is this program once more, executed afresh; its standard input is a
 * socket on which orders come, and when that is closed it cleans up and exits.
 *
 * Peers that a test leaves behind are killed by its teardown, and die with the group at the latest.
 */

#include <sys/types.h>

#include "lib.h"

enum {
	VP_PEERS_MAX = 64,
	VP_ENDS_MAX = 4096, /* of each */
};

struct vp {
	pid_t pid;
	int fd;
};

enum vp_what {
	VP_OPEN,      /* an end as vt_end_open() has it; events: with a channel of its own */
	VP_CONNECT,   /* through all states */
	VP_RECV,      /* a receive request */
	VP_SEND,      /* any request */
	VP_POLL,      /* wait for a completion */
	VP_FILL,      /* with octets that tell where they come from */
	VP_IS_FILLED, /* rc 1: it is */
	VP_HOLE,      /* let the whole pages in a stretch of the buffer vanish */
	VP_DEADLY,    /* a handler of its own for SIGSEGV and SIGBUS, which ends the process */
	VP_STATE,     /* rc: the QP's state */
	VP_MODIFY,    /* the QP's state to count */
	VP_RIGHTS,    /* the QP's access flags to flags */
	VP_DEREG,     /* the end's region */
	VP_ADD,	      /* so many fetch-and-adds of 1, one after another; rc 0: all went well */
	VP_EVENT,     /* wait for an asynchronous event, and acknowledge it; rc: its type */
	VP_CHILD,     /* fork a process that executes `sleep`, if count, or sleeps as it is */
	VP_EXEC,      /* become `sleep`: no answer */
	VP_HIDE,      /* prctl(PR_SET_DUMPABLE, 0) */
	VP_PONG,      /* begin a thread that plays vp_pong(); there must be receives by then */
	VP_PONGED,    /* rc: the number of such threads that ended well; waits for all */
	VP_PROTECT,   /* mprotect(2) the whole pages of a stretch of the buffer: PROT_* in flags */
	VP_EXPORT,    /* the handles of the end's PD and region; vp_take_fd() follows */
	VP_CLOSE,
};

struct vp_order {
	enum vp_what what;
	uint32_t end; /* its number, from 0 in the order of VP_OPEN */
	struct vt_options opt;
	bool events;
	uint32_t qpn; /* VP_CONNECT, and of UD in VP_SEND */
	enum ibv_wr_opcode op;
	unsigned flags;
	uint64_t wr_id, addr;
	uint32_t rkey, imm_be;
	size_t offset;
	uint32_t bytes, count;
	unsigned seed;
};

struct vp_answer {
	int rc; /* VP_CONNECT, VP_SEND ...: an errno */
	uint32_t end, qpn, rkey;
	uint32_t pd_handle, mr_handle, dm_handle;
	uint64_t addr;
	pid_t pid;
	bool got; /* VP_POLL */
	struct ibv_wc wc;
};

/* What main() is, where a test has none: the tests, or with an argument a peer. */
int vp_main(int argc);

#define vp_test(f) vt_case(f, vt_setup, vp_teardown, NULL)
int vp_teardown(void **state);

/* env: "NAME=value" for the peer alone, ended by NULL; or NULL. The device is open on return. */
struct vp *vp_start(const char *const *env);

/* It cleans up, and all is well there. */
void vp_end(struct vp *peer);

/* SIGKILL; on return it is dead. */
void vp_kill(struct vp *peer);

/* SIGSTOP and SIGCONT; on return it does not move any more, or does. */
void vp_stop(struct vp *peer);
void vp_go_on(struct vp *peer);

/* A test of what goes on beside another process. */
#define vp_peer_test(f)                                                                           \
	vt_with_made(vp_test, f, struct vp, peer, vp_start(NULL), vp_end(peer))

/* What it is told is done on return. VP_EXEC: it has gone. */
struct vp_answer vp_do(struct vp *peer, const struct vp_order *order);

/* The same in two steps, for what does not end by itself: told; done. */
void vp_tell(struct vp *peer, const struct vp_order *order);
struct vp_answer vp_hear(struct vp *peer);

/* After VP_EXPORT: a copy of the descriptor of its context. */
int vp_take_fd(struct vp *peer);

/* --- connections --- */

/* `a` is here, the other end there; `b` has of that what vt_wr() needs. */
struct vp_pair {
	struct vt_options opt;
	struct vp *peer;
	struct vt_end a, b;
	uint32_t end; /* b's number there */
	struct ibv_qp far_qp;
	struct ibv_mr far_mr;
};

/*
 * Connected to each other; opt as for vt_pair_open(). srq is about b; if there is a channel here,
 * b has one of its own. In two steps: made, then a is brought where it has to be, then b.
 */
void vp_pair_open(struct vp_pair *pair, struct vp *peer, const struct vt_options *opt);
void vp_pair_make(struct vp_pair *pair, struct vp *peer, const struct vt_options *opt);
int vp_far_connect(struct vp_pair *pair); /* an errno */

/* The far end as well, if its process is alive. */
void vp_pair_close(struct vp_pair *pair);

/* The same with a process of its own, that has `env`, and is to end well if it lives by then. */
void vp_pair_begin(struct vp_pair *pair, const char *const *env, const struct vt_options *opt);
void vp_pair_end(struct vp_pair *pair);

/* A test of such a pair, *p; what follows the name are env and opt. */
#define vp_pair_test(f, ...)                                                                      \
	vt_with(vp_test, f, struct vp_pair, p, vp_pair_begin(&p, __VA_ARGS__), vp_pair_end(&p))

/* At the far end: receive, send 8 octets, the next completion, the data. */
void vp_recv(struct vp_pair *pair, uint64_t wr_id, size_t offset, uint32_t bytes);
void vp_send(struct vp_pair *pair, uint64_t wr_id, uint32_t bytes);
struct ibv_wc vp_expect(struct vp_pair *pair, uint64_t wr_id, enum ibv_wc_status status);
void vp_expect_none(struct vp_pair *pair);
void vp_fill(struct vp_pair *pair, uint32_t bytes, unsigned seed);
bool vp_is_filled(struct vp_pair *pair, size_t offset, uint32_t bytes, unsigned seed);

/* A message each way, checked at both ends. Uses wr_ids 1001 and 1002. */
void vp_exchange(struct vp_pair *pair, uint32_t bytes, unsigned seed);

/* The hub of this network namespace: its process, 0 if there is none. */
pid_t vp_hub(void);

/* --- by events; any thread --- */

/* The next completion of a CQ whose channel this is; false: an error. */
bool vp_await(struct ibv_comp_channel *channel, struct ibv_cq *cq, struct ibv_wc *wc);

/*
 * A thread's body: answers messages, one receive request being posted already, until as many as
 * count came and went. Who serves sends the first.
 */
struct vp_pong {
	struct vt_end *end;
	struct ibv_comp_channel *channel;
	uint32_t count;
	bool serves, good;
	enum ibv_wc_status status; /* the last completion's */
};
void *vp_pong(void *pong);

#endif
