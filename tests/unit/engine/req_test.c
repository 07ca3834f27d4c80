/* SPDX-License-Identifier: BSD-2-Clause */

/* The requester: what is sent when, and what an answer does. Time: retry_test.c. */
#include "req_fixture.h"

REQ_TEST(requests_take_psns_one_after_another)
{
	assert_int_equal(post(VB_K_SEND, 0)->psn, 0x100);
	assert_int_equal(post(VB_K_SEND, 3 * MTU)->psn, 0x101);
	assert_int_equal(post(VB_K_READ_REQ, 2 * MTU + 1)->psn, 0x104);
	assert_int_equal(post(VB_K_FETCH_ADD, 8)->psn, 0x107);
	assert_int_equal(post(VB_K_WRITE, 1)->psn, 0x108);
	assert_int_equal(send_all(), 7);
	assert_int_equal(req.top_psn, 0x109);
	assert_int_equal(sent[4].psn, 0x104);
	assert_int_equal(sent[5].psn, 0x107);
	assert_int_equal(req.una_psn, 0x100);
	assert_done(0);
}

/* IBA 9.7.5.1.2: one acknowledgement stands for all before it. */
REQ_TEST(one_ack_completes_all_before_it)
{
	for (unsigned i = 0; i < 5; i++)
		post(VB_K_SEND, MTU);
	assert_int_equal(send_all(), 5);
	assert_int_equal(ack(0x103), VB_REQ_MOVED);
	assert_done(4);
	assert_int_equal(req.una_psn, 0x104);
	assert_int_equal(ack(0x104), VB_REQ_MOVED);
	assert_done(5);
	assert_int_equal(vb_rc_deadline_ns(&req), VB_NEVER_NS);
}

REQ_TEST(an_ack_within_a_message_completes_nothing)
{
	post(VB_K_SEND, 4 * MTU);
	send_all();
	ack(0x102);
	assert_done(0);
	assert_int_equal(req.una_psn, 0x103);
	ack(0x103);
	assert_done(1);
}

REQ_TEST(the_last_packet_asks_for_an_ack)
{
	post(VB_K_SEND, 3 * MTU);
	send_all();
	assert_true(asked[2]);
	assert_false(asked[0]);
}

REQ_TEST(answers_to_nothing_are_stale)
{
	assert_int_equal(ack(0x100), VB_REQ_STALE);
	post(VB_K_SEND, 1);
	post(VB_K_SEND, 1);
	send_all();
	assert_int_equal(ack(0x102), VB_REQ_STALE);
	assert_int_equal(ack(0x0fe), VB_REQ_STALE);
	assert_int_equal(nak(0x0ff, VB_NAK_ACCESS), VB_REQ_STALE);
	assert_int_equal(rnr(0x0ff, 1), VB_REQ_STALE);
	assert_int_equal(read_resp(0x0ff, 1), VB_REQ_STALE);
	/* The reserved class of the syndrome. */
	assert_int_equal(answer(VB_OP_RC_ACK, 0x100, 0x40, 0, 0), VB_REQ_STALE);
	assert_done(0);
	/* What is posted but not sent cannot be acknowledged either. */
	ack(0x101);
	post(VB_K_SEND, 1);
	assert_int_equal(ack(0x102), VB_REQ_STALE);
	assert_done(2);
}

REQ_TEST(psns_wrap)
{
	begin(NULL);
	vb_req_start(&req, 0xfffffd);
	for (unsigned i = 0; i < 3; i++)
		post(VB_K_SEND, 2 * MTU);
	post(VB_K_READ_REQ, 2 * MTU);
	assert_int_equal(send_all(), 7);
	assert_int_equal(sent[3].psn, 0);
	assert_int_equal(req.top_psn, 5);
	ack(0xfffffe);
	assert_done(1);
	ack(0);
	assert_done(2);
	ack(2);
	assert_done(3);
	read_resp(3, MTU);
	read_resp(4, MTU);
	assert_done(4);
	assert_int_equal(req.una_psn, 5);
	assert_int_equal(req.top_psn, 5);
}

