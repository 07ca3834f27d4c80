/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

/*
 * What ibv_modify_qp(3) lets one change once a QP sends (IBA 10.3.1, 11.2.5): in RTS, in SQD, on
 * the way back from there and from SQE. And how a queue drains while its attributes change.
 */

enum { NOBODY = 0x3fff };

enum { RC, UC, UD };

#define NEVER IBV_QP_CAP /* refused everywhere, with EOPNOTSUPP */
#define RATE IBV_QP_RATE_LIMIT

#define ANY                                                                                       \
	(IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE | RATE)

/* The steps with nothing that must be given, and what may be. */
static const struct {
	enum ibv_qp_state from, to;
	int optional[VT_TYPES];
} steps[] = {
	{ IBV_QPS_INIT, IBV_QPS_INIT,
	  { IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
	    IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
	    IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY } },
	{ IBV_QPS_RTS, IBV_QPS_RTS,
	  { ANY | IBV_QP_MIN_RNR_TIMER, ANY, IBV_QP_CUR_STATE | IBV_QP_QKEY | RATE } },
	{ IBV_QPS_RTS, IBV_QPS_SQD,
	  { IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY } },
	{ IBV_QPS_SQD, IBV_QPS_SQD,
	  { (ANY & ~IBV_QP_CUR_STATE) | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_AV |
		    IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MIN_RNR_TIMER |
		    IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC,
	    (ANY & ~IBV_QP_CUR_STATE) | IBV_QP_PKEY_INDEX | IBV_QP_AV,
	    IBV_QP_PKEY_INDEX | IBV_QP_QKEY | RATE } },
	{ IBV_QPS_SQD, IBV_QPS_RTS,
	  { ANY | IBV_QP_MIN_RNR_TIMER, ANY, IBV_QP_CUR_STATE | IBV_QP_QKEY | RATE } },
	{ IBV_QPS_SQE, IBV_QPS_RTS,
	  { 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS, IBV_QP_CUR_STATE | IBV_QP_QKEY } },
};

/* Good values for everything. */
static struct ibv_qp_attr values(const struct vt_options *opt, const struct ibv_qp *qp)
{
	struct ibv_qp_attr attr, more;

	vt_attr(&attr, opt, IBV_QPS_RTR, qp->qp_num);
	vt_attr(&more, opt, IBV_QPS_RTS, qp->qp_num);
	attr.sq_psn = more.sq_psn;
	attr.timeout = more.timeout;
	attr.retry_cnt = more.retry_cnt;
	attr.rnr_retry = more.rnr_retry;
	attr.max_rd_atomic = more.max_rd_atomic;
	attr.port_num = attr.alt_port_num = 1;
	attr.qkey = VT_QKEY;
	attr.qp_access_flags = opt->qp_access;
	attr.alt_ah_attr = attr.ah_attr;
	attr.path_mig_state = IBV_MIG_MIGRATED;
	return attr;
}

vt_test(every_attribute_of_every_step)
{
	for (unsigned i = 0; i < VT_TYPES * VT_COUNT(steps); i++) {
		struct vt_options opt = { .type = vt_types[i % VT_TYPES] };
		enum ibv_qp_state from = steps[i / VT_TYPES].from, to = steps[i / VT_TYPES].to;
		int optional = steps[i / VT_TYPES].optional[i % VT_TYPES];
		struct ibv_qp_attr attr;
		struct vt_end end;

		if (from == IBV_QPS_SQE && opt.type == IBV_QPT_RC)
			continue;
		vt_end_open(&end, &opt);
		for (int bit = IBV_QP_STATE << 1; bit <= IBV_QP_RATE_LIMIT; bit <<= 1) {
			int rc = optional & bit ? 0 : bit & NEVER ? EOPNOTSUPP : EINVAL;

			vt_bring_to(&end, from);
			attr = values(&opt, end.qp);
			attr.qp_state = to;
			attr.cur_qp_state = from;
			if (ibv_modify_qp(end.qp, &attr, IBV_QP_STATE | bit) != rc)
				fail_msg("type %d, %d to %d: %x", opt.type, from, to, bit);
			assert_int_equal(vt_state(end.qp), rc ? from : to);
		}
		/* All of them at once. */
		vt_bring_to(&end, from);
		attr = values(&opt, end.qp);
		attr.qp_state = to;
		attr.cur_qp_state = from;
		assert_int_equal(ibv_modify_qp(end.qp, &attr, IBV_QP_STATE | optional), 0);
		vt_end_close(&end);
	}
}

