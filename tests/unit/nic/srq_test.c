/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/queue/rq.h"
#include "nic_fixture.h"

static struct vb_srq *make_srq(uint32_t wr_max)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = wr_max, .max_sge = 2 } };
	struct vb_srq *srq;

	assert_int_equal(vb_srq_create(fix.pd, &attr, &srq), 0);
	assert_true(attr.attr.max_wr >= wr_max);
	return srq;
}

static int post(struct vb_srq *srq, uint64_t wr_id)
{
	struct ibv_recv_wr wr = { .wr_id = wr_id }, *bad;

	return vb_srq_post(srq, &wr, &bad);
}

static void assert_taken(struct vb_srq *srq, uint64_t wr_id)
{
	struct vb_recv recv;

	assert_true(vb_srq_take(srq, &recv));
	assert_int_equal(recv.wr_id, wr_id);
}

static int limit(struct vb_srq *srq, uint32_t value)
{
	struct ibv_srq_attr attr = { .srq_limit = value };

	return vb_srq_modify(srq, &attr, IBV_SRQ_LIMIT);
}

static int resize(struct vb_srq *srq, uint32_t wr_max)
{
	struct ibv_srq_attr attr = { .max_wr = wr_max };

	return vb_srq_modify(srq, &attr, IBV_SRQ_MAX_WR);
}

NIC_TEST(requests_come_out_as_they_went_in)
{
	struct vb_srq *srq = make_srq(5);
	struct vb_recv recv;
	uint64_t in = 0, out = 0;

	for (unsigned round = 0; round < 30; round++) {
		for (unsigned i = 0; i < 1 + round % 5; i++)
			assert_int_equal(post(srq, in++), 0);
		while (out < in)
			assert_taken(srq, out++);
		assert_false(vb_srq_take(srq, &recv));
	}
	drop_srq(srq);
}

NIC_TEST(a_full_queue_says_which_did_not_fit)
{
	struct vb_srq *srq = make_srq(3);
	struct ibv_recv_wr wr[6], *bad;

	for (unsigned i = 0; i < 6; i++)
		wr[i] = (struct ibv_recv_wr){ .wr_id = i, .next = i < 5 ? &wr[i + 1] : NULL };
	assert_int_equal(vb_srq_post(srq, wr, &bad), ENOMEM);
	assert_true(bad > wr);
	for (struct ibv_recv_wr *w = wr; w != bad; w++)
		assert_taken(srq, w->wr_id);
	drop_srq(srq);
}

