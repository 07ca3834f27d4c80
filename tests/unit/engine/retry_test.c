/* SPDX-License-Identifier: BSD-2-Clause */

/* The requester and time: acknowledgement timeouts, RNR waits, and when it gives up. */
#include "req_fixture.h"

#define TIMEOUT_14_NS (4096ull << 14)

/* Let the clock ring until it fails, which is returned, or until `until_ns`: NOTHING. */
static enum vb_req_outcome ring_until(uint64_t until_ns)
{
	for (;;) {
		uint64_t at_ns = vb_rc_deadline_ns(&req);
		enum vb_req_outcome outcome;

		if (at_ns > until_ns) {
			now_ns = until_ns;
			return VB_REQ_NOTHING;
		}
		now_ns = at_ns > now_ns ? at_ns : now_ns;
		outcome = vb_rc_timeout(&req, now_ns);
		if (outcome == VB_REQ_FAILED)
			return outcome;
		send_all();
	}
}

REQ_TEST(the_clock_runs_while_something_is_on_its_way)
{
	assert_int_equal(vb_rc_deadline_ns(&req), VB_NEVER_NS);
	post(VB_K_SEND, 1);
	assert_int_equal(vb_rc_deadline_ns(&req), VB_NEVER_NS);
	send_all();
	assert_true(vb_rc_deadline_ns(&req) > now_ns);
	assert_true(vb_rc_deadline_ns(&req) <= now_ns + TIMEOUT_14_NS);
	ack(0x100);
	assert_int_equal(vb_rc_deadline_ns(&req), VB_NEVER_NS);
}

REQ_TEST(what_is_not_answered_is_sent_again)
{
	post(VB_K_SEND, 3 * MTU);
	send_all();
	ack(0x100);
	now_ns = vb_rc_deadline_ns(&req);
	assert_int_equal(vb_rc_timeout(&req, now_ns - 1), VB_REQ_NOTHING);
	assert_int_equal(vb_rc_timeout(&req, now_ns), VB_REQ_MOVED);
	assert_true(send_all() >= 1);
	assert_int_equal(sent[0].psn, 0x101);
	ack(0x102);
	while (send_all())
		ack(0x102);
	assert_done(1);
}

REQ_TEST(each_silence_doubles_the_wait)
{
	uint64_t last_ns, wait_ns = 0;

	req.retry.timeout = 20;
	post(VB_K_SEND, 1);
	send_all();
	last_ns = now_ns;
	for (unsigned i = 0; i < 6; i++) {
		now_ns = vb_rc_deadline_ns(&req);
		if (wait_ns)
			assert_int_equal(now_ns - last_ns, 2 * wait_ns);
		wait_ns = now_ns - last_ns;
		last_ns = now_ns;
		assert_int_equal(vb_rc_timeout(&req, now_ns), VB_REQ_MOVED);
		assert_int_equal(send_all(), 1);
	}
}

/* RFC 6298, 5.5 to 5.7: else a path longer than the first guess gets everything twice for ever. */
REQ_TEST(a_path_longer_than_the_first_wait_is_learned)
{
	const uint64_t trip_ns = 5 * VB_RTO_START_NS;
	unsigned again = 0;

	req.retry.timeout = 20;
	for (unsigned i = 0; i < 20; i++) {
		uint64_t answer_ns = now_ns + trip_ns;

		post(VB_K_SEND, 1);
		send_all();
		while (vb_rc_deadline_ns(&req) < answer_ns) {
			now_ns = vb_rc_deadline_ns(&req);
			assert_int_equal(vb_rc_timeout(&req, now_ns), VB_REQ_MOVED);
			again += send_all();
		}
		now_ns = answer_ns;
		ack(0x100 + i);
	}
	assert_done(20);
	assert_in_range(again, 1, 3);
}

/* What was lost once does not make us wait longer; a path that has become longer is learned. */
REQ_TEST(a_wait_is_doubled_for_one_loss_only)
{
	uint64_t wait_ns, trip_ns = 1000000;

	req.retry.timeout = 20;
	for (unsigned i = 0; i < 12; i++) {
		uint64_t answer_ns = now_ns + trip_ns;

		post(VB_K_SEND, 1);
		send_all();
		wait_ns = vb_rc_deadline_ns(&req) - now_ns;
		if (i == 6)
			assert_int_equal(wait_ns, 4000000);
		/* The sixth is lost; later ones take long. */
		while (i == 5 || vb_rc_deadline_ns(&req) < answer_ns) {
			now_ns = vb_rc_deadline_ns(&req);
			assert_int_equal(vb_rc_timeout(&req, now_ns), VB_REQ_MOVED);
			assert_int_equal(send_all(), 1);
			/* Three are spoilt, no more. */
			assert_true(i == 5 || (i >= 7 && i <= 9));
			if (i == 5)
				break;
		}
		now_ns = now_ns > answer_ns ? now_ns : answer_ns;
		ack(0x100 + i);
		if (i == 6)
			trip_ns = 50000000;
	}
	assert_done(12);
}