/* ibv_modify_qp(3): "The argument attr_mask is either 0 or ..." */
vt_ends_test(a_mask_of_0_changes_nothing, i, 0, VT_TYPES, .type = vt_types[i])
{
	struct ibv_qp_attr attr, before, after;

	for (enum ibv_qp_state at = IBV_QPS_RESET; at <= IBV_QPS_SQD; at++) {
		if (at > IBV_QPS_RESET)
			vt_bring_to(end, at);
		memset(&attr, 0xff, sizeof(attr));
		before = vt_query(end->qp, -1);
		assert_int_equal(ibv_modify_qp(end->qp, &attr, 0), 0);
		after = vt_query(end->qp, -1);
		assert_memory_equal(&before, &after, sizeof(before));
	}
}

/* A send that fails changes the state without a call; a query brings ibv_qp up to date. */
vt_end_test(a_query_renews_the_state_of_ibv_qp, .type = IBV_QPT_UD)
{
	struct ibv_qp_attr attr;

	vt_bring_to(end, IBV_QPS_SQE);
	assert_int_equal(end->qp->state, IBV_QPS_SQE);
	assert_int_equal(vt_modify(end->qp, IBV_QPS_RTS), 0);
	assert_int_equal(end->qp->state, IBV_QPS_RTS);
	attr = vt_query(end->qp, IBV_QP_STATE);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
}

/* ibv_query_qp(3): what the QP was created with, and what it got. */
vt_test(a_query_tells_the_init_attributes)
{
	for (int i = 0; i < VT_TYPES * 2; i++) {
		struct vt_options opt = { .type = vt_types[i / 2], .sq_sig_all = i & 1,
					  .srq = i & 1 };
		struct ibv_qp_init_attr init;
		struct ibv_qp_attr attr;
		struct vt_end end;

		if (i & 1 && opt.type == IBV_QPT_UC)
			continue;
		vt_end_open(&end, &opt);
		assert_int_equal(ibv_query_qp(end.qp, &attr, 0, &init), 0);
		assert_ptr_equal(init.qp_context, end.qp->qp_context);
		assert_ptr_equal(init.send_cq, end.cq);
		assert_ptr_equal(init.recv_cq, end.cq);
		assert_ptr_equal(init.srq, end.srq);
		assert_int_equal(init.qp_type, opt.type);
		assert_int_equal(init.sq_sig_all, opt.sq_sig_all);
		assert_true(init.cap.max_send_wr >= end.opt.send_wr);
		assert_true(init.cap.max_send_sge >= end.opt.sge);
		assert_true(init.cap.max_inline_data >= end.opt.inline_bytes);
		assert_int_equal(init.cap.max_recv_wr, end.srq ? 0 : end.opt.recv_wr);
		assert_memory_equal(&attr.cap, &init.cap, sizeof(init.cap));
		vt_end_close(&end);
	}
}

/* --- draining --- */

static int drain(struct ibv_qp *qp, bool tell)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = tell };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
}

/* en_sqd_async_notify: "valid only if qp_state is SQD", and only for that once. */
vt_ends_test(each_draining_is_told_if_that_was_asked_for, i, 0, VT_TYPES, .type = vt_types[i])
{
	vt_bring_to(end, IBV_QPS_RTS);
	for (unsigned n = 0; n < 3; n++) {
		assert_int_equal(drain(end->qp, true), 0);
		vt_event_acked(IBV_EVENT_SQ_DRAINED);
		assert_int_equal(vt_modify(end->qp, IBV_QPS_RTS), 0);
		assert_int_equal(n % 2 ? drain(end->qp, false)
				       : vt_modify(end->qp, IBV_QPS_SQD), 0);
		vt_no_event();
		assert_int_equal(vt_modify(end->qp, IBV_QPS_RTS), 0);
	}
}

