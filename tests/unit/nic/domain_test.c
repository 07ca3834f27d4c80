/* SPDX-License-Identifier: BSD-2-Clause */

/* Thread domains, parent domains and the memory they lend; and counters, which count nothing. */
#include <stdlib.h>

#include "nic/core/counters.h"
#include "nic/core/domain.h"
#include "nic/queue/rq.h"
#include "nic_fixture.h"

/* --- thread domains: ibv_alloc_td(3) --- */

static struct vb_td *make_td(void)
{
	const struct ibv_td_init_attr attr = { .comp_mask = 0 };
	struct vb_td *td;

	assert_int_equal(vb_td_create(fix.ctx, &attr, &td), 0);
	return td;
}

static struct vb_pd *make_domain(struct ibv_parent_domain_init_attr attr)
{
	struct vb_pd *pd;

	if (!attr.pd)
		attr.pd = &fix.pd->ibv;
	assert_int_equal(vb_parent_domain_create(fix.ctx, &attr, &pd), 0);
	return pd;
}

NIC_TEST(a_thread_domain_in_use_stays)
{
	struct vb_td *td = make_td();
	struct vb_pd *pd = make_domain((struct ibv_parent_domain_init_attr){ .td = &td->ibv });

	assert_ptr_equal(td->ibv.context, &fix.ctx->ibv.context);
	assert_int_equal(vb_td_destroy(td), EBUSY);
	assert_int_equal(vb_pd_destroy(pd), 0);
	assert_int_equal(vb_td_destroy(td), 0);
}

NIC_TEST(unknown_attributes_are_refused)
{
	struct ibv_parent_domain_init_attr attr = { .pd = &fix.pd->ibv };
	struct ibv_counters_init_attr counters_attr = { .comp_mask = 1 };
	struct ibv_td_init_attr td_attr = { .comp_mask = 1 };
	struct vb_counters *counters;
	struct vb_pd *pd;
	struct vb_td *td;

	assert_int_equal(vb_td_create(fix.ctx, &td_attr, &td), EINVAL);
	assert_int_equal(vb_counters_create(fix.ctx, &counters_attr, &counters), EOPNOTSUPP);
	for (unsigned bit = 3; bit < 32; bit++) {
		attr.comp_mask = 1u << bit;
		assert_int_equal(vb_parent_domain_create(fix.ctx, &attr, &pd), EINVAL);
	}
	assert_int_equal(atomic_load(&fix.nic->counts.tds), 0);
	assert_int_equal(atomic_load(&fix.nic->counts.counters), 0);
	assert_int_equal(atomic_load(&fix.nic->counts.pds), 1);
}

/* --- parent domains: ibv_alloc_parent_domain(3) --- */

static void *no_alloc(struct ibv_pd *pd, void *context, size_t bytes, size_t align,
		      uint64_t resource)
{
	return NULL;
}

static void no_free(struct ibv_pd *pd, void *context, void *memory, uint64_t resource)
{
}

/* "reference to a protection domain, can't be NULL" */
NIC_TEST(it_needs_what_it_is_made_of)
{
	struct ibv_parent_domain_init_attr attr = { .pd = NULL };
	struct ibv_td_init_attr td_attr = { .comp_mask = 0 };
	struct vb_ctx *other;
	struct vb_pd *pd, *other_pd;
	struct vb_td *other_td;

	assert_int_equal(vb_parent_domain_create(fix.ctx, &attr, &pd), EINVAL);
	assert_int_equal(vb_ctx_create(fix.nic, FD_ASYNC, &other), 0);
	assert_int_equal(vb_pd_create(other, &other_pd), 0);
	assert_int_equal(vb_td_create(other, &td_attr, &other_td), 0);
	attr.pd = &other_pd->ibv;
	assert_int_equal(vb_parent_domain_create(fix.ctx, &attr, &pd), EINVAL);
	attr.pd = &fix.pd->ibv;
	attr.td = &other_td->ibv;
	assert_int_equal(vb_parent_domain_create(fix.ctx, &attr, &pd), EINVAL);
	attr.td = NULL;
	attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	assert_int_equal(vb_parent_domain_create(fix.ctx, &attr, &pd), EINVAL);
	attr.alloc = no_alloc;
	assert_int_equal(vb_parent_domain_create(fix.ctx, &attr, &pd), EINVAL);
	attr.alloc = NULL;
	attr.free = no_free;
	assert_int_equal(vb_parent_domain_create(fix.ctx, &attr, &pd), EINVAL);
	assert_int_equal(vb_td_destroy(other_td), 0);
	assert_int_equal(vb_pd_destroy(other_pd), 0);
	vb_ctx_destroy(other);
}

