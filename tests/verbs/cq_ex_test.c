/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <arpa/inet.h>
#include <time.h>

/*
 * Extended CQs, sentence by sentence of ibv_create_cq_ex(3): what they are created with, how they
 * are polled, what can be read; the clocks that completions are stamped by; overruns.
 */

static struct ibv_cq_ex *ex_of(struct vt_end *end)
{
	return (struct ibv_cq_ex *)end->cq;
}

static int start(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = { .comp_mask = 0 };

	return ibv_start_poll(cq, &attr);
}

/* The first completion of a batch, which must come and be this one. */
static void start_with(struct ibv_cq_ex *cq, uint64_t wr_id, enum ibv_wc_status status)
{
	uint64_t end_ms = vt_now_ms() + VT_WAIT_MS;
	int rc;

	while ((rc = start(cq)) == ENOENT && vt_now_ms() < end_ms)
		;
	assert_int_equal(rc, 0);
	assert_int_equal(cq->wr_id, wr_id);
	assert_int_equal(cq->status, status);
}

static void pair_with(struct vt_pair *p, enum ibv_qp_type type, uint64_t wc_flags, uint32_t flags)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 64, .wc_flags = wc_flags,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS, .flags = flags };
	struct vt_options opt = { .type = type, .cq_attr = &attr };

	vt_pair_open(p, &opt);
}

/* --- creation --- */

static int try_create(struct ibv_cq_init_attr_ex attr)
{
	struct ibv_cq_ex *cq;

	errno = 0;
	cq = ibv_create_cq_ex(vt.ctx, &attr);
	if (!cq)
		return errno;
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	return 0;
}

/* "Minimum number of entries", "Consumer-supplied context", "Completion channel" */
vt_test(it_has_what_it_was_created_with)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(vt.ctx);
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 100, .cq_context = &attr, .channel = channel,
		.comp_vector = (uint32_t)vt.ctx->num_comp_vectors - 1 };
	struct ibv_cq_ex *cq = vt_cq_ex(&attr);

	assert_true(cq->cqe >= 100);
	assert_ptr_equal(cq->context, vt.ctx);
	assert_ptr_equal(cq->cq_context, &attr);
	assert_ptr_equal(cq->channel, channel);
	assert_ptr_equal(ibv_cq_ex_to_cq(cq), cq);
	assert_int_equal(ibv_destroy_comp_channel(channel), EBUSY);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

/* "Must be >= 0 and < context->num_comp_vectors"; "or NULL if the request fails" */
vt_test(what_cannot_be_is_refused)
{
	const uint32_t vectors = (uint32_t)vt.ctx->num_comp_vectors;
	struct ibv_device_attr device = vt_device();

	assert_int_equal(try_create((struct ibv_cq_init_attr_ex){ .cqe = 0 }), EINVAL);
	assert_int_equal(try_create((struct ibv_cq_init_attr_ex){
		.cqe = (uint32_t)device.max_cqe + 1 }), EINVAL);
	assert_int_equal(try_create((struct ibv_cq_init_attr_ex){
		.cqe = (uint32_t)device.max_cqe }), 0);
	assert_int_equal(try_create((struct ibv_cq_init_attr_ex){
		.cqe = 1, .comp_vector = vectors }), EINVAL);
	assert_int_equal(try_create((struct ibv_cq_init_attr_ex){
		.cqe = 1, .comp_vector = (uint32_t)-1 }), EINVAL);
	for (unsigned bit = 12; bit < 64; bit++)
		assert_int_equal(try_create((struct ibv_cq_init_attr_ex){
			.cqe = 1, .wc_flags = 1ull << bit }), EOPNOTSUPP);
	for (unsigned bit = 2; bit < 32; bit++) {
		assert_int_equal(try_create((struct ibv_cq_init_attr_ex){
			.cqe = 1, .comp_mask = 1u << bit }), EOPNOTSUPP);
		assert_int_equal(try_create((struct ibv_cq_init_attr_ex){
			.cqe = 1, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
			.flags = 1u << bit }), EOPNOTSUPP);
	}
	/* A parent domain, and no other kind of PD. */
	assert_int_equal(try_create((struct ibv_cq_init_attr_ex){
		.cqe = 1, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD }), EINVAL);
	assert_int_equal(try_create((struct ibv_cq_init_attr_ex){
		.cqe = 1, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = vt.pd }), EINVAL);
}