/*
 * While the queue drains its attributes may change (IBA 10.3.1.7), and the event comes all the
 * same: once. The peer takes its time: it is not ready.
 */
vt_pair_test(changes_while_it_drains_keep_the_event, .in_reset = true, .timeout = 18)
{
	struct ibv_qp_attr attr = { .min_rnr_timer = 3, .timeout = 16 };

	vt_climb(p->a.qp, &p->opt, IBV_QPS_RTS, p->b.qp->qp_num);
	vt_send(&p->a, &p->b, 1);
	assert_int_equal(drain(p->a.qp, true), 0);
	vt_send(&p->a, &p->b, 2); /* waits */
	assert_int_equal(ibv_modify_qp(p->a.qp, &attr, IBV_QP_MIN_RNR_TIMER | IBV_QP_TIMEOUT), 0);
	attr = vt_query(p->a.qp, IBV_QP_STATE);
	assert_int_equal(attr.qp_state, IBV_QPS_SQD);
	assert_int_equal(attr.sq_draining, 1);
	assert_int_equal(attr.timeout, 16);
	vt_no_event();
	vt_climb(p->b.qp, &p->opt, IBV_QPS_INIT, p->a.qp->qp_num);
	vt_recv(&p->b, 11);
	vt_recv(&p->b, 12);
	assert_int_equal(vt_modify(p->b.qp, IBV_QPS_RESET), 0);
	vt_climb(p->b.qp, &p->opt, IBV_QPS_RTS, p->a.qp->qp_num);
	vt_recv(&p->b, 11);
	vt_recv(&p->b, 12);
	vt_event_acked(IBV_EVENT_SQ_DRAINED);
	vt_expect(p->a.cq, 1, IBV_WC_SUCCESS);
	vt_expect(p->b.cq, 11, IBV_WC_SUCCESS);
	vt_expect_none(p->a.cq);
	attr = vt_query(p->a.qp, IBV_QP_STATE);
	assert_int_equal(attr.sq_draining, 0);
	assert_int_equal(vt_modify(p->a.qp, IBV_QPS_RTS), 0);
	vt_expect(p->a.cq, 2, IBV_WC_SUCCESS);
	vt_expect(p->b.cq, 12, IBV_WC_SUCCESS);
	vt_no_event();
}

/* Who goes on before all is done, or breaks off, hears nothing of that draining. */
vt_ends_test(a_draining_that_is_broken_off_is_not_told, i, 0, 3, .timeout = 18)
{
	static const enum ibv_qp_state to[] = { IBV_QPS_RTS, IBV_QPS_ERR, IBV_QPS_RESET };

	vt_climb(end->qp, &end->opt, IBV_QPS_RTS, (end->qp->qp_num & ~0x3fffu) | NOBODY);
	vt_send(end, end, 1);
	assert_int_equal(drain(end->qp, true), 0);
	assert_int_equal(vt_modify(end->qp, to[i]), 0);
	if (to[i] == IBV_QPS_RTS)
		assert_int_equal(vt_modify(end->qp, IBV_QPS_SQD), 0);
	vt_no_event();
}

/* --- what is changed there, and counts --- */

static void read_some(struct vt_pair *p, unsigned count)
{
	struct vt_wr w;

	for (unsigned i = 0; i < count; i++) {
		vt_wr(&w, IBV_WR_RDMA_READ, &p->a, &p->b, 4096);
		w.wr.wr_id = i;
		vt_post(&p->a, &w);
	}
	for (unsigned i = 0; i < count; i++)
		vt_expect(p->a.cq, i, IBV_WC_SUCCESS);
}

static void set_in_sqd(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	assert_int_equal(vt_modify(qp, IBV_QPS_SQD), 0);
	assert_int_equal(ibv_modify_qp(qp, attr, mask), 0);
	assert_int_equal(vt_modify(qp, IBV_QPS_RTS), 0);
}

