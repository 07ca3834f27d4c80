/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

/*
 * The state machine of a queue pair through ibv_modify_qp(3): what is allowed, what is refused and
 * then changes nothing, and what each state means for the work requests.
 */

enum { STATES = IBV_QPS_ERR + 1, NOBODY = 0x3fff };

static bool has_state(enum ibv_qp_type type, enum ibv_qp_state state)
{
	return type != IBV_QPT_RC || state != IBV_QPS_SQE;
}

/* A refusal: this errno, and a query finds what it found before. */
static void expect_refused(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, int err)
{
	struct ibv_qp_attr before, after;
	enum ibv_qp_state state = qp->state;

	memset(&before, 0, sizeof(before));
	memset(&after, 0, sizeof(after));
	before = vt_query(qp, -1);
	assert_int_equal(ibv_modify_qp(qp, attr, mask), err);
	after = vt_query(qp, -1);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(qp->state, state);
}

/* --- transitions --- */

/* From, to: allowed with nothing but the state; the way up needs more, and is climbed elsewhere. */
static bool plain_transition(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to)
{
	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return true;
	if (from == IBV_QPS_INIT && to == IBV_QPS_INIT)
		return true;
	if (from == IBV_QPS_INIT && to == IBV_QPS_RTR)
		return type == IBV_QPT_UD;
	if (from == IBV_QPS_RTS || from == IBV_QPS_SQD)
		return to == IBV_QPS_RTS || to == IBV_QPS_SQD;
	return from == IBV_QPS_SQE && to == IBV_QPS_RTS;
}

vt_test(every_transition_is_allowed_or_refused)
{
	for (int i = 0; i < VT_TYPES * STATES * STATES; i++) {
		enum ibv_qp_type type = vt_types[i / STATES / STATES];
		enum ibv_qp_state from = i / STATES % STATES, to = i % STATES;
		struct vt_options opt = { .type = type };
		struct ibv_qp_attr attr = { .qp_state = to };
		struct vt_end end;

		if (!has_state(type, from))
			continue;
		vt_end_open(&end, &opt);
		vt_bring_to(&end, from);
		if (!plain_transition(type, from, to)) {
			expect_refused(end.qp, &attr, IBV_QP_STATE, EINVAL);
		} else {
			assert_int_equal(vt_modify(end.qp, to), 0);
			assert_int_equal(vt_state(end.qp), to);
			assert_int_equal(end.qp->state, to);
		}
		vt_end_close(&end);
	}
}

vt_end_test(no_such_state_is_refused, .type = IBV_QPT_UD)
{
	static const int none[] = { IBV_QPS_UNKNOWN, 8, 1000, -1 };

	for (unsigned i = 0; i < 4; i++) {
		struct ibv_qp_attr attr = { .qp_state = none[i] };

		expect_refused(end->qp, &attr, IBV_QP_STATE, EINVAL);
	}
}

/* ibv_modify_qp(3), the tables of attributes: without any one of them the step is refused. */
vt_ends_test(every_required_attribute_is_required, i, 0, VT_TYPES, .type = vt_types[i])
{
	struct ibv_qp_attr attr;

	for (enum ibv_qp_state to = IBV_QPS_INIT; to <= IBV_QPS_RTS; to++) {
		int mask = vt_attr(&attr, &end->opt, to, end->qp->qp_num);

		for (int bit = IBV_QP_CUR_STATE; bit <= IBV_QP_RATE_LIMIT; bit <<= 1)
			if (mask & bit)
				expect_refused(end->qp, &attr, mask & ~bit, EINVAL);
		assert_int_equal(ibv_modify_qp(end->qp, &attr, mask), 0);
	}
}

/* What may be added to the step from one state to the next (IBA 10.3.1). */
static int optional_mask(enum ibv_qp_type type, enum ibv_qp_state to)
{
	static const int rtr[] = { IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH,
				   IBV_QP_PKEY_INDEX | IBV_QP_QKEY };
	static const int rts[] = { IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH |
					   IBV_QP_PATH_MIG_STATE | IBV_QP_RATE_LIMIT,
				   IBV_QP_CUR_STATE | IBV_QP_QKEY | IBV_QP_RATE_LIMIT };
	int mask = 0;

	if (to == IBV_QPS_RTR)
		mask = rtr[type == IBV_QPT_UD];
	else if (to == IBV_QPS_RTS)
		mask = rts[type == IBV_QPT_UD];
	return mask | (to == IBV_QPS_RTS && type == IBV_QPT_RC ? IBV_QP_MIN_RNR_TIMER : 0);
}

