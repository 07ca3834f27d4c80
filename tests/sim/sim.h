/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_SIM_SIM_H
#define VB_SIM_SIM_H

/*
 * One run of the simulator: NICs, a fabric between them, applications that use them, and what we
 * know must come of it. Everything follows from one seed; nothing here knows real time.
 *
 *   world.c     NICs and their objects, made and unmade
 *   process.c   what a process is beside its NIC: a thread, rings to others, an end
 *   workload.c  what the applications do: post, poll, drain
 *   oracle.c    what must come of it: completions, data, order, memory
 *   window.c    memory windows: bound, used, taken back
 *   change.c    what they change of their QPs meanwhile: attributes, states, paths
 *   trouble.c   runs in which something is meant to fail
 *   run.c       a run from its seed: first with faults, then without, until all is done
 *   main.c      many runs
 *   arguments.c the seeds on the command line
 *
 * Memory: every node has one arena, cut into areas with gaps between. Beside it stands an image of
 * what the arena must hold. Completions move the image on, and in the end both must be equal, to
 * the last octet.
 */

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/prng.h"
#include "fabric.h"
#include "nic/control/qp.h"
#include "nic/control/qp_modify.h"
#include "nic/control/srq.h"
#include "nic/core/ah.h"
#include "nic/data/post.h"
#include "nic/data/window.h"
#include "nic/mem/mem.h"
#include "nic/queue/cq.h"
#include "nic/queue/srq.h"
#include "process.h"

enum {
	NODES_MAX = FABRIC_NICS_MAX,
	ENDS_MAX = 16,
	PAIRS_MAX = 6,
	CQS_MAX = 3,   /* of a node */
	SGES_MAX = 6,  /* that we use */
	OPS_MAX = 96,  /* of an end */
	DEPTH_MAX = 32, /* of a receive queue */
	WORDS = 2,     /* counters, and swapped words, that all ends share */
	WINDOWS_MAX = 3, /* of an end */
	ARENA_BYTES = 24 << 20,
	MESSAGE_MAX = 320 << 10,
};

struct sim;
struct node;

/* A stretch of a node's arena, with its region. */
struct area {
	uint32_t at, bytes;
	struct vb_mr *mr;
	struct vb_mkey *mkey; /* to the same octets; or NULL */
};

struct sim_cq {
	struct node *node;
	struct vb_cq *cq;
	struct vb_channel *channel; /* or NULL: polled */
	int fd;
	uint32_t users; /* completions that may wait in it */
};

/* A posted receive buffer: where its pieces are. */
struct buffer {
	bool posted;
	uint32_t bytes;
	int num_sge;
	struct ibv_sge sge[SGES_MAX];
};

struct sim_rq {
	struct node *node;
	struct vb_srq *srq; /* NULL: one end's own queue */
	struct end *end;
	struct area area;
	uint32_t depth, slot_bytes, need_bytes; /* need: of the longest message */
	struct buffer buffer[DEPTH_MAX];
	uint32_t posted;		 /* not yet completed */
	uint32_t fifo[DEPTH_MAX], head, tail; /* own queue: in the order of posting */
	bool closed;			 /* post no more */
};

struct node {
	struct sim *sim;
	unsigned index;
	struct vb_nic *nic;
	struct vb_host_order order; /* if the NIC has another one */
	struct vb_ctx *ctx;
	struct vb_pd *pd, *other_pd;
	uint8_t *mem, *image;
	uint32_t used;
	struct area shared; /* words for everybody's atomics */
	struct area foreign; /* registered in other_pd */
	struct area private; /* local access only */
	unsigned cq_count;
	struct sim_cq cq[CQS_MAX];
	struct sim_rq srq;
	int signals[1 + CQS_MAX]; /* by event fd; 0: asynchronous */

	/* As a process. */
	uint16_t slot;
	struct node *heir_of; /* who had its slot before */
	bool threaded, asleep;
	bool rude; /* its application looks at nothing when it has posted */
	bool dead;
	uint64_t thread_ns; /* when its thread does something next by itself */
	uint64_t news_ns;   /* when it hears of a death; 0: of none */
	uint32_t rings_due; /* bits: the nodes whose rings have come and were not looked at */
};