/* A line on which a packet takes its time, behind those before it. Nothing is lost. */
static struct line {
	uint64_t takes_ns, free_ns;
	uint32_t expected; /* by the responder */
	unsigned packets;
	struct {
		uint64_t at_ns;
		uint32_t psn;
	} ack[SENT_MAX];
	unsigned acks, acks_seen;
} line;

static void line_take(uint32_t psn, bool ask)
{
	bool again = vb_psn_diff(psn, line.expected) < 0;

	line.free_ns = (line.free_ns > now_ns ? line.free_ns : now_ns) + line.takes_ns;
	line.packets++;
	if (psn == line.expected)
		line.expected = vb_psn_add(psn, 1);
	if (!ask && !again)
		return;
	assert_true(line.acks < SENT_MAX);
	line.ack[line.acks].at_ns = line.free_ns;
	line.ack[line.acks++].psn = vb_psn_add(line.expected, VB_PSN_MASK);
}

/* Send so many messages of a packet each over it, and return when the last one is done. */
static uint64_t line_carry(unsigned messages, uint64_t takes_ns)
{
	line = (struct line){ .takes_ns = takes_ns, .expected = START_PSN };
	while (fake.done_count < messages) {
		uint64_t ack_ns = VB_NEVER_NS;

		while (req.tail < messages && req.tail - req.head < QUEUE)
			post(VB_K_SEND, MTU);
		send_all();
		for (unsigned i = 0; i < sent_count; i++)
			line_take(sent[i].psn, asked[i]);
		if (line.acks_seen < line.acks)
			ack_ns = line.ack[line.acks_seen].at_ns;
		if (vb_rc_deadline_ns(&req) < ack_ns) {
			now_ns = vb_rc_deadline_ns(&req);
			assert_int_not_equal(vb_rc_timeout(&req, now_ns), VB_REQ_FAILED);
			continue;
		}
		now_ns = ack_ns;
		ack(line.ack[line.acks_seen++].psn);
	}
	return now_ns;
}

/* Timeouts before the round trip is known cost some packets, neither the window nor all of them. */
REQ_TEST(a_slow_line_is_filled_from_the_beginning)
{
	static const uint64_t takes_ns[] = { 100000, 1000000, 3342400, 33424000, 100000000 };

	for (unsigned i = 0; i < VB_ARRAY_LEN(takes_ns); i++) {
		uint64_t start_ns, most_ns = 250 * takes_ns[i] / 20 * 21;

		begin(NULL);
		req.retry.timeout = 20;
		start_ns = now_ns;
		assert_true(line_carry(250, takes_ns[i]) - start_ns <= most_ns);
		assert_in_range(line.packets, 250, 258);
		assert_done(250);
	}
}

/* RFC 4015, RFC 5682: what came without having been sent again was not lost. */
REQ_TEST(a_timeout_in_vain_is_undone)
{
	unsigned window;

	req.retry.timeout = 20;
	for (unsigned i = 0; i < 16; i++)
		post(VB_K_SEND, 1);
	send_all();
	window = req.flight.window;
	for (unsigned i = 0; i < 2; i++) {
		now_ns = vb_rc_deadline_ns(&req);
		assert_int_equal(vb_rc_timeout(&req, now_ns), VB_REQ_MOVED);
		assert_int_equal(send_all(), 1);
	}
	ack(0x103);
	assert_true(req.flight.window >= window);
	assert_int_equal(send_all(), 0);
	assert_true(vb_rc_deadline_ns(&req) - now_ns >= 6 * VB_RTO_START_NS);
	ack(0x10f);
	assert_done(16);
}

/* A loss is none of that: all behind it is sent again. */
REQ_TEST(a_timeout_after_a_loss_is_not_undone)
{
	req.retry.timeout = 20;
	for (unsigned i = 0; i < 16; i++)
		post(VB_K_SEND, 1);
	send_all();
	now_ns = vb_rc_deadline_ns(&req);
	assert_int_equal(vb_rc_timeout(&req, now_ns), VB_REQ_MOVED);
	assert_int_equal(send_all(), 1);
	ack(0x100);
	assert_int_equal(send_all(), 2);
	assert_int_equal(sent[0].psn, 0x101);
	/* It was the answer that was lost; the gap behind it is one. */
	nak(0x105, VB_NAK_PSN);
	assert_true(send_all() >= 1);
	assert_int_equal(sent[0].psn, 0x105);
	ack(0x10f);
	assert_done(16);
}