NIC_TEST(too_many_pieces_or_octets_are_refused)
{
	struct vb_srq *srq = make_srq(4);
	struct ibv_sge sge[3] = { { .length = 1u << 31 }, { .length = 1 } };
	struct ibv_recv_wr wr = { .sg_list = sge }, *bad;

	wr.num_sge = 3;
	assert_int_equal(vb_srq_post(srq, &wr, &bad), EINVAL);
	wr.num_sge = -1;
	assert_int_equal(vb_srq_post(srq, &wr, &bad), EINVAL);
	wr.num_sge = 2;
	assert_int_equal(vb_srq_post(srq, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	wr.num_sge = 1;
	assert_int_equal(vb_srq_post(srq, &wr, &bad), 0);
	drop_srq(srq);
}

/* ibv_modify_srq(3): one event when fewer than the limit remain, then the limit is 0. */
NIC_TEST(the_limit_is_told_once)
{
	struct vb_srq *srq = make_srq(8);
	struct ibv_srq_attr attr;

	for (uint64_t i = 0; i < 6; i++)
		post(srq, i);
	assert_int_equal(limit(srq, 4), 0);
	assert_taken(srq, 0);
	assert_taken(srq, 1);
	assert_no_event();
	assert_taken(srq, 2);
	assert_event(IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_int_equal(vb_srq_query(srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 0);
	assert_taken(srq, 3);
	assert_taken(srq, 4);
	assert_no_event();
	assert_int_equal(limit(srq, 1), 0);
	assert_taken(srq, 5);
	assert_event(IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_int_equal(srq->events_delivered, 2);
	drop_srq(srq);
}

NIC_TEST(a_limit_that_is_reached_already_is_told_at_once)
{
	struct vb_srq *srq = make_srq(8);

	post(srq, 0);
	assert_int_equal(limit(srq, 2), 0);
	assert_event(IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_no_event();
	assert_int_equal(limit(srq, 1), 0);
	assert_no_event();
	assert_int_equal(limit(srq, 0), 0); /* disarmed */
	assert_taken(srq, 0);
	assert_no_event();
	drop_srq(srq);
}

NIC_TEST(limits_beyond_the_queue_are_refused)
{
	struct vb_srq *srq = make_srq(8);
	struct ibv_srq_attr attr = { .max_wr = 16, .srq_limit = 12 };

	assert_int_equal(limit(srq, 1000), EINVAL);
	assert_int_equal(vb_srq_modify(srq, &attr, 4), EINVAL);
	assert_int_equal(vb_srq_modify(srq, &attr, 4 | IBV_SRQ_MAX_WR), EINVAL);
	/* Both at once: the new size counts. */
	for (uint64_t i = 0; i < 8; i++)
		post(srq, i);
	assert_int_equal(vb_srq_modify(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
	assert_event(IBV_EVENT_SRQ_LIMIT_REACHED);
	drop_srq(srq);
}

NIC_TEST(an_unread_limit_event_dies_with_its_queue)
{
	struct vb_srq *srq = make_srq(8);

	limit(srq, 1);
	assert_int_equal(fix.signals[FD_ASYNC], 1);
	drop_srq(srq);
	assert_no_event();
}

NIC_TEST(resizing_keeps_what_is_posted)
{
	struct vb_srq *srq = make_srq(4);

	for (uint64_t i = 0; i < 4; i++)
		post(srq, i);
	assert_taken(srq, 0);
	assert_taken(srq, 1);
	post(srq, 4);
	post(srq, 5);
	assert_int_equal(resize(srq, 9), 0); /* and it is 15 */
	for (uint64_t i = 6; i < 17; i++)
		assert_int_equal(post(srq, i), 0);
	assert_int_equal(post(srq, 99), ENOMEM);
	assert_int_equal(resize(srq, 7), EINVAL);
	assert_int_equal(resize(srq, 0), EINVAL);
	assert_int_equal(resize(srq, VB_SRQ_WR_MAX + 1), EINVAL);
	for (uint64_t i = 2; i < 17; i++)
		assert_taken(srq, i);
	assert_int_equal(resize(srq, 1), 0);
	assert_int_equal(post(srq, 11), 0);
	assert_int_equal(post(srq, 12), ENOMEM);
	assert_taken(srq, 11);
	drop_srq(srq);
}

NIC_TEST(sizes_beyond_the_limits_are_refused)
{
	static const struct ibv_srq_attr rows[] = {
		{ .max_wr = VB_SRQ_WR_MAX + 1, .max_sge = 1 },
		{ .max_wr = 1, .max_sge = VB_SGE_MAX + 1 },
	};
	struct vb_srq *srq;

	for (unsigned i = 0; i < VB_ARRAY_LEN(rows); i++) {
		struct ibv_srq_init_attr attr = { .attr = rows[i] };

		assert_int_equal(vb_srq_create(fix.pd, &attr, &srq), EINVAL);
	}
}

NIC_TEST(a_queue_in_use_stays)
{
	struct vb_srq *srq = make_srq(8);
	struct vb_cq *cq = make_cq(32, NULL);
	struct vb_qp *qp = make_qp(IBV_QPT_RC, cq, srq);
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad = NULL;

	assert_int_equal(vb_srq_destroy(srq), EBUSY);
	/* ibv_post_recv(3): not to a QP that has an SRQ. */
	bring(qp, IBV_QPS_RTS);
	assert_int_equal(vb_qp_post_recv(qp, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	drop_qp(qp);
	drop_srq(srq);
	drop_cq(cq);
}

/* IBA 10.2.9.3: told when the QP takes nothing from the SRQ any more; its requests stay there. */
NIC_TEST(the_last_request_of_a_qp_is_told)
{
	struct vb_srq *srq = make_srq(8);
	struct vb_cq *cq = make_cq(32, NULL);
	struct vb_qp *qp = make_qp(IBV_QPT_RC, cq, srq);
	struct ibv_wc wc;

	post(srq, 5);
	bring(qp, IBV_QPS_RTS);
	assert_int_equal(set_state(qp, IBV_QPS_ERR), 0);
	assert_event(IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_int_equal(set_state(qp, IBV_QPS_ERR), 0);
	assert_no_event();
	assert_int_equal(vb_cq_poll(cq, 1, &wc), 0);
	assert_taken(srq, 5);
	drop_qp(qp);
	drop_srq(srq);
	drop_cq(cq);
}
