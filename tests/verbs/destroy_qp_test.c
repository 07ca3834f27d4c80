/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <pthread.h>
#include <stdatomic.h>

/*
 * The description of ibv_destroy_qp() sentence by sentence: the words above a test are its own,
 * and SENTENCES.md lists them.
 */

enum { NOBODY = 0x3fff };

static void destroy(struct vt_end *end)
{
	assert_int_equal(ibv_destroy_qp(end->qp), 0);
	end->qp = NULL;
}

/* destroy: "Create a QP and destroy it" */
/* create: "ibv_destroy_qp() destroys the QP qp" */
vt_cq_test(it_can_be_created_and_destroyed_as_the_example_does, 4)
{
	struct ibv_qp_init_attr attr;
	struct ibv_qp *qp;

	memset(&attr, 0, sizeof(attr));
	attr.send_cq = cq;
	attr.recv_cq = cq;
	attr.qp_type = IBV_QPT_RC;
	attr.cap.max_send_wr = 2;
	attr.cap.max_recv_wr = 2;
	attr.cap.max_send_sge = 1;
	attr.cap.max_recv_sge = 1;
	qp = vt_made(ibv_create_qp(vt.pd, &attr));
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* --- in any state --- */

static void destroy_in(enum ibv_qp_state state, bool srq)
{
	for (int i = 0; i < VT_TYPES; i++) {
		struct vt_options opt = { .type = vt_types[i], .srq = srq };
		struct vt_end end;

		if (state == IBV_QPS_SQE && opt.type == IBV_QPT_RC)
			continue; /* RC has no such state */
		if (srq && opt.type == IBV_QPT_UC)
			continue;
		vt_end_open(&end, &opt);
		vt_bring_to(&end, state);
		assert_int_equal(vt_state(end.qp), state);
		destroy(&end);
		vt_end_close(&end);
	}
}

/* destroy: "A QP can be destroyed at any state." */
/* destroy: "Yes, the QP can be destroyed at any state." */
vt_test(it_can_be_destroyed_in_any_state)
{
	for (enum ibv_qp_state s = IBV_QPS_RESET; s <= IBV_QPS_ERR; s++) {
		destroy_in(s, false);
		destroy_in(s, true);
	}
}

/* destroy: "0 On success" */
/* create: "ibv_destroy_qp() returns 0 on success, or the value of errno on failure" */
vt_ends_test(success_is_zero_and_frees_what_it_used, i, 0, VT_TYPES, .type = vt_types[i],
	     .srq = vt_types[i] != IBV_QPT_UC)
{
	assert_int_equal(ibv_destroy_cq(end->cq), EBUSY);
	if (end->srq)
		assert_int_equal(ibv_destroy_srq(end->srq), EBUSY);
	assert_int_equal(ibv_dealloc_pd(vt.pd), EBUSY);
	assert_int_equal(ibv_destroy_qp(end->qp), 0);
	end->qp = NULL;
	assert_int_equal(ibv_destroy_cq(end->cq), 0);
	end->cq = NULL;
}

/* --- with work outstanding --- */

/* Sends that nobody answers, and receives that nobody fills. */
static void load(struct vt_end *end, int count)
{
	for (int i = 0; i < count; i++) {
		vt_recv(end, 100 + (uint64_t)i);
		vt_send(end, end, 200 + (uint64_t)i);
	}
}

/* To a QP number that is not there. */
static void aim_at_nobody(struct vt_end *end, struct vt_options *opt)
{
	vt_climb(end->qp, opt, IBV_QPS_RTS, (end->qp->qp_num & ~0x3fffu) | NOBODY);
}

/*
 * destroy: "any outstanding Work Requests, in either the Send or Receive Queues, won't be
 * processed anymore"
 */
/* destroy: "Work Completions won't be generated for them" */
/*
 * destroy: "When a QP is being destroyed, it doesn't matter if it contains Work Requests or not."
 */
vt_ends_test(outstanding_requests_vanish_without_completions, srq, 0, 2, .srq = srq)
{
	aim_at_nobody(end, &end->opt);
	load(end, 10);
	vt_expect_none(end->cq);
	destroy(end);
	vt_expect_none(end->cq);
}

/* A sender that outlives the receiver finds out by itself, and nothing is written any more. */
vt_pair_test(requests_to_a_destroyed_qp_are_not_executed, .retry_cnt = 1,
	     .timeout = 10)
{
	struct vt_wr w;

	vt_recv(&p->b, 1);
	destroy(&p->b);
	memset(p->a.buf, 0xaa, 4096);
	vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, 4096);
	w.wr.wr_id = 2;
	vt_post(&p->a, &w);
	w.wr.opcode = IBV_WR_SEND;
	w.wr.wr_id = 3;
	vt_post(&p->a, &w);
	vt_expect(p->a.cq, 2, IBV_WC_RETRY_EXC_ERR);
	vt_expect(p->a.cq, 3, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(vt_state(p->a.qp), IBV_QPS_ERR);
	vt_expect_none(p->b.cq);
	assert_true(vt_is_octet(p->b.buf, 4096, 0));
}

/* Datagrams and unreliable messages to nobody are lost, and complete. */
vt_test(an_unreliable_sender_does_not_notice)
{
	static const enum ibv_qp_type unreliable[] = { IBV_QPT_UC, IBV_QPT_UD };

	for (int i = 0; i < 2; i++) {
		struct vt_options opt = { .type = unreliable[i] };
		struct vt_pair p;
		struct vt_wr w;

		vt_pair_open(&p, &opt);
		vt_recv(&p.b, 1);
		vt_wr(&w, IBV_WR_SEND, &p.a, &p.b, 100);
		destroy(&p.b);
		vt_done(&p.a, &w, IBV_WC_SUCCESS);
		vt_expect_none(p.b.cq);
		assert_true(vt_is_octet(p.b.buf, 4096, 0));
		vt_pair_close(&p);
	}
}

/*
 * destroy: "It is up to the user to clean all of the associated resources of those Work Requests
 * (i.e. memory buffers)."
 */
vt_end_test(memory_of_outstanding_requests_is_free_again)
{
	aim_at_nobody(end, &end->opt);
	load(end, 10);
	destroy(end);
	assert_int_equal(ibv_dereg_mr(end->mr), 0);
	end->mr = NULL;
	assert_true(vt_is_octet(end->buf, end->bytes, 0));
	free(end->buf);
	end->buf = NULL;
	vt_sleep_ms(VT_QUIET_MS); /* for a retransmission that would now read it */
}

/* In the middle of messages of a megabyte, either way. */
vt_pairs_test(it_can_be_destroyed_amid_traffic, i, 0, 20, .bytes = 1 << 20, .no_retry = true,
	      .timeout = 8)
{
	for (int n = 0; n < 8; n++) {
		vt_start(n & 1 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, &p->a, &p->b, 1 << 20);
		vt_start(IBV_WR_RDMA_WRITE, &p->b, &p->a, 1 << 20);
	}
	vt_sleep_ms(i / 8);
	if (i & 1)
		destroy(&p->a);
	destroy(&p->b);
}

/* --- completions that are in the CQ --- */

struct poller {
	struct ibv_cq *cq[2];
	_Atomic bool stop, failed;
	_Atomic uint64_t polled;
};

static void *poll_for_ever(void *arg)
{
	struct poller *poller = arg;
	struct ibv_wc wc[8];

	while (!atomic_load(&poller->stop)) {
		for (int i = 0; i < 2; i++) {
			int got = ibv_poll_cq(poller->cq[i], 8, wc);

			if (got < 0)
				atomic_store(&poller->failed, true);
			else
				atomic_fetch_add(&poller->polled, (uint64_t)got);
		}
	}
	return NULL;
}

/*
 * Ours are gone, so that none of them tells of a QP whose number another one may have by now; a
 * poller must only be able to rely on not being hurt.
 */
/*
 * destroy: "destroying a Queue Pair does not guarantee that its Work Completions are removed from
 * the CQ upon destruction"
 */
/*
 * destroy: "Even if the Work Completions are already in the CQ, it might not be possible to
 * retrieve them."
 */
vt_pair_test(completions_of_a_destroyed_qp_do_not_hurt)
{
	struct ibv_wc wc;

	for (uint64_t i = 0; i < 10; i++) {
		vt_recv(&p->b, i);
		vt_send(&p->a, &p->b, i);
	}
	while (vt_poll_ms(p->b.cq, &wc, VT_QUIET_MS))
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	destroy(&p->a);
	while (vt_poll_ms(p->a.cq, &wc, VT_QUIET_MS))
		assert_in_range(wc.wr_id, 0, 9);
}

/* The survivor's completions on a CQ that both use are all still there, in order. */
vt_test(completions_of_others_on_the_cq_stay)
{
	struct vt_options opt = { .type = IBV_QPT_UD };
	struct ibv_qp_init_attr init;
	struct vt_end a, b;

	vt_end_open(&a, &opt);
	b = a;
	init = (struct ibv_qp_init_attr){ .send_cq = a.cq, .recv_cq = a.cq,
					  .cap = { 64, 64, 1, 1, 0 }, .qp_type = IBV_QPT_UD };
	b.qp = vt_made(ibv_create_qp(vt.pd, &init));
	vt_climb(a.qp, &opt, IBV_QPS_RTS, 0);
	vt_climb(b.qp, &opt, IBV_QPS_RTS, 0);
	for (uint64_t i = 0; i < 20; i++) {
		vt_send(&a, &a, 100 + i);
		vt_send(&b, &b, 200 + i);
	}
	assert_int_equal(ibv_destroy_qp(a.qp), 0);
	a.qp = NULL;
	for (uint64_t i = 0; i < 20; i++)
		vt_expect(b.cq, 200 + i, IBV_WC_SUCCESS);
	vt_expect_none(b.cq);
	assert_int_equal(ibv_destroy_qp(b.qp), 0);
	vt_end_close(&a);
}

/* Another thread polls all the time while QPs with full queues come and go. */
vt_pair_test(a_poller_in_another_thread_survives, .cqe = 1024)
{
	struct poller poller = { .stop = false };
	pthread_t thread;

	poller.cq[0] = p->a.cq;
	poller.cq[1] = p->b.cq;
	assert_int_equal(pthread_create(&thread, NULL, poll_for_ever, &poller), 0);
	for (int round = 0; round < 100; round++) {
		struct ibv_qp_init_attr init = { .send_cq = p->a.cq, .recv_cq = p->a.cq,
						 .cap = { 64, 64, 1, 1, 0 },
						 .qp_type = IBV_QPT_RC };

		for (uint64_t i = 0; i < 32; i++) {
			vt_recv(&p->b, i);
			vt_send(&p->a, &p->b, i);
		}
		if (round & 1)
			vt_sleep_ms(1);
		if (round & 2)
			assert_int_equal(vt_modify(p->a.qp, IBV_QPS_ERR), 0);
		destroy(&p->a);
		destroy(&p->b);
		p->a.qp = ibv_create_qp(vt.pd, &init);
		init.send_cq = init.recv_cq = p->b.cq;
		p->b.qp = ibv_create_qp(vt.pd, &init);
		assert_non_null(p->a.qp);
		assert_non_null(p->b.qp);
		vt_pair_climb(p);
	}
	/* It may not have had the processor in time for any of these: one more, which stays. */
	vt_recv(&p->b, 0);
	vt_send(&p->a, &p->b, 0);
	while (!atomic_load(&poller.polled))
		vt_sleep_ms(1);
	atomic_store(&poller.stop, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(atomic_load(&poller.failed));
}

/* A notification of what is gone is only an event more: the CQ is found empty. */
vt_test(an_event_of_vanished_completions_is_harmless)
{
	struct ibv_comp_channel *channel = vt_made(ibv_create_comp_channel(vt.ctx));
	struct vt_options opt = { .type = IBV_QPT_UD, .channel = channel };
	struct ibv_cq *cq;
	struct vt_pair p;
	void *context;

	vt_pair_open(&p, &opt);
	assert_int_equal(ibv_req_notify_cq(p.a.cq, 0), 0);
	vt_send(&p.a, &p.b, 1);
	assert_true(vt_readable(channel->fd, VT_WAIT_MS));
	destroy(&p.a);
	assert_int_equal(ibv_get_cq_event(channel, &cq, &context), 0);
	assert_ptr_equal(cq, p.a.cq);
	vt_expect_none(cq);
	ibv_ack_cq_events(cq, 1);
	vt_pair_close(&p);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

/* --- how to do it --- */

static void expect_flushed(struct ibv_cq *cq, uint64_t first, int count)
{
	for (int i = 0; i < count; i++)
		vt_expect(cq, first + (uint64_t)i, IBV_WC_WR_FLUSH_ERR);
}

/*
 * destroy: "It is considered a good programming practice to modify the Queue Pair into the Error
 * state and poll all of the relevant Work Completions prior to destroying a Queue Pair."
 */
/*
 * destroy: "drain the CQ by calling ibv_poll_cq and either wait for CQ to be empty or the number
 * of Poll CQ operations has exceeded CQ capacity size"
 */
vt_end_test(error_state_and_polling_get_every_request_back)
{
	struct ibv_cq *cq;

	aim_at_nobody(end, &end->opt);
	cq = end->cq;
	for (uint64_t i = 0; i < 10; i++)
		vt_send(end, end, 200 + i);
	assert_int_equal(vt_modify(end->qp, IBV_QPS_ERR), 0);
	expect_flushed(cq, 200, 10);
	for (uint64_t i = 0; i < 10; i++)
		vt_recv(end, 100 + i);
	expect_flushed(cq, 100, 10);
	vt_expect_none(cq);
	destroy(end);
}

/*
 * destroy: "Doing so before resizing the CQ, attaching a new Queue Pair to the CQ or reopening the
 * Queue Pair, will help avoiding CQ overflow."
 */
vt_pair_test(a_drained_cq_can_be_resized_and_used_again, .cqe = 64,
	     .recv_wr = 32, .send_wr = 32)
{
	for (int round = 0; round < 20; round++) {
		for (uint64_t i = 0; i < 32; i++)
			vt_recv(&p->b, 100 + i);
		assert_int_equal(vt_modify(p->b.qp, IBV_QPS_ERR), 0);
		expect_flushed(p->b.cq, 100, 32);
		assert_int_equal(ibv_resize_cq(p->b.cq, round & 1 ? 64 : 32), 0);
		assert_int_equal(vt_modify(p->b.qp, IBV_QPS_RESET), 0);
		vt_climb(p->b.qp, &p->opt, IBV_QPS_RTS, p->a.qp->qp_num);
	}
	vt_no_event();
}

/*
 * destroy: "it is recommended to wait for the affiliated event IBV_EVENT_QP_LAST_WQE_REACHED after
 * modifying the Queue Pair to the Error state"
 */
/* destroy: "Wait for the affiliated event IBV_EVENT_QP_LAST_WQE_REACHED" */
vt_test(last_wqe_reached_comes_once_and_after_it_nothing_is_taken)
{
	static const enum ibv_qp_type with_srq[] = { IBV_QPT_RC, IBV_QPT_UD };

	for (int i = 0; i < 2; i++) {
		struct vt_options opt = { .type = with_srq[i], .srq = true, .no_retry = true,
					  .timeout = 8 };
		struct ibv_async_event event;
		struct vt_pair p;

		vt_pair_open(&p, &opt);
		for (uint64_t n = 0; n < 4; n++)
			vt_recv(&p.b, 100 + n);
		vt_send(&p.a, &p.b, 1);
		vt_expect(p.b.cq, 100, IBV_WC_SUCCESS);
		vt_expect(p.a.cq, 1, IBV_WC_SUCCESS);
		assert_int_equal(vt_modify(p.b.qp, IBV_QPS_ERR), 0);
		event = vt_event(IBV_EVENT_QP_LAST_WQE_REACHED);
		assert_ptr_equal(event.element.qp, p.b.qp);
		ibv_ack_async_event(&event);
		/* What is in an SRQ belongs to nobody yet: it is not flushed. */
		vt_expect_none(p.b.cq);
		assert_int_equal(vt_modify(p.b.qp, IBV_QPS_ERR), 0);
		vt_no_event();
		destroy(&p.b);
		vt_pair_close(&p);
	}
}

/* Without an SRQ there is nothing to be told. */
vt_pairs_test(without_an_srq_there_is_no_such_event, i, 0, VT_TYPES, .type = vt_types[i])
{
	assert_int_equal(vt_modify(p->b.qp, IBV_QPS_ERR), 0);
	vt_no_event();
}

/*
 * A message of two packets of which the first came has a request of the SRQ in hand. Moved to the
 * error state, the QP gives it back as flushed; destroyed, it is the leak that is spoken of.
 */
/* destroy: "Not doing so, may cause Work Request leakage." */
vt_test(a_request_in_hand_is_flushed_by_the_error_state)
{
	struct vt_options opt = { .type = IBV_QPT_RC, .srq = true, .bytes = 1 << 20,
				  .mtu = IBV_MTU_256 };

	for (int i = 0; i < 30; i++) {
		struct ibv_srq_attr srq;
		struct ibv_wc wc;
		struct vt_pair p;
		int back = 0;

		vt_pair_open(&p, &opt);
		assert_int_equal(ibv_query_srq(p.b.srq, &srq), 0);
		vt_recv(&p.b, 7);
		vt_start(IBV_WR_SEND, &p.a, &p.b, 1 << 20);
		assert_int_equal(vt_modify(p.b.qp, IBV_QPS_ERR), 0);
		vt_event_acked(IBV_EVENT_QP_LAST_WQE_REACHED);
		if (vt_poll_ms(p.b.cq, &wc, 5)) {
			assert_int_equal(wc.wr_id, 7);
			back = 1;
		}
		/* Either it came back, or it still waits in the SRQ for another QP. */
		for (uint32_t n = 0; n < srq.max_wr - 1u + (uint32_t)back; n++)
			vt_recv(&p.b, 8);
		assert_int_equal(vt_recv_at(&p.b, 8, 0, 8), ENOMEM);
		vt_pair_close(&p);
	}
}

/* destroy: "Move the Queue Pair into the Error state" */
/*
 * destroy: "post another Work Request that will complete on the same CQ and wait for this Work
 * Request return as a Wore Completion"
 */
/* destroy: "Destroy the QP by calling ibv_destroy_qp()" */
vt_pair_test(the_advised_steps_work, .srq = true, .no_retry = true,
	     .timeout = 8)
{
	uint64_t id = 0;
	struct ibv_wc wc;
	struct vt_wr w;

	for (uint64_t i = 0; i < 16; i++)
		vt_recv(&p->b, 100 + i);
	for (uint64_t i = 0; i < 8; i++) {
		vt_send(&p->a, &p->b, 200 + i);
		vt_wr(&w, IBV_WR_RDMA_WRITE, &p->b, &p->a, 4096);
		w.wr.wr_id = 300 + i;
		vt_post(&p->b, &w);
	}
	assert_int_equal(vt_modify(p->b.qp, IBV_QPS_ERR), 0);
	vt_event_acked(IBV_EVENT_QP_LAST_WQE_REACHED);
	w.wr.wr_id = 999;
	vt_post(&p->b, &w);
	while (id != 999) {
		assert_true(vt_poll_ms(p->b.cq, &wc, VT_WAIT_MS));
		id = wc.wr_id;
	}
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	vt_expect_none(p->b.cq);
	destroy(&p->b);
}

/* --- multicast --- */

/*
 * destroy: "The destruction of an Unreliable Datagram Queue Pair will fail if it is still attached
 * to a multicast group."
 */
/* destroy: "EBUSY QP is still attached to one or more multicast groups" */
/* create: "ibv_destroy_qp() fails if the QP is attached to a multicast group" */
/*
 * create_ex: "ibv_destroy_qp() fails if the QP is attached to a multicast group."
 */
vt_end_test(what_is_attached_to_a_group_stays, .type = IBV_QPT_UD)
{
	static const union ibv_gid groups[] = {
		{ .raw = { [10] = 0xff, [11] = 0xff, 239, 79, 0, 1 } },
		{ .raw = { [10] = 0xff, [11] = 0xff, 239, 79, 0, 2 } },
	};

	vt_climb(end->qp, &end->opt, IBV_QPS_RTS, 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ibv_attach_mcast(end->qp, &groups[i], 0), 0);
	for (int i = 0; i < 2; i++) {
		/* Nothing has happened to it: it receives as before. */
		assert_int_equal(ibv_destroy_qp(end->qp), EBUSY);
		assert_int_equal(vt_state(end->qp), IBV_QPS_RTS);
		vt_recv(end, 7);
		vt_send(end, end, 8);
		for (int n = 0; n < 2; n++) {
			struct ibv_wc wc;

			assert_true(vt_poll_ms(end->cq, &wc, VT_WAIT_MS));
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
		}
		assert_int_equal(ibv_detach_mcast(end->qp, &groups[i], 0), 0);
	}
	assert_int_equal(ibv_destroy_qp(end->qp), 0);
	end->qp = NULL;
}

/* --- events --- */

struct destroyer {
	struct ibv_qp *qp;
	_Atomic bool done;
	int err;
};

static void *destroy_in_thread(void *arg)
{
	struct destroyer *d = arg;

	d->err = ibv_destroy_qp(d->qp);
	atomic_store(&d->done, true);
	return NULL;
}

/* destroy: "calling to ibv_destroy_qp() will never end until that event will be acknowledged" */
/*
 * destroy: "There is at least one affiliated asynchronous event on that QP that was read without a
 * proper acknowledgement."
 */
vt_pair_test(it_waits_for_events_that_were_read, .srq = true)
{
	struct ibv_async_event event;
	struct destroyer d = { .done = false };
	pthread_t thread;

	assert_int_equal(vt_modify(p->b.qp, IBV_QPS_ERR), 0);
	event = vt_event(IBV_EVENT_QP_LAST_WQE_REACHED);
	d.qp = p->b.qp;
	p->b.qp = NULL;
	assert_int_equal(pthread_create(&thread, NULL, destroy_in_thread, &d), 0);
	vt_sleep_ms(200);
	assert_false(atomic_load(&d.done));
	ibv_ack_async_event(&event);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(atomic_load(&d.done));
	assert_int_equal(d.err, 0);
}

/* What was not read is taken back: nobody is told of a QP that is no more. */
vt_pair_test(it_does_not_wait_for_events_that_nobody_read, .srq = true)
{
	assert_int_equal(vt_modify(p->b.qp, IBV_QPS_ERR), 0);
	assert_true(vt_readable(vt.ctx->async_fd, VT_WAIT_MS));
	destroy(&p->b);
	vt_no_event();
}

/* Two QPs in trouble: destroying one leaves the other's event to be read. */
vt_test(events_of_others_stay)
{
	struct vt_options opt = { .type = IBV_QPT_RC, .srq = true };
	struct ibv_async_event event;
	struct vt_pair p, q;

	vt_pair_open(&p, &opt);
	vt_pair_open(&q, &opt);
	assert_int_equal(vt_modify(p.b.qp, IBV_QPS_ERR), 0);
	assert_int_equal(vt_modify(q.b.qp, IBV_QPS_ERR), 0);
	destroy(&p.b);
	event = vt_event(IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_ptr_equal(event.element.qp, q.b.qp);
	ibv_ack_async_event(&event);
	vt_no_event();
	vt_pair_close(&p);
	vt_pair_close(&q);
}