/* While the link is full nothing was sent in vain, but the peer's silence counts. */
REQ_TEST(a_full_link_is_not_the_path)
{
	uint64_t start_ns = now_ns;

	req.retry.count = req.retry.left = 1;
	post(VB_K_SEND, 1);
	send_all();
	for (unsigned i = 0; i < 10; i++) {
		now_ns = vb_rc_deadline_ns(&req);
		if (now_ns >= start_ns + 2 * TIMEOUT_14_NS)
			break;
		assert_int_equal(vb_rc_timeout(&req, now_ns), VB_REQ_MOVED);
		assert_true(req.rtt.rto_ns <= 2 * VB_RTO_START_NS);
	}
	assert_int_equal(send_all(), 1);
	assert_int_equal(vb_rc_deadline_ns(&req), now_ns + req.rtt.rto_ns);
	assert_int_equal(ring_until(start_ns + 4 * TIMEOUT_14_NS), VB_REQ_FAILED);
	assert_failed(0, IBV_WC_RETRY_EXC_ERR);
}

/* ibv_modify_qp(3): retry_cnt times, after the first; each waits 4.096 us * 2^timeout. */
REQ_TEST(silence_ends_it_after_all_retries)
{
	for (unsigned retries = 0; retries < 8; retries++) {
		uint64_t start_ns;

		begin(NULL);
		req.retry.count = req.retry.left = (uint8_t)retries;
		post(VB_K_SEND, 1);
		post(VB_K_SEND, 1);
		start_ns = now_ns;
		send_all();
		assert_int_equal(ring_until(start_ns + (retries + 1) * TIMEOUT_14_NS - 1),
				 VB_REQ_NOTHING);
		assert_done(0);
		assert_int_equal(ring_until(start_ns + (retries + 2) * TIMEOUT_14_NS),
				 VB_REQ_FAILED);
		assert_failed(0, IBV_WC_RETRY_EXC_ERR);
	}
}

/* A process that was not scheduled for a second has seen no timeouts: the ACK may lie there. */
REQ_TEST(our_own_lateness_is_not_silence)
{
	req.retry.count = req.retry.left = 1;
	post(VB_K_SEND, 1);
	send_all();
	now_ns = vb_rc_deadline_ns(&req) + 1000000000;
	assert_int_equal(vb_rc_timeout(&req, now_ns), VB_REQ_MOVED);
	assert_int_equal(send_all(), 1);
	assert_int_equal(ring_until(now_ns + 3 * TIMEOUT_14_NS), VB_REQ_FAILED);
	assert_failed(0, IBV_WC_RETRY_EXC_ERR);
}

/* What is posted while an answer is under way leaves with it, or as a burst, or soon anyway. */
REQ_TEST(small_messages_gather)
{
	post(VB_K_SEND, 1);
	assert_true(vb_req_urgent(&req, now_ns));
	send_all();
	post(VB_K_SEND, 1);
	assert_false(vb_req_urgent(&req, now_ns));
	assert_true(vb_req_urgent(&req, now_ns + 1000000));
	for (unsigned i = 0; i < 20; i++)
		post(VB_K_SEND, 1);
	assert_true(vb_req_urgent(&req, now_ns));
	ack(0x100);
	assert_true(vb_req_urgent(&req, now_ns));
}

/* A software peer may need some milliseconds to get the processor (local_ca_ack_delay). */
REQ_TEST(the_timeout_is_never_shorter_than_our_ack_delay)
{
	for (unsigned code = 1; code < 32; code++) {
		req.retry.timeout = (uint8_t)code;
		assert_int_equal(vb_req_ack_timeout_ns(&req), code < 12 ? 4096ull << 12
									: 4096ull << code);
	}
}

/* IBA 9.7.6.1.3: a timeout of 0 means to wait for ever. */
REQ_TEST(a_timeout_of_0_never_ends_it)
{
	req.retry.timeout = 0;
	req.retry.count = req.retry.left = 0;
	post(VB_K_SEND, 1);
	send_all();
	assert_int_equal(vb_req_ack_timeout_ns(&req), VB_NEVER_NS);
	assert_int_equal(ring_until(3600ull * 1000000000), VB_REQ_NOTHING);
	assert_done(0);
	ack(0x100);
	assert_done(1);
}