/* Queues keep their size (no IBV_DEVICE_RESIZE_MAX_WR): never to be had. */
static int refusal(int bit)
{
	return bit == IBV_QP_CAP ? EOPNOTSUPP : EINVAL;
}

/* A bit that has no business in a step, known or not, is refused. */
vt_ends_test(no_other_attribute_is_allowed, i, 0, VT_TYPES, .type = vt_types[i])
{
	struct ibv_qp_attr attr;

	for (enum ibv_qp_state to = IBV_QPS_INIT; to <= IBV_QPS_RTS; to++) {
		int mask = vt_attr(&attr, &end->opt, to, end->qp->qp_num);
		int allowed = mask | optional_mask(vt_types[i], to);

		for (int bit = 1; bit > 0 && bit < 1 << 30; bit <<= 1)
			if (!(allowed & bit))
				expect_refused(end->qp, &attr, mask | bit, refusal(bit));
		assert_int_equal(ibv_modify_qp(end->qp, &attr, mask), 0);
	}
	for (int bit = IBV_QP_STATE << 1; bit > 0 && bit < 1 << 30; bit <<= 1) {
		attr.qp_state = IBV_QPS_ERR;
		if (bit != IBV_QP_CUR_STATE)
			expect_refused(end->qp, &attr, IBV_QP_STATE | bit, refusal(bit));
	}
}

/* --- values --- */

struct bad_value {
	enum ibv_qp_state to;
	void (*spoil)(struct ibv_qp_attr *attr);
};

static void spoil_port0(struct ibv_qp_attr *a) { a->port_num = 0; }
static void spoil_port2(struct ibv_qp_attr *a) { a->port_num = 2; }
static void spoil_pkey(struct ibv_qp_attr *a) { a->pkey_index = 1; }
static void spoil_access(struct ibv_qp_attr *a) { a->qp_access_flags = 1 << 15; }
static void spoil_mtu0(struct ibv_qp_attr *a) { a->path_mtu = 0; }
static void spoil_mtu6(struct ibv_qp_attr *a) { a->path_mtu = IBV_MTU_4096 + 1; }
static void spoil_qpn(struct ibv_qp_attr *a) { a->dest_qp_num = 1 << 24; }
static void spoil_gid_index(struct ibv_qp_attr *a) { a->ah_attr.grh.sgid_index = 255; }
static void spoil_av_port(struct ibv_qp_attr *a) { a->ah_attr.port_num = 2; }
static void spoil_grh(struct ibv_qp_attr *a) { a->ah_attr.is_global = 0; }
static void spoil_dgid(struct ibv_qp_attr *a) { memset(&a->ah_attr.grh.dgid, 0, 16); }
static void spoil_dest_rd(struct ibv_qp_attr *a) { a->max_dest_rd_atomic = 255; }
static void spoil_rnr_timer(struct ibv_qp_attr *a) { a->min_rnr_timer = 32; }
static void spoil_timeout(struct ibv_qp_attr *a) { a->timeout = 32; }
static void spoil_retry(struct ibv_qp_attr *a) { a->retry_cnt = 8; }
static void spoil_rnr_retry(struct ibv_qp_attr *a) { a->rnr_retry = 8; }
static void spoil_rd(struct ibv_qp_attr *a) { a->max_rd_atomic = 255; }

static const struct bad_value bad_values[] = {
	{ IBV_QPS_INIT, spoil_port0 },	   { IBV_QPS_INIT, spoil_port2 },
	{ IBV_QPS_INIT, spoil_pkey },	   { IBV_QPS_INIT, spoil_access },
	{ IBV_QPS_RTR, spoil_mtu0 },	   { IBV_QPS_RTR, spoil_mtu6 },
	{ IBV_QPS_RTR, spoil_qpn },	   { IBV_QPS_RTR, spoil_gid_index },
	{ IBV_QPS_RTR, spoil_av_port },	   { IBV_QPS_RTR, spoil_grh },
	{ IBV_QPS_RTR, spoil_dgid },	   { IBV_QPS_RTR, spoil_dest_rd },
	{ IBV_QPS_RTR, spoil_rnr_timer },  { IBV_QPS_RTS, spoil_timeout },
	{ IBV_QPS_RTS, spoil_retry },	   { IBV_QPS_RTS, spoil_rnr_retry },
	{ IBV_QPS_RTS, spoil_rd },
};