/* "All resources created with the parent domain should be destroyed prior" */
NIC_TEST(what_is_in_use_stays)
{
	struct vb_pd *pd = make_domain((struct ibv_parent_domain_init_attr){ .td = NULL });
	struct ibv_cq_init_attr_ex attr = { .cqe = 1, .parent_domain = &pd->ibv,
					    .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD };
	struct vb_cq *cq;

	assert_int_equal(vb_pd_destroy(fix.pd), EBUSY);
	assert_int_equal(vb_cq_create_ex(fix.ctx, &attr, &cq), 0);
	assert_int_equal(vb_pd_destroy(pd), EBUSY);
	drop_cq(cq);
	assert_int_equal(vb_pd_destroy(pd), 0);
}

NIC_TEST(a_cq_wants_a_parent_domain)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 1, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD };
	struct vb_pd *pd, *parent;
	struct vb_ctx *other;
	struct vb_cq *cq;

	assert_int_equal(vb_cq_create_ex(fix.ctx, &attr, &cq), EINVAL);
	attr.parent_domain = &fix.pd->ibv;
	assert_int_equal(vb_cq_create_ex(fix.ctx, &attr, &cq), EINVAL);
	assert_int_equal(vb_ctx_create(fix.nic, FD_ASYNC, &other), 0);
	assert_int_equal(vb_pd_create(other, &pd), 0);
	assert_int_equal(vb_parent_domain_create(
		other, &(struct ibv_parent_domain_init_attr){ .pd = &pd->ibv }, &parent), 0);
	attr.parent_domain = &parent->ibv;
	assert_int_equal(vb_cq_create_ex(fix.ctx, &attr, &cq), EINVAL);
	assert_int_equal(vb_pd_destroy(parent), 0);
	assert_int_equal(vb_pd_destroy(pd), 0);
	vb_ctx_destroy(other);
}

/* "completely interchangeable with the struct ibv_pd used to create it" */
NIC_TEST(memory_of_either_is_memory_of_both)
{
	struct vb_pd *parent = make_domain((struct ibv_parent_domain_init_attr){ .td = NULL });
	struct vb_pd *grand = make_domain((struct ibv_parent_domain_init_attr){
		.pd = &parent->ibv });
	static uint8_t memory[64];
	uint64_t va = (uintptr_t)memory;
	struct vb_mr *mr[2];

	assert_int_equal(vb_mr_reg(parent, memory, sizeof(memory), va, 0, &mr[0]), 0);
	assert_int_equal(vb_mr_reg(fix.pd, memory, sizeof(memory), va, 0, &mr[1]), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_non_null(vb_mr_get(fix.nic, &fix.pd->ibv, mr[i]->ibv.lkey, va, 64, 0));
		assert_non_null(vb_mr_get(fix.nic, &parent->ibv, mr[i]->ibv.lkey, va, 64, 0));
		assert_non_null(vb_mr_get(fix.nic, &grand->ibv, mr[i]->ibv.lkey, va, 64, 0));
		assert_int_equal(vb_mr_dereg(mr[i]), 0);
	}
	assert_int_equal(vb_pd_destroy(parent), EBUSY);
	assert_int_equal(vb_pd_destroy(grand), 0);
	assert_int_equal(vb_pd_destroy(parent), 0);
}

/* --- allocators --- */

enum { RESOURCES = 8 };

static struct {
	struct vb_pd *pd;
	unsigned allocs[RESOURCES], frees[RESOURCES];
	void *last;
	void *answer; /* what to say instead of allocating */
} lender;

static void *lend(struct ibv_pd *pd, void *context, size_t bytes, size_t align, uint64_t resource)
{
	assert_ptr_equal(pd, &lender.pd->ibv);
	assert_ptr_equal(context, &lender);
	assert_true(bytes > 0 && bytes % align == 0);
	assert_true(resource && resource < RESOURCES);
	if (lender.answer)
		return lender.answer == &lender ? NULL : lender.answer;
	lender.allocs[resource]++;
	lender.last = aligned_alloc(align, bytes);
	return lender.last;
}

static void take_back(struct ibv_pd *pd, void *context, void *memory, uint64_t resource)
{
	assert_ptr_equal(pd, &lender.pd->ibv);
	assert_ptr_equal(context, &lender);
	assert_non_null(memory);
	lender.frees[resource]++;
	free(memory);
}

static struct vb_pd *make_lender(void)
{
	memset(&lender, 0, sizeof(lender));
	lender.pd = make_domain((struct ibv_parent_domain_init_attr){
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.alloc = lend, .free = take_back, .pd_context = &lender });
	return lender.pd;
}

static struct vb_cq *make_lent_cq(void)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 5, .parent_domain = &lender.pd->ibv,
					    .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
					    .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP };
	struct vb_cq *cq;

	assert_int_equal(vb_cq_create_ex(fix.ctx, &attr, &cq), 0);
	return cq;
}

