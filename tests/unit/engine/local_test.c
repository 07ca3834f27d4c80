/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Work requests without a packet (BIND, LOCAL_INV): carried out once, in their turn, and complete
 * in theirs; and ATOMIC_WRITE, which is answered as a READ is.
 */
#include "req_fixture.h"

/* As nic does it: what may leave leaves, what needs no packet is done, and then settled. */
static unsigned go(void)
{
	struct vb_req_pos before = req.pos;

	sent_count = 0;
	for (;;) {
		if (vb_req_next(&req, &sent[sent_count], &asked[sent_count]))
			sent_count++;
		else if (!vb_req_local(&req))
			break;
	}
	vb_req_sent(&req, &before, now_ns);
	if (req.transport != VB_RC)
		vb_req_complete_sent(&req);
	vb_req_settle(&req);
	return sent_count;
}

REQ_TEST(alone_it_is_done_at_once)
{
	struct vb_wqe *wqe = post(VB_K_BIND, 0);

	assert_int_equal(wqe->packets, 0);
	assert_int_equal(go(), 0);
	assert_int_equal(fake.locals, 1);
	assert_done(1);
	assert_int_equal(vb_rc_deadline_ns(&req), VB_NEVER_NS);
	assert_int_equal(post(VB_K_SEND, 1)->psn, START_PSN);
	assert_int_equal(go(), 1);
	ack(START_PSN);
	assert_done(2);
}

REQ_TEST(it_takes_no_psn_and_no_ssn)
{
	post(VB_K_SEND, 1);
	assert_int_equal(post(VB_K_LOCAL_INV, 0)->psn, 0x101);
	assert_int_equal(post(VB_K_BIND, 0)->psn, 0x101);
	assert_int_equal(post(VB_K_SEND, 1)->psn, 0x101);
	assert_int_equal(vb_sq_at(&req.sq, 3)->ssn, 2);
	assert_int_equal(go(), 2);
	assert_int_equal(sent[1].psn, 0x101);
	assert_int_equal(fake.locals, 2);
	ack(0x101);
	assert_done(4);
}

/* IBA 10.8.5: completions come in the order of the work requests. */
REQ_TEST(it_completes_after_those_before_it)
{
	post(VB_K_WRITE, 2 * MTU);
	post(VB_K_BIND, 0);
	assert_int_equal(go(), 2);
	assert_int_equal(fake.locals, 1);
	assert_done(0);
	ack(0x100);
	assert_done(0);
	ack(0x101);
	assert_done(2);
}

/* What comes behind a BIND leaves when it has taken effect. */
REQ_TEST(what_follows_leaves_after_it)
{
	struct vb_segment seg;
	bool ackreq;

	post(VB_K_BIND, 0);
	post(VB_K_SEND, 1);
	assert_false(vb_req_next(&req, &seg, &ackreq));
	assert_int_equal(fake.locals, 0);
	assert_true(vb_req_local(&req));
	assert_int_equal(fake.locals, 1);
	assert_true(vb_req_next(&req, &seg, &ackreq));
	assert_false(vb_req_local(&req));
}

REQ_TEST(sending_again_does_not_do_it_again)
{
	post(VB_K_SEND, 1);
	post(VB_K_BIND, 0);
	post(VB_K_SEND, 1);
	post(VB_K_LOCAL_INV, 0);
	post(VB_K_SEND, 1);
	assert_int_equal(go(), 3);
	assert_int_equal(fake.locals, 2);
	nak(0x100, VB_NAK_PSN);
	assert_int_equal(go(), 3);
	assert_int_equal(fake.locals, 2);
	assert_done(0);
	/* The first came; the second waits for a buffer. */
	rnr(0x101, 1);
	assert_done(2);
	assert_int_equal(go(), 0);
	now_ns = vb_rc_deadline_ns(&req);
	vb_rc_timeout(&req, now_ns);
	assert_int_equal(go(), 2);
	now_ns = vb_rc_deadline_ns(&req);
	vb_rc_timeout(&req, now_ns);
	assert_int_equal(go(), 1);
	assert_int_equal(fake.locals, 2);
	ack(0x102);
	assert_done(5);
	assert_int_equal(req.local.done, 0);
}

/* An answer to what left before we went back: all of it is done, and nothing is done twice. */
REQ_TEST(an_ack_passes_over_it_after_going_back)
{
	post(VB_K_SEND, 1);
	post(VB_K_BIND, 0);
	post(VB_K_SEND, 1);
	post(VB_K_BIND, 0);
	go();
	vb_req_rewind(&req);
	ack(0x101);
	assert_done(4);
	assert_int_equal(req.pos.next, 4);
	post(VB_K_BIND, 0);
	assert_int_equal(go(), 0);
	assert_int_equal(fake.locals, 3);
	assert_done(5);
}