vt_end_test(every_wrong_value_is_refused)
{
	struct ibv_qp_attr attr, bad;

	for (enum ibv_qp_state to = IBV_QPS_INIT; to <= IBV_QPS_RTS; to++) {
		int mask = vt_attr(&attr, &end->opt, to, end->qp->qp_num);

		for (unsigned i = 0; i < VT_COUNT(bad_values); i++) {
			if (bad_values[i].to != to)
				continue;
			bad = attr;
			bad_values[i].spoil(&bad);
			expect_refused(end->qp, &bad, mask, EINVAL);
		}
		assert_int_equal(ibv_modify_qp(end->qp, &attr, mask), 0);
	}
}

vt_end_test(what_was_set_is_what_is_told, .timeout = 17, .retry_cnt = 5,
	    .rnr_retry = 3, .rnr_timer = 22, .rd_atomic = 9, .mtu = IBV_MTU_2048,
	    .qp_access = IBV_ACCESS_REMOTE_READ)
{
	struct ibv_qp_attr attr;

	vt_climb(end->qp, &end->opt, IBV_QPS_RTS, 0x123456);
	attr = vt_query(end->qp, -1);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
	assert_int_equal(attr.cur_qp_state, IBV_QPS_RTS);
	assert_int_equal(attr.path_mtu, IBV_MTU_2048);
	assert_int_equal(attr.path_mig_state, IBV_MIG_MIGRATED);
	assert_int_equal(attr.dest_qp_num, 0x123456);
	assert_int_equal(attr.qp_access_flags, IBV_ACCESS_REMOTE_READ);
	assert_int_equal(attr.timeout, 17);
	assert_int_equal(attr.retry_cnt, 5);
	assert_int_equal(attr.rnr_retry, 3);
	assert_int_equal(attr.min_rnr_timer, 22);
	assert_int_equal(attr.max_rd_atomic, 9);
	assert_int_equal(attr.max_dest_rd_atomic, 9);
	assert_int_equal(attr.port_num, 1);
	assert_int_equal(attr.pkey_index, 0);
	assert_int_equal(attr.sq_draining, 0);
	assert_int_equal(attr.ah_attr.is_global, 1);
	assert_int_equal(attr.ah_attr.port_num, 1);
	assert_int_equal(attr.ah_attr.grh.sgid_index, vt.gid_index);
	assert_memory_equal(&attr.ah_attr.grh.dgid, &vt.gid, sizeof(vt.gid));
}

/*
 * PSNs have 24 bits; what stands above them is not looked at, as by mlx5 and rxe. A hop limit of 0
 * is no limit: for RoCE the kernel puts the route's in the place of whatever was set.
 */
vt_end_test(psns_have_24_bits_and_no_hop_limit_is_good, .type = IBV_QPT_UC)
{
	struct ibv_qp_attr attr;
	int mask;

	vt_climb(end->qp, &end->opt, IBV_QPS_INIT, 0);
	mask = vt_attr(&attr, &end->opt, IBV_QPS_RTR, end->qp->qp_num);
	attr.rq_psn = 0x7f000005;
	attr.ah_attr.grh.hop_limit = 0;
	assert_int_equal(ibv_modify_qp(end->qp, &attr, mask), 0);
	mask = vt_attr(&attr, &end->opt, IBV_QPS_RTS, end->qp->qp_num);
	attr.sq_psn = 0xff000005;
	assert_int_equal(ibv_modify_qp(end->qp, &attr, mask), 0);
	attr = vt_query(end->qp, -1);
	assert_int_equal(attr.rq_psn, 5);
	assert_int_equal(attr.sq_psn, 5);
	vt_exchange(end, end);
}

/* "the current state is this" is checked before anything else. */
vt_end_test(cur_state_must_be_true)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .min_rnr_timer = 5 };
	int mask = IBV_QP_STATE | IBV_QP_CUR_STATE;

	vt_climb(end->qp, &end->opt, IBV_QPS_RTS, end->qp->qp_num);
	for (attr.cur_qp_state = 0; attr.cur_qp_state <= IBV_QPS_UNKNOWN; attr.cur_qp_state++)
		if (attr.cur_qp_state != IBV_QPS_RTS)
			expect_refused(end->qp, &attr, mask | IBV_QP_MIN_RNR_TIMER, EINVAL);
	attr.cur_qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(end->qp, &attr, mask | IBV_QP_MIN_RNR_TIMER), 0);
}