NIC_TEST(a_cq_lies_where_it_was_told)
{
	struct vb_pd *pd = make_lender();
	struct vb_cq *cq = make_lent_cq();
	const struct vb_cqe cqe = { .wc = { .wr_id = 3 } };
	struct ibv_wc wc;

	assert_ptr_equal(cq->ring, lender.last);
	for (unsigned i = 0; i < 6; i++)
		vb_cq_push(cq, &cqe);
	assert_int_equal(vb_cq_resize(cq, 7), 0);
	assert_int_equal(vb_cq_resize(cq, 3), EINVAL);
	assert_int_equal(vb_cq_poll(cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 3);
	assert_int_equal(lender.allocs[VB_BUFFER_CQ], 3);
	assert_int_equal(lender.frees[VB_BUFFER_CQ], 2);
	/* What it lends changes from time to time, and is given back to whom it belongs. */
	lender.answer = IBV_ALLOCATOR_USE_DEFAULT;
	assert_int_equal(vb_cq_resize(cq, 100), 0);
	assert_int_equal(lender.frees[VB_BUFFER_CQ], 3);
	lender.answer = &lender;
	assert_int_equal(vb_cq_resize(cq, 1000), ENOMEM);
	lender.answer = NULL;
	assert_int_equal(vb_cq_resize(cq, 1000), 0);
	drop_cq(cq);
	assert_int_equal(lender.allocs[VB_BUFFER_CQ], 4);
	assert_int_equal(lender.frees[VB_BUFFER_CQ], 4);
	assert_int_equal(vb_pd_destroy(pd), 0);
}

static struct ibv_qp_init_attr qp_init(struct vb_cq *cq, struct vb_srq *srq)
{
	return (struct ibv_qp_init_attr){
		.send_cq = &cq->ibv.cq, .recv_cq = &cq->ibv.cq, .srq = srq ? &srq->ibv : NULL,
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = 5, .max_recv_wr = 9, .max_send_sge = 2,
			 .max_recv_sge = 3 } };
}

NIC_TEST(the_queues_of_a_qp_lie_where_they_were_told)
{
	struct vb_pd *pd = make_lender();
	struct vb_cq *cq = make_cq(64, NULL);
	struct ibv_qp_init_attr init = qp_init(cq, NULL);
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;
	struct vb_qp *qp;

	assert_int_equal(vb_qp_create(pd, &init, &qp), 0);
	assert_int_equal(lender.allocs[VB_BUFFER_SQ], 1);
	assert_int_equal(lender.allocs[VB_BUFFER_RQ], 1);
	bring(qp, IBV_QPS_RTS);
	assert_int_equal(vb_qp_post_recv(qp, &wr, &bad), 0);
	assert_int_equal(set_state(qp, IBV_QPS_RESET), 0);
	drop_qp(qp);
	assert_int_equal(lender.frees[VB_BUFFER_SQ], 1);
	assert_int_equal(lender.frees[VB_BUFFER_RQ], 1);
	assert_int_equal(lender.allocs[VB_BUFFER_SQ], 1);
	assert_int_equal(lender.allocs[VB_BUFFER_CQ], 0);
	drop_cq(cq);
	assert_int_equal(vb_pd_destroy(pd), 0);
}

/* "NULL to designate an error": nothing is left behind. */
NIC_TEST(what_it_does_not_lend_is_not_made)
{
	struct vb_pd *pd = make_lender();
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = 5, .parent_domain = &pd->ibv,
					       .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD };
	struct vb_cq *cq = make_cq(64, NULL), *none;
	struct ibv_qp_init_attr init = qp_init(cq, NULL);
	struct vb_srq *srq;
	struct vb_qp *qp;

	lender.answer = &lender;
	assert_int_equal(vb_qp_create(pd, &init, &qp), ENOMEM);
	assert_int_equal(vb_srq_create(pd, &srq_attr, &srq), ENOMEM);
	assert_int_equal(vb_cq_create_ex(fix.ctx, &cq_attr, &none), ENOMEM);
	drop_cq(cq);
	assert_int_equal(atomic_load(&fix.nic->counts.cqs), 0);
	assert_int_equal(atomic_load(&fix.nic->counts.srqs), 0);
	assert_int_equal(vb_pd_destroy(pd), 0);
}

