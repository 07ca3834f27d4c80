/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rendezvous by an SRQ with tags (tag_matching.md): a request says where the data is, the NIC reads
 * it into the buffer whose tag matches, and tells the sender with a FIN.
 */
#include "tm.h"

enum {
	BYTES = 1 << 20, /* of each buffer */
	DATA_AT = 65536, /* in a's: what is to be read */
	HEADERS = TM_TMH + TM_RVH,
};

static void open_with(struct tm_scene *s, struct vt_options opt, uint32_t send_wr)
{
	opt.bytes = BYTES;
	opt.cqe = 1024;
	opt.recv_wr = 128;
	tm_open_with(s, &opt, send_wr);
}

static void open_scene(struct tm_scene *s)
{
	open_with(s, (struct vt_options){ .type = IBV_QPT_RC }, 0);
}

#define scene_with_test(f, ...)                                                                   \
	vt_with(vt_test, f, struct tm_scene, s, open_with(&s, __VA_ARGS__), tm_close(&s))
#define scene_test(f)                                                                             \
	vt_with(vt_test, f, struct tm_scene, s, open_scene(&s), tm_close(&s))

/* The request for `bytes` octets at DATA_AT, with `more` octets of the sender's own behind it. */
static void request(struct tm_scene *s, uint64_t of, uint32_t bytes, uint32_t more)
{
	struct ibv_rvh rvh = { .va = htobe64((uintptr_t)s->a.buf + DATA_AT),
			       .rkey = htobe32(s->a.mr->rkey),
			       .len = htobe32(bytes) };

	tm_put_header(s->a.buf, IBV_TMH_RNDV, of);
	memcpy(s->a.buf + TM_TMH, &rvh, sizeof(rvh));
	memset(s->a.buf + HEADERS, 0x5a, more);
	tm_send_raw(s, HEADERS + more);
}

static void fill_data(struct tm_scene *s, uint32_t bytes, unsigned seed)
{
	vt_fill(s->a.buf + DATA_AT, bytes, seed);
}

/* What the sender gets in the end goes to a place of its own. */
static void await_fin(struct tm_scene *s, uint64_t wr_id)
{
	assert_int_equal(vt_recv_at(&s->a, wr_id, TM_FIN_AT, TM_TMH), 0);
}

/* The sender learns of both, in whatever order: its request has come, and its data was read. */
static void expect_told(struct tm_scene *s, uint64_t wr_id, uint64_t of)
{
	bool sent = false, fin = false;
	struct ibv_tmh tmh;
	struct ibv_wc wc;

	while (!sent || !fin) {
		assert_true(vt_poll_ms(s->a.cq, &wc, VT_WAIT_MS));
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		if (wc.opcode == IBV_WC_SEND) {
			assert_false(sent);
			sent = true;
			continue;
		}
		assert_false(fin);
		fin = true;
		assert_int_equal(wc.opcode, IBV_WC_RECV);
		assert_int_equal(wc.wr_id, wr_id);
		assert_int_equal(wc.byte_len, TM_TMH);
		assert_int_equal(wc.wc_flags, 0);
	}
	memcpy(&tmh, s->a.buf + TM_FIN_AT, sizeof(tmh));
	assert_int_equal(tmh.opcode, IBV_TMH_FIN);
	assert_int_equal(tmh.app_ctx, htobe32(TM_CTX));
	assert_true(tmh.tag == htobe64(of));
	for (int i = 0; i < 3; i++)
		assert_int_equal(tmh.reserved[i], 0);
}