/* "Only fields that the user requested via wc_flags ... could be queried": each by itself. */
vt_test(only_what_was_asked_for_can_be_read)
{
	for (unsigned bit = 0; bit < 13; bit++) {
		uint64_t flags = bit < 12 ? 1ull << bit : 0;
		struct ibv_cq_init_attr_ex attr = { .cqe = 1, .wc_flags = flags };
		struct ibv_cq_ex *cq = vt_cq_ex(&attr);

		assert_non_null(cq->read_opcode);
		assert_non_null(cq->read_vendor_err);
		assert_non_null(cq->read_wc_flags);
#define ONLY_WITH(flag, reader) assert_int_equal(cq->reader != NULL, (flags & (flag)) != 0)
		ONLY_WITH(IBV_WC_EX_WITH_BYTE_LEN, read_byte_len);
		ONLY_WITH(IBV_WC_EX_WITH_IMM, read_imm_data);
		ONLY_WITH(IBV_WC_EX_WITH_QP_NUM, read_qp_num);
		ONLY_WITH(IBV_WC_EX_WITH_SRC_QP, read_src_qp);
		ONLY_WITH(IBV_WC_EX_WITH_SLID, read_slid);
		ONLY_WITH(IBV_WC_EX_WITH_SL, read_sl);
		ONLY_WITH(IBV_WC_EX_WITH_DLID_PATH_BITS, read_dlid_path_bits);
		ONLY_WITH(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, read_completion_ts);
		ONLY_WITH(IBV_WC_EX_WITH_CVLAN, read_cvlan);
		ONLY_WITH(IBV_WC_EX_WITH_FLOW_TAG, read_flow_tag);
		ONLY_WITH(IBV_WC_EX_WITH_TM_INFO, read_tm_info);
		ONLY_WITH(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
			  read_completion_wallclock_ns);
#undef ONLY_WITH
		assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	}
}

/* --- polling --- */

/* "When no completions are available on the CQ, ENOENT is returned, but the CQ remains valid" */
vt_test(batches_begin_and_end)
{
	struct ibv_poll_cq_attr bad = { .comp_mask = 1 };
	struct ibv_cq_ex *cq;
	struct vt_pair p;

	pair_with(&p, IBV_QPT_UD, IBV_WC_EX_WITH_BYTE_LEN, 0);
	cq = ex_of(&p.a);
	for (unsigned round = 0; round < 3; round++) {
		assert_int_equal(start(cq), ENOENT);
		for (uint64_t i = 1; i <= 3; i++)
			vt_send(&p.a, &p.b, i);
		start_with(cq, 1, IBV_WC_SUCCESS);
		assert_int_equal(ibv_next_poll(cq), 0);
		assert_int_equal(cq->wr_id, 2);
		ibv_end_poll(cq);
		/* A batch may end before the CQ is empty; the next goes on. */
		start_with(cq, 3, IBV_WC_SUCCESS);
		assert_int_equal(ibv_next_poll(cq), ENOENT);
		/* The iterator still points to the last one, also when the batch is over. */
		assert_int_equal(cq->wr_id, 3);
		assert_int_equal(ibv_wc_read_opcode(cq), IBV_WC_SEND);
		assert_int_equal(ibv_next_poll(cq), ENOENT);
		ibv_end_poll(cq);
		assert_int_equal(cq->wr_id, 3);
		assert_int_equal(ibv_wc_read_opcode(cq), IBV_WC_SEND);
	}
	/* "If an error code is given, end_poll shouldn't be called": nothing was taken either. */
	vt_send(&p.a, &p.b, 9);
	assert_int_equal(ibv_start_poll(cq, &bad), EINVAL);
	start_with(cq, 9, IBV_WC_SUCCESS);
	ibv_end_poll(cq);
	vt_pair_close(&p);
}

vt_test(both_ways_of_polling_take_from_one_queue)
{
	struct ibv_cq_ex *cq;
	struct vt_pair p;

	pair_with(&p, IBV_QPT_UD, 0, 0);
	cq = ex_of(&p.a);
	for (uint64_t i = 1; i <= 4; i++)
		vt_send(&p.a, &p.b, i);
	vt_expect(p.a.cq, 1, IBV_WC_SUCCESS);
	start_with(cq, 2, IBV_WC_SUCCESS);
	/* Within a batch as well. */
	vt_expect(p.a.cq, 3, IBV_WC_SUCCESS);
	assert_int_equal(cq->wr_id, 2);
	assert_int_equal(ibv_next_poll(cq), 0);
	assert_int_equal(cq->wr_id, 4);
	ibv_end_poll(cq);
	vt_expect_none(p.a.cq);
	vt_pair_close(&p);
}