enum window_state {
	WINDOW_FREE,
	WINDOW_BINDING, /* posted, and nobody knows yet that it is done */
	WINDOW_BOUND,
	WINDOW_LEAVING, /* whoever takes it back has posted that */
};

struct window {
	struct vb_mw *mw; /* NULL: there is none */
	enum window_state state;
	uint32_t key; /* of the last binding */
	uint32_t at, bytes;
	unsigned access;
	bool zero_based;
	unsigned bind_op;  /* number of the work request that binds it */
	unsigned last_use; /* how many work requests of the peer's must be done for it to be idle */
};

enum shared_kind { SHARED_NOT, SHARED_ADD, SHARED_SWAP };

/* A work request, and what became of it. */
struct op {
	enum ibv_wr_opcode opcode;
	unsigned flags;
	uint32_t bytes;
	int num_sge;
	struct ibv_sge sge[SGES_MAX];
	uint8_t *inlined; /* what was sent, if it was inline */
	uint32_t remote;  /* offset in the peer's arena */
	uint32_t rkey;
	uint64_t va;
	uint64_t compare, operand, fetched;
	uint32_t imm_be;
	uint32_t landing_end;
	enum shared_kind shared;
	unsigned shared_node, shared_word;
	struct end *dest; /* UD */
	struct vb_ah *ah;
	struct window *window; /* that it binds or invalidates */
	struct {
		struct vb_mw *mw;
		struct ibv_mw_bind_info info;
	} bad_bind;
	bool bad;	  /* meant to fail: touches nothing */
	bool stumbles;	  /* its local key is none: UC and UD stop sending there */
	bool flushed;	  /* it came behind one that did */
	enum ibv_wc_status status;
};

/* A QP and the application behind it. */
struct end {
	struct sim *sim;
	struct node *node;
	unsigned index;
	enum ibv_qp_type type;
	struct end *peer;
	struct vb_qp *qp;
	struct sim_cq *scq, *rcq;
	struct sim_rq own_rq, *rq;
	struct ibv_qp_init_attr init;
	unsigned gid;
	enum ibv_mtu mtu_code;
	uint32_t mtu;
	uint32_t unit; /* of its messages' sizes: the MTU of its way, mostly */
	uint64_t ready_ns; /* when it goes to RTR and RTS; 0: it is there */
	bool unborn;
	uint32_t sq_psn;
	unsigned access; /* what the QP lets others do */
	struct ibv_qp_attr rts; /* timeout, retries, rnr, rd_atomic as chosen */

	/* As a requester. */
	struct area source, landing;
	uint32_t landing_head, landing_tail; /* count on */
	uint32_t message_max;
	unsigned weights[7];
	unsigned wanted; /* work requests, in the end */
	struct op op[OPS_MAX];
	unsigned ops, done;	 /* posted, known to be done */
	unsigned released;	 /* send queue places we know to be free again */
	unsigned unsignaled;	 /* since one with a completion */
	bool sqd, drained;
	unsigned sqd_ops; /* posted when it began to drain: no others may be done meanwhile */
	uint32_t drained_psn; /* nothing beyond it was sent when the queue had drained */
	uint64_t posted_ns; /* when something was last posted */

	/* What its application changes (change.c). */
	bool sqe; /* it has seen that one failed, and not yet gone on */
	unsigned sqe_at;	/* which */
	uint8_t reads_most;	/* that it may ever have had on their way */
	unsigned migrations;	/* of which it was told */
	unsigned path_changes;	/* that it has begun */

	/* As a responder: what the peer's requests change. */
	struct area target;
	struct window window[WINDOWS_MAX];
	unsigned recv_next; /* the peer's work request that may complete a receive next */

	/* When something is meant to go wrong. */
	bool trouble;	   /* this end or its peer */
	uint32_t allowed;  /* bits: wc statuses that may end the sending */
	uint32_t allowed_recv;
	bool broken;	   /* an error completion came */
	enum ibv_wc_status status; /* the first */
	bool recv_broken;
	enum ibv_wc_status recv_status;
	unsigned broken_at; /* the work request that it came for */
	bool gone;	   /* destroyed or reset: nothing more may come */
	uint8_t *frozen;   /* target and landing, as they were when the QP stopped */
};

