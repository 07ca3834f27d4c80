/* SPDX-License-Identifier: BSD-2-Clause */

/* The requester on a link that loses nothing: no window to find, and a clock that seldom runs. */
#include "req_fixture.h"

#define TIMEOUT_14_NS (4096ull << 14)
#define LONG_NS 1000000000000ull

static int begin_reliable(void **state)
{
	begin(state);
	req.reliable = true;
	req.flight.max = 1 << 22;
	vb_req_start(&req, START_PSN);
	return 0;
}

#define RELIABLE(name) TEST_AFTER(name, begin_reliable)

/* As nic does it: the clock is set when something is sent and no clock runs; then it looks. */
static void set_clock(void)
{
	if (req.una_psn != req.top_psn && vb_rc_deadline_ns(&req) == VB_NEVER_NS)
		vb_rc_watch(&req, now_ns);
}

static unsigned send_watched(void)
{
	unsigned sent_now = send_all();

	set_clock();
	return sent_now;
}

/* The clock rings; what comes of it is sent. */
static enum vb_req_outcome chime(bool unread)
{
	enum vb_req_outcome outcome;

	assert_true(vb_rc_deadline_ns(&req) != VB_NEVER_NS);
	now_ns = vb_rc_deadline_ns(&req) > now_ns ? vb_rc_deadline_ns(&req) : now_ns;
	outcome = vb_rc_look(&req, unread, now_ns);
	send_watched();
	/* Whatever it was: it does not ring again right away. */
	if (outcome != VB_REQ_FAILED && vb_rc_deadline_ns(&req) != VB_NEVER_NS)
		assert_true(vb_rc_deadline_ns(&req) > now_ns);
	return outcome;
}

/* --- sending --- */

RELIABLE(all_leaves_at_once)
{
	post(VB_K_SEND, 3000 * MTU);
	assert_int_equal(send_all(), 3000);
	for (unsigned i = 0; i < 10; i++)
		post(VB_K_WRITE, 2 * MTU);
	assert_int_equal(send_all(), 20);
	assert_int_equal(send_all(), 0);
}

/* One answer for each message, and none for parts of one. */
RELIABLE(the_last_packet_asks_for_the_answer)
{
	post(VB_K_SEND, 3 * MTU);
	post(VB_K_SEND, 1);
	post(VB_K_WRITE, 2 * MTU + 1);
	assert_int_equal(send_all(), 7);
	for (unsigned i = 0; i < 7; i++)
		assert_int_equal(asked[i], i == 2 || i == 3 || i == 6);
}

RELIABLE(answers_do_not_touch_the_window)
{
	uint32_t window = req.flight.window;

	for (unsigned i = 0; i < 20; i++) {
		post(VB_K_SEND, MTU);
		send_all();
		ack(START_PSN + i);
	}
	assert_done(20);
	assert_int_equal(req.flight.window, window);
	assert_int_equal(vb_rc_deadline_ns(&req), VB_NEVER_NS);
}

RELIABLE(a_hole_is_filled_without_slowing_down)
{
	uint32_t window = req.flight.window;

	for (unsigned i = 0; i < 4; i++)
		post(VB_K_SEND, 1);
	send_all();
	/* The peer dropped the first two, being not ready for them. */
	assert_int_equal(nak(START_PSN, VB_NAK_PSN), VB_REQ_MOVED);
	assert_int_equal(req.flight.window, window);
	assert_int_equal(send_watched(), 4);
	assert_int_equal(sent[0].psn, START_PSN);
	ack(START_PSN + 3);
	assert_done(4);
	assert_int_equal(vb_rc_deadline_ns(&req), VB_NEVER_NS);
}

/* --- the clock --- */

RELIABLE(no_clock_runs_by_itself)
{
	post(VB_K_SEND, 1);
	post(VB_K_READ_REQ, 100);
	send_all();
	assert_int_equal(vb_rc_deadline_ns(&req), VB_NEVER_NS);
}

RELIABLE(a_look_at_nothing_is_nothing)
{
	assert_int_equal(vb_rc_look(&req, false, now_ns), VB_REQ_NOTHING);
	assert_int_equal(vb_rc_deadline_ns(&req), VB_NEVER_NS);
	post(VB_K_SEND, 1);
	send_watched();
	ack(START_PSN);
	assert_int_equal(vb_rc_look(&req, false, now_ns + LONG_NS), VB_REQ_NOTHING);
	assert_int_equal(send_all(), 0);
	assert_done(1);
}

