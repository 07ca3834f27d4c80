/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_VERBS_H
#define VB_TESTS_VERBS_H

/*
 * For tests that call libibverbs as an application does: a context with what everybody needs, and
 * RC QPs connected to each other in this very process, over the loopback address.
 */

#include <infiniband/verbs.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "group.h"

enum { VERBS_DEPTH = 16, VERBS_BUFFER_BYTES = 4096, VERBS_WAIT_S = 10 };

struct verbs {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *buffer;
	uint8_t gid_index;
	union ibv_gid gid;
};

static inline struct ibv_context *verbs_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	assert_non_null(list);
	assert_non_null(list[0]);
	context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	assert_non_null(context);
	return context;
}

/* The index of 127.0.0.1, which every host has; index 0 where the host is odd. */
static inline uint8_t verbs_loopback(struct ibv_context *context)
{
	static const uint8_t loopback[16] = { [10] = 0xff, 0xff, 127, 0, 0, 1 };
	union ibv_gid gid;

	for (int i = 0; i < 256 && ibv_query_gid(context, 1, i, &gid) == 0; i++) {
		if (memcmp(gid.raw, loopback, sizeof(loopback)) == 0)
			return i;
	}
	return 0;
}

static inline void verbs_begin(struct verbs *v)
{
	v->context = verbs_open();
	v->pd = ibv_alloc_pd(v->context);
	assert_non_null(v->pd);
	v->cq = ibv_create_cq(v->context, 4 * VERBS_DEPTH, NULL, NULL, 0);
	assert_non_null(v->cq);
	v->buffer = calloc(1, VERBS_BUFFER_BYTES);
	v->mr = ibv_reg_mr(v->pd, v->buffer, VERBS_BUFFER_BYTES,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	assert_non_null(v->mr);
	v->gid_index = verbs_loopback(v->context);
	assert_int_equal(ibv_query_gid(v->context, 1, v->gid_index, &v->gid), 0);
}

static inline void verbs_end(struct verbs *v)
{
	assert_int_equal(ibv_dereg_mr(v->mr), 0);
	free(v->buffer);
	assert_int_equal(ibv_destroy_cq(v->cq), 0);
	assert_int_equal(ibv_dealloc_pd(v->pd), 0);
	assert_int_equal(ibv_close_device(v->context), 0);
}

static inline struct ibv_qp_init_attr verbs_init_attr(const struct verbs *v, enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr){
		.send_cq = v->cq,
		.recv_cq = v->cq,
		.qp_type = type,
		.cap = { .max_send_wr = VERBS_DEPTH,
			 .max_recv_wr = VERBS_DEPTH,
			 .max_send_sge = 2,
			 .max_recv_sge = 2,
			 .max_inline_data = 64 },
	};
}

static inline struct ibv_qp *verbs_qp(struct verbs *v, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = verbs_init_attr(v, type);
	struct ibv_qp *qp = ibv_create_qp(v->pd, &attr);

	assert_non_null(qp);
	return qp;
}

/* An RC QP to RTS, its peer being `peer` of the same host. */
static inline void verbs_connect(struct verbs *v, struct ibv_qp *qp, uint32_t peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.min_rnr_timer = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = 1 },
	};

	attr.ah_attr.grh.dgid = v->gid;
	attr.ah_attr.grh.sgid_index = v->gid_index;
	attr.ah_attr.grh.hop_limit = 64;
	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					       IBV_QP_ACCESS_FLAGS),
			 0);
	attr.qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MAX_DEST_RD_ATOMIC |
					       IBV_QP_MIN_RNR_TIMER),
			 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					       IBV_QP_MAX_QP_RD_ATOMIC),
			 0);
}

/* Two RC QPs, connected. */
static inline void verbs_pair(struct verbs *v, struct ibv_qp *qp[2])
{
	qp[0] = verbs_qp(v, IBV_QPT_RC);
	qp[1] = verbs_qp(v, IBV_QPT_RC);
	verbs_connect(v, qp[0], qp[1]->qp_num);
	verbs_connect(v, qp[1], qp[0]->qp_num);
}

static inline void verbs_post_recv(struct verbs *v, struct ibv_qp *qp, uint64_t wr_id,
				   uint32_t offset, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)v->buffer + offset, bytes, v->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
}

static inline void verbs_post_send(struct verbs *v, struct ibv_qp *qp, uint64_t wr_id,
				   uint32_t offset, uint32_t bytes, unsigned flags)
{
	struct ibv_sge sge = { (uintptr_t)v->buffer + offset, bytes, v->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = flags,
	};
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
}

/* The next completion, whose status must be this. */
static inline struct ibv_wc verbs_wait(struct ibv_cq *cq, enum ibv_wc_status status)
{
	time_t end = time(NULL) + VERBS_WAIT_S;
	struct ibv_wc wc;
	int got;

	do {
		got = ibv_poll_cq(cq, 1, &wc);
	} while (got == 0 && time(NULL) < end);
	assert_int_equal(got, 1);
	assert_int_equal(wc.status, status);
	return wc;
}

/* What a test has that asks for no more. */
static struct verbs v;

static inline int verbs_setup(void **state)
{
	verbs_begin(&v);
	return 0;
}

static inline int verbs_teardown(void **state)
{
	verbs_end(&v);
	return 0;
}

#define VERBS_TEST(name) TEST_BETWEEN(name, verbs_setup, verbs_teardown)

#endif
