/* SPDX-License-Identifier: BSD-2-Clause */
/* ibv_wr_*(3) and ibv_create_cq_ex(3): the calls that build work requests and read completions. */
#include <arpa/inet.h>
#include <errno.h>

#include "verbs.h"

/* The extended attributes begin with the plain ones, up to comp_mask. */
static void fill(struct ibv_qp_init_attr_ex *attr, const struct ibv_qp_init_attr *plain)
{
	memcpy(attr, plain, offsetof(struct ibv_qp_init_attr_ex, comp_mask));
}

static struct ibv_qp *create(enum ibv_qp_type type, uint64_t ops)
{
	struct ibv_qp_init_attr plain = verbs_init_attr(&v, type);
	struct ibv_qp_init_attr_ex attr = {
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = v.pd,
		.send_ops_flags = ops,
	};

	fill(&attr, &plain);
	errno = 0;
	return ibv_create_qp_ex(v.context, &attr);
}

/* A sender with these operations, and a plain receiver. */
static void pair(struct ibv_qp *qp[2], uint64_t ops)
{
	qp[0] = create(IBV_QPT_RC, ops);
	assert_non_null(qp[0]);
	qp[1] = verbs_qp(&v, IBV_QPT_RC);
	verbs_connect(&v, qp[0], qp[1]->qp_num);
	verbs_connect(&v, qp[1], qp[0]->qp_num);
}

static void destroy(struct ibv_qp *qp[2])
{
	assert_int_equal(ibv_destroy_qp(qp[0]), 0);
	assert_int_equal(ibv_destroy_qp(qp[1]), 0);
}

VERBS_TEST(only_who_asked_has_the_builder)
{
	struct ibv_qp *plain = verbs_qp(&v, IBV_QPT_RC);
	struct ibv_qp *extended = create(IBV_QPT_RC, IBV_QP_EX_WITH_SEND);

	assert_null(ibv_qp_to_qp_ex(plain));
	assert_ptr_equal(ibv_qp_to_qp_ex(extended), extended);
	ibv_destroy_qp(plain);
	ibv_destroy_qp(extended);
}