enum trouble_kind {
	TROUBLE_NONE,
	TROUBLE_RKEY,	  /* a key that is none */
	TROUBLE_BOUNDS,	  /* reaches beyond the region */
	TROUBLE_RIGHTS,	  /* a region without remote access */
	TROUBLE_PD,	  /* a region of another PD */
	TROUBLE_QP_ACCESS, /* the QP forbids it */
	TROUBLE_MISALIGNED, /* an atomic at an odd address */
	TROUBLE_LKEY,	  /* a local key that is none */
	TROUBLE_OVERSIZE, /* beyond 2 GiB */
	TROUBLE_WINDOW,	  /* a window that is not bound, or not for this */
	TROUBLE_INVALIDATE, /* ... that is not the receiver's to lose */
	TROUBLE_LOCAL,	  /* ... that cannot be bound or invalidated so */
	TROUBLE_RECV_SHORT, /* a message longer than the receive buffer */
	TROUBLE_RECV_LKEY, /* a receive buffer with a key that is none */
	TROUBLE_RNR,	  /* no receive buffer, and a finite rnr_retry */
	TROUBLE_DEAD_PEER,
	TROUBLE_TO_ERR,
	TROUBLE_RESET,
	TROUBLE_DESTROY,
	TROUBLE_DEATH, /* a process ends, and perhaps another one gets its slot */
	TROUBLE_KINDS
};

struct sim {
	uint64_t seed, rng;
	bool trace;
	jmp_buf failed;
	char why[400];
	struct fabric fabric;
	unsigned nodes, ends;
	struct node node[NODES_MAX];
	struct end end[ENDS_MAX];
	bool calm;  /* no faults, and everybody does what he can */
	uint64_t start_ns;
	unsigned slots_leased;

	bool faulty; /* the fabric was, before it was calm */
	bool one_host; /* all nodes have all addresses */
	uint32_t bells_lost; /* of a million */
	bool windows; /* there are some, and ATOMIC_WRITEs */
	uint64_t window_rng;
	struct link link[NODES_MAX][NODES_MAX];
	struct node *heir; /* of the process that will die */
	uint64_t birth_ns; /* of its QPs, 0: not yet known */

	struct end *cut; /* whose path was cut */
	unsigned migrations, stumbles, changes; /* so that one sees that there were any */

	enum trouble_kind trouble;
	unsigned trouble_opcodes;
	struct end *victim; /* whose work request fails, or who is ended */
	unsigned trouble_at; /* its work request with this number */
	bool trouble_done;
	uint64_t trouble_ns;
	uint64_t broken_ns;  /* when the victim's first error completion was polled */
};

/* --- chance --- */
static inline uint64_t sim_random(struct sim *sim)
{
	return vb_prng_next(&sim->rng);
}

static inline uint32_t sim_below(struct sim *sim, uint32_t n)
{
	return (uint32_t)(sim_random(sim) % n);
}

static inline uint32_t sim_range(struct sim *sim, uint32_t low, uint32_t high)
{
	return low + sim_below(sim, high - low + 1);
}

static inline bool sim_chance(struct sim *sim, unsigned percent)
{
	return sim_below(sim, 100) < percent;
}

/* The run failed: says why, and goes back to whoever started it. */
void sim_fail(struct sim *sim, const char *format, ...)
	__attribute__((noreturn, format(printf, 2, 3)));
