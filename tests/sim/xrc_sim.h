/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_SIM_XRC_SIM_H
#define VB_SIM_XRC_SIM_H

/*
 * What a run of sim_xrc consists of: xrc_world.c makes it, with the rings of xrc_rings.c, xrc.c
 * lets it go, and xrc_change.c takes its connections to other paths.
 */

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/prng.h"
#include "fabric.h"
#include "turns.h"
#include "nic/control/qp.h"
#include "nic/control/qp_modify.h"
#include "nic/control/srq.h"
#include "nic/data/post.h"
#include "nic/mem/mem.h"
#include "nic/queue/cq.h"
#include "nic/queue/srq.h"
#include "nic/service/xrc/xrc.h"

enum {
	RECEIVERS_MAX = 3,
	SENDERS_MAX = 2,
	OPS = 48, /* of a sender, at most */
	QUEUE = 12,
	RECVS = 6,
	SRQS = 2, /* of a receiver, each with a PD of its own */
	MESSAGE_MAX = 10000,
	AREA_BYTES = OPS * MESSAGE_MAX,
	STEPS_MAX = 2000000,
	OCTETS_FROM = 0,
	MEMORIES = 3,
};

#define CALM_NS_MAX (120ull * 1000 * 1000 * 1000)
#define ACCESS                                                                                    \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |              \
	 IBV_ACCESS_REMOTE_ATOMIC)

struct op {
	enum ibv_wr_opcode opcode;
	unsigned to, srq;
	bool bad; /* its key is of the other SRQ's PD */
	uint32_t bytes, offset; /* offset: of a READ, in the pattern */
	uint64_t adds;		/* before it, to the same counter */
};

struct sender {
	struct vb_qp *qp;
	uint32_t rcv_qpn;
	unsigned targets; /* bits: receivers that it sends to */
	unsigned wanted, posted, done;
	bool broken;
	struct op op[OPS + 1];
	unsigned next_recv[RECEIVERS_MAX][SRQS]; /* which may come next there */
	uint32_t top_psn, top_slot; /* of the last new packet, and where it went */
	uint64_t adds[RECEIVERS_MAX];	   /* posted */
	unsigned way, rounds, migrations;  /* its path, changes of it begun and seen */
};

struct node {
	unsigned index;
	uint16_t slot;
	bool dead;
	struct vb_nic *nic;
	struct vb_ctx *ctx;
	struct vb_pd *pd[SRQS];
	struct vb_cq *cq;
	struct vb_mr *mr[SRQS][MEMORIES];
	/* Of a receiver. */
	struct vb_xrcd *xrcd;
	struct vb_srq *srq[SRQS];
	struct vb_qp *handle[SENDERS_MAX]; /* of whoever made the receive QPs */
	bool posted[SRQS * RECVS];
};

/*
 * Of a receiver: buffers for receives; what is written; what is read, with counters behind. Of a
 * sender: what it sends; where it lands; nothing.
 */
extern uint8_t memory[FABRIC_NICS_MAX][MEMORIES][AREA_BYTES + 64];

extern struct sim {
	uint64_t seed, rng;
	bool trace, calm, by_number;
	bool one_host; /* senders too, so that there are rings */
	unsigned long long ring_frames;
	bool bad_key; /* the first sender's last work request has one */
	jmp_buf failed;
	char why[300];
	struct fabric fabric;
	struct vb_xrc_store *store;
	unsigned locked;
	unsigned receivers, senders;
	struct node node[FABRIC_NICS_MAX];
	struct sender sender[SENDERS_MAX];
	unsigned dying; /* which receiver; none if there are not so many */
	uint64_t death_ns, collect_ns;
	bool faulty;   /* the fabric is, until it is calm */
	bool migrates; /* its connections are taken to other paths */
	uint64_t paths_rng;
	struct sender *cut; /* whose path is cut, or NULL */
} sim;

#include "draws.h"
#include "octets.h"

void world_make(void);
void world_unmake(void);

/* xrc_change.c: now and then; and when all is done. */
void paths_change(void);
void paths_check(void);

/* xrc_rings.c */
extern const struct vb_host_peers rings_host;

/* Before NICs are made; after they are gone; and what the node's thread does. */
void rings_begin(void);
void rings_end(void);
void rings_turn(struct node *node);

/* It lets go of its SRQ, of the receive QPs and of the domain. */
void receiver_leave(struct node *node);

#endif