RELIABLE(a_peer_that_gets_on_is_left_alone)
{
	for (unsigned i = 0; i < 50; i++)
		post(VB_K_SEND, 1);
	assert_int_equal(send_watched(), 50);
	/* The clock rings as it was set; an answer has come meanwhile, each time. */
	for (unsigned i = 0; i < 49; i++) {
		ack(START_PSN + i);
		now_ns += 10000000;
		assert_int_equal(vb_rc_look(&req, false, now_ns), VB_REQ_NOTHING);
		assert_int_equal(send_all(), 0);
		assert_true(vb_rc_deadline_ns(&req) > now_ns);
	}
	assert_done(49);
}

RELIABLE(a_peer_that_reads_nothing_is_waited_for)
{
	post(VB_K_SEND, 1);
	send_watched();
	while (now_ns < LONG_NS) {
		assert_int_equal(chime(true), VB_REQ_NOTHING);
		assert_int_equal(sent_count, 0);
	}
	/* Then it reads, and drops what it is not ready for: only now its silence counts. */
	for (unsigned i = 0; chime(false) == VB_REQ_NOTHING; i++)
		assert_true(i < 2);
	assert_int_equal(sent_count, 1);
	ack(START_PSN);
	assert_done(1);
}

/* Sent again once, it may be stopped before it reads that. */
RELIABLE(it_may_stop_reading_later)
{
	post(VB_K_SEND, 1);
	send_watched();
	while (chime(false) != VB_REQ_MOVED)
		;
	for (unsigned i = 0; i < 1000; i++) {
		assert_int_equal(chime(true), VB_REQ_NOTHING);
		assert_int_equal(sent_count, 0);
	}
	while (chime(false) != VB_REQ_MOVED)
		;
	assert_int_equal(sent_count, 1);
	ack(START_PSN);
	assert_done(1);
}

RELIABLE(silence_ends_it_after_all_retries)
{
	for (unsigned retries = 0; retries < 8; retries++) {
		enum vb_req_outcome outcome;
		uint64_t start_ns;

		begin_reliable(NULL);
		req.retry.count = req.retry.left = (uint8_t)retries;
		post(VB_K_SEND, 1);
		post(VB_K_SEND, 1);
		start_ns = now_ns;
		send_watched();
		while ((outcome = chime(false)) != VB_REQ_FAILED)
			assert_true(now_ns - start_ns < (retries + 2) * TIMEOUT_14_NS);
		assert_true(now_ns - start_ns >= (retries + 1) * TIMEOUT_14_NS);
		assert_failed(0, IBV_WC_RETRY_EXC_ERR);
	}
}

RELIABLE(without_a_timeout_it_tries_for_ever)
{
	req.retry.timeout = 0;
	req.retry.count = req.retry.left = 0;
	post(VB_K_SEND, 1);
	send_watched();
	for (unsigned i = 0; i < 200; i++)
		assert_int_not_equal(chime(false), VB_REQ_FAILED);
	ack(START_PSN);
	assert_done(1);
}

/* A thread that was not scheduled for a second has seen no silence: the answer may lie there. */
RELIABLE(our_own_lateness_is_not_silence)
{
	req.retry.count = req.retry.left = 1;
	post(VB_K_SEND, 1);
	send_watched();
	now_ns += 1000000000;
	assert_int_not_equal(chime(false), VB_REQ_FAILED);
	ack(START_PSN);
	assert_done(1);
}

RELIABLE(progress_begins_the_count_anew)
{
	req.retry.count = req.retry.left = 2;
	for (unsigned i = 0; i < 10; i++)
		post(VB_K_SEND, 1);
	send_watched();
	for (unsigned i = 0; i < 9; i++) {
		uint64_t from_ns = now_ns;

		while (now_ns < from_ns + 2 * TIMEOUT_14_NS)
			assert_int_not_equal(chime(false), VB_REQ_FAILED);
		ack(START_PSN + i);
		set_clock();
	}
	assert_done(9);
}

/* --- no receive posted --- */

RELIABLE(it_waits_as_long_as_the_peer_says)
{
	post(VB_K_SEND, 1);
	send_watched();
	assert_int_equal(rnr(START_PSN, 14), VB_REQ_MOVED); /* 1.28 ms */
	assert_int_equal(send_all(), 0);
	assert_int_equal(vb_rc_deadline_ns(&req), now_ns + 1280000);
	assert_int_equal(vb_rc_look(&req, false, now_ns + 1279999), VB_REQ_NOTHING);
	assert_int_equal(send_all(), 0);
	/* Unread or not: it is the peer who asked for it. */
	now_ns += 1280000;
	assert_int_equal(vb_rc_look(&req, true, now_ns), VB_REQ_MOVED);
	assert_int_equal(send_watched(), 1);
	ack(START_PSN);
	assert_done(1);
	assert_int_equal(vb_rc_deadline_ns(&req), VB_NEVER_NS);
}

