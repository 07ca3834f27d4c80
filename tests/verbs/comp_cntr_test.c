/* SPDX-License-Identifier: BSD-2-Clause */
#include "newer.h"

/*
 * Completion counters: ibv_create_comp_cntr(3), ibv_qp_attach_comp_cntr(3) and
 * ibv_query_comp_cntr_caps(3) of rdma-core 64 and later.
 */

enum {
	SEND = IBV_QP_ATTACH_COMP_CNTR_OP_SEND,
	RECV = IBV_QP_ATTACH_COMP_CNTR_OP_RECV,
	READ = IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_READ,
	WRITE = IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_WRITE,
	LOCAL = SEND | RECV | READ | WRITE,
};

static struct ibv_comp_cntr *cntr_new(uint32_t type)
{
	struct ibv_comp_cntr_init_attr attr = { .type = type };

	return vt_made(ibv_create_comp_cntr(vt.ctx, &attr));
}

static int attach(struct ibv_qp *qp, struct ibv_comp_cntr *cntr, uint32_t ops)
{
	struct ibv_qp_attach_comp_cntr_attr attr = { .op_mask = ops };

	return ibv_qp_attach_comp_cntr(qp, cntr, &attr);
}

static uint64_t count_of(struct ibv_comp_cntr *cntr)
{
	uint64_t value = UINT64_MAX;

	assert_int_equal(ibv_read_comp_cntr(cntr, &value), 0);
	return value;
}

static uint64_t errors_of(struct ibv_comp_cntr *cntr)
{
	uint64_t value = UINT64_MAX;

	assert_int_equal(ibv_read_err_comp_cntr(cntr, &value), 0);
	return value;
}

/* Nothing else is polled: reading a counter is enough for all to go on. */
static void await_count(struct ibv_comp_cntr *cntr, uint64_t value)
{
	uint64_t end_ms = vt_now_ms() + VT_WAIT_MS;

	while (count_of(cntr) < value && vt_now_ms() < end_ms)
		continue;
	assert_int_equal(count_of(cntr), value);
}

static void end(struct ibv_comp_cntr *cntr)
{
	assert_int_equal(ibv_destroy_comp_cntr(cntr), 0);
}

#define reset_pair_test(f, ...) vt_pair_test(f, .in_reset = true, __VA_ARGS__)

/* "queries the completion counter capabilities" */
vt_test(the_device_says_what_it_counts)
{
	struct ibv_comp_cntr_caps caps = { 0 };

	assert_int_equal(ibv_query_comp_cntr_caps(vt.ctx, &caps), 0);
	assert_int_equal(caps.max_value, UINT64_MAX);
	assert_true(caps.max_counters >= 1000);
	assert_int_equal(caps.supported_qp_attach_ops, LOCAL);
}

/* "as many as max_counters can be created", and one more is too much. */
vt_test(there_are_as_many_as_it_says)
{
	struct ibv_comp_cntr_caps caps;
	struct ibv_comp_cntr_init_attr attr = { .type = IBV_COMP_CNTR_TYPE_WRS };
	struct ibv_comp_cntr **all;

	assert_int_equal(ibv_query_comp_cntr_caps(vt.ctx, &caps), 0);
	all = calloc(caps.max_counters, sizeof(struct ibv_comp_cntr *));
	for (uint32_t i = 0; i < caps.max_counters; i++)
		all[i] = vt_made(ibv_create_comp_cntr(vt.ctx, &attr));
	vt_refused(ENOMEM, ibv_create_comp_cntr(vt.ctx, &attr));
	for (uint32_t i = 0; i < caps.max_counters; i++)
		end(all[i]);
	free(all);
}

/* "sets the completion count"; "increments the completion count ... by amount"; errors apart;
 * "that would exceed this value wraps the counter to zero". */
vt_test(values_are_set_and_incremented)
{
	struct ibv_comp_cntr *cntr = cntr_new(IBV_COMP_CNTR_TYPE_WRS);

	assert_ptr_equal(cntr->context, vt.ctx);
	assert_int_equal(count_of(cntr), 0);
	assert_int_equal(errors_of(cntr), 0);
	assert_int_equal(ibv_set_comp_cntr(cntr, 41), 0);
	assert_int_equal(ibv_inc_comp_cntr(cntr, 2), 0);
	assert_int_equal(ibv_set_err_comp_cntr(cntr, 7), 0);
	assert_int_equal(ibv_inc_err_comp_cntr(cntr, 10), 0);
	assert_int_equal(count_of(cntr), 43);
	assert_int_equal(errors_of(cntr), 17);
	assert_int_equal(ibv_set_comp_cntr(cntr, UINT64_MAX), 0);
	assert_int_equal(ibv_inc_comp_cntr(cntr, 1), 0);
	assert_int_equal(count_of(cntr), 0);
	end(cntr);
	assert_int_equal(ibv_destroy_comp_cntr(cntr), ENOENT);
}