/* The link was full: the position goes back, the deed does not. */
REQ_TEST(a_step_back_does_not_undo_it)
{
	struct vb_req_pos before = req.pos;
	struct vb_segment seg;
	bool ackreq;

	post(VB_K_BIND, 0);
	post(VB_K_SEND, 1);
	assert_true(vb_req_local(&req));
	assert_true(vb_req_next(&req, &seg, &ackreq));
	req.pos = before;
	assert_int_equal(vb_req_settle(&req), VB_REQ_NOTHING);
	assert_done(1);
	assert_int_equal(go(), 1);
	assert_int_equal(fake.locals, 1);
	ack(0x100);
	assert_done(2);
}

/* IBA 10.8.3.3: with a fence it waits for READs and atomics; without, it does not. */
REQ_TEST(a_fence_holds_it_back)
{
	post(VB_K_READ_REQ, 8);
	post(VB_K_LOCAL_INV, 0);
	post(VB_K_FETCH_ADD, 8);
	post_flags(VB_K_LOCAL_INV, 0, IBV_SEND_FENCE);
	post(VB_K_SEND, 1);
	assert_int_equal(go(), 2);
	assert_int_equal(fake.locals, 1);
	read_resp(0x100, 8);
	assert_int_equal(go(), 0);
	assert_int_equal(fake.locals, 1);
	assert_done(2);
	atomic_ack(0x101);
	assert_int_equal(go(), 1);
	assert_int_equal(fake.locals, 2);
	ack(0x102);
	assert_done(5);
}

REQ_TEST(a_draining_queue_begins_none)
{
	post(VB_K_SEND, 1);
	go();
	post(VB_K_BIND, 0);
	req.sqd = true;
	assert_int_equal(go(), 0);
	assert_int_equal(fake.locals, 0);
	assert_false(vb_req_drained(&req));
	ack(0x100);
	assert_true(vb_req_drained(&req));
	assert_done(1);
	req.sqd = false;
	go();
	assert_done(2);
}

REQ_TEST(one_done_before_draining_belongs_to_what_drains)
{
	post(VB_K_SEND, 1);
	post(VB_K_BIND, 0);
	post(VB_K_SEND, 1);
	req.flight.window = 1;
	assert_int_equal(go(), 1);
	assert_int_equal(fake.locals, 1);
	req.sqd = true;
	assert_false(vb_req_drained(&req));
	ack(0x100);
	assert_done(2);
	assert_true(vb_req_drained(&req));
}

REQ_TEST(what_fails_fails_in_its_turn)
{
	post(VB_K_SEND, 1);
	post(VB_K_BIND, 0);
	post(VB_K_SEND, 1);
	fake.local_result = IBV_WC_MW_BIND_ERR;
	assert_int_equal(go(), 1);
	assert_done(0);
	assert_int_equal(ack(0x100), VB_REQ_FAILED);
	assert_failed(1, IBV_WC_MW_BIND_ERR);
}

REQ_TEST(alone_it_fails_at_once)
{
	post(VB_K_LOCAL_INV, 0);
	fake.local_result = IBV_WC_MW_BIND_ERR;
	assert_false(vb_req_local(&req));
	assert_int_equal(vb_req_settle(&req), VB_REQ_FAILED);
	assert_failed(0, IBV_WC_MW_BIND_ERR);
}