VERBS_TEST(what_a_type_cannot_do_is_refused)
{
	assert_null(create(IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(create(IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(create(IBV_QPT_RC, IBV_QP_EX_WITH_TSO));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(create(IBV_QPT_RC, 1ull << 40));
	assert_int_equal(errno, EOPNOTSUPP);
}

VERBS_TEST(attributes_not_known_are_refused)
{
	struct ibv_qp_init_attr plain = verbs_init_attr(&v, IBV_QPT_RC);
	struct ibv_qp_init_attr_ex attr = { .pd = v.pd };

	fill(&attr, &plain);
	attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_RX_HASH;
	assert_null(ibv_create_qp_ex(v.context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
	assert_null(ibv_create_qp_ex(v.context, &attr));
	assert_int_equal(errno, EINVAL);
	attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
	attr.create_flags = IBV_QP_CREATE_SCATTER_FCS;
	assert_null(ibv_create_qp_ex(v.context, &attr));
	assert_int_equal(errno, EINVAL);
}

VERBS_TEST(a_batch_is_posted_at_complete)
{
	struct ibv_qp *qp[2];
	struct ibv_qp_ex *ex;
	struct ibv_wc wc;

	pair(qp, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE);
	ex = ibv_qp_to_qp_ex(qp[0]);
	verbs_post_recv(&v, qp[1], 1, 1024, 64);
	verbs_post_recv(&v, qp[1], 2, 2048, 64);
	memcpy(v.buffer, "abcdefgh", 8);

	ibv_wr_start(ex);
	ex->wr_id = 10;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(ex, v.mr->rkey, (uintptr_t)v.buffer + 512);
	ibv_wr_set_sge(ex, v.mr->lkey, (uintptr_t)v.buffer, 4);
	ex->wr_id = 11;
	ibv_wr_send(ex);
	ibv_wr_set_sge_list(ex, 2,
			    (struct ibv_sge[]){
				    { (uintptr_t)v.buffer, 2, v.mr->lkey },
				    { (uintptr_t)v.buffer + 4, 2, v.mr->lkey },
			    });
	ex->wr_id = 12;
	ibv_wr_send_imm(ex, htonl(0x1234));
	ibv_wr_set_sge(ex, v.mr->lkey, (uintptr_t)v.buffer, 1);
	assert_int_equal(ibv_poll_cq(v.cq, 1, &wc), 0);
	assert_int_equal(ibv_wr_complete(ex), 0);

	for (int i = 0; i < 5; i++) {
		wc = verbs_wait(v.cq, IBV_WC_SUCCESS);
		if (wc.wr_id == 2)
			assert_int_equal(ntohl(wc.imm_data), 0x1234);
	}
	assert_memory_equal(v.buffer + 512, "abcd", 4);
	assert_memory_equal(v.buffer + 1024, "abef", 4);
	assert_memory_equal(v.buffer + 2048, "a", 1);
	destroy(qp);
}

/* ibv_wr_start(3): inline setters copy at once; the caller may reuse its buffers. */
VERBS_TEST(inline_data_is_copied_by_the_setter)
{
	struct ibv_qp *qp[2];
	struct ibv_qp_ex *ex;
	char first[] = "one", second[] = "two";

	pair(qp, IBV_QP_EX_WITH_SEND);
	ex = ibv_qp_to_qp_ex(qp[0]);
	verbs_post_recv(&v, qp[1], 1, 1024, 64);
	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	ibv_wr_set_inline_data_list(ex, 2,
				    (struct ibv_data_buf[]){ { first, 3 }, { second, 3 } });
	memset(first, 'x', 3);
	memset(second, 'x', 3);
	assert_int_equal(ibv_wr_complete(ex), 0);
	verbs_wait(v.cq, IBV_WC_SUCCESS);
	verbs_wait(v.cq, IBV_WC_SUCCESS);
	assert_memory_equal(v.buffer + 1024, "onetwo", 6);
	destroy(qp);
}

/* ibv_wr_start(3): "If a failure is detected [...] the entire posting will be aborted." */
VERBS_TEST(a_wrong_request_fails_the_batch)
{
	struct ibv_qp *qp[2];
	struct ibv_qp_ex *ex;
	struct ibv_wc wc;
	char large[65] = "";

	pair(qp, IBV_QP_EX_WITH_SEND);
	ex = ibv_qp_to_qp_ex(qp[0]);
	verbs_post_recv(&v, qp[1], 1, 1024, 64);
	ex->wr_flags = IBV_SEND_SIGNALED;

	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, v.mr->lkey, (uintptr_t)v.buffer, 4);
	ibv_wr_rdma_write(ex, v.mr->rkey, (uintptr_t)v.buffer);
	ibv_wr_set_sge(ex, v.mr->lkey, (uintptr_t)v.buffer, 4);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);

	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, large, sizeof(large));
	assert_int_equal(ibv_wr_complete(ex), EINVAL);

	ibv_wr_start(ex);
	for (int i = 0; i < 1000; i++) {
		ibv_wr_send(ex);
		ibv_wr_set_sge(ex, v.mr->lkey, (uintptr_t)v.buffer, 4);
	}
	assert_int_equal(ibv_wr_complete(ex), ENOMEM);

	usleep(10000);
	assert_int_equal(ibv_poll_cq(v.cq, 1, &wc), 0);
	destroy(qp);
}

VERBS_TEST(an_aborted_batch_leaves_nothing)
{
	struct ibv_qp *qp[2];
	struct ibv_qp_ex *ex;
	struct ibv_wc wc;

	pair(qp, IBV_QP_EX_WITH_SEND);
	ex = ibv_qp_to_qp_ex(qp[0]);
	verbs_post_recv(&v, qp[1], 1, 1024, 64);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, v.mr->lkey, (uintptr_t)v.buffer, 4);
	ibv_wr_abort(ex);
	ibv_wr_start(ex);
	assert_int_equal(ibv_wr_complete(ex), 0);
	usleep(10000);
	assert_int_equal(ibv_poll_cq(v.cq, 1, &wc), 0);
	destroy(qp);
}

VERBS_TEST(atomics_and_reads_can_be_built)
{
	struct ibv_qp *qp[2];
	struct ibv_qp_ex *ex;
	uint64_t *word = (uint64_t *)(v.buffer + 512);

	pair(qp, IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
			 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD);
	ex = ibv_qp_to_qp_ex(qp[0]);
	*word = 5;
	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_fetch_add(ex, v.mr->rkey, (uintptr_t)word, 2);
	ibv_wr_set_sge(ex, v.mr->lkey, (uintptr_t)v.buffer, 8);
	ibv_wr_atomic_cmp_swp(ex, v.mr->rkey, (uintptr_t)word, 7, 9);
	ibv_wr_set_sge(ex, v.mr->lkey, (uintptr_t)v.buffer + 8, 8);
	ibv_wr_rdma_read(ex, v.mr->rkey, (uintptr_t)word);
	ibv_wr_set_sge(ex, v.mr->lkey, (uintptr_t)v.buffer + 16, 8);
	assert_int_equal(ibv_wr_complete(ex), 0);
	for (int i = 0; i < 3; i++)
		verbs_wait(v.cq, IBV_WC_SUCCESS);
	assert_int_equal(((uint64_t *)v.buffer)[0], 5);
	assert_int_equal(((uint64_t *)v.buffer)[1], 7);
	assert_int_equal(((uint64_t *)v.buffer)[2], 9);
	destroy(qp);
}

/* --- extended completion queues --- */

static struct ibv_cq_ex *create_cq(struct ibv_cq_init_attr_ex attr)
{
	errno = 0;
	return ibv_create_cq_ex(v.context, &attr);
}

VERBS_TEST(cq_attributes_not_known_are_refused)
{
	static const struct {
		struct ibv_cq_init_attr_ex attr;
		int error;
	} table[] = {
		{ { .cqe = 0 }, EINVAL },
		{ { .cqe = 1u << 31 }, EINVAL },
		{ { .cqe = 1, .comp_vector = 8 }, EINVAL },
		{ { .cqe = 1, .wc_flags = 1u << 12 }, EOPNOTSUPP },
		{ { .cqe = 1, .comp_mask = 1u << 2 }, EOPNOTSUPP },
		{ { .cqe = 1, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD }, EINVAL },
		{ { .cqe = 1, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS, .flags = 1u << 2 },
		  EOPNOTSUPP },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_null(create_cq(table[i].attr));
		assert_int_equal(errno, table[i].error);
	}
}

VERBS_TEST(completions_are_read_field_by_field)
{
	struct ibv_qp_init_attr attr = verbs_init_attr(&v, IBV_QPT_RC);
	struct ibv_poll_cq_attr poll = { 0 };
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp[2];

	cq = create_cq((struct ibv_cq_init_attr_ex){
		.cqe = 8, .cq_context = &v, .wc_flags = IBV_WC_STANDARD_FLAGS });
	assert_non_null(cq);
	assert_ptr_equal(cq->cq_context, &v);
	attr.recv_cq = ibv_cq_ex_to_cq(cq);
	qp[0] = verbs_qp(&v, IBV_QPT_RC);
	qp[1] = ibv_create_qp(v.pd, &attr);
	verbs_connect(&v, qp[0], qp[1]->qp_num);
	verbs_connect(&v, qp[1], qp[0]->qp_num);

	/* ibv_create_cq_ex(3): ENOENT when there is nothing; end_poll is not called then. */
	assert_int_equal(ibv_start_poll(cq, &poll), ENOENT);
	verbs_post_recv(&v, qp[1], 1, 1024, 64);
	verbs_post_recv(&v, qp[1], 2, 1024, 64);
	verbs_post_send(&v, qp[0], 3, 0, 5, IBV_SEND_SIGNALED);
	verbs_post_send(&v, qp[0], 4, 0, 6, IBV_SEND_SIGNALED);
	verbs_wait(v.cq, IBV_WC_SUCCESS);
	verbs_wait(v.cq, IBV_WC_SUCCESS);

	assert_int_equal(ibv_start_poll(cq, &poll), 0);
	assert_int_equal(cq->wr_id, 1);
	assert_int_equal(cq->status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_wc_read_opcode(cq), IBV_WC_RECV);
	assert_int_equal(ibv_wc_read_byte_len(cq), 5);
	assert_int_equal(ibv_wc_read_qp_num(cq), qp[1]->qp_num);
	assert_int_equal(ibv_wc_read_wc_flags(cq), 0);
	assert_int_equal(ibv_wc_read_vendor_err(cq), 0);
	assert_int_equal(ibv_wc_read_slid(cq), 0);
	assert_int_equal(ibv_next_poll(cq), 0);
	assert_int_equal(cq->wr_id, 2);
	assert_int_equal(ibv_wc_read_byte_len(cq), 6);
	assert_int_equal(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	assert_int_equal(ibv_start_poll(cq, &poll), ENOENT);
	poll.comp_mask = 1;
	assert_int_equal(ibv_start_poll(cq, &poll), EINVAL);

	destroy(qp);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}