vt_test(what_is_wrong_is_refused)
{
	struct ibv_comp_cntr_init_attr attr = { .type = 2 };

	vt_refused(EINVAL, ibv_create_comp_cntr(vt.ctx, &attr));
	attr = (struct ibv_comp_cntr_init_attr){ .flags = 1 };
	vt_refused(EINVAL, ibv_create_comp_cntr(vt.ctx, &attr));
	attr = (struct ibv_comp_cntr_init_attr){ .comp_mask = 1 };
	vt_refused(EINVAL, ibv_create_comp_cntr(vt.ctx, &attr));
}

/* "The op_mask field controls which operation completions are counted." Each has one of its own
 * here; signaled or not: "as an alternative ... to completion queues". */
static void each_kind(struct vt_pair *p, bool reads)
{
	struct ibv_comp_cntr *send = cntr_new(IBV_COMP_CNTR_TYPE_WRS);
	struct ibv_comp_cntr *recv = cntr_new(IBV_COMP_CNTR_TYPE_WRS);
	struct ibv_comp_cntr *read = cntr_new(IBV_COMP_CNTR_TYPE_WRS);
	struct ibv_comp_cntr *write = cntr_new(IBV_COMP_CNTR_TYPE_WRS);
	struct vt_wr w;

	assert_int_equal(attach(p->a.qp, send, SEND), 0);
	assert_int_equal(attach(p->a.qp, read, READ), 0);
	assert_int_equal(attach(p->a.qp, write, WRITE), 0);
	assert_int_equal(attach(p->b.qp, recv, RECV), 0);
	vt_pair_climb(p);
	for (unsigned i = 0; i < 3; i++) {
		vt_recv(&p->b, i);
		vt_wr(&w, IBV_WR_SEND, &p->a, &p->b, 8);
		w.wr.send_flags = i == 2 ? IBV_SEND_SIGNALED : 0;
		vt_post(&p->a, &w);
		vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, 1000);
		w.wr.send_flags = 0;
		vt_post(&p->a, &w);
		if (reads) {
			vt_wr(&w, IBV_WR_RDMA_READ, &p->a, &p->b, 1000);
			w.wr.send_flags = 0;
			vt_post(&p->a, &w);
		}
	}
	vt_recv(&p->b, 3);
	vt_wr(&w, IBV_WR_RDMA_WRITE_WITH_IMM, &p->a, &p->b, 8);
	w.wr.send_flags = 0;
	vt_post(&p->a, &w);
	await_count(recv, 4);
	await_count(write, 4);
	await_count(send, 3);
	await_count(read, reads ? 3 : 0);
	vt_expect(p->a.cq, 1, IBV_WC_SUCCESS); /* the one that was signaled */
	vt_expect_none(p->a.cq);
	for (unsigned i = 0; i < 4; i++)
		vt_expect(p->b.cq, i, IBV_WC_SUCCESS);
	assert_int_equal(errors_of(send) + errors_of(recv) + errors_of(read) + errors_of(write), 0);
	vt_pair_close(p);
	end(send);
	end(recv);
	end(read);
	end(write);
}

vt_test(each_kind_of_operation_is_counted_by_itself)
{
	struct vt_pair p;

	vt_pair_open(&p, &(struct vt_options){ .in_reset = true });
	each_kind(&p, true);
	vt_pair_open(&p, &(struct vt_options){ .in_reset = true, .type = IBV_QPT_UC });
	each_kind(&p, false);
}

/* Datagrams, and what was received into an SRQ. */
vt_test(datagrams_and_shared_queues_are_counted)
{
	for (unsigned i = 0; i < 2; i++) {
		struct vt_options opt = { .in_reset = true, .srq = i == 1,
					  .type = i == 0 ? IBV_QPT_UD : IBV_QPT_RC };
		struct ibv_comp_cntr *sent = cntr_new(IBV_COMP_CNTR_TYPE_WRS);
		struct ibv_comp_cntr *received = cntr_new(IBV_COMP_CNTR_TYPE_WRS);
		struct vt_pair p;

		vt_pair_open(&p, &opt);
		assert_int_equal(attach(p.a.qp, sent, LOCAL), 0);
		assert_int_equal(attach(p.b.qp, received, LOCAL), 0);
		vt_pair_climb(&p);
		vt_exchange(&p.a, &p.b);
		vt_exchange(&p.a, &p.b);
		assert_int_equal(count_of(sent), 2);
		assert_int_equal(count_of(received), 2);
		vt_pair_close(&p);
		end(sent);
		end(received);
	}
}

/* "IBV_COMP_CNTR_TYPE_BYTES counts completed bytes." */
reset_pair_test(octets_are_counted)
{
	struct ibv_comp_cntr *sent = cntr_new(IBV_COMP_CNTR_TYPE_BYTES);
	struct ibv_comp_cntr *received = cntr_new(IBV_COMP_CNTR_TYPE_BYTES);

	assert_int_equal(attach(p->a.qp, sent, SEND | WRITE), 0);
	assert_int_equal(attach(p->b.qp, received, RECV), 0);
	vt_pair_climb(p);
	vt_recv(&p->b, 1);
	vt_do(IBV_WR_SEND, &p->a, &p->b, 5000, IBV_WC_SUCCESS);
	vt_expect(p->b.cq, 1, IBV_WC_SUCCESS);
	vt_do(IBV_WR_RDMA_WRITE, &p->a, &p->b, 300, IBV_WC_SUCCESS);
	vt_do(IBV_WR_RDMA_READ, &p->a, &p->b, 77, IBV_WC_SUCCESS);
	assert_int_equal(count_of(sent), 5300);
	assert_int_equal(count_of(received), 5000);
	assert_int_equal(ibv_destroy_qp(p->a.qp), 0);
	assert_int_equal(ibv_destroy_qp(p->b.qp), 0);
	p->a.qp = p->b.qp = NULL;
	end(sent);
	end(received);
}