/* Matching and the end of the transfer are two completions of one wr_id. */
static void expect_both(struct tm_scene *s, uint64_t wr_id, uint64_t of, uint32_t bytes)
{
	struct tm_done done = tm_expect(s, wr_id, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);

	assert_true(done.tag == of);
	assert_int_equal(done.priv, TM_CTX);
	assert_int_equal(done.qpn, s->b.qp->qp_num);
	done = tm_expect(s, wr_id, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
	assert_int_equal(done.bytes, bytes);
	assert_int_equal(done.qpn, s->b.qp->qp_num);
}

scene_test(the_data_is_read_and_the_sender_told)
{
	static const uint32_t lengths[] = { 0, 1, 1024, 1025, 65536, 65537, 300001 };

	for (size_t i = 0; i < VT_COUNT(lengths); i++) {
		memset(s->b.buf, 0, s->b.bytes);
		fill_data(s, lengths[i], (unsigned)i);
		await_fin(s, 100 + i);
		tm_add_at(s, i, 0x1000 + i, 0, BYTES / 2);
		request(s, 0x1000 + i, lengths[i], (uint32_t)(i % 3) * 16);
		expect_both(s, i, 0x1000 + i, lengths[i]);
		assert_true(vt_is_filled(s->b.buf, lengths[i], (unsigned)i));
		assert_true(vt_is_octet(s->b.buf + lengths[i], BYTES - lengths[i], 0));
		expect_told(s, 100 + i, 0x1000 + i);
	}
	tm_expect_none(s);
	assert_int_equal(vt_state(s->b.qp), IBV_QPS_RTS);
}

scene_test(the_buffer_may_be_in_pieces)
{
	struct ibv_device_attr_ex device = vt_device_ex();
	struct ibv_sge sge[32];
	struct tm_op o;
	uint32_t pieces;

	pieces = device.tm_caps.max_sge;
	assert_in_range(pieces, 1, 32);
	for (uint32_t i = 0; i < pieces; i++)
		sge[i] = (struct ibv_sge){ (uintptr_t)s->b.buf + i * 3000, 3000, s->b.mr->lkey };
	tm_tag(&o, s, 1, 10, 0, 0);
	o.wr.tm.add.sg_list = sge;
	o.wr.tm.add.num_sge = (int)pieces;
	assert_int_equal(tm_post(s, &o), 0);
	tm_expect(s, 1, IBV_WC_TM_ADD, 0);
	fill_data(s, 3000 * pieces, 3);
	await_fin(s, 9);
	request(s, 10, 3000 * pieces, 0);
	expect_both(s, 1, 10, 3000 * pieces);
	assert_true(vt_is_filled(s->b.buf, 3000 * pieces, 3));
	expect_told(s, 9, 10);
}

/* "Rendezvous request messages may also arrive unexpected": with everything that is in them. */
scene_test(what_matches_nothing_is_for_software)
{
	struct tm_done done;

	tm_add(s, 1, 11);
	tm_ordinary(s, 2);
	request(s, 10, 5000, 20);
	done = tm_expect(s, 2, IBV_WC_TM_RECV, 0);
	assert_int_equal(done.bytes, HEADERS + 20);
	assert_memory_equal(s->b.buf + TM_ORDINARY, s->a.buf, HEADERS + 20);
	tm_sent(s);
	tm_sync(s, 0, IBV_WC_TM_SYNC_REQ); /* it counts */
	tm_expect_none(s);
}

/*
 * IBV_WC_TM_RNDV_INCOMPLETE: matched, but the rest is software's. It finds behind the TMH what says
 * where the data is.
 */
static void expect_incomplete(struct tm_scene *s, uint64_t wr_id, uint64_t of, uint32_t bytes)
{
	struct tm_done done = tm_expect_status(s, wr_id, IBV_WC_TM_RNDV_INCOMPLETE);

	assert_int_equal(done.opcode, IBV_WC_TM_RECV);
	assert_int_equal(done.flags, TM_MATCHED);
	assert_int_equal(done.bytes, bytes);
	assert_true(done.tag == of);
	assert_int_equal(done.priv, TM_CTX);
	assert_memory_equal(s->b.buf, s->a.buf + TM_TMH, bytes);
	assert_true(vt_is_octet(s->b.buf + bytes, 1000, 0));
	tm_sent(s);
	tm_expect_none(s);
	vt_expect_none(s->a.cq); /* no FIN, and no READ that failed */
	assert_int_equal(vt_state(s->b.qp), s->opt.state);
}

vt_test(what_the_nic_cannot_do_is_left_to_software)
{
	const struct vt_options mere_receiver = { .state = IBV_QPS_RTR };
	const struct vt_options no_reads = { .no_rd_atomic = true };
	struct ibv_device_attr_ex device = vt_device_ex();
	struct tm_scene s;
	uint32_t more;

	more = device.tm_caps.max_rndv_hdr_size - HEADERS;
	/* Data that is longer than the buffer; and a buffer that does not even hold the RVH. */
	open_scene(&s);
	await_fin(&s, 9);
	tm_add_at(&s, 1, 10, 0, 4999);
	request(&s, 10, 5000, 3);
	expect_incomplete(&s, 1, 10, TM_RVH + 3);
	memset(s.b.buf, 0, 100);
	tm_add_at(&s, 2, 10, 0, 9);
	request(&s, 10, 5000, 3);
	expect_incomplete(&s, 2, 10, 9);
	/* A request of as much as the device says, and of more. */
	memset(s.b.buf, 0, 100);
	tm_add(&s, 3, 10);
	request(&s, 10, 500, more + 1);
	expect_incomplete(&s, 3, 10, TM_RVH + more + 1);
	tm_add(&s, 4, 10);
	request(&s, 10, 500, more);
	expect_both(&s, 4, 10, 500);
	expect_told(&s, 9, 10);
	tm_close(&s);
	/* A QP that may not send yet, or not READ. */
	open_with(&s, mere_receiver, 0);
	tm_add(&s, 1, 10);
	request(&s, 10, 5000, 0);
	expect_incomplete(&s, 1, 10, TM_RVH);
	tm_close(&s);
	open_with(&s, no_reads, 0);
	tm_add(&s, 1, 10);
	request(&s, 10, 5000, 0);
	expect_incomplete(&s, 1, 10, TM_RVH);
	tm_close(&s);
}

/* The READ fails like any: the tag was used, and the second completion says why no data came. */
vt_test(a_key_that_does_not_allow_it)
{
	struct vt_options opt = { .mr_access = IBV_ACCESS_LOCAL_WRITE };
	struct tm_scene s;
	struct tm_done done;

	open_with(&s, opt, 0);
	tm_add(&s, 1, 10);
	request(&s, 10, 5000, 0);
	tm_expect(&s, 1, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
	done = tm_expect_status(&s, 1, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(done.opcode, IBV_WC_TM_RECV);
	tm_expect_none(&s); /* nothing of the FIN */
	assert_int_equal(vt_state(s.b.qp), IBV_QPS_ERR);
	/* The one who was asked, and the one whose QP stops taking requests of the SRQ. */
	for (int i = 0; i < 2; i++) {
		struct ibv_async_event event;

		assert_true(vt_readable(vt.ctx->async_fd, VT_WAIT_MS));
		assert_int_equal(ibv_get_async_event(vt.ctx, &event), 0);
		assert_true(event.event_type == IBV_EVENT_QP_ACCESS_ERR ||
			    event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED);
		ibv_ack_async_event(&event);
	}
	vt_no_event();
	tm_close(&s);
}

scene_test(a_tagged_buffer_that_cannot_be_written)
{
	struct tm_op o;

	tm_tag(&o, s, 1, 10, 0, 5000);
	o.sge.lkey ^= 0x100;
	assert_int_equal(tm_post(s, &o), 0);
	tm_expect(s, 1, IBV_WC_TM_ADD, 0);
	request(s, 10, 5000, 0);
	tm_sent(s);
	tm_expect(s, 1, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
	tm_expect_status(s, 1, IBV_WC_LOC_PROT_ERR);
	vt_event_acked(IBV_EVENT_QP_LAST_WQE_REACHED);
	vt_no_event();
}

/* A FIN that nobody takes has no completion to fail with: an event says that the QP is gone. */
vt_test(a_fin_that_nobody_takes)
{
	struct tm_scene s;
	struct vt_options opt = { .no_rnr_retry = true };
	struct ibv_async_event event;

	open_with(&s, opt, 0);
	tm_add(&s, 1, 10);
	fill_data(&s, 5000, 1);
	request(&s, 10, 5000, 0); /* and no receive request posted */
	tm_sent(&s);
	expect_both(&s, 1, 10, 5000);
	event = vt_event(IBV_EVENT_QP_FATAL);
	assert_ptr_equal(event.element.qp, s.b.qp);
	ibv_ack_async_event(&event);
	vt_event_acked(IBV_EVENT_QP_LAST_WQE_REACHED);
	vt_no_event();
	tm_expect_none(&s);
	tm_close(&s);
}

/* More than are under way at a time: the sender waits, nothing is lost, and each has its FIN. */
scene_test(many_at_once)
{
	enum { COUNT = 60, EACH = 3000 };
	int fins[COUNT] = { 0 };
	struct tm_done done;
	struct ibv_wc wc;
	int matched = 0, valid = 0, told = 0, sends = 0;

	fill_data(s, EACH, 7);
	for (uint64_t i = 0; i < COUNT; i++) {
		await_fin(s, 1000 + i);
		tm_add_at(s, i, i, (size_t)i * EACH, EACH);
	}
	for (uint64_t i = 0; i < COUNT; i++) {
		/* Each from a place of its own, which it leaves when it likes. */
		struct ibv_rvh rvh = { .va = htobe64((uintptr_t)s->a.buf + DATA_AT),
				       .rkey = htobe32(s->a.mr->rkey),
				       .len = htobe32(EACH) };
		uint8_t *at = s->a.buf + 64 * i;
		struct vt_wr w;

		tm_put_header(at, IBV_TMH_RNDV, i);
		memcpy(at + TM_TMH, &rvh, sizeof(rvh));
		vt_wr(&w, IBV_WR_SEND, &s->a, &s->b, HEADERS);
		w.sge.addr = (uintptr_t)at;
		vt_post(&s->a, &w);
	}
	while (valid < COUNT || told < COUNT || sends < COUNT) {
		if (tm_poll(s->cq, &done, 0)) {
			assert_int_equal(done.status, IBV_WC_SUCCESS);
			assert_int_equal(done.opcode, IBV_WC_TM_RECV);
			if (done.flags == IBV_WC_TM_MATCH)
				assert_int_equal(done.wr_id, matched++);
			else
				assert_int_equal(done.wr_id, valid++);
		}
		if (!ibv_poll_cq(s->a.cq, 1, &wc))
			continue;
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		if (wc.opcode == IBV_WC_SEND) {
			sends++;
			continue;
		}
		assert_in_range(wc.wr_id, 1000, 1000 + COUNT - 1);
		assert_int_equal(fins[wc.wr_id - 1000]++, 0);
		told++;
	}
	assert_int_equal(matched, COUNT);
	for (int i = 0; i < COUNT; i++)
		assert_true(vt_is_filled(s->b.buf + (size_t)i * EACH, EACH, 7));
}

enum { WRS = 4, ROUNDS = 40 };

/*
 * What the NIC sends by itself takes no place of the application's: as many work requests as were
 * asked for can be posted, before, amid and after rendezvous, and they complete in their order.
 */
scene_with_test(the_send_queue_is_the_applications, (struct vt_options){ .type = IBV_QPT_RC }, WRS)
{
	struct ibv_cq *sends;
	uint64_t posted = 0, completed = 0;

	sends = s->b.qp->send_cq;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct vt_wr w;

		fill_data(s, 5000, (unsigned)round);
		for (int i = 0; i < WRS; i++) {
			vt_wr(&w, IBV_WR_RDMA_WRITE, &s->b, &s->a, 64);
			w.sge.addr = (uintptr_t)s->b.buf + TM_ORDINARY;
			w.wr.wr.rdma.remote_addr += BYTES / 2;
			w.wr.wr_id = posted++;
			vt_post(&s->b, &w);
			if (i == (int)(round % WRS)) {
				await_fin(s, round);
				tm_add_at(s, round, round, 0, TM_ORDINARY);
				request(s, round, 5000, 0);
				expect_both(s, round, round, 5000);
				assert_true(vt_is_filled(s->b.buf, 5000, (unsigned)round));
				expect_told(s, round, round);
			}
		}
		/* Nobody has polled: it is full, whatever else went through it. */
		assert_int_equal(vt_try(&s->b, &w), ENOMEM);
		for (int i = 0; i < WRS; i++)
			vt_expect(sends, completed++, IBV_WC_SUCCESS);
	}
	vt_expect_none(sends);
}

/* RESET forgets what was in the send queue, the NIC's own work requests with the others. */
scene_with_test(a_qp_can_be_used_again, (struct vt_options){ .type = IBV_QPT_RC }, 2)
{
	for (uint64_t round = 0; round < 5; round++) {
		struct vt_wr w;

		fill_data(s, 3000, (unsigned)round);
		await_fin(s, round);
		tm_add(s, round, round);
		request(s, round, 3000, 0);
		expect_both(s, round, round, 3000);
		assert_true(vt_is_filled(s->b.buf, 3000, (unsigned)round));
		expect_told(s, round, round);
		for (int i = 0; i < 3; i++) {
			vt_wr(&w, IBV_WR_RDMA_WRITE, &s->b, &s->a, 8);
			w.wr.wr.rdma.remote_addr += BYTES / 2;
			assert_int_equal(vt_try(&s->b, &w), i < 2 ? 0 : ENOMEM);
		}
		assert_int_equal(vt_modify(s->a.qp, IBV_QPS_RESET), 0);
		assert_int_equal(vt_modify(s->b.qp, IBV_QPS_RESET), 0);
		/* A packet of this connection's that is late must not be the next one's-> */
		s->opt.later_psn += 1000;
		vt_climb(s->a.qp, &s->opt, IBV_QPS_RTS, s->b.qp->qp_num);
		vt_climb(s->b.qp, &s->opt, IBV_QPS_RTS, s->a.qp->qp_num);
	}
}

/* The QP fails while data is to be read: the tag's second completion says so. */
vt_test(a_flush_is_told)
{
	struct vt_options opt = { .rnr_retry = 7, .rnr_timer = 14 }; /* 1 ms */
	struct tm_scene s;
	struct tm_done done;

	open_with(&s, opt, 0);
	tm_add(&s, 1, 10);
	tm_ordinary(&s, 2);
	request(&s, 10, 5000, 0); /* its FIN waits for a receive request, and there is none */
	expect_both(&s, 1, 10, 5000);
	tm_add(&s, 3, 11);
	request(&s, 11, 5000, 0); /* so this READ cannot end */
	tm_expect(&s, 3, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
	tm_expect_none(&s);
	assert_int_equal(vt_modify(s.b.qp, IBV_QPS_ERR), 0);
	done = tm_expect_status(&s, 3, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(done.opcode, IBV_WC_TM_RECV);
	tm_expect_none(&s); /* the ordinary request stays where it is */
	vt_event_acked(IBV_EVENT_QP_LAST_WQE_REACHED);
	vt_no_event();
	tm_close(&s);
}
