/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_SIM_DC_SIM_H
#define VB_SIM_DC_SIM_H

/* What a run of sim_dc consists of: dc_world.c makes it, with rings, dc.c lets it go. */

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/check.h"
#include "base/prng.h"
#include "fabric.h"
#include "turns.h"
#include "nic/control/qp.h"
#include "nic/control/qp_modify.h"
#include "nic/control/srq.h"
#include "nic/control/qp_dv.h"
#include "nic/core/ah.h"
#include "nic/data/post.h"
#include "nic/mem/mem.h"
#include "nic/queue/cq.h"
#include "nic/queue/srq.h"
#include "nic/service/dc/dc.h"

enum {
	DCIS = 2, /* of a node */
	SENDERS_MAX = FABRIC_NICS_MAX * DCIS,
	OPS = 32, /* of an initiator, at most */
	QUEUE = 8,
	RECVS = 4,
	STREAMS = 6,
	ERRORED_LOG = 1,
	MESSAGE_MAX = 3000,
	PATTERN_BYTES = 8192,
	STEPS_MAX = 4000000,
	OCTETS_FROM = 1,
};

#define CALM_NS_MAX (400ull * 1000 * 1000 * 1000)
#define ACCESS                                                                                    \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |              \
	 IBV_ACCESS_REMOTE_ATOMIC)

enum bad { GOOD, BAD_KEY, BAD_RKEY, BAD_LKEY };

struct op {
	enum ibv_wr_opcode opcode;
	unsigned to, stream;
	enum bad bad;
	uint32_t bytes, offset; /* offset: of a READ, in the pattern */
	unsigned adds;		/* posted before it, to the same counter */
	bool done, came;
	enum ibv_wc_status status;
};

struct sender {
	struct vb_qp *qp;
	struct node *node;
	unsigned index;
	enum ibv_mtu mtu;
	bool streams;
	unsigned wanted, posted, done;
	bool failed;		/* the QP is in error */
	unsigned errored;	/* bits: its streams that are */
	unsigned last_came[FABRIC_NICS_MAX]; /* one past the last message that arrived there */
	unsigned adds[FABRIC_NICS_MAX];	     /* posted */
	unsigned lowest[FABRIC_NICS_MAX];    /* what the next one can find there at least */
	struct op op[OPS];
};

struct node {
	unsigned index;
	uint16_t slot;
	bool dead;
	struct vb_nic *nic;
	struct vb_ctx *ctx;
	struct vb_pd *pd;
	struct vb_cq *cq, *recv_cq;
	struct vb_srq *srq;
	struct vb_qp *target; /* NULL: it is destroyed */
	struct vb_mr *mr;
	struct vb_ah *ah[FABRIC_NICS_MAX];
	uint32_t dctn;
	uint64_t key;
	bool posted[RECVS];
};

/* All of a node's, in its region. */
struct area {
	uint8_t recv[RECVS][MESSAGE_MAX];
	uint8_t source[DCIS][OPS][MESSAGE_MAX];
	uint8_t landing[DCIS][OPS][MESSAGE_MAX];
	uint8_t written[SENDERS_MAX][OPS][MESSAGE_MAX];
	uint8_t pattern[PATTERN_BYTES];
	uint64_t counter[SENDERS_MAX];
};

extern struct area area[FABRIC_NICS_MAX];

extern struct sim {
	uint64_t seed, rng;
	bool trace, calm, one_host, bad;
	jmp_buf failed;
	char why[300];
	struct fabric fabric;
	unsigned long long ring_frames;
	unsigned nodes, senders;
	struct node node[FABRIC_NICS_MAX];
	struct sender sender[SENDERS_MAX];
	unsigned dying; /* which node; none if there are not so many */
	bool only_target; /* ... and only its target is destroyed */
	uint64_t death_ns;
} sim;

#include "draws.h"
#include "octets.h"

void world_make(void);
void world_unmake(void);
void target_destroy(struct node *node);
void sender_connect(struct sender *sender, bool again);

/* xrc_rings.c */
void rings_begin(void);
void rings_end(void);
extern const struct vb_host_peers rings_host;
void rings_turn(struct node *node);

#endif
