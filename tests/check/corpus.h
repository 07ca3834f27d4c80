/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_CORPUS_H
#define VB_TESTS_CORPUS_H

/*
 * What the small programs of tests/check/corpus share: two QPs that are connected with each other,
 * in one process. Each program has a flaw, on the line of the comment that names it; with an
 * argument it does the same without the flaw.
 */

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 16384, ALL_RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };

/* One end. */
struct end {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char *memory; /* BYTES */
};

struct pair {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel; /* of b's CQ, if one is wanted */
	struct ibv_srq *srq;		  /* of b's QP, if it is set before pair_open() */
	struct end a, b;
	/* How it is made; 0: as usual. */
	enum ibv_qp_type type; /* RC */
	int cqe;	       /* 64 */
	uint32_t send_wr;      /* 16 */
	uint32_t recv_wr;      /* 32 */
	uint32_t inline_bytes;
	bool with_channel, all_signaled, rnr_at_once;
	int rights; /* LOCAL_WRITE and remote ones for a; b's too unless set */
	union ibv_gid gid;
	int gid_index;
};

static inline void die(const char *what)
{
	perror(what);
	exit(1);
}

#define must(call)                                                                                \
	do {                                                                                      \
		if (!(call))                                                                      \
			die(#call);                                                               \
	} while (0)
#define none(call) must((call) == 0)

/* This host by IPv4. */
static inline void gid_find(struct pair *p)
{
	static const uint8_t loopback[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127};

	for (p->gid_index = 0;; p->gid_index++) {
		none(ibv_query_gid(p->verbs, 1, p->gid_index, &p->gid));
		if (!memcmp(p->gid.raw, loopback, sizeof(loopback)))
			return;
	}
}

static inline void device_open(struct pair *p)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	must(list && list[0]);
	must(p->verbs = ibv_open_device(list[0]));
	ibv_free_device_list(list);
	must(p->pd = ibv_alloc_pd(p->verbs));
	gid_find(p);
}

static inline void qp_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1, .qp_access_flags = ALL_RIGHTS,
	};

	none(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				      (qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY
								 : IBV_QP_ACCESS_FLAGS)));
}

static inline struct ibv_qp_attr rtr_attr(struct pair *p, const struct ibv_qp *to)
{
	return (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = to->qp_num,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = p->gid, .sgid_index = (uint8_t)p->gid_index,
				    .hop_limit = 64}},
	};
}

static inline int rtr_mask(const struct ibv_qp *qp)
{
	int mask = IBV_QP_STATE;

	if (qp->qp_type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return mask;
}

static inline void qp_rts(struct pair *p, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = p->rnr_at_once ? 0 : 7,
		.max_rd_atomic = 4,
	};

	none(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN |
				      (qp->qp_type == IBV_QPT_RC
					       ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
							 IBV_QP_RNR_RETRY |
							 IBV_QP_MAX_QP_RD_ATOMIC
					       : 0)));
}

static inline void qp_connect(struct pair *p, struct ibv_qp *qp, const struct ibv_qp *to)
{
	struct ibv_qp_attr attr = rtr_attr(p, to);

	none(ibv_modify_qp(qp, &attr, rtr_mask(qp)));
	qp_rts(p, qp);
}

static inline struct ibv_qp_init_attr qp_attr(const struct pair *p, struct ibv_cq *cq)
{
	return (struct ibv_qp_init_attr){
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = p->send_wr ? p->send_wr : 16,
			.max_recv_wr = p->recv_wr ? p->recv_wr : 32,
			.max_send_sge = 2,
			.max_recv_sge = 2,
			.max_inline_data = p->inline_bytes},
		.qp_type = p->type ? p->type : IBV_QPT_RC,
		.sq_sig_all = p->all_signaled,
	};
}

static inline void end_make(struct pair *p, struct end *e, struct ibv_comp_channel *channel,
			    struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr;

	must(e->memory = aligned_alloc(4096, BYTES));
	memset(e->memory, 0, BYTES);
	must(e->mr = ibv_reg_mr(p->pd, e->memory, BYTES,
				e == &p->b && p->rights ? p->rights : ALL_RIGHTS));
	must(e->cq = ibv_create_cq(p->verbs, p->cqe ? p->cqe : 64, NULL, channel, 0));
	attr = qp_attr(p, e->cq);
	attr.srq = srq;
	must(e->qp = ibv_create_qp(p->pd, &attr));
	qp_init(e->qp);
}

static inline void pair_make(struct pair *p)
{
	p->rights = p->rights ? p->rights : IBV_ACCESS_LOCAL_WRITE;
	device_open(p);
	if (p->with_channel)
		must(p->channel = ibv_create_comp_channel(p->verbs));
	end_make(p, &p->a, NULL, NULL);
	end_make(p, &p->b, p->channel, p->srq);
}

