/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_SIM_SRD_SIM_H
#define VB_SIM_SRD_SIM_H

/* What a run of sim_srd consists of: srd_world.c makes it, with rings, srd.c lets it go. */

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
#include "nic/control/qp_dv.h"
#include "nic/core/ah.h"
#include "nic/core/ahn.h"
#include "nic/data/post.h"
#include "nic/mem/mem.h"
#include "nic/queue/cq.h"
#include "nic/service/srd/srd.h"

enum {
	OPS = 64, /* of a QP, at most */
	QUEUE = 24,
	RECVS = 6,
	MESSAGE_MAX = 9000,
	PATTERN_BYTES = 16384,
	STEPS_MAX = 4000000,
	OCTETS_FROM = 1,
};

#define CALM_NS_MAX (400ull * 1000 * 1000 * 1000)
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

enum bad { GOOD, BAD_QKEY, BAD_RKEY, BAD_LKEY, TOO_LONG };

struct op {
	enum ibv_wr_opcode opcode;
	unsigned to;
	enum bad bad;
	uint32_t bytes, offset; /* offset: of a READ, in the pattern */
	bool done, came;
	enum ibv_wc_status status;
};

/* A process, with one QP. */
struct node {
	unsigned index;
	uint16_t slot;
	bool dead;
	struct vb_nic *nic;
	struct vb_ctx *ctx;
	struct vb_pd *pd;
	struct vb_cq *cq, *recv_cq;
	struct vb_qp *qp; /* NULL: it is destroyed */
	struct vb_mr *mr;
	struct vb_ah *ah[FABRIC_NICS_MAX];
	uint16_t ahn[FABRIC_NICS_MAX];
	uint32_t qpn, qkey;
	uint8_t rnr_retry;
	bool posted_recv[RECVS];
	unsigned wanted, posted, done;
	unsigned last_came[FABRIC_NICS_MAX]; /* the last number from that node */
	struct op op[OPS];
};

/* All of a node's, in its region. */
struct area {
	uint8_t recv[RECVS][MESSAGE_MAX];
	uint8_t source[OPS][MESSAGE_MAX];
	uint8_t landing[OPS][MESSAGE_MAX];
	uint8_t written[FABRIC_NICS_MAX][OPS][MESSAGE_MAX];
	uint8_t pattern[PATTERN_BYTES];
};

extern struct area area[FABRIC_NICS_MAX];

extern struct sim {
	uint64_t seed, rng;
	bool trace, calm, one_host, bad, numbered;
	jmp_buf failed;
	char why[300];
	struct fabric fabric;
	unsigned long long ring_frames;
	unsigned nodes;
	struct node node[FABRIC_NICS_MAX];
	unsigned dying; /* which node; none if there are not so many */
	bool only_qp;	/* ... and only its QP is destroyed */
	uint64_t death_ns;
} sim;

#include "draws.h"
#include "octets.h"

void world_make(void);
void world_unmake(void);
void qp_end(struct node *node);

/* xrc_rings.c */
void rings_begin(void);
void rings_end(void);
extern const struct vb_host_peers rings_host;
void rings_turn(struct node *node);

#endif