/* Places in the send queue come back by either way. */
vt_test(polling_makes_room_in_the_send_queue)
{
	struct vt_pair p;

	pair_with(&p, IBV_QPT_RC, 0, 0);
	for (uint64_t i = 0; i < 3 * 64; i++) {
		vt_recv_at(&p.b, i, 0, 64);
		vt_send(&p.a, &p.b, i);
		start_with(ex_of(&p.a), i, IBV_WC_SUCCESS);
		ibv_end_poll(ex_of(&p.a));
		vt_expect(p.b.cq, i, IBV_WC_SUCCESS);
	}
	vt_pair_close(&p);
}

/* --- fields --- */

vt_test(a_receive_can_be_read)
{
	struct ibv_cq_ex *cq;
	struct vt_pair p;
	struct vt_wr w;

	pair_with(&p, IBV_QPT_RC, IBV_WC_STANDARD_FLAGS, 0);
	cq = ex_of(&p.b);
	vt_recv(&p.b, 5);
	vt_wr(&w, IBV_WR_SEND_WITH_IMM, &p.a, &p.b, 100);
	w.wr.imm_data = htonl(0x12345678);
	w.wr.wr_id = 6;
	vt_post(&p.a, &w);
	start_with(cq, 5, IBV_WC_SUCCESS);
	assert_int_equal(ibv_wc_read_opcode(cq), IBV_WC_RECV);
	assert_int_equal(ibv_wc_read_byte_len(cq), 100);
	assert_int_equal(ibv_wc_read_imm_data(cq), htonl(0x12345678));
	assert_int_equal(ibv_wc_read_wc_flags(cq), IBV_WC_WITH_IMM);
	assert_int_equal(ibv_wc_read_qp_num(cq), p.b.qp->qp_num);
	assert_int_equal(ibv_wc_read_slid(cq), 0);
	assert_int_equal(ibv_wc_read_dlid_path_bits(cq), 0);
	assert_int_equal(ibv_wc_read_vendor_err(cq), 0);
	ibv_end_poll(cq);
	start_with(ex_of(&p.a), 6, IBV_WC_SUCCESS);
	assert_int_equal(ibv_wc_read_opcode(ex_of(&p.a)), IBV_WC_SEND);
	assert_int_equal(ibv_wc_read_qp_num(ex_of(&p.a)), p.a.qp->qp_num);
	ibv_end_poll(ex_of(&p.a));
	vt_pair_close(&p);
}

vt_test(a_datagram_tells_who_sent_it)
{
	struct ibv_cq_ex *cq;
	struct vt_pair p;

	pair_with(&p, IBV_QPT_UD, IBV_WC_STANDARD_FLAGS, 0);
	cq = ex_of(&p.b);
	vt_recv(&p.b, 5);
	vt_send(&p.a, &p.b, 6);
	start_with(cq, 5, IBV_WC_SUCCESS);
	assert_int_equal(ibv_wc_read_src_qp(cq), p.a.qp->qp_num);
	assert_int_equal(ibv_wc_read_wc_flags(cq), IBV_WC_GRH);
	assert_int_equal(ibv_wc_read_byte_len(cq), 40 + 8);
	assert_int_equal(ibv_wc_read_sl(cq), getenv("VT_IPV6") ? 1 : 2);
	ibv_end_poll(cq);
	vt_pair_close(&p);
}

/* "some fields are only valid in certain opcodes and status codes" */
vt_test(a_failure_can_be_read)
{
	struct ibv_cq_ex *cq;
	struct vt_pair p;
	struct vt_wr w;

	pair_with(&p, IBV_QPT_RC, IBV_WC_EX_WITH_QP_NUM, 0);
	cq = ex_of(&p.a);
	vt_wr(&w, IBV_WR_RDMA_WRITE, &p.a, &p.b, 8);
	w.wr.wr.rdma.rkey ^= 0x55;
	w.wr.wr_id = 3;
	vt_post(&p.a, &w);
	start_with(cq, 3, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_wc_read_qp_num(cq), p.a.qp->qp_num);
	(void)ibv_wc_read_vendor_err(cq);
	ibv_end_poll(cq);
	vt_pair_close(&p);
}