static inline void pair_open(struct pair *p)
{
	pair_make(p);
	qp_connect(p, p->b.qp, p->a.qp);
	qp_connect(p, p->a.qp, p->b.qp);
}

/* The way to the QPs of this pair, which are UD. */
static inline struct ibv_ah *handle_make(struct pair *p)
{
	struct ibv_ah_attr attr = rtr_attr(p, p->b.qp).ah_attr;
	struct ibv_ah *handle;

	must(handle = ibv_create_ah(p->pd, &attr));
	return handle;
}

static inline void end_close(struct end *e)
{
	if (e->qp)
		none(ibv_destroy_qp(e->qp));
	if (e->cq)
		none(ibv_destroy_cq(e->cq));
	if (e->mr)
		none(ibv_dereg_mr(e->mr));
	free(e->memory);
}

static inline void pair_close(struct pair *p)
{
	end_close(&p->a);
	end_close(&p->b);
	if (p->srq)
		none(ibv_destroy_srq(p->srq));
	if (p->channel)
		none(ibv_destroy_comp_channel(p->channel));
	none(ibv_dealloc_pd(p->pd));
	none(ibv_close_device(p->verbs));
}

/* The next completion. */
static inline struct ibv_wc take(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(cq, 1, &wc) == 0)
		;
	return wc;
}

static inline void taken(struct ibv_cq *cq)
{
	struct ibv_wc wc = take(cq);

	if (wc.status)
		fprintf(stderr, "wr_id %d: %s\n", (int)wc.wr_id, ibv_wc_status_str(wc.status));
}

/* What there is of asynchronous events is taken, unless there is none. */
static inline void take_events(struct pair *p, bool is_none)
{
	struct ibv_async_event event;

	if (is_none)
		return;
	none(ibv_get_async_event(p->verbs, &event));
	ibv_ack_async_event(&event);
}

/* Part of an end's memory. */
static inline struct ibv_sge part(const struct end *e, uint32_t at, uint32_t bytes)
{
	return (struct ibv_sge){
		.addr = (uintptr_t)e->memory + at, .length = bytes, .lkey = e->mr->lkey};
}

/*
 * Posting: macros, so that the line is the program's. wr_id, where in the end's memory, how many
 * octets.
 */
#define recv_post(e, id, at, bytes)                                                               \
	do {                                                                                      \
		struct ibv_sge sge_ = part(e, at, bytes);                                         \
		struct ibv_recv_wr wr_ = {.wr_id = (id), .sg_list = &sge_, .num_sge = 1}, *bad_;  \
		none(ibv_post_recv((e)->qp, &wr_, &bad_));                                        \
	} while (0)

#define send_post(e, id, at, bytes, flags)                                                        \
	do {                                                                                      \
		struct ibv_sge sge_ = part(e, at, bytes);                                         \
		struct ibv_send_wr wr_ = {.wr_id = (id), .sg_list = &sge_, .num_sge = 1,          \
					  .opcode = IBV_WR_SEND, .send_flags = (flags)}, *bad_;   \
		none(ibv_post_send((e)->qp, &wr_, &bad_));                                        \
	} while (0)

/* UD: by this address handle, to this QPN and Q_Key (1: qp_init). */
#define datagram_post(e, id, bytes, handle, qpn, key)                                             \
	do {                                                                                      \
		struct ibv_sge sge_ = part(e, 0, bytes);                                          \
		struct ibv_send_wr wr_ = {.wr_id = (id), .sg_list = &sge_, .num_sge = 1,          \
					  .opcode = IBV_WR_SEND,                                  \
					  .send_flags = IBV_SEND_SIGNALED,                        \
					  .wr.ud = {handle, qpn, key}}, *bad_;                    \
		ibv_post_send((e)->qp, &wr_, &bad_);                                              \
	} while (0)

/* to: the other end; there: where in its memory. */
#define rdma_post(e, to, op, id, at, bytes, there, flags)                                         \
	do {                                                                                      \
		struct ibv_sge sge_ = part(e, at, bytes);                                         \
		struct ibv_send_wr wr_ = {                                                        \
			.wr_id = (id), .sg_list = &sge_, .num_sge = 1, .opcode = (op),            \
			.send_flags = (flags),                                                    \
			.wr.rdma = {(uintptr_t)(to)->memory + (there), (to)->mr->rkey}}, *bad_;   \
		none(ibv_post_send((e)->qp, &wr_, &bad_));                                        \
	} while (0)

#endif