/* Flushed with all the rest, though it was done. */
REQ_TEST(an_error_leaves_nothing_behind)
{
	post(VB_K_SEND, 1);
	post(VB_K_BIND, 0);
	post(VB_K_BIND, 0);
	go();
	assert_int_equal(req.local.done, 2);
	while (req.head != req.tail)
		vb_req_complete_head(&req, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(req.local.done, 0);
}

REQ_TEST(without_acknowledgements_as_well)
{
	req.transport = VB_UC;
	post(VB_K_WRITE, 2 * MTU);
	post(VB_K_BIND, 0);
	post(VB_K_SEND, 1);
	post(VB_K_BIND, 0);
	assert_int_equal(go(), 3);
	assert_done(4);
	post(VB_K_LOCAL_INV, 0);
	assert_int_equal(go(), 0);
	assert_done(5);
	assert_int_equal(fake.locals, 3);
}

REQ_TEST(in_a_long_queue_each_is_done_once)
{
	for (unsigned round = 0; round < 12; round++) {
		for (unsigned i = 0; i < 20; i++)
			post(i % 3 == 1 ? VB_K_BIND : VB_K_SEND, 1);
		go();
		vb_req_rewind(&req);
		go();
		ack((req.post_psn - 1) & VB_PSN_MASK);
		assert_int_equal(req.head, req.tail);
		assert_int_equal(fake.locals, 7 * (round + 1));
		assert_int_equal(fake.done_count, 20 * (round + 1));
	}
}

/* --- ATOMIC_WRITE --- */

static enum vb_req_outcome empty_response(uint32_t psn)
{
	return read_resp(psn, 0);
}

REQ_TEST(an_atomic_write_is_answered_like_a_read)
{
	struct vb_wqe *wqe = post(VB_K_ATOMIC_WRITE, 8);

	assert_int_equal(wqe->packets, 1);
	post(VB_K_SEND, 1);
	assert_int_equal(go(), 2);
	assert_int_equal(sent[0].opcode, VB_OP_RC_ATOMIC_WRITE);
	assert_int_equal(sent[0].bytes, 8);
	assert_int_equal(empty_response(0x100), VB_REQ_MOVED);
	assert_done(1);
	assert_int_equal(fake.local_writes, 0);
	ack(0x101);
	assert_done(2);
}

/* Whatever it is about, it is one packet without data. */
REQ_TEST(a_flush_is_one_packet)
{
	struct vb_wqe *wqe = post(VB_K_FLUSH, 100 * MTU);

	assert_int_equal(wqe->packets, 1);
	post(VB_K_SEND, 1);
	assert_int_equal(go(), 2);
	assert_int_equal(sent[0].opcode, VB_OP_RC_FLUSH);
	assert_true(vb_wqe_sends_nothing(wqe));
	assert_int_equal(sent[1].psn, 0x101);
	assert_int_equal(empty_response(0x100), VB_REQ_MOVED);
	assert_done(1);
	ack(0x101);
	assert_done(2);
}

/* It counts among max_rd_atomic. */
REQ_TEST(atomic_writes_take_places_of_reads)
{
	req.max_fetches = 2;
	for (unsigned i = 0; i < 3; i++)
		post(VB_K_ATOMIC_WRITE, 8);
	assert_int_equal(go(), 2);
	empty_response(0x100);
	assert_int_equal(go(), 1);
	assert_done(1);
}

REQ_TEST(an_ack_is_no_answer_to_it)
{
	post(VB_K_ATOMIC_WRITE, 8);
	post(VB_K_SEND, 1);
	go();
	assert_int_equal(ack(0x101), VB_REQ_MOVED);
	assert_done(0);
	assert_int_equal(go(), 2);
	assert_int_equal(sent[0].psn, 0x100);
}

REQ_TEST(a_wrong_answer_to_it_is_an_error)
{
	static const struct {
		uint8_t opcode;
		uint32_t bytes;
	} rows[] = { { VB_OP_RC_READ_RESP_ONLY, 8 }, { VB_OP_RC_READ_RESP_ONLY, 1 },
		     { VB_OP_RC_ATOMIC_ACK, 0 } };

	for (unsigned i = 0; i < VB_ARRAY_LEN(rows); i++) {
		begin(state);
		post(VB_K_ATOMIC_WRITE, 8);
		go();
		assert_int_equal(answer(rows[i].opcode, 0x100, 0, 0, rows[i].bytes),
				 VB_REQ_FAILED);
		assert_failed(0, IBV_WC_BAD_RESP_ERR);
	}
}

/* A work request that has its data behind a key, of which the low octet is anybody's. */
static void post_behind(unsigned kind, uint32_t key)
{
	struct vb_wqe *wqe = post(kind, 1);

	wqe->sge_count = 1;
	wqe->sge[0] = (struct ibv_sge){ .length = 1, .lkey = key };
}

/* It may have to be sent again, and would find other data there, or none. */
REQ_TEST(a_key_stays_while_something_is_sent_from_behind_it)
{
	static const unsigned kinds[] = { VB_K_SEND, VB_K_WRITE, VB_K_READ_REQ };

	for (unsigned i = 0; i < VB_ARRAY_LEN(kinds); i++) {
		uint32_t psn = req.post_psn, done = fake.done_count;

		fake.locals = 0;
		post_behind(kinds[i], 0x12345607);
		post(VB_K_LOCAL_INV, 0)->imm_be = 0x12345699;
		assert_int_equal(go(), 1);
		assert_int_equal(fake.locals, 0);
		assert_int_equal(go(), 0);
		if (kinds[i] == VB_K_READ_REQ)
			read_resp(psn, 1);
		else
			ack(psn);
		assert_int_equal(go(), 0);
		assert_int_equal(fake.locals, 1);
		assert_done(done + 2);
	}
}

REQ_TEST(another_key_may_change_meanwhile)
{
	post_behind(VB_K_SEND, 0x12345607);
	post(VB_K_LOCAL_INV, 0)->imm_be = 0x12345707;
	post(VB_K_MKEY, 0)->mkey.key = 0x22345607;
	post(VB_K_MEMCPY, 0);
	assert_int_equal(go(), 1);
	assert_int_equal(fake.locals, 3);
	post(VB_K_MKEY, 0)->mkey.key = 0x12345600;
	assert_int_equal(go(), 0);
	assert_int_equal(fake.locals, 3);
	ack(START_PSN);
	assert_int_equal(go(), 0);
	assert_int_equal(fake.locals, 4);
	assert_done(5);
}

/* Nothing is sent again there. */
REQ_TEST(without_acknowledgements_nothing_is_waited_for)
{
	req.transport = VB_UC;
	post_behind(VB_K_SEND, 0x12345607);
	post(VB_K_LOCAL_INV, 0)->imm_be = 0x12345607;
	assert_int_equal(go(), 1);
	assert_int_equal(fake.locals, 1);
	assert_done(2);
}
