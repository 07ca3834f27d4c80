/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_VERBS_XRC_H
#define VB_TESTS_VERBS_XRC_H

/* XRC's objects, for tests of a process with itself and of several. */

#include "lib.h"

enum { VX_BYTES = 8192, VX_WR = 64, VX_PSN = 0x1234 };

/* With -1 for fd a domain of one's own; NULL with errno. */
struct ibv_xrcd *vx_domain(int fd, int oflags);

/* An SRQ of that domain, with a CQ, and a buffer that receives go to. */
struct vx_srq {
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_pd *pd; /* of its own */
	struct ibv_mr *mr;
	uint32_t number;
	_Alignas(8) uint8_t buf[VX_BYTES];
};

void vx_srq_open(struct vx_srq *srq, struct ibv_xrcd *xrcd);
void vx_srq_close(struct vx_srq *srq);

/* A receive request for so many octets at that place of the buffer. */
void vx_recv(struct vx_srq *srq, uint64_t wr_id, size_t offset, uint32_t bytes);

/* A receive QP, in RESET; NULL with errno. */
struct ibv_qp *vx_rcv_make(struct ibv_xrcd *xrcd);

/* A sender, with a CQ and a buffer; ops: of the builder, 0: without. */
struct vx_snd {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	_Alignas(8) uint8_t buf[VX_BYTES];
};

void vx_snd_open(struct vx_snd *snd, uint64_t ops);
void vx_snd_close(struct vx_snd *snd);

/* What any of the two kinds needs on its way to RTS. */
struct ibv_qp_attr vx_attr(uint32_t peer_qpn);

/* From RESET to RTS; the receive QP needs to go no further than RTR, and may. */
int vx_climb(struct ibv_qp *qp, uint32_t peer_qpn, enum ibv_qp_state to);

/* Fills in all that every request has, and posts it. rkey, addr: of the other side. An errno. */
int vx_post(struct vx_snd *snd, enum ibv_wr_opcode op, uint32_t srqn, uint64_t wr_id,
	    uint32_t bytes, const struct ibv_mr *to);

/* What `verbatim hub WHAT` says, of the build that this test belongs to. */
void vx_hub_says(const char *what, char *text, size_t bytes);

/* The same, if it can: false, as from a hub that was started a moment ago and has no store yet. */
bool vx_hub_tells(const char *what, char *text, size_t bytes);

#endif