/* In RTS, rights may be changed while traffic flows (IBA 10.3.1). */
vt_pair_test(rights_can_be_changed_in_rts)
{
	struct ibv_qp_attr attr = { .qp_access_flags = 0 };
	struct vt_wr w;

	vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, 8);
	vt_done(&p->a, &w, IBV_WC_SUCCESS);
	assert_int_equal(ibv_modify_qp(p->b.qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
	vt_done(&p->a, &w, IBV_WC_REM_ACCESS_ERR);
	vt_event_acked(IBV_EVENT_QP_ACCESS_ERR);
}

/* --- posting --- */

/* ibv_post_send: EINVAL before RTS; ibv_post_recv: EINVAL in RESET. */
vt_test(posting_before_its_time_is_refused)
{
	for (int i = 0; i < VT_TYPES; i++) {
		struct vt_options opt = { .type = vt_types[i] };
		struct vt_end end;
		struct vt_wr w;

		vt_end_open(&end, &opt);
		vt_wr(&w, IBV_WR_SEND, &end, &end, 8);
		assert_int_equal(vt_try(&end, &w), EINVAL);
		assert_int_equal(vt_recv_at(&end, 5, 0, 100), EINVAL);
		vt_climb(end.qp, &opt, IBV_QPS_INIT, end.qp->qp_num);
		assert_int_equal(vt_try(&end, &w), EINVAL);
		vt_recv(&end, 5);
		vt_expect_none(end.cq);
		vt_end_close(&end);
		vt_end_open(&end, &opt);
		vt_climb(end.qp, &opt, IBV_QPS_RTR, end.qp->qp_num);
		vt_wr(&w, IBV_WR_SEND, &end, &end, 8);
		assert_int_equal(vt_try(&end, &w), EINVAL);
		vt_recv(&end, 5);
		vt_expect_none(end.cq);
		vt_end_close(&end);
	}
}

/* What was posted in INIT receives what comes in RTR, before anything can be sent. */
vt_pairs_test(rtr_receives, i, 0, VT_TYPES, .type = vt_types[i], .state = IBV_QPS_INIT)
{
	vt_recv(&p->b, 1);
	assert_int_equal(vt_modify(p->a.qp, IBV_QPS_RESET), 0);
	vt_climb(p->a.qp, &p->opt, IBV_QPS_RTS, p->b.qp->qp_num);
	assert_int_equal(vt_modify(p->b.qp, IBV_QPS_RESET), 0);
	vt_climb(p->b.qp, &p->opt, IBV_QPS_INIT, p->a.qp->qp_num);
	vt_recv(&p->b, 2); /* the first went with RESET */
	assert_int_equal(vt_modify(p->b.qp, IBV_QPS_RESET), 0);
	vt_climb(p->b.qp, &p->opt, IBV_QPS_RTR, p->a.qp->qp_num);
	vt_exchange(&p->a, &p->b);
	vt_event_acked(IBV_EVENT_COMM_EST);
}

/* --- ERR --- */

/* Everything outstanding comes back, in order, signaled or not, and so does what comes later. */
vt_ends_test(the_error_state_flushes_in_order, i, 0, VT_TYPES, .type = vt_types[i])
{
	struct vt_wr w;

	/* RC: nobody answers, so all stays. UC, UD: the queue stands still in SQD. */
	vt_climb(end->qp, &end->opt, IBV_QPS_RTS, (end->qp->qp_num & ~0x3fffu) | NOBODY);
	if (vt_types[i] != IBV_QPT_RC)
		assert_int_equal(vt_modify(end->qp, IBV_QPS_SQD), 0);
	vt_wr(&w, IBV_WR_SEND, end, end, 8);
	for (w.wr.wr_id = 0; w.wr.wr_id < 20; w.wr.wr_id++) {
		w.wr.send_flags = w.wr.wr_id & 1 ? IBV_SEND_SIGNALED : 0;
		vt_post(end, &w);
	}
	assert_int_equal(vt_modify(end->qp, IBV_QPS_ERR), 0);
	for (uint64_t n = 0; n < 20; n++)
		vt_expect(end->cq, n, IBV_WC_WR_FLUSH_ERR);
	for (uint64_t n = 0; n < 5; n++) {
		vt_recv(end, 30 + n);
		vt_send(end, end, 40 + n);
		vt_expect(end->cq, 30 + n, IBV_WC_WR_FLUSH_ERR);
		vt_expect(end->cq, 40 + n, IBV_WC_WR_FLUSH_ERR);
	}
	vt_expect_none(end->cq);
}

vt_ends_test(the_error_state_flushes_receives_in_order, i, 0, VT_TYPES * 2, .type = vt_types[i / 2])
{
	vt_climb(end->qp, &end->opt, i & 1 ? IBV_QPS_RTS : IBV_QPS_INIT, end->qp->qp_num);
	for (uint64_t n = 0; n < 20; n++)
		vt_recv(end, n);
	assert_int_equal(vt_modify(end->qp, IBV_QPS_ERR), 0);
	for (uint64_t n = 0; n < 20; n++) {
		struct ibv_wc wc = vt_expect(end->cq, n, IBV_WC_WR_FLUSH_ERR);

		assert_int_equal(wc.qp_num, end->qp->qp_num);
	}
}

/* --- SQD --- */

/* Draining ends: what was begun is finished, what was not begun waits, and an event tells. */
vt_pair_test(sqd_drains_tells_and_goes_on, .bytes = 1 << 20)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct ibv_async_event event;
	struct vt_wr w;

	vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, 1 << 20);
	for (w.wr.wr_id = 0; w.wr.wr_id < 8; w.wr.wr_id++)
		vt_post(&p->a, &w);
	assert_int_equal(
		ibv_modify_qp(p->a.qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
	event = vt_event(IBV_EVENT_SQ_DRAINED);
	assert_ptr_equal(event.element.qp, p->a.qp);
	ibv_ack_async_event(&event);
	attr = vt_query(p->a.qp, IBV_QP_STATE);
	assert_int_equal(attr.qp_state, IBV_QPS_SQD);
	assert_int_equal(attr.sq_draining, 0);
	/* Posting is allowed; nothing leaves. */
	memset(p->a.buf, 0x5a, 1 << 20);
	w.wr.wr_id = 8;
	vt_post(&p->a, &w);
	vt_no_event();
	assert_int_not_equal(p->b.buf[(1 << 20) - 1], 0x5a);
	assert_int_equal(vt_modify(p->a.qp, IBV_QPS_RTS), 0);
	for (uint64_t n = 0; n <= 8; n++)
		vt_expect(p->a.cq, n, IBV_WC_SUCCESS);
	assert_true(vt_is_octet(p->b.buf, 1 << 20, 0x5a));
}

/* Nobody answers: the queue stays "draining", until it fails. */
vt_end_test(sq_draining_is_told_while_it_lasts, .timeout = 14, .retry_cnt = 2)
{
	struct ibv_qp_attr attr;

	vt_climb(end->qp, &end->opt, IBV_QPS_RTS, (end->qp->qp_num & ~0x3fffu) | NOBODY);
	vt_send(end, end, 1);
	assert_int_equal(vt_modify(end->qp, IBV_QPS_SQD), 0);
	attr = vt_query(end->qp, IBV_QP_STATE);
	assert_int_equal(attr.qp_state, IBV_QPS_SQD);
	assert_int_equal(attr.sq_draining, 1);
	vt_expect(end->cq, 1, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(vt_state(end->qp), IBV_QPS_ERR);
	vt_no_event(); /* it was not asked for */
}

/* An empty queue is drained at once; the receive side goes on. */
vt_pairs_test(sqd_of_an_idle_queue_and_its_receiver, i, 0, VT_TYPES, .type = vt_types[i])
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };

	assert_int_equal(
		ibv_modify_qp(p->b.qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY),
		0);
	vt_event_acked(IBV_EVENT_SQ_DRAINED);
	vt_exchange(&p->a, &p->b);
	vt_no_event();
}