REQ_TEST(going_back_over_the_wrap)
{
	vb_req_start(&req, 0xfffffe);
	post(VB_K_SEND, 4 * MTU);
	send_all();
	ack(0xfffffe);
	assert_int_equal(nak(0xffffff, VB_NAK_PSN), VB_REQ_MOVED);
	assert_int_equal(send_all(), 3);
	assert_int_equal(sent[0].psn, 0xffffff);
	assert_int_equal(sent[0].offset, MTU);
	ack(1);
	assert_done(1);
}

/* A long message and then READs: their PSNs are more than half of all ahead. */
REQ_TEST(a_read_far_ahead_is_not_taken_for_one_behind)
{
	req.mtu = 256;
	post(VB_K_SEND, 1u << 31);
	post(VB_K_SEND, 1);
	post(VB_K_READ_REQ, 100);
	send_all();
	ack(0x100);
	assert_done(0);
	assert_int_equal(req.una_psn, 0x101);
}

/* IBA 9.7.7.2.5: beyond the credits only one message may be on its way, to find out. */
REQ_TEST(credits_hold_messages_back)
{
	for (unsigned i = 0; i < 6; i++)
		post(VB_K_SEND, 1);
	req.credits.known = true;
	req.credits.limit = 0;
	assert_int_equal(send_all(), 1);
	/* Two more receive requests (code 2), one message completed: SSN 2 and 3 may go. */
	answer(VB_OP_RC_ACK, 0x100, vb_aeth_ack(2), 1, 0);
	assert_int_equal(send_all(), 2);
	/* An unsolicited acknowledgement of the same PSN brings more. */
	ack(0x102);
	assert_int_equal(send_all(), 3);
	assert_done(3);
}

REQ_TEST(credits_are_for_what_takes_a_receive_request)
{
	post(VB_K_SEND, 1);
	post(VB_K_WRITE, 1);
	post(VB_K_READ_REQ, 1);
	post(VB_K_WRITE, 1)->extra = VB_H_IMM;
	req.credits.known = true;
	req.credits.limit = 0;
	assert_int_equal(send_all(), 3);
}

REQ_TEST(an_ack_of_the_newest_acknowledged_brings_credits)
{
	for (unsigned i = 0; i < 3; i++)
		post(VB_K_SEND, 1);
	req.credits.known = true;
	req.credits.limit = 0;
	send_all();
	answer(VB_OP_RC_ACK, 0x100, vb_aeth_ack(0), 1, 0);
	assert_int_equal(send_all(), 1);
	assert_int_equal(send_all(), 0);
	assert_int_equal(answer(VB_OP_RC_ACK, 0x100, vb_aeth_ack(5), 1, 0), VB_REQ_MOVED);
	assert_int_equal(send_all(), 1);
}

/* mlx5dv_create_qp(3), PACKET_BASED_CREDIT_MODE: the limit falls within a message too. */
REQ_TEST(credits_of_packets_hold_packets_back)
{
	for (unsigned reliable = 0; reliable < 2; reliable++) {
		begin(NULL);
		req.credits.of_packets = true;
		req.reliable = reliable;
		vb_req_start(&req, START_PSN);
		post(VB_K_SEND, 1);
		post(VB_K_SEND, 3 * MTU);
		post(VB_K_SEND, 4 * MTU);
		/* Nothing is known yet of the first; the AETH gives four packets from there on. */
		req.credits.known = true;
		req.credits.limit = START_PSN - 1;
		assert_int_equal(send_all(), 1);
		answer(VB_OP_RC_ACK, 0x100, vb_aeth_ack(vb_credit_encode(4)), 1, 0);
		assert_int_equal(send_all(), 4);
		assert_int_equal(sent[3].psn, 0x104);
		/* The last of them asks, so that more come. */
		assert_true(asked[3]);
		assert_int_equal(vb_req_run(&req), 0);
		/* None are left: one packet goes when nothing is on its way, and asks. */
		answer(VB_OP_RC_ACK, 0x104, vb_aeth_ack(0), 2, 0);
		assert_int_equal(send_all(), 1);
		assert_int_equal(sent[0].psn, 0x105);
		assert_true(asked[0]);
		answer(VB_OP_RC_ACK, 0x105, vb_aeth_ack(0), 2, 0);
		assert_int_equal(send_all(), 1);
		answer(VB_OP_RC_ACK, 0x106, vb_aeth_ack(VB_CREDIT_CODE_UNLIMITED), 2, 0);
		assert_int_equal(send_all(), 1);
		ack(0x107);
		assert_done(3);
	}
}