/* "asking the callee to allocate the buffer using the default allocator" */
NIC_TEST(what_it_leaves_to_us_is_ours)
{
	struct vb_pd *pd = make_lender();
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;
	struct ibv_qp_init_attr init;
	struct vb_srq *srq;
	struct vb_cq *cq;
	struct vb_qp *qp;

	lender.answer = IBV_ALLOCATOR_USE_DEFAULT;
	cq = make_lent_cq();
	init = qp_init(cq, NULL);
	assert_int_equal(vb_qp_create(pd, &init, &qp), 0);
	assert_int_equal(vb_srq_create(pd, &srq_attr, &srq), 0);
	bring(qp, IBV_QPS_RTR);
	assert_int_equal(vb_qp_post_recv(qp, &wr, &bad), 0);
	assert_int_equal(vb_srq_post(srq, &wr, &bad), 0);
	drop_qp(qp);
	drop_srq(srq);
	drop_cq(cq);
	for (unsigned i = 0; i < RESOURCES; i++)
		assert_int_equal(lender.frees[i], 0);
	assert_int_equal(vb_pd_destroy(pd), 0);
}

NIC_TEST(a_shared_queue_lies_where_it_was_told)
{
	struct vb_pd *pd = make_lender();
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq_attr resize = { .max_wr = 100 };
	struct ibv_recv_wr wr = { .wr_id = 7 }, *bad;
	struct vb_recv recv;
	struct vb_srq *srq;

	assert_int_equal(vb_srq_create(pd, &attr, &srq), 0);
	assert_ptr_equal(srq->rq.ring, lender.last);
	assert_int_equal(vb_srq_post(srq, &wr, &bad), 0);
	assert_int_equal(vb_srq_modify(srq, &resize, IBV_SRQ_MAX_WR), 0);
	assert_int_equal(lender.allocs[VB_BUFFER_SRQ], 2);
	assert_int_equal(lender.frees[VB_BUFFER_SRQ], 1);
	resize.max_wr = 0;
	assert_int_equal(vb_srq_modify(srq, &resize, IBV_SRQ_MAX_WR), EINVAL);
	assert_true(vb_srq_take(srq, &recv));
	assert_int_equal(recv.wr_id, 7);
	drop_srq(srq);
	for (unsigned i = 0; i < RESOURCES; i++)
		assert_int_equal(lender.frees[i], lender.allocs[i]);
	assert_int_equal(vb_pd_destroy(pd), 0);
}

/* --- a thread domain saves locks --- */

NIC_TEST(objects_of_a_thread_domain_take_no_lock)
{
	struct vb_td *td = make_td();
	struct vb_pd *pd = make_domain((struct ibv_parent_domain_init_attr){ .td = &td->ibv });
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = 5, .parent_domain = &pd->ibv,
					       .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD };
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_recv_wr wr = { .wr_id = 7 }, *bad;
	const struct vb_cqe cqe = { .wc = { .wr_id = 3 } };
	struct vb_srq *srq;
	struct vb_cq *cq;
	struct ibv_wc wc;

	assert_int_equal(vb_cq_create_ex(fix.ctx, &cq_attr, &cq), 0);
	assert_int_equal(vb_srq_create(pd, &srq_attr, &srq), 0);
	vb_cq_push(cq, &cqe);
	/* Whoever wanted these would hang here. */
	vb_lock_take(&cq->poll_lock);
	vb_lock_take(&srq->rq.lock);
	assert_int_equal(vb_cq_poll(cq, 1, &wc), 1);
	assert_int_equal(vb_srq_post(srq, &wr, &bad), 0);
	vb_lock_drop(&srq->rq.lock);
	vb_lock_drop(&cq->poll_lock);
	drop_srq(srq);
	drop_cq(cq);
	assert_int_equal(vb_pd_destroy(pd), 0);
	assert_int_equal(vb_td_destroy(td), 0);
}

/* --- counters: ibv_create_counters(3), ibv_read_counters(3) --- */

NIC_TEST(counters_are_cleared_upon_creation)
{
	struct ibv_counters_init_attr attr = { .comp_mask = 0 };
	uint64_t values[3] = { 1, 2, 3 };
	struct vb_counters *counters;

	assert_int_equal(vb_counters_create(fix.ctx, &attr, &counters), 0);
	assert_ptr_equal(counters->ibv.context, &fix.ctx->ibv.context);
	assert_int_equal(vb_counters_read(counters, values, 2, 2), EOPNOTSUPP);
	assert_int_equal(values[0], 1);
	assert_int_equal(vb_counters_read(counters, values, 2, 0), 0);
	assert_int_equal(values[0], 0);
	assert_int_equal(values[1], 0);
	assert_int_equal(values[2], 3);
	assert_int_equal(vb_counters_read(counters, values + 2, 1,
					  IBV_READ_COUNTERS_ATTR_PREFER_CACHED), 0);
	assert_int_equal(values[2], 0);
	assert_int_equal(vb_counters_destroy(counters), 0);
	assert_int_equal(atomic_load(&fix.nic->counts.counters), 0);
}