/* What belongs to raw frames, to steering and to tag matching is none of theirs. */
vt_test(what_cannot_occur_reads_as_none)
{
	struct ibv_wc_tm_info info = { 1, 2 };
	struct ibv_cq_ex *cq;
	struct vt_pair p;

	pair_with(&p, IBV_QPT_RC, IBV_WC_EX_WITH_CVLAN | IBV_WC_EX_WITH_FLOW_TAG |
				  IBV_WC_EX_WITH_TM_INFO, 0);
	cq = ex_of(&p.b);
	vt_recv(&p.b, 5);
	vt_send(&p.a, &p.b, 6);
	start_with(cq, 5, IBV_WC_SUCCESS);
	assert_int_equal(ibv_wc_read_cvlan(cq), 0);
	assert_int_equal(ibv_wc_read_flow_tag(cq), 0);
	ibv_wc_read_tm_info(cq, &info);
	assert_int_equal(info.tag, 0);
	assert_int_equal(info.priv, 0);
	ibv_end_poll(cq);
	vt_pair_close(&p);
}

/* --- stamps --- */

static uint64_t device_ns(void)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	assert_int_equal(ibv_query_rt_values_ex(vt.ctx, &values), 0);
	assert_int_equal(values.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	assert_int_equal(values.raw_clock.tv_sec, 0);
	return (uint64_t)values.raw_clock.tv_nsec;
}

/* "Get the completion timestamp ... in HCA clock units", which can be asked for the time. */
vt_test(stamps_are_the_devices_time)
{
	struct ibv_device_attr_ex device = vt_device_ex();
	uint64_t before, between, after, sent, received;
	struct vt_pair p;

	assert_true(device.completion_timestamp_mask != 0);
	assert_true(device.hca_core_clock != 0);
	pair_with(&p, IBV_QPT_RC, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, 0);
	vt_recv(&p.b, 5);
	before = device_ns();
	vt_send(&p.a, &p.b, 6);
	start_with(ex_of(&p.a), 6, IBV_WC_SUCCESS);
	between = device_ns();
	vt_sleep_ms(2);
	/* Of when it was made, not of when it is read. */
	sent = ibv_wc_read_completion_ts(ex_of(&p.a));
	ibv_end_poll(ex_of(&p.a));
	start_with(ex_of(&p.b), 5, IBV_WC_SUCCESS);
	received = ibv_wc_read_completion_ts(ex_of(&p.b));
	ibv_end_poll(ex_of(&p.b));
	after = device_ns();
	assert_in_range(sent, before, between);
	assert_in_range(received, before, after);
	/* The mask says which bits count; the frequency is in kHz, and so a ms is a ms. */
	assert_int_equal(sent & ~device.completion_timestamp_mask, 0);
	assert_true((after - between) / device.hca_core_clock >= 2);
	vt_pair_close(&p);
}

/* "convert it from HCA clock units to wall clock nanoseconds" */
vt_test(stamps_of_the_wall_clock_are_the_time_of_day)
{
	uint64_t before, after, stamp, last = 0;
	struct vt_pair p;

	pair_with(&p, IBV_QPT_UD, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK |
				  IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, 0);
	for (uint64_t i = 0; i < 50; i++) {
		before = vt_wall_ns();
		vt_send(&p.a, &p.b, i);
		start_with(ex_of(&p.a), i, IBV_WC_SUCCESS);
		after = vt_wall_ns();
		stamp = ibv_wc_read_completion_wallclock_ns(ex_of(&p.a));
		assert_in_range(stamp, before, after);
		/* And the other clock goes on. */
		assert_true(ibv_wc_read_completion_ts(ex_of(&p.a)) > last);
		last = ibv_wc_read_completion_ts(ex_of(&p.a));
		ibv_end_poll(ex_of(&p.a));
	}
	vt_pair_close(&p);
}