/* ... but what was sent once may be sent again. */
REQ_TEST(credits_of_packets_do_not_hold_up_a_repetition)
{
	req.credits.of_packets = true;
	post(VB_K_SEND, 5 * MTU);
	assert_int_equal(send_all(), 5);
	answer(VB_OP_RC_ACK, 0x101, vb_aeth_ack(0), 0, 0);
	nak(0x102, VB_NAK_PSN);
	assert_int_equal(send_all(), 3);
	ack(0x104);
	assert_done(1);
}

REQ_TEST(credits_of_packets_are_for_sends_and_immediate_data)
{
	req.credits.of_packets = true;
	post(VB_K_SEND, 1);
	post(VB_K_WRITE, 3 * MTU);
	post(VB_K_READ_REQ, MTU);
	post(VB_K_WRITE, 3 * MTU)->extra = VB_H_IMM;
	req.credits.known = true;
	req.credits.limit = START_PSN - 1;
	/* All but the packet that has the immediate data. */
	assert_int_equal(send_all(), 7);
	assert_int_equal(sent[6].psn, 0x106);
	assert_true(asked[6]);
}

REQ_TEST(a_fence_waits_for_reads_and_atomics)
{
	post(VB_K_READ_REQ, 10);
	post(VB_K_FETCH_ADD, 8);
	post(VB_K_SEND, 1);
	post_flags(VB_K_SEND, 1, IBV_SEND_FENCE);
	post(VB_K_SEND, 1);
	assert_int_equal(send_all(), 3);
	read_resp(0x100, 10);
	assert_int_equal(send_all(), 0);
	atomic_ack(0x101);
	assert_int_equal(send_all(), 2);
	assert_done(2);
}

REQ_TEST(no_more_reads_and_atomics_than_agreed)
{
	req.max_fetches = 2;
	for (unsigned i = 0; i < 4; i++)
		post(i & 1 ? VB_K_CMP_SWP : VB_K_READ_REQ, 8);
	assert_int_equal(send_all(), 2);
	read_resp(0x100, 8);
	assert_int_equal(send_all(), 1);
	atomic_ack(0x101);
	read_resp(0x102, 8);
	assert_int_equal(send_all(), 1);
	atomic_ack(0x103);
	assert_done(4);
}

/* The pieces of a long READ count one by one. */
REQ_TEST(a_long_read_keeps_to_the_agreement)
{
	req.max_fetches = 1;
	post(VB_K_READ_REQ, 3 * VB_READ_CHUNK_BYTES);
	assert_int_equal(send_all(), 1);
	assert_int_equal(sent[0].span, 64);
	for (unsigned i = 0; i < 63; i++)
		read_resp(0x100 + i, MTU);
	assert_int_equal(send_all(), 0);
	read_resp(0x100 + 63, MTU);
	assert_int_equal(send_all(), 1);
	assert_int_equal(sent[0].offset, VB_READ_CHUNK_BYTES);
	assert_done(0);
}

REQ_TEST(data_lands_where_it_belongs)
{
	post(VB_K_READ_REQ, 2 * MTU + 5);
	send_all();
	read_resp(0x100, MTU);
	assert_int_equal(fake.local_offset, 0);
	read_resp(0x101, MTU);
	assert_int_equal(fake.local_offset, MTU);
	read_resp(0x102, 5);
	assert_int_equal(fake.local_offset, 2 * MTU);
	assert_int_equal(fake.local_bytes, 5);
	assert_int_equal(fake.local_writes, 3);
	assert_done(1);
	/* Twice the same: the second is none of ours. */
	assert_int_equal(read_resp(0x102, 5), VB_REQ_STALE);
	assert_int_equal(fake.local_writes, 3);
}

REQ_TEST(an_atomic_lands_in_host_order)
{
	post(VB_K_FETCH_ADD, 8);
	send_all();
	atomic_ack(0x100);
	assert_int_equal(fake.local_bytes, 8);
	assert_true(fake.local_first == 0x0123456789abcdef);
	assert_done(1);
}