/* How many READs may be on their way, here and there. What was read before is forgotten there. */
vt_pair_test(reads_go_on_with_other_numbers_of_them)
{
	static const uint8_t number[] = { 16, 1, 7, 128, 2 };

	read_some(p, 20);
	for (unsigned i = 0; i < sizeof(number); i++) {
		struct ibv_qp_attr attr = { .max_rd_atomic = number[i],
					    .max_dest_rd_atomic = number[i] };

		/* The one who asks first has the smaller number. */
		attr.max_rd_atomic = 1;
		set_in_sqd(p->a.qp, &attr, IBV_QP_MAX_QP_RD_ATOMIC);
		set_in_sqd(p->b.qp, &attr, IBV_QP_MAX_DEST_RD_ATOMIC);
		attr.max_rd_atomic = number[i];
		set_in_sqd(p->a.qp, &attr, IBV_QP_MAX_QP_RD_ATOMIC);
		read_some(p, 40);
		attr = vt_query(p->b.qp, -1);
		assert_int_equal(attr.max_dest_rd_atomic, number[i]);
	}
}

/* Another address for both: IPv6 in the place of IPv4, and back. */
vt_test(the_path_may_be_changed)
{
	static const uint8_t ipv6[16] = { [15] = 1 };
	union ibv_gid gid[2] = { vt.gid };
	int index[2] = { vt.gid_index, 0 };
	struct vt_pair p;

	do {
		assert_int_equal(ibv_query_gid(vt.ctx, 1, index[1]++, &gid[1]), 0);
	} while (memcmp(gid[1].raw, ipv6, sizeof(ipv6)) && index[1] < 256);
	index[1]--;
	for (unsigned i = 0; i < 2; i++) {
		struct vt_options opt = { .type = vt_types[i] };

		vt_pair_open(&p, &opt);
		for (unsigned n = 0; n < 4; n++) {
			unsigned to = (n + 1) % 2;
			struct ibv_qp_attr attr = { .ah_attr = {
				.grh = { .dgid = gid[to], .sgid_index = (uint8_t)index[to],
					 .hop_limit = 1 },
				.is_global = 1, .port_num = 1 } };

			set_in_sqd(p.a.qp, &attr, IBV_QP_AV);
			set_in_sqd(p.b.qp, &attr, IBV_QP_AV);
			vt_exchange(&p.a, &p.b);
			attr = vt_query(p.a.qp, IBV_QP_AV);
			assert_int_equal(attr.ah_attr.grh.sgid_index, index[to]);
		}
		vt_pair_close(&p);
	}
}

/* What goes through shared memory stays in this host: to another host one connects anew. */
vt_pair_test(a_path_through_memory_does_not_leave_the_host)
{
	bool wire = vt_by_udp();
	struct ibv_qp_attr attr, before, after;

	assert_int_equal(vt_modify(p->a.qp, IBV_QPS_SQD), 0);
	vt_attr(&attr, &p->opt, IBV_QPS_RTR, p->b.qp->qp_num);
	attr.ah_attr.grh.dgid.raw[15] = 2; /* 127.0.0.2, which is in nobody's GID table */
	before = vt_query(p->a.qp, -1);
	if (wire) {
		assert_int_equal(ibv_modify_qp(p->a.qp, &attr, IBV_QP_AV), 0);
	} else {
		assert_int_equal(ibv_modify_qp(p->a.qp, &attr, IBV_QP_AV), EOPNOTSUPP);
		after = vt_query(p->a.qp, -1);
		assert_memory_equal(&before, &after, sizeof(before));
	}
}

/* retry_cnt and timeout changed in SQD are those that count from then on. */
vt_end_test(fewer_retries_end_it_sooner, .timeout = 31)
{
	struct ibv_qp_attr attr = { .timeout = 14, .retry_cnt = 1 };

	vt_climb(end->qp, &end->opt, IBV_QPS_RTS, (end->qp->qp_num & ~0x3fffu) | NOBODY);
	set_in_sqd(end->qp, &attr, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT);
	vt_send(end, end, 1);
	vt_expect(end->cq, 1, IBV_WC_RETRY_EXC_ERR);
}