RELIABLE(it_asks_as_often_as_it_may)
{
	req.retry.rnr_count = req.retry.rnr_left = 3;
	post(VB_K_SEND, 1);
	send_watched();
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(rnr(START_PSN, 1), VB_REQ_MOVED);
		assert_int_equal(chime(false), VB_REQ_MOVED);
		assert_int_equal(sent_count, 1);
	}
	assert_int_equal(rnr(START_PSN, 1), VB_REQ_FAILED);
	assert_failed(0, IBV_WC_RNR_RETRY_EXC_ERR);
}

/* --- fetches --- */

RELIABLE(a_long_read_comes_in_pieces)
{
	unsigned pieces = 4, per_piece = VB_READ_CHUNK_BYTES / MTU;

	req.max_fetches = 2;
	post(VB_K_READ_REQ, pieces * VB_READ_CHUNK_BYTES);
	assert_int_equal(send_all(), 2);
	for (unsigned i = 0; i < pieces * per_piece; i++) {
		unsigned at = i % per_piece;
		uint8_t opcode = at == 0 ? VB_OP_RC_READ_RESP_FIRST
				 : at + 1 == per_piece ? VB_OP_RC_READ_RESP_LAST
						       : VB_OP_RC_READ_RESP_MIDDLE;

		answer(opcode, START_PSN + i, vb_aeth_ack(VB_CREDIT_CODE_UNLIMITED), 0, MTU);
		send_all();
	}
	assert_done(1);
	assert_int_equal(fake.local_writes, pieces * per_piece);
	assert_int_equal(vb_rc_deadline_ns(&req), VB_NEVER_NS);
}

/* IBA 9.7.5.1.4: a fence holds back what comes behind a READ, small or not. */
RELIABLE(a_fence_holds_back_small_messages_too)
{
	struct vb_wqe *wqe;

	post(VB_K_READ_REQ, 100);
	wqe = post_flags(VB_K_SEND, 8, IBV_SEND_FENCE);
	wqe->only = vb_segment_only(VB_RC, wqe);
	assert_int_equal(send_all(), 1);
	read_resp(START_PSN, 100);
	assert_int_equal(send_all(), 1);
	ack(START_PSN + 1);
	assert_done(2);
}

/* What is short goes a short way, and that must not make a difference. */
RELIABLE(short_messages_go_by_the_same_rules)
{
	struct vb_wqe *wqe;

	for (unsigned i = 0; i < 3; i++) {
		wqe = post(VB_K_SEND, 8);
		wqe->only = vb_segment_only(VB_RC, wqe);
	}
	assert_int_equal(send_watched(), 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(sent[i].psn, START_PSN + i);
		assert_true(asked[i] && sent[i].first && sent[i].last);
		assert_int_equal(sent[i].bytes, 8);
		assert_int_equal(sent[i].opcode, VB_OP_RC_SEND_ONLY);
	}
	/* Again from the second on. */
	assert_int_equal(nak(START_PSN + 1, VB_NAK_PSN), VB_REQ_MOVED);
	assert_int_equal(send_watched(), 2);
	assert_int_equal(sent[0].psn, START_PSN + 1);
	/* Not while it waits, not when it is being drained, not beyond a fault. */
	assert_int_equal(rnr(START_PSN + 1, 1), VB_REQ_MOVED);
	assert_int_equal(send_all(), 0);
	assert_int_equal(chime(false), VB_REQ_MOVED);
	req.sqd = true;
	wqe = post(VB_K_SEND, 8);
	wqe->only = vb_segment_only(VB_RC, wqe);
	assert_int_equal(send_all(), 0);
	req.sqd = false;
	vb_req_fault(&req, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(send_all(), 0);
	ack(START_PSN + 2);
	assert_failed(3, IBV_WC_LOC_PROT_ERR);
}

RELIABLE(without_credits_one_message_goes_to_find_out)
{
	struct vb_wqe *wqe;

	for (unsigned i = 0; i < 4; i++) {
		wqe = post(VB_K_SEND, 8);
		wqe->only = vb_segment_only(VB_RC, wqe);
		if (i == 0)
			assert_int_equal(send_watched(), 1);
	}
	/* It has come, and there is no receive request left. */
	assert_int_equal(answer(VB_OP_RC_ACK, START_PSN, vb_aeth_ack(0), 1, 0), VB_REQ_MOVED);
	assert_int_equal(send_watched(), 1);
	assert_int_equal(answer(VB_OP_RC_ACK, START_PSN + 1, vb_aeth_ack(1), 2, 0), VB_REQ_MOVED);
	assert_int_equal(send_watched(), 1);
	ack(START_PSN + 2);
	assert_int_equal(send_watched(), 1);
	ack(START_PSN + 3);
	assert_done(4);
}