/* IBA 9.7.5.1.1: a READ is done when its data came, not when something later is acknowledged. */
REQ_TEST(an_ack_behind_a_read_means_that_its_answer_is_lost)
{
	post(VB_K_SEND, 1);
	post(VB_K_READ_REQ, 1);
	post(VB_K_SEND, 1);
	send_all();
	assert_int_equal(ack(0x102), VB_REQ_MOVED);
	assert_done(1);
	assert_int_equal(send_all(), 2);
	assert_int_equal(sent[0].psn, 0x101);
	/* The same news again starts nothing. */
	assert_int_equal(ack(0x102), VB_REQ_NOTHING);
	assert_int_equal(send_all(), 0);
	read_resp(0x101, 1);
	assert_done(2);
	ack(0x102);
	assert_done(3);
}

REQ_TEST(a_response_out_of_turn_means_that_one_is_lost)
{
	post(VB_K_READ_REQ, 3 * MTU);
	send_all();
	read_resp(0x100, MTU);
	assert_int_equal(read_resp(0x102, MTU), VB_REQ_MOVED);
	assert_int_equal(send_all(), 1);
	assert_int_equal(sent[0].psn, 0x101);
	assert_int_equal(sent[0].span, 2);
	assert_int_equal(sent[0].bytes, 2 * MTU);
	assert_int_equal(fake.local_writes, 1);
}

/* IBA 9.7.5.2: NAKs that end it, and what the application is told. */
REQ_TEST(naks_that_end_it)
{
	static const struct {
		unsigned code;
		enum ibv_wc_status status;
	} rows[] = {
		{ VB_NAK_INVALID_REQ, IBV_WC_REM_INV_REQ_ERR },
		{ VB_NAK_ACCESS, IBV_WC_REM_ACCESS_ERR },
		{ VB_NAK_OP, IBV_WC_REM_OP_ERR },
	};

	for (unsigned i = 0; i < VB_ARRAY_LEN(rows); i++) {
		begin(NULL);
		for (unsigned n = 0; n < 3; n++)
			post(VB_K_SEND, 1);
		send_all();
		/* It acknowledges what came before it. */
		assert_int_equal(nak(0x101, rows[i].code), VB_REQ_FAILED);
		assert_failed(1, rows[i].status);
	}
}

REQ_TEST(reserved_nak_codes_are_ignored)
{
	post(VB_K_SEND, 1);
	send_all();
	for (unsigned code = VB_NAK_RD; code < 32; code++)
		assert_int_equal(nak(0x100, code), VB_REQ_STALE);
	assert_done(0);
}

REQ_TEST(a_sequence_nak_starts_again_from_there)
{
	for (unsigned i = 0; i < 4; i++)
		post(VB_K_SEND, 2 * MTU);
	send_all();
	assert_int_equal(nak(0x103, VB_NAK_PSN), VB_REQ_MOVED);
	assert_done(1);
	assert_int_equal(send_all(), 5);
	assert_int_equal(sent[0].psn, 0x103);
	assert_false(sent[0].first);
	ack(0x107);
	assert_done(4);
}

REQ_TEST(an_answer_to_the_first_attempt_saves_the_second)
{
	struct vb_segment seg;
	bool ackreq;

	for (unsigned i = 0; i < 4; i++)
		post(VB_K_SEND, 1);
	send_all();
	nak(0x100, VB_NAK_PSN);
	ack(0x101);
	assert_true(vb_req_next(&req, &seg, &ackreq));
	assert_int_equal(seg.psn, 0x102);
}

REQ_TEST(responses_that_fit_nothing_are_bad)
{
	static const struct {
		enum vb_kind posted;
		uint32_t bytes;
		uint8_t opcode;
		uint32_t answered;
	} rows[] = {
		{ VB_K_READ_REQ, 100, VB_OP_RC_READ_RESP_ONLY, 99 },
		{ VB_K_READ_REQ, 100, VB_OP_RC_READ_RESP_ONLY, 101 },
		{ VB_K_READ_REQ, 2 * MTU, VB_OP_RC_READ_RESP_FIRST, MTU - 1 },
		{ VB_K_READ_REQ, 100, VB_OP_RC_ATOMIC_ACK, 0 },
		{ VB_K_FETCH_ADD, 8, VB_OP_RC_READ_RESP_ONLY, 8 },
		{ VB_K_SEND, 8, VB_OP_RC_READ_RESP_ONLY, 8 },
		{ VB_K_SEND, 8, VB_OP_RC_ATOMIC_ACK, 0 },
	};

	for (unsigned i = 0; i < VB_ARRAY_LEN(rows); i++) {
		begin(NULL);
		post(rows[i].posted, rows[i].bytes);
		send_all();
		assert_int_equal(answer(rows[i].opcode, 0x100, vb_aeth_ack(31), 1,
					rows[i].answered),
				 VB_REQ_FAILED);
		assert_failed(0, IBV_WC_BAD_RESP_ERR);
		assert_int_equal(fake.local_writes, 0);
	}
}