/* ibv_query_rt_values_ex(3): "Compatibility mask that defines the query/queried fields [in/out]" */
vt_test(the_clock_can_be_asked)
{
	struct ibv_values_ex values = { .comp_mask = 0 };
	uint64_t first = device_ns();

	vt_sleep_ms(1);
	assert_true(device_ns() > first);
	values.raw_clock.tv_nsec = 77;
	assert_int_equal(ibv_query_rt_values_ex(vt.ctx, &values), 0);
	assert_int_equal(values.comp_mask, 0);
	assert_int_equal(values.raw_clock.tv_nsec, 77);
	values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK | IBV_VALUES_MASK_RESERVED;
	assert_int_equal(ibv_query_rt_values_ex(vt.ctx, &values), EINVAL);
	assert_int_equal(values.raw_clock.tv_nsec, 77);
}

/* --- flags --- */

/*
 * "This CQ is used from a single threaded, thus no locking is required": a batch that is begun
 * within a batch would wait for itself if there was one.
 */
vt_test(one_thread_needs_no_lock)
{
	struct ibv_cq_ex *cq;
	struct vt_pair p;

	pair_with(&p, IBV_QPT_RC, 0, IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
	cq = ex_of(&p.a);
	for (uint64_t i = 0; i < 8; i++) {
		vt_recv_at(&p.b, i, 0, 64);
		vt_send(&p.a, &p.b, i);
	}
	start_with(cq, 0, IBV_WC_SUCCESS);
	start_with(cq, 1, IBV_WC_SUCCESS);
	ibv_end_poll(cq);
	ibv_end_poll(cq);
	for (uint64_t i = 2; i < 8; i++)
		vt_expect(p.a.cq, i, IBV_WC_SUCCESS);
	for (uint64_t i = 0; i < 8; i++)
		vt_expect(p.b.cq, i, IBV_WC_SUCCESS);
	vt_pair_close(&p);
}

/* "This CQ will not pass to error state if overrun, CQE always will be written to next entry" */
vt_test(overruns_can_be_ignored)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN };
	struct vt_options opt = { .type = IBV_QPT_UD, .cq_attr = &attr };
	struct ibv_wc wc;
	struct vt_pair p;
	uint64_t last = 0;
	int kept = 0;

	vt_pair_open(&p, &opt);
	for (uint64_t i = 1; i <= 40; i++)
		vt_send(&p.a, &p.b, i);
	/* The newest are there, in their order; others are lost. */
	while (last < 40) {
		assert_true(vt_poll_ms(p.a.cq, &wc, VT_WAIT_MS));
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_true(wc.wr_id > last);
		last = wc.wr_id;
		kept++;
	}
	assert_true(kept < 40);
	vt_no_event();
	assert_int_equal(vt_state(p.a.qp), IBV_QPS_RTS);
	vt_pair_close(&p);
}

/* A CQ that many share: all of its QPs fail, each is told once, and others go on. */
vt_test(an_overrun_fails_all_qps_of_the_cq)
{
	struct vt_options opt = { .type = IBV_QPT_UD, .cqe = 4 }, wide = { .type = IBV_QPT_RC };
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_UD };
	unsigned told = 0;
	struct vt_pair p, other;
	struct ibv_qp *second, *idle;

	vt_pair_open(&p, &opt);
	vt_pair_open(&other, &wide);
	init.recv_cq = p.a.cq;
	init.send_cq = other.a.cq;
	second = ibv_create_qp(vt.pd, &init);
	idle = ibv_create_qp(vt.pd, &init);
	assert_non_null(second);
	assert_non_null(idle);
	vt_climb(second, &p.opt, IBV_QPS_INIT, 0);
	for (uint64_t i = 0; i < 8; i++)
		vt_send(&p.a, &p.b, i);
	vt_event_acked(IBV_EVENT_CQ_ERR);
	while (told != 3) {
		struct ibv_async_event event;

		event = vt_event(told == 0 || told == 1 || told == 2 ? IBV_EVENT_QP_FATAL : 0);
		assert_true(event.element.qp == p.a.qp || event.element.qp == second);
		assert_int_equal(told & (event.element.qp == second ? 2 : 1), 0);
		told |= event.element.qp == second ? 2 : 1;
		ibv_ack_async_event(&event);
	}
	assert_int_equal(vt_state(p.a.qp), IBV_QPS_ERR);
	assert_int_equal(vt_state(second), IBV_QPS_ERR);
	assert_int_equal(vt_state(idle), IBV_QPS_RESET);
	vt_exchange(&other.a, &other.b);
	assert_int_equal(ibv_destroy_qp(second), 0);
	assert_int_equal(ibv_destroy_qp(idle), 0);
	vt_pair_close(&p);
	vt_pair_close(&other);
}