void sim_trace(struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define sim_require(sim, cond)                                                                    \
	do {                                                                                      \
		if (!(cond))                                                                      \
			sim_fail(sim, "%s:%d: not so: %s", __FILE__, __LINE__, #cond);            \
	} while (0)

/* --- world.c --- */
void world_make(struct sim *sim);
void world_unmake(struct sim *sim);
struct area world_area(struct node *node, uint32_t bytes);
void world_register(struct node *node, struct area *area, struct vb_pd *pd, unsigned access);
int world_modify(struct end *end, enum ibv_qp_state to);
void world_tick(struct sim *sim);
void world_birth(struct sim *sim);

static inline uint64_t node_addr(const struct node *node, uint32_t at)
{
	return (uintptr_t)(node->mem + at);
}

/* --- mkey.c --- */

/* An area was registered: give it an indirect key as well, in some runs. */
void mkey_make(struct node *node, struct area *area, struct vb_pd *pd);

/* Perhaps have this be by the area's indirect key, if it is by its region's. */
void mkey_aim(const struct node *node, const struct area *area, uint64_t number, uint32_t *key,
	      uint64_t *addr, uint64_t bytes);

/* --- workload.c --- */
void workload_tick(struct sim *sim);
bool workload_finished(const struct sim *sim);
void workload_post(struct end *end, unsigned count);
void workload_recv(struct sim_rq *rq, uint32_t count);
void workload_poll(struct sim_cq *cq, int count);

/* Polls what is there, as a thread on another processor does while the NIC is at work. */
void workload_look(struct node *node);
void workload_events(struct node *node);

/* May it post sends? */
static inline bool end_is_ready(const struct end *end)
{
	return !end->unborn && !end->ready_ns && !end->gone;
}

static inline bool op_takes_recv(const struct op *op)
{
	return op->opcode == IBV_WR_SEND || op->opcode == IBV_WR_SEND_WITH_IMM ||
	       op->opcode == IBV_WR_SEND_WITH_INV || op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static inline bool op_is_write(const struct op *op)
{
	return op->opcode == IBV_WR_RDMA_WRITE || op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ||
	       op->opcode == IBV_WR_ATOMIC_WRITE;
}

static inline bool op_is_local(const struct op *op)
{
	return op->opcode == IBV_WR_BIND_MW || op->opcode == IBV_WR_LOCAL_INV;
}

static inline bool op_is_atomic(const struct op *op)
{
	return op->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* Eight octets that are aligned? */
static inline bool op_is_word(const struct op *op)
{
	return op_is_atomic(op) || op->opcode == IBV_WR_ATOMIC_WRITE;
}

static inline bool op_is_fetch(const struct op *op)
{
	return op->opcode == IBV_WR_RDMA_READ || op_is_atomic(op);
}

static inline bool op_has_imm(const struct op *op)
{
	return op->opcode == IBV_WR_SEND_WITH_IMM || op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* --- change.c --- */
void change_act(struct end *end);
void change_op(struct end *end, struct op *op);
void change_event(struct end *end, enum ibv_event_type type);
bool change_finished(const struct end *end);
void change_end(struct end *end);
enum ibv_wc_status change_status(struct end *end, unsigned number);

/* --- oracle.c --- */
void oracle_begin(struct sim *sim);
void oracle_send_wc(struct sim_cq *cq, struct end *end, const struct ibv_wc *wc);
void oracle_recv_wc(struct sim_cq *cq, struct end *end, const struct ibv_wc *wc);
void oracle_end(struct sim *sim);

/* --- window.c --- */
void windows_begin(struct sim *sim);
void windows_make(struct end *end);
void windows_unmake(struct end *end);
void windows_check(struct end *end);
/* Let the next work request be about a window; let an access go through one. */
void window_plan(struct end *end, struct op *op);
void window_aim(struct end *end, struct op *op, unsigned access, uint32_t align);
void window_wr(struct end *end, const struct op *op, struct ibv_send_wr *wr);
/* What completions tell of them. */
void window_op_done(struct end *end, unsigned number);
void window_message(struct end *end, struct end *from, unsigned number, const struct ibv_wc *wc);
void window_trouble(struct end *end, struct op *op, unsigned access);
void window_trouble_invalidate(struct end *end, struct op *op);
void window_trouble_local(struct end *end, struct op *op);

/* --- trouble.c --- */
void trouble_plan(struct sim *sim);
bool trouble_is_bad(const struct end *end, unsigned number);
enum ibv_wr_opcode trouble_opcode(struct end *end, enum ibv_wr_opcode opcode);
void trouble_op(struct end *end, struct op *op);
void trouble_recv(struct sim_rq *rq, struct buffer *buffer);
void trouble_tick(struct sim *sim);
void trouble_end(struct sim *sim);

/* --- run.c --- */
/* True if all went well; otherwise sim->why says what did not. */
bool sim_run(struct sim *sim, uint64_t seed, bool trace);

#endif