/* "an error count that is incremented when operations complete in error": flushed ones, too. */
reset_pair_test(errors_are_counted_apart)
{
	struct ibv_comp_cntr *cntr = cntr_new(IBV_COMP_CNTR_TYPE_WRS);
	struct vt_wr w;

	assert_int_equal(attach(p->a.qp, cntr, LOCAL), 0);
	vt_pair_climb(p);
	for (unsigned i = 0; i < 5; i++)
		vt_recv(&p->a, i);
	vt_do(IBV_WR_RDMA_WRITE, &p->a, &p->b, 8, IBV_WC_SUCCESS);
	vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, 8);
	w.wr.wr.rdma.rkey ^= 0x10000;
	vt_done(&p->a, &w, IBV_WC_REM_ACCESS_ERR);
	for (unsigned i = 0; i < 5; i++)
		vt_expect(p->a.cq, i, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(count_of(cntr), 1);
	assert_int_equal(errors_of(cntr), 6);
	assert_int_equal(ibv_destroy_qp(p->a.qp), 0);
	p->a.qp = NULL;
	end(cntr);
}

/* "Attaching the same completion counter to multiple QPs will accumulate"; "cannot be destroyed
 * while it is still attached to any QP"; "implicitly detached when the QP is destroyed". */
reset_pair_test(one_counter_may_count_for_several)
{
	struct ibv_comp_cntr *cntr = cntr_new(IBV_COMP_CNTR_TYPE_WRS);

	assert_int_equal(attach(p->a.qp, cntr, SEND | RECV), 0);
	assert_int_equal(attach(p->b.qp, cntr, SEND | RECV), 0);
	vt_pair_climb(p);
	vt_exchange(&p->a, &p->b);
	vt_exchange(&p->b, &p->a);
	assert_int_equal(count_of(cntr), 4);
	assert_int_equal(ibv_destroy_comp_cntr(cntr), EBUSY);
	assert_int_equal(ibv_destroy_qp(p->a.qp), 0);
	assert_int_equal(ibv_destroy_comp_cntr(cntr), EBUSY);
	assert_int_equal(ibv_destroy_qp(p->b.qp), 0);
	assert_int_equal(count_of(cntr), 4);
	p->a.qp = p->b.qp = NULL;
	end(cntr);
}

/* "The QP must be in IBV_QPS_RESET or IBV_QPS_INIT"; "Each QP and operation type pair can be
 * associated with at most one"; "unsupported values will result in an ENOTSUP error". */
reset_pair_test(attaching_has_rules)
{
	struct ibv_comp_cntr *one = cntr_new(IBV_COMP_CNTR_TYPE_WRS);
	struct ibv_comp_cntr *two = cntr_new(IBV_COMP_CNTR_TYPE_WRS);
	struct ibv_qp_attach_comp_cntr_attr attr = { .comp_mask = 1, .op_mask = SEND };

	assert_int_equal(attach(p->a.qp, one, SEND | READ), 0);
	assert_int_equal(attach(p->a.qp, two, READ | WRITE), EBUSY);
	assert_int_equal(attach(p->a.qp, one, READ), EBUSY);
	assert_int_equal(attach(p->a.qp, two, WRITE), 0);
	assert_int_equal(attach(p->a.qp, two, 0), EINVAL);
	assert_int_equal(attach(p->a.qp, two, RECV | 1 << 6), ENOTSUP);
	assert_int_equal(attach(p->a.qp, two, IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_READ),
			 ENOTSUP);
	assert_int_equal(attach(p->a.qp, two, IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_WRITE),
			 ENOTSUP);
	assert_int_equal(ibv_qp_attach_comp_cntr(p->a.qp, two, &attr), EINVAL);
	vt_climb(p->b.qp, &p->b.opt, IBV_QPS_INIT, p->a.qp->qp_num);
	assert_int_equal(attach(p->b.qp, one, SEND), 0);
	assert_int_equal(vt_modify(p->b.qp, IBV_QPS_RESET), 0);
	vt_pair_climb(p);
	assert_int_equal(attach(p->b.qp, one, RECV), EINVAL);
	vt_exchange(&p->b, &p->a);
	assert_int_equal(count_of(one), 1); /* attached still, after RESET */
	assert_int_equal(ibv_destroy_qp(p->a.qp), 0);
	assert_int_equal(ibv_destroy_qp(p->b.qp), 0);
	p->a.qp = p->b.qp = NULL;
	end(one);
	end(two);
}