REQ_TEST(data_that_may_not_land_fails)
{
	post(VB_K_SEND, 1);
	post(VB_K_READ_REQ, 1);
	send_all();
	fake.local_status = IBV_WC_LOC_PROT_ERR;
	assert_int_equal(read_resp(0x101, 1), VB_REQ_FAILED);
	assert_failed(1, IBV_WC_LOC_PROT_ERR);
}

/* IBA 10.7.3.1: completions keep their order, failures too. */
REQ_TEST(a_local_fault_waits_for_those_before_it)
{
	struct vb_segment seg;
	bool ackreq;

	post(VB_K_SEND, 1);
	post(VB_K_SEND, 1);
	post(VB_K_SEND, 1);
	assert_true(vb_req_next(&req, &seg, &ackreq));
	vb_req_sent(&req, &(struct vb_req_pos){ .next_psn = 0x100 }, now_ns);
	vb_req_fault(&req, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(vb_req_settle(&req), VB_REQ_NOTHING);
	assert_int_equal(send_all(), 0);
	assert_int_equal(ack(0x100), VB_REQ_FAILED);
	assert_failed(1, IBV_WC_LOC_PROT_ERR);
}

/* IBA 10.3.1.5: in SQD what was begun goes on, and nothing else begins. */
REQ_TEST(a_draining_queue_begins_nothing)
{
	struct vb_segment seg;
	bool ackreq;

	post(VB_K_SEND, 3 * MTU);
	post(VB_K_SEND, 1);
	assert_true(vb_req_drained(&req));
	assert_true(vb_req_next(&req, &seg, &ackreq));
	vb_req_sent(&req, &(struct vb_req_pos){ .next_psn = 0x100 }, now_ns);
	req.sqd = true;
	assert_false(vb_req_drained(&req));
	assert_int_equal(send_all(), 2);
	ack(0x102);
	assert_done(1);
	assert_true(vb_req_drained(&req));
	assert_int_equal(send_all(), 0);
	req.sqd = false;
	assert_int_equal(send_all(), 1);
}

REQ_TEST(a_draining_queue_sends_again_what_was_lost)
{
	post(VB_K_SEND, 1);
	post(VB_K_SEND, 1);
	send_all();
	req.sqd = true;
	nak(0x100, VB_NAK_PSN);
	assert_int_equal(send_all(), 2);
	ack(0x101);
	assert_true(vb_req_drained(&req));
}

REQ_TEST(the_window_bounds_what_is_on_its_way)
{
	unsigned window = req.flight.window;

	post(VB_K_WRITE, 1000 * MTU);
	assert_int_equal(send_all(), window);
	ack(vb_psn_add(START_PSN, 9));
	assert_true(send_all() >= 10);
	assert_true(((req.pos.next_psn - req.una_psn) & VB_PSN_MASK) <= req.flight.window);
}

REQ_TEST(a_refused_burst_is_taken_back)
{
	struct vb_req_pos before = req.pos;
	struct vb_segment seg, again;
	bool ackreq;

	post(VB_K_READ_REQ, 10);
	post(VB_K_SEND, 10);
	assert_true(vb_req_next(&req, &seg, &ackreq));
	req.pos = before;
	assert_true(vb_req_next(&req, &again, &ackreq));
	assert_int_equal(seg.opcode, again.opcode);
	assert_int_equal(seg.psn, again.psn);
	assert_int_equal(req.pos.fetches, 1);
}

REQ_TEST(datagrams_are_done_when_they_left)
{
	req.transport = VB_UD;
	for (unsigned i = 0; i < 3; i++)
		post(VB_K_SEND, 100);
	assert_int_equal(send_all(), 3);
	assert_false(asked[2]);
	vb_req_complete_sent(&req);
	assert_done(3);
	assert_int_equal(vb_rc_deadline_ns(&req), VB_NEVER_NS);
}