REQ_TEST(progress_starts_all_counts_afresh)
{
	req.retry.count = req.retry.left = 1;
	post(VB_K_SEND, 1);
	post(VB_K_SEND, 1);
	send_all();
	ring_until(now_ns + TIMEOUT_14_NS * 3 / 2);
	ack(0x100);
	assert_done(1);
	send_all();
	assert_int_equal(ring_until(now_ns + TIMEOUT_14_NS * 3 / 2), VB_REQ_NOTHING);
	ring_until(now_ns + TIMEOUT_14_NS * 2);
	assert_failed(1, IBV_WC_RETRY_EXC_ERR);
}

/* A queue that rested is not late with what is posted next. */
REQ_TEST(rest_is_not_silence)
{
	req.retry.count = req.retry.left = 0;
	post(VB_K_SEND, 1);
	send_all();
	ack(0x100);
	now_ns += 100 * TIMEOUT_14_NS;
	post(VB_K_SEND, 1);
	send_all();
	assert_int_equal(ring_until(now_ns + TIMEOUT_14_NS - 1), VB_REQ_NOTHING);
	assert_done(1);
}

/* IBA 9.7.5.2.8: sequence NAKs use up retries too, until something gets through. */
REQ_TEST(naks_without_progress_end_it)
{
	req.retry.count = req.retry.left = 2;
	post(VB_K_SEND, 1);
	post(VB_K_SEND, 1);
	send_all();
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(nak(0x100, VB_NAK_PSN), VB_REQ_MOVED);
		send_all();
	}
	assert_int_equal(nak(0x101, VB_NAK_PSN), VB_REQ_MOVED);
	send_all();
	assert_int_equal(nak(0x101, VB_NAK_PSN), VB_REQ_MOVED);
	send_all();
	assert_int_equal(nak(0x101, VB_NAK_PSN), VB_REQ_FAILED);
	assert_failed(1, IBV_WC_RETRY_EXC_ERR);
}

REQ_TEST(not_ready_waits_as_long_as_it_was_told)
{
	for (unsigned timer = 0; timer < 32; timer++) {
		begin(NULL);
		post(VB_K_SEND, 2 * MTU);
		send_all();
		assert_int_equal(rnr(0x100, timer), VB_REQ_MOVED);
		assert_int_equal(vb_rc_deadline_ns(&req), now_ns + vb_rnr_timer_ns(timer));
		assert_int_equal(send_all(), 0);
		now_ns += vb_rnr_timer_ns(timer) - 1;
		assert_int_equal(vb_rc_timeout(&req, now_ns), VB_REQ_NOTHING);
		assert_int_equal(send_all(), 0);
		now_ns++;
		assert_int_equal(vb_rc_timeout(&req, now_ns), VB_REQ_MOVED);
		assert_int_equal(send_all(), 2);
		assert_int_equal(sent[0].psn, 0x100);
	}
}

REQ_TEST(not_ready_holds_everything_back)
{
	post(VB_K_SEND, 1);
	send_all();
	rnr(0x100, 10);
	post(VB_K_WRITE, 1);
	assert_int_equal(send_all(), 0);
}

REQ_TEST(not_ready_acknowledges_what_came_before)
{
	for (unsigned i = 0; i < 3; i++)
		post(VB_K_SEND, 1);
	send_all();
	assert_int_equal(rnr(0x102, 1), VB_REQ_MOVED);
	assert_done(2);
}

REQ_TEST(not_ready_ends_it_after_all_retries)
{
	for (unsigned retries = 0; retries < 7; retries++) {
		begin(NULL);
		req.retry.rnr_count = req.retry.rnr_left = (uint8_t)retries;
		post(VB_K_SEND, 1);
		send_all();
		for (unsigned i = 0; i < retries; i++) {
			assert_int_equal(rnr(0x100, 1), VB_REQ_MOVED);
			now_ns = vb_rc_deadline_ns(&req);
			vb_rc_timeout(&req, now_ns);
			assert_int_equal(send_all(), 1);
		}
		assert_int_equal(rnr(0x100, 1), VB_REQ_FAILED);
		assert_failed(0, IBV_WC_RNR_RETRY_EXC_ERR);
	}
}