/* What can only be changed there: the path and its timers (IBA 10.3.1). */
vt_pair_test(sqd_allows_what_rts_does_not)
{
	struct ibv_qp_attr attr = { .timeout = 18, .retry_cnt = 4, .rnr_retry = 2 };
	int mask = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;

	expect_refused(p->a.qp, &attr, mask, EINVAL);
	assert_int_equal(vt_modify(p->a.qp, IBV_QPS_SQD), 0);
	assert_int_equal(ibv_modify_qp(p->a.qp, &attr, mask), 0);
	attr = vt_query(p->a.qp, mask);
	assert_int_equal(attr.timeout, 18);
	assert_int_equal(attr.retry_cnt, 4);
	assert_int_equal(attr.rnr_retry, 2);
	assert_int_equal(vt_modify(p->a.qp, IBV_QPS_RTS), 0);
	vt_recv(&p->b, 1);
	vt_send(&p->a, &p->b, 2);
	vt_expect(p->a.cq, 2, IBV_WC_SUCCESS);
}

/* --- SQE --- */

/* UC and UD: a send that fails stops sends only, and RTS mends it (IBA 10.3.1.6). */
vt_ends_test(sqe_flushes_sends_receives_on_and_recovers, i, 1, VT_TYPES, .type = vt_types[i])
{
	struct vt_wr w;

	vt_climb(end->qp, &end->opt, IBV_QPS_RTS, end->qp->qp_num);
	assert_int_equal(vt_modify(end->qp, IBV_QPS_SQD), 0);
	vt_wr(&w, IBV_WR_SEND, end, end, 8);
	for (w.wr.wr_id = 1; w.wr.wr_id <= 5; w.wr.wr_id++) {
		w.sge.lkey = w.wr.wr_id == 3 ? 0 : end->mr->lkey;
		vt_post(end, &w);
	}
	vt_recv(end, 11);
	vt_recv(end, 12);
	vt_recv(end, 13);
	assert_int_equal(vt_modify(end->qp, IBV_QPS_RTS), 0);
	vt_expect(end->cq, 1, IBV_WC_SUCCESS);
	vt_expect(end->cq, 2, IBV_WC_SUCCESS);
	vt_expect(end->cq, 3, IBV_WC_LOC_PROT_ERR);
	vt_expect(end->cq, 4, IBV_WC_WR_FLUSH_ERR);
	vt_expect(end->cq, 5, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(vt_state(end->qp), IBV_QPS_SQE);
	vt_expect(end->cq, 11, IBV_WC_SUCCESS);
	vt_expect(end->cq, 12, IBV_WC_SUCCESS);
	vt_send(end, end, 6);
	vt_expect(end->cq, 6, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(vt_modify(end->qp, IBV_QPS_RTS), 0);
	vt_send(end, end, 7);
	vt_expect(end->cq, 7, IBV_WC_SUCCESS);
	vt_expect(end->cq, 13, IBV_WC_SUCCESS);
	vt_no_event();
}

/* RC stops altogether. */
vt_pair_test(a_failed_send_of_rc_ends_in_the_error_state)
{
	struct vt_wr w;

	vt_recv(&p->a, 9);
	vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, 8);
	w.sge.lkey ^= 0xff;
	vt_done(&p->a, &w, IBV_WC_LOC_PROT_ERR);
	vt_expect(p->a.cq, 9, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(vt_state(p->a.qp), IBV_QPS_ERR);
	assert_int_equal(vt_state(p->b.qp), IBV_QPS_RTS);
}

/* --- RESET --- */

/* Everything is forgotten, what is in the CQs included; then it works as if it were new. */
vt_pairs_test(reset_forgets_all_and_the_qp_works_again, i, 0, VT_TYPES, .type = vt_types[i],
	      .in_reset = true)
{
	for (uint64_t round = 0; round < 5; round++) {
		vt_pair_climb(p);
		for (uint64_t n = 0; n < 40; n++) {
			vt_recv(&p->b, 100 * round + n);
			vt_send(&p->a, &p->b, 100 * round + n);
		}
		vt_expect(p->b.cq, 100 * round, IBV_WC_SUCCESS);
		vt_expect(p->a.cq, 100 * round, IBV_WC_SUCCESS);
		assert_int_equal(vt_modify(p->a.qp, IBV_QPS_RESET), 0);
		assert_int_equal(vt_modify(p->b.qp, IBV_QPS_RESET), 0);
		vt_expect_none(p->a.cq);
		vt_expect_none(p->b.cq);
	}
}

vt_end_test(reset_clears_the_attributes)
{
	struct ibv_qp_attr fresh, after;

	fresh = vt_query(end->qp, -1);
	vt_bring_to(end, IBV_QPS_RTS);
	assert_int_equal(vt_modify(end->qp, IBV_QPS_RESET), 0);
	after = vt_query(end->qp, -1);
	assert_int_equal(after.qp_state, IBV_QPS_RESET);
	assert_int_equal(after.dest_qp_num, fresh.dest_qp_num);
	assert_int_equal(after.qp_access_flags, fresh.qp_access_flags);
	assert_memory_equal(&after.cap, &fresh.cap, sizeof(after.cap));
}