/* --- SQE --- */

/* ibv_modify_qp(3), IBV_QP_CUR_STATE: whoever believes that it still sends is told otherwise. */
vt_ends_test(sqe_is_left_only_by_who_knows_of_it, i, UC, VT_TYPES, .type = vt_types[i])
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS,
				    .cur_qp_state = IBV_QPS_RTS };
	int mask = IBV_QP_STATE | IBV_QP_CUR_STATE;

	vt_bring_to(end, IBV_QPS_SQE);
	assert_int_equal(ibv_modify_qp(end->qp, &attr, mask), EINVAL);
	assert_int_equal(vt_state(end->qp), IBV_QPS_SQE);
	attr.cur_qp_state = IBV_QPS_SQE;
	assert_int_equal(ibv_modify_qp(end->qp, &attr, mask), 0);
	vt_exchange(end, end);
}

/*
 * Requests 1 to 3 of the send queue, in their order, and 10 of the receive queue, which shares the
 * CQ and knows of no order with the other.
 */
static void expect_round(struct ibv_cq *cq)
{
	static const enum ibv_wc_status status[] = { IBV_WC_SUCCESS, IBV_WC_LOC_PROT_ERR,
						     IBV_WC_WR_FLUSH_ERR };
	unsigned sent = 0, received = 0;
	struct ibv_wc wc;

	while (sent < 3 || received < 1) {
		assert_true(vt_poll_ms(cq, &wc, VT_WAIT_MS));
		if (wc.wr_id == 10) {
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			received++;
		} else {
			assert_int_equal(wc.wr_id, sent + 1);
			assert_int_equal(wc.status, status[sent]);
			sent++;
		}
	}
	assert_int_equal(received, 1);
}

/* Out of SQD too, over and over: one failure, what is behind it flushed, and on again. */
vt_ends_test(sqe_again_and_again, i, UC, VT_TYPES, .type = vt_types[i])
{
	struct vt_wr w;

	vt_bring_to(end, IBV_QPS_RTS);
	for (unsigned round = 0; round < 20; round++) {
		bool stands = round % 2;

		if (stands)
			assert_int_equal(vt_modify(end->qp, IBV_QPS_SQD), 0);
		vt_wr(&w, IBV_WR_SEND, end, end, 8);
		vt_recv(end, 10);
		vt_post(end, &w);
		w.wr.wr_id = 2;
		w.sge.lkey ^= 0xff;
		vt_post(end, &w);
		w.wr.wr_id = 3;
		w.sge.lkey ^= 0xff;
		vt_post(end, &w);
		if (stands)
			assert_int_equal(vt_modify(end->qp, IBV_QPS_RTS), 0);
		expect_round(end->cq);
		assert_int_equal(vt_state(end->qp), IBV_QPS_SQE);
		assert_int_equal(vt_modify(end->qp, IBV_QPS_RTS), 0);
	}
	vt_no_event();
}

/* --- what this device does not have --- */

/* ibv_set_ece(3), ibv_query_ece(3): options of vendors, of which it has none. */
vt_end_test(there_are_no_options_of_vendors)
{
	struct ibv_ece ece = { .vendor_id = 5, .options = 6, .comp_mask = 7 };

	assert_int_equal(ibv_query_ece(end->qp, &ece), EOPNOTSUPP);
	assert_int_equal(ece.vendor_id, 0);
	assert_int_equal(ece.options, 0);
	ece.options = 6;
	assert_int_equal(ibv_set_ece(end->qp, &ece), EOPNOTSUPP);
	vt_climb(end->qp, &end->opt, IBV_QPS_RTS, end->qp->qp_num);
}

/* ibv_query_qp_data_in_order(3): 0, where nothing is guaranteed; it is: octets may come twice. */
vt_ends_test(the_order_of_data_is_not_promised, i, 0, VT_TYPES * 3, .type = vt_types[i / 3])
{
	static const enum ibv_wr_opcode op[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };

	assert_int_equal(ibv_query_qp_data_in_order(end->qp, op[i % 3], 0), 0);
}