/* ibv_modify_qp(3): an rnr_retry of 7 is for ever. */
REQ_TEST(not_ready_may_go_on_for_ever)
{
	post(VB_K_SEND, 1);
	send_all();
	for (unsigned i = 0; i < 1000; i++) {
		assert_int_equal(rnr(0x100, 1), VB_REQ_MOVED);
		now_ns = vb_rc_deadline_ns(&req);
		vb_rc_timeout(&req, now_ns);
		assert_int_equal(send_all(), 1);
	}
	ack(0x100);
	assert_done(1);
}

/* Being told to wait is no silence: the time does not count. */
REQ_TEST(waiting_is_not_silence)
{
	req.retry.count = req.retry.left = 0;
	post(VB_K_SEND, 1);
	send_all();
	rnr(0x100, 0); /* 655 ms, ten timeouts */
	assert_int_equal(ring_until(now_ns + vb_rnr_timer_ns(0) + TIMEOUT_14_NS - 1),
			 VB_REQ_NOTHING);
	assert_done(0);
}

REQ_TEST(a_second_not_ready_for_the_same_is_one)
{
	uint64_t until_ns;

	req.retry.rnr_count = req.retry.rnr_left = 1;
	post(VB_K_SEND, 1);
	send_all();
	rnr(0x100, 20);
	until_ns = vb_rc_deadline_ns(&req);
	now_ns += 1000;
	/* The network delivered it twice. Nothing was sent in between, so it is no further try. */
	assert_int_not_equal(rnr(0x100, 20), VB_REQ_FAILED);
	assert_int_equal(vb_rc_deadline_ns(&req), until_ns);
}

REQ_TEST(a_second_nak_for_the_same_is_one)
{
	req.retry.count = req.retry.left = 1;
	post(VB_K_SEND, 1);
	send_all();
	nak(0x100, VB_NAK_PSN);
	/* Nothing was sent in between. */
	assert_int_not_equal(nak(0x100, VB_NAK_PSN), VB_REQ_FAILED);
}

/* --- another path --- */

/* IBA 17.2.8: one that is armed goes over to it when retries are used up, and gets them anew. */
REQ_TEST(silence_makes_one_that_is_armed_migrate)
{
	enum vb_req_outcome outcome;
	uint64_t start_ns;

	req.retry.count = req.retry.left = 2;
	req.retry.armed = true;
	post(VB_K_SEND, 3 * MTU);
	start_ns = now_ns;
	send_all();
	do {
		now_ns = vb_rc_deadline_ns(&req);
		outcome = vb_rc_timeout(&req, now_ns);
		if (outcome == VB_REQ_MOVED)
			send_all();
	} while (outcome == VB_REQ_MOVED);
	assert_int_equal(outcome, VB_REQ_MIGRATE);
	assert_true(now_ns >= start_ns + 3 * TIMEOUT_14_NS);
	assert_done(0);
	assert_false(req.retry.armed);
	assert_int_equal(send_all(), 1); /* nothing is known of that path yet */
	assert_int_equal(sent[0].psn, 0x100);
	/* The clock runs for it, as long as for the first, and then it is the end. */
	assert_int_equal(ring_until(now_ns + 3 * TIMEOUT_14_NS - 1), VB_REQ_NOTHING);
	assert_done(0);
	assert_int_equal(ring_until(now_ns + 2 * TIMEOUT_14_NS), VB_REQ_FAILED);
	assert_failed(0, IBV_WC_RETRY_EXC_ERR);
}

/* The same for NAKs, which say that packets are lost again and again. */
REQ_TEST(naks_make_one_that_is_armed_migrate)
{
	req.retry.count = req.retry.left = 1;
	req.retry.armed = true;
	post(VB_K_SEND, 1);
	send_all();
	assert_int_equal(nak(0x100, VB_NAK_PSN), VB_REQ_MOVED);
	send_all();
	assert_int_equal(nak(0x100, VB_NAK_PSN), VB_REQ_MIGRATE);
	assert_int_equal(send_all(), 1);
	assert_int_equal(nak(0x100, VB_NAK_PSN), VB_REQ_MOVED);
	send_all();
	assert_int_equal(nak(0x100, VB_NAK_PSN), VB_REQ_FAILED);
	assert_failed(0, IBV_WC_RETRY_EXC_ERR);
}

/* A receiver that is not ready is so on every path. */
REQ_TEST(not_ready_makes_nobody_migrate)
{
	req.retry.rnr_count = req.retry.rnr_left = 0;
	req.retry.armed = true;
	post(VB_K_SEND, 1);
	send_all();
	assert_int_equal(rnr(0x100, 1), VB_REQ_FAILED);
	assert_failed(0, IBV_WC_RNR_RETRY_EXC_ERR);
}
