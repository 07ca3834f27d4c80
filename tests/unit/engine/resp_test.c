/* SPDX-License-Identifier: BSD-2-Clause */

/* The RC responder: order, duplicates, what is refused and how. */
#include "resp_fixture.h"

static struct vb_resp_result request_ackreq(uint8_t opcode, uint32_t psn, uint32_t payload)
{
	struct vb_pkt pkt = packet(opcode, psn, payload, payload);

	pkt.ackreq = true;
	return give(&pkt);
}

RESP_TEST(an_ack_is_given_when_asked_for)
{
	assert_result(request(VB_OP_RC_SEND_ONLY, 0x100, 10, 0), VB_RESP_NOTHING, VB_OK);
	assert_silent();
	assert_result(request_ackreq(VB_OP_RC_SEND_ONLY, 0x101, 10), VB_RESP_OWES, VB_OK);
	assert_ack(0x101, VB_AETH_ACK, 0);
	assert_silent();
	assert_int_equal(fake.recv_done_count, 2);
}

/* IBA 9.7.7.1: the MSN counts messages that are complete, whatever they are. */
RESP_TEST(the_msn_counts_complete_messages)
{
	request(VB_OP_RC_SEND_FIRST, 0x100, MTU, 0);
	assert_int_equal(resp.msn, 0);
	request(VB_OP_RC_SEND_LAST, 0x101, 1, 0);
	assert_int_equal(resp.msn, 1);
	request(VB_OP_RC_WRITE_ONLY, 0x102, 4, 4);
	request(VB_OP_RC_READ_REQ, 0x103, 0, 3 * MTU);
	request(VB_OP_RC_FETCH_ADD, 0x106, 0, 0);
	assert_int_equal(resp.msn, 4);
	assert_int_equal(resp.epsn, 0x107);
	assert_int_equal(response().aeth.msn, 3);
	resp.msn = 0xffffff;
	request(VB_OP_RC_SEND_ONLY, 0x107, 0, 0);
	assert_int_equal(resp.msn, 0);
}

/* IBA C9-105: a duplicate SEND is acknowledged again, not executed. */
RESP_TEST(a_duplicate_send_is_acknowledged_not_executed)
{
	request(VB_OP_RC_SEND_ONLY, 0x100, 10, 0);
	request(VB_OP_RC_WRITE_ONLY, 0x101, 10, 10);
	assert_result(request(VB_OP_RC_SEND_ONLY, 0x100, 10, 0), VB_RESP_DUPLICATE, VB_OK);
	assert_ack(0x101, VB_AETH_ACK, 0);
	assert_result(request(VB_OP_RC_WRITE_ONLY, 0x101, 10, 10), VB_RESP_DUPLICATE, VB_OK);
	assert_ack(0x101, VB_AETH_ACK, 0);
	assert_int_equal(fake.recv_done_count, 1);
	assert_int_equal(fake.writes, 1);
	assert_int_equal(resp.msn, 2);
	assert_int_equal(resp.epsn, 0x102);
}

/* IBA 9.7.2: half of all PSNs are the past. */
RESP_TEST(half_of_all_psns_are_duplicates)
{
	assert_int_equal(request(VB_OP_RC_SEND_ONLY, 0x0ff, 0, 0).outcome, VB_RESP_DUPLICATE);
	assert_int_equal(request(VB_OP_RC_SEND_ONLY, 0x800100, 0, 0).outcome, VB_RESP_DUPLICATE);
	assert_result(request(VB_OP_RC_SEND_ONLY, 0x8000ff, 0, 0), VB_RESP_OWES,
		      VB_BAD_SEQUENCE);
	assert_int_equal(fake.recv_done_count, 0);
}

RESP_TEST(psns_wrap)
{
	resp.epsn = 0xffffff;
	request(VB_OP_RC_READ_REQ, 0xffffff, 0, 2 * MTU);
	assert_answer(VB_OP_RC_READ_RESP_FIRST, 0xffffff);
	assert_answer(VB_OP_RC_READ_RESP_LAST, 0);
	assert_int_equal(resp.epsn, 1);
	assert_int_equal(request(VB_OP_RC_READ_REQ, 0xffffff, 0, 2 * MTU).outcome,
			 VB_RESP_DUPLICATE);
	assert_answer(VB_OP_RC_READ_RESP_FIRST, 0xffffff);
}

/* IBA 9.7.5.1.3: a duplicate READ is executed again, from where it is asked for. */
RESP_TEST(a_duplicate_read_is_executed_again)
{
	struct vb_pkt pkt = packet(VB_OP_RC_READ_REQ, 0x101, 0, 2 * MTU);

	request(VB_OP_RC_READ_REQ, 0x100, 0, 3 * MTU);
	assert_answer(VB_OP_RC_READ_RESP_FIRST, 0x100);
	assert_answer(VB_OP_RC_READ_RESP_MIDDLE, 0x101);
	assert_answer(VB_OP_RC_READ_RESP_LAST, 0x102);
	pkt.reth.va += MTU;
	assert_result(give(&pkt), VB_RESP_DUPLICATE, VB_OK);
	pkt = response();
	assert_int_equal(pkt.opcode, VB_OP_RC_READ_RESP_FIRST);
	assert_int_equal(pkt.psn, 0x101);
	assert_true(pkt.reth.va == 0x10000 + MTU);
	assert_int_equal(pkt.reth.bytes, MTU);
	assert_answer(VB_OP_RC_READ_RESP_LAST, 0x102);
	assert_silent();
	assert_int_equal(resp.epsn, 0x103);
	assert_int_equal(resp.msn, 1);
}

RESP_TEST(a_duplicate_read_that_is_another_is_dropped)
{
	struct vb_pkt pkt = packet(VB_OP_RC_READ_REQ, 0x100, 0, 3 * MTU);

	give(&pkt);
	while (resp.done != resp.tail)
		response();
	pkt.reth.rkey++;
	assert_int_equal(give(&pkt).outcome, VB_RESP_DROPPED);
	pkt.reth.rkey--;
	pkt.reth.bytes++;
	assert_int_equal(give(&pkt).outcome, VB_RESP_DROPPED);
	pkt.reth.bytes--;
	pkt.reth.va++;
	assert_int_equal(give(&pkt).outcome, VB_RESP_DROPPED);
	pkt.reth.va--;
	assert_int_equal(give(&pkt).outcome, VB_RESP_DUPLICATE);
}

/* Several at once, in order, each from where it is asked for; those between stay quiet. */
RESP_TEST(several_duplicates_are_answered_in_order)
{
	request(VB_OP_RC_READ_REQ, 0x100, 0, 1);
	request(VB_OP_RC_FETCH_ADD, 0x101, 0, 0);
	request(VB_OP_RC_READ_REQ, 0x102, 0, 1);
	while (resp.done != resp.tail)
		response();
	request(VB_OP_RC_READ_REQ, 0x100, 0, 1);
	request(VB_OP_RC_READ_REQ, 0x102, 0, 1);
	assert_answer(VB_OP_RC_READ_RESP_ONLY, 0x100);
	assert_answer(VB_OP_RC_READ_RESP_ONLY, 0x102);
	assert_silent();
	/* And in the other order. */
	request(VB_OP_RC_FETCH_ADD, 0x101, 0, 0);
	request(VB_OP_RC_READ_REQ, 0x100, 0, 1);
	assert_answer(VB_OP_RC_READ_RESP_ONLY, 0x100);
	assert_answer(VB_OP_RC_ATOMIC_ACK, 0x101);
	assert_silent();
}

RESP_TEST(a_duplicate_of_what_is_still_to_be_answered_adds_nothing)
{
	request(VB_OP_RC_READ_REQ, 0x100, 0, 2 * MTU);
	request(VB_OP_RC_READ_REQ, 0x102, 0, 1);
	request(VB_OP_RC_READ_REQ, 0x102, 0, 1);
	request(VB_OP_RC_READ_REQ, 0x100, 0, 2 * MTU);
	assert_answer(VB_OP_RC_READ_RESP_FIRST, 0x100);
	/* This one begins afresh: what has left may be lost. */
	request(VB_OP_RC_READ_REQ, 0x100, 0, 2 * MTU);
	assert_answer(VB_OP_RC_READ_RESP_FIRST, 0x100);
	assert_answer(VB_OP_RC_READ_RESP_LAST, 0x101);
	assert_answer(VB_OP_RC_READ_RESP_ONLY, 0x102);
	assert_silent();
}

/* Simulator, seed 26519: whoever has the answer may go on, however it was given. */
RESP_TEST(a_repeated_answer_makes_room_as_the_first_does)
{
	resp.resources_max = 1;
	for (unsigned i = 0; i < 9; i++) {
		request(VB_OP_RC_READ_REQ, 0x100 + i, 0, 1);
		assert_answer(VB_OP_RC_READ_RESP_ONLY, 0x100 + i);
		request(VB_OP_RC_READ_REQ, 0x100 + i, 0, 1);
		/* Asked for again, and not answered again before the next comes. */
	}
	assert_answer(VB_OP_RC_READ_RESP_ONLY, 0x108);
	assert_silent();
}

/* IBA 9.7.5.1.4: a duplicate atomic is answered from memory. */
RESP_TEST(a_duplicate_atomic_is_answered_from_memory)
{
	for (unsigned i = 0; i < RESOURCES; i++)
		request(VB_OP_RC_FETCH_ADD, 0x100 + i, 0, 0);
	while (resp.done != resp.tail)
		response();
	for (unsigned i = 0; i < RESOURCES; i++) {
		struct vb_pkt pkt;

		assert_int_equal(request(VB_OP_RC_FETCH_ADD, 0x100 + i, 0, 0).outcome,
				 VB_RESP_DUPLICATE);
		pkt = response();
		assert_int_equal(pkt.opcode, VB_OP_RC_ATOMIC_ACK);
		assert_int_equal(pkt.psn, 0x100 + i);
		assert_int_equal(pkt.atomic.orig, 1000 + i);
		assert_int_equal(pkt.aeth.msn, 1 + i);
	}
	assert_int_equal(fake.atomics, RESOURCES);
	assert_int_equal(fake.word, 1000 + RESOURCES);
}

RESP_TEST(an_atomic_that_is_forgotten_is_not_executed_again)
{
	for (unsigned i = 0; i < RESOURCES + 1; i++) {
		request(VB_OP_RC_FETCH_ADD, 0x100 + i, 0, 0);
		response();
	}
	assert_int_equal(request(VB_OP_RC_FETCH_ADD, 0x100, 0, 0).outcome, VB_RESP_DROPPED);
	/* A READ is no atomic, and an atomic no READ. */
	request(VB_OP_RC_READ_REQ, 0x105, 0, 8);
	response();
	assert_int_equal(request(VB_OP_RC_FETCH_ADD, 0x105, 0, 0).outcome, VB_RESP_DROPPED);
	assert_int_equal(request(VB_OP_RC_READ_REQ, 0x104, 0, 8).outcome, VB_RESP_DROPPED);
	assert_int_equal(fake.atomics, RESOURCES + 1);
	assert_silent();
}

/* IBA 9.7.5.2.2: one NAK for a hole, and silence until it is filled. */
RESP_TEST(a_hole_is_told_once)
{
	assert_result(request(VB_OP_RC_SEND_ONLY, 0x102, 1, 0), VB_RESP_OWES, VB_BAD_SEQUENCE);
	assert_ack(0x100, VB_AETH_NAK, VB_NAK_PSN);
	assert_result(request(VB_OP_RC_SEND_ONLY, 0x103, 1, 0), VB_RESP_DROPPED,
		      VB_BAD_SEQUENCE);
	assert_result(request(VB_OP_RC_SEND_ONLY, 0x101, 1, 0), VB_RESP_DROPPED,
		      VB_BAD_SEQUENCE);
	assert_silent();
	request(VB_OP_RC_SEND_ONLY, 0x100, 1, 0);
	assert_result(request(VB_OP_RC_SEND_ONLY, 0x102, 1, 0), VB_RESP_OWES, VB_BAD_SEQUENCE);
	assert_ack(0x101, VB_AETH_NAK, VB_NAK_PSN);
	assert_int_equal(fake.recv_done_count, 1);
}

RESP_TEST(a_nak_follows_the_answers_before_it)
{
	request(VB_OP_RC_READ_REQ, 0x100, 0, 2 * MTU);
	request(VB_OP_RC_SEND_ONLY, 0x103, 1, 0);
	assert_answer(VB_OP_RC_READ_RESP_FIRST, 0x100);
	assert_answer(VB_OP_RC_READ_RESP_LAST, 0x101);
	assert_ack(0x102, VB_AETH_NAK, VB_NAK_PSN);
}

RESP_TEST(an_ack_follows_the_answers_before_it)
{
	request(VB_OP_RC_READ_REQ, 0x100, 0, 1);
	request_ackreq(VB_OP_RC_SEND_ONLY, 0x101, 1);
	assert_answer(VB_OP_RC_READ_RESP_ONLY, 0x100);
	assert_ack(0x101, VB_AETH_ACK, 0);
	assert_silent();
}

/* IBA 9.7.5.2.8: no receive request, no harm: ask again later. */
RESP_TEST(not_ready_takes_nothing)
{
	static const uint8_t opcodes[] = { VB_OP_RC_SEND_ONLY, VB_OP_RC_SEND_FIRST,
					   VB_OP_RC_SEND_ONLY_IMM, VB_OP_RC_WRITE_ONLY_IMM };

	for (unsigned i = 0; i < VB_ARRAY_LEN(opcodes); i++) {
		begin(NULL);
		fake.recv_posted = 0;
		assert_result(request(opcodes[i], 0x100, MTU, MTU), VB_RESP_OWES, VB_NO_RECV);
		assert_ack(0x100, VB_AETH_RNR, 9);
		assert_result(request(VB_OP_RC_SEND_ONLY, 0x101, 1, 0), VB_RESP_DROPPED,
			      VB_BAD_SEQUENCE);
		assert_silent();
		assert_int_equal(resp.epsn, 0x100);
		fake.recv_posted = 1;
		assert_int_equal(request(opcodes[i], 0x100, MTU, MTU).verdict, VB_OK);
		assert_int_equal(fake.recv_taken, 1);
		assert_int_equal(resp.epsn, 0x101);
	}
}

RESP_TEST(a_write_needs_no_receive_request)
{
	fake.recv_posted = 0;
	assert_int_equal(request(VB_OP_RC_WRITE_ONLY, 0x100, 4, 4).verdict, VB_OK);
	assert_int_equal(request(VB_OP_RC_WRITE_FIRST, 0x101, MTU, MTU + 4).verdict, VB_OK);
	assert_result(request(VB_OP_RC_WRITE_LAST_IMM, 0x102, 4, 0), VB_RESP_OWES, VB_NO_RECV);
	assert_int_equal(fake.writes, 2);
	fake.recv_posted = 1;
	assert_int_equal(request(VB_OP_RC_WRITE_LAST_IMM, 0x102, 4, 0).verdict, VB_OK);
	assert_true(fake.recv_done[0].imm);
	assert_int_equal(fake.recv_done[0].bytes, MTU + 4);
}

/* --- IBA 9.9.3: what is wrong with a request, and what is said to it --- */

static const struct {
	uint8_t opcode;
	uint32_t payload, dma;
	enum vb_verdict check, write, atomic, recv; /* what the host finds */
	unsigned access_taken;
	uint64_t va;
	enum vb_verdict verdict;
	enum vb_nak code;
} faults[] = {
	{ VB_OP_RC_WRITE_ONLY, 4, 4, .access_taken = IBV_ACCESS_REMOTE_WRITE,
	  .verdict = VB_BAD_ACCESS, .code = VB_NAK_ACCESS },
	{ VB_OP_RC_WRITE_ONLY, 0, 0, .access_taken = IBV_ACCESS_REMOTE_WRITE,
	  .verdict = VB_BAD_ACCESS, .code = VB_NAK_ACCESS },
	{ VB_OP_RC_READ_REQ, 0, 4, .access_taken = IBV_ACCESS_REMOTE_READ,
	  .verdict = VB_BAD_ACCESS, .code = VB_NAK_ACCESS },
	{ VB_OP_RC_FETCH_ADD, 0, 0, .access_taken = IBV_ACCESS_REMOTE_ATOMIC,
	  .verdict = VB_BAD_ACCESS, .code = VB_NAK_ACCESS },
	{ VB_OP_RC_WRITE_ONLY, 4, 4, .check = VB_BAD_ACCESS, .verdict = VB_BAD_ACCESS,
	  .code = VB_NAK_ACCESS },
	{ VB_OP_RC_WRITE_FIRST, MTU, MTU + 1, .check = VB_BAD_ACCESS,
	  .verdict = VB_BAD_ACCESS, .code = VB_NAK_ACCESS },
	{ VB_OP_RC_READ_REQ, 0, 4, .check = VB_BAD_ACCESS, .verdict = VB_BAD_ACCESS,
	  .code = VB_NAK_ACCESS },
	{ VB_OP_RC_CMP_SWP, 0, 0, .atomic = VB_BAD_ACCESS, .verdict = VB_BAD_ACCESS,
	  .code = VB_NAK_ACCESS },
	{ VB_OP_RC_CMP_SWP, 0, 0, .va = 4, .verdict = VB_MISALIGNED,
	  .code = VB_NAK_INVALID_REQ },
	{ VB_OP_RC_WRITE_ONLY, 4, 4, .write = VB_BAD_MEMORY, .verdict = VB_BAD_MEMORY,
	  .code = VB_NAK_OP },
	{ VB_OP_RC_WRITE_ONLY, 4, 4, .write = VB_BAD_ACCESS, .verdict = VB_BAD_ACCESS,
	  .code = VB_NAK_ACCESS },
	{ VB_OP_RC_FETCH_ADD, 0, 0, .atomic = VB_BAD_MEMORY, .verdict = VB_BAD_MEMORY,
	  .code = VB_NAK_OP },
	{ VB_OP_RC_SEND_ONLY, 4, 0, .recv = VB_TOO_LONG, .verdict = VB_TOO_LONG,
	  .code = VB_NAK_INVALID_REQ },
	{ VB_OP_RC_SEND_ONLY, 4, 0, .recv = VB_BAD_RECV_SGE, .verdict = VB_BAD_RECV_SGE,
	  .code = VB_NAK_OP },
	{ VB_OP_RC_WRITE_ONLY, 4, 0x80000001, .verdict = VB_BAD_LENGTH,
	  .code = VB_NAK_INVALID_REQ },
	{ VB_OP_RC_READ_REQ, 0, 0x80000001, .verdict = VB_BAD_LENGTH,
	  .code = VB_NAK_INVALID_REQ },
	{ VB_OP_RC_FLUSH, 0, 0, .verdict = VB_BAD_OPCODE, .code = VB_NAK_INVALID_REQ },
	{ VB_OP_RC_ATOMIC_WRITE, 8, 8, .access_taken = IBV_ACCESS_REMOTE_WRITE,
	  .verdict = VB_BAD_ACCESS, .code = VB_NAK_ACCESS },
	{ VB_OP_RC_ATOMIC_WRITE, 8, 8, .atomic = VB_BAD_ACCESS, .verdict = VB_BAD_ACCESS,
	  .code = VB_NAK_ACCESS },
	{ VB_OP_RC_ATOMIC_WRITE, 8, 8, .va = 4, .verdict = VB_MISALIGNED,
	  .code = VB_NAK_INVALID_REQ },
	{ VB_OP_RC_ATOMIC_WRITE, 8, 0, .verdict = VB_BAD_LENGTH,
	  .code = VB_NAK_INVALID_REQ },
	{ VB_OP_RC_ATOMIC_WRITE, 0, 0, .verdict = VB_BAD_LENGTH,
	  .code = VB_NAK_INVALID_REQ },
	{ VB_OP_RC_ATOMIC_WRITE, 4, 8, .verdict = VB_BAD_LENGTH,
	  .code = VB_NAK_INVALID_REQ },
	{ VB_OP_RC_ATOMIC_WRITE, 16, 16, .verdict = VB_BAD_LENGTH,
	  .code = VB_NAK_INVALID_REQ },
	{ VB_OP_RC_SEND_MIDDLE, MTU, 0, .verdict = VB_BAD_SEQUENCE,
	  .code = VB_NAK_INVALID_REQ },
};

RESP_TEST(faults_and_their_naks)
{
	for (unsigned i = 0; i < VB_ARRAY_LEN(faults); i++) {
		struct vb_pkt pkt = packet(faults[i].opcode, 0x100, faults[i].payload,
					   faults[i].dma);

		begin(NULL);
		fake.remote_check = faults[i].check;
		fake.remote_write = faults[i].write;
		fake.remote_atomic = faults[i].atomic;
		fake.recv_write = faults[i].recv;
		resp.access &= ~faults[i].access_taken;
		pkt.reth.va += faults[i].va;
		assert_refused(give(&pkt), faults[i].verdict, faults[i].code);
	}
}

/* IBA 9.7.4.1.6: where no octet is touched, no key is looked at. */
RESP_TEST(nothing_needs_no_key)
{
	fake.remote_check = VB_BAD_ACCESS;
	assert_int_equal(request(VB_OP_RC_WRITE_ONLY, 0x100, 0, 0).verdict, VB_OK);
	assert_int_equal(request(VB_OP_RC_READ_REQ, 0x101, 0, 0).verdict, VB_OK);
	assert_int_equal(fake.checks, 0);
	assert_answer(VB_OP_RC_READ_RESP_ONLY, 0x101);
}

RESP_TEST(the_whole_stretch_is_checked_first)
{
	request(VB_OP_RC_WRITE_FIRST, 0x100, MTU, 5 * MTU);
	assert_int_equal(fake.access, IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(fake.checks, 1);
	request(VB_OP_RC_WRITE_MIDDLE, 0x101, MTU, 0);
	assert_true(fake.va == 0x10000 + MTU);
	begin(NULL);
	request(VB_OP_RC_READ_REQ, 0x100, 0, 5 * MTU);
	assert_int_equal(fake.access, IBV_ACCESS_REMOTE_READ);
}

/* The receive request that a refused message had taken is told as well. */
RESP_TEST(a_receive_in_hand_tells_of_the_fault)
{
	static const struct {
		enum vb_verdict host;
		uint8_t opcode;
		enum ibv_wc_status status;
	} rows[] = {
		{ VB_TOO_LONG, VB_OP_RC_SEND_LAST, IBV_WC_LOC_LEN_ERR },
		{ VB_BAD_RECV_SGE, VB_OP_RC_SEND_LAST, IBV_WC_LOC_PROT_ERR },
		{ VB_OK, VB_OP_RC_WRITE_ONLY, IBV_WC_REM_INV_REQ_ERR },
	};

	for (unsigned i = 0; i < VB_ARRAY_LEN(rows); i++) {
		begin(NULL);
		request(VB_OP_RC_SEND_FIRST, 0x100, MTU, 0);
		fake.recv_write = rows[i].host;
		assert_int_equal(request(rows[i].opcode, 0x101, 4, 4).outcome, VB_RESP_FAILED);
		assert_int_equal(fake.recv_done_count, 1);
		assert_int_equal(fake.recv_done[0].status, rows[i].status);
		assert_false(resp.has_recv);
	}
}

/* --- sequences of opcodes (IBA 9.7.4.1.2) and lengths (9.7.4.1.7) --- */

RESP_TEST(opcodes_go_on_where_the_last_one_stopped)
{
	/* After nothing, in a SEND, in a WRITE: may it come? */
	static const struct {
		uint8_t opcode;
		bool after[3];
	} rows[] = {
		{ VB_OP_RC_SEND_FIRST, { 1, 0, 0 } },	   { VB_OP_RC_SEND_MIDDLE, { 0, 1, 0 } },
		{ VB_OP_RC_SEND_LAST, { 0, 1, 0 } },	   { VB_OP_RC_SEND_LAST_IMM, { 0, 1, 0 } },
		{ VB_OP_RC_SEND_ONLY, { 1, 0, 0 } },	   { VB_OP_RC_SEND_ONLY_IMM, { 1, 0, 0 } },
		{ VB_OP_RC_WRITE_FIRST, { 1, 0, 0 } },	   { VB_OP_RC_WRITE_MIDDLE, { 0, 0, 1 } },
		{ VB_OP_RC_WRITE_LAST, { 0, 0, 1 } },	   { VB_OP_RC_WRITE_LAST_IMM, { 0, 0, 1 } },
		{ VB_OP_RC_WRITE_ONLY, { 1, 0, 0 } },	   { VB_OP_RC_WRITE_ONLY_IMM, { 1, 0, 0 } },
		{ VB_OP_RC_READ_REQ, { 1, 0, 0 } },	   { VB_OP_RC_CMP_SWP, { 1, 0, 0 } },
		{ VB_OP_RC_FETCH_ADD, { 1, 0, 0 } },
	};

	for (unsigned i = 0; i < VB_ARRAY_LEN(rows); i++) {
		for (unsigned after = 0; after < 3; after++) {
			const struct vb_op_info *info = vb_op_info(rows[i].opcode);
			uint32_t payload = info->payload ? MTU : 0;
			/* A MIDDLE leaves room for more, a LAST ends it. */
			uint32_t total = info->pos & VB_P_LAST ? 2 * MTU : 3 * MTU;
			uint32_t dma = info->pos == VB_P_ONLY ? payload : total;
			struct vb_resp_result result;

			begin(NULL);
			if (after == 1)
				request(VB_OP_RC_SEND_FIRST, 0x100, MTU, 0);
			if (after == 2)
				request(VB_OP_RC_WRITE_FIRST, 0x100, MTU, total);
			result = request(rows[i].opcode, resp.epsn, payload, dma);
			assert_int_equal(result.verdict,
					 rows[i].after[after] ? VB_OK : VB_BAD_SEQUENCE);
		}
	}
}

RESP_TEST(lengths_fit_their_place)
{
	static const struct {
		uint8_t first;
		uint32_t first_payload;
		uint8_t opcode;
		uint32_t payload, dma;
		bool fits;
	} rows[] = {
		{ 0xff, 0, VB_OP_RC_SEND_ONLY, 0, 0, true },
		{ 0xff, 0, VB_OP_RC_SEND_ONLY, MTU, 0, true },
		{ 0xff, 0, VB_OP_RC_SEND_ONLY, MTU + 1, 0, false },
		{ 0xff, 0, VB_OP_RC_SEND_FIRST, MTU, 0, true },
		{ 0xff, 0, VB_OP_RC_SEND_FIRST, MTU - 1, 0, false },
		{ 0xff, 0, VB_OP_RC_SEND_FIRST, MTU + 1, 0, false },
		{ 0xff, 0, VB_OP_RC_SEND_FIRST, 0, 0, false },
		{ VB_OP_RC_SEND_FIRST, MTU, VB_OP_RC_SEND_MIDDLE, MTU, 0, true },
		{ VB_OP_RC_SEND_FIRST, MTU, VB_OP_RC_SEND_MIDDLE, MTU - 4, 0, false },
		{ VB_OP_RC_SEND_FIRST, MTU, VB_OP_RC_SEND_LAST, 1, 0, true },
		{ VB_OP_RC_SEND_FIRST, MTU, VB_OP_RC_SEND_LAST, MTU, 0, true },
		{ VB_OP_RC_SEND_FIRST, MTU, VB_OP_RC_SEND_LAST, 0, 0, false },
		{ VB_OP_RC_SEND_FIRST, MTU, VB_OP_RC_SEND_LAST, MTU + 1, 0, false },
		{ 0xff, 0, VB_OP_RC_WRITE_ONLY, 0, 0, true },
		{ 0xff, 0, VB_OP_RC_WRITE_ONLY, MTU, MTU, true },
		{ 0xff, 0, VB_OP_RC_WRITE_ONLY, 4, 5, false },
		{ 0xff, 0, VB_OP_RC_WRITE_ONLY, 5, 4, false },
		{ 0xff, 0, VB_OP_RC_WRITE_ONLY, MTU + 1, MTU + 1, false },
		{ 0xff, 0, VB_OP_RC_WRITE_FIRST, MTU, MTU + 1, true },
		{ 0xff, 0, VB_OP_RC_WRITE_FIRST, MTU, MTU, false },
		{ 0xff, 0, VB_OP_RC_WRITE_FIRST, MTU, 1, false },
		{ 0xff, 0, VB_OP_RC_WRITE_FIRST, MTU - 1, 2 * MTU, false },
		{ VB_OP_RC_WRITE_FIRST, MTU, VB_OP_RC_WRITE_LAST, MTU, 2 * MTU, true },
		{ VB_OP_RC_WRITE_FIRST, MTU, VB_OP_RC_WRITE_LAST, MTU - 1, 2 * MTU, false },
		{ VB_OP_RC_WRITE_FIRST, MTU, VB_OP_RC_WRITE_LAST, 0, MTU + 1, false },
		{ VB_OP_RC_WRITE_FIRST, MTU, VB_OP_RC_WRITE_MIDDLE, MTU, 2 * MTU, false },
		{ VB_OP_RC_WRITE_FIRST, MTU, VB_OP_RC_WRITE_MIDDLE, MTU, 2 * MTU + 1, true },
	};

	for (unsigned i = 0; i < VB_ARRAY_LEN(rows); i++) {
		struct vb_resp_result result;

		begin(NULL);
		if (rows[i].first != 0xff)
			assert_int_equal(request(rows[i].first, 0x100, rows[i].first_payload,
						 rows[i].dma)
						 .verdict,
					 VB_OK);
		result = request(rows[i].opcode, resp.epsn, rows[i].payload, rows[i].dma);
		assert_int_equal(result.verdict, rows[i].fits ? VB_OK : VB_BAD_LENGTH);
	}
}

RESP_TEST(more_reads_than_agreed_are_refused)
{
	for (unsigned i = 0; i < RESOURCES; i++)
		assert_int_equal(request(VB_OP_RC_READ_REQ, 0x100 + i, 0, 1).verdict, VB_OK);
	assert_result(request(VB_OP_RC_FETCH_ADD, 0x104, 0, 0), VB_RESP_FAILED,
		      VB_BAD_RESOURCES);
	for (unsigned i = 0; i < RESOURCES; i++)
		assert_answer(VB_OP_RC_READ_RESP_ONLY, 0x100 + i);
	assert_ack(0x104, VB_AETH_NAK, VB_NAK_INVALID_REQ);
	/* An agreement on none at all. */
	begin(NULL);
	resp.resources_max = 0;
	assert_result(request(VB_OP_RC_READ_REQ, 0x100, 0, 1), VB_RESP_FAILED, VB_BAD_RESOURCES);
	assert_ack(0x100, VB_AETH_NAK, VB_NAK_INVALID_REQ);
}

RESP_TEST(acks_tell_how_many_receives_wait)
{
	fake.recv_posted = 3;
	request_ackreq(VB_OP_RC_SEND_ONLY, 0x100, 1);
	assert_int_equal(vb_credit_decode(vb_aeth_value(response().aeth.syndrome)), 2);
	fake.recv_uncounted = true;
	request_ackreq(VB_OP_RC_SEND_ONLY, 0x101, 1);
	assert_int_equal(vb_aeth_value(response().aeth.syndrome), VB_CREDIT_CODE_UNLIMITED);
}

RESP_TEST(read_responses_cover_the_data)
{
	static const uint32_t bytes[] = { 0, 1, MTU - 1, MTU, MTU + 1, 2 * MTU, 3 * MTU + 7 };

	for (unsigned i = 0; i < VB_ARRAY_LEN(bytes); i++) {
		uint32_t packets = vb_packets(bytes[i], MTU), offset = 0;

		begin(NULL);
		request(VB_OP_RC_READ_REQ, 0x100, 0, bytes[i]);
		assert_int_equal(resp.epsn, 0x100 + packets);
		for (uint32_t n = 0; n < packets; n++) {
			struct vb_pkt pkt = response();
			unsigned pos = (n == 0 ? VB_P_FIRST : 0) |
				       (n + 1 == packets ? VB_P_LAST : 0);

			assert_int_equal(vb_op_info(pkt.opcode)->pos, pos);
			assert_int_equal(pkt.psn, 0x100 + n);
			assert_true(pkt.reth.va == 0x10000 + offset);
			offset += pkt.reth.bytes;
		}
		assert_int_equal(offset, bytes[i]);
		assert_silent();
	}
}

/* A burst that the link refused is taken back, whatever was in it. */
RESP_TEST(a_refused_burst_is_taken_back)
{
	for (unsigned taken = 0; taken <= 6; taken++) {
		struct vb_resp_pos before;

		begin(NULL);
		request(VB_OP_RC_READ_REQ, 0x100, 0, 3 * MTU);
		response();
		request(VB_OP_RC_FETCH_ADD, 0x103, 0, 0);
		request(VB_OP_RC_READ_REQ, 0x104, 0, 2 * MTU);
		request_ackreq(VB_OP_RC_SEND_ONLY, 0x106, 0);
		before = vb_resp_pos_get(&resp);
		for (unsigned i = 0; i < taken; i++)
			response();
		vb_resp_pos_put(&resp, &before);
		assert_answer(VB_OP_RC_READ_RESP_MIDDLE, 0x101);
		assert_answer(VB_OP_RC_READ_RESP_LAST, 0x102);
		assert_answer(VB_OP_RC_ATOMIC_ACK, 0x103);
		assert_answer(VB_OP_RC_READ_RESP_FIRST, 0x104);
		assert_answer(VB_OP_RC_READ_RESP_LAST, 0x105);
		assert_ack(0x106, VB_AETH_ACK, 0);
		assert_silent();
	}
}

RESP_TEST(data_that_vanished_is_refused_in_place_of_the_answer)
{
	struct vb_resp_pos before;
	struct vb_pkt pkt;

	request(VB_OP_RC_READ_REQ, 0x100, 0, 3 * MTU);
	request(VB_OP_RC_READ_REQ, 0x103, 0, 1);
	response();
	before = vb_resp_pos_get(&resp);
	pkt = response();
	assert_true(vb_rc_response_fault(&resp, &before, &pkt));
	assert_ack(0x101, VB_AETH_NAK, VB_NAK_OP);
	assert_silent();
	assert_true(resp.broken);
}

/* Not to the last packet: only then it was given. */
RESP_TEST(data_that_vanished_before_the_last_packet_is_refused)
{
	struct vb_resp_pos before;
	struct vb_pkt pkt;

	request(VB_OP_RC_READ_REQ, 0x100, 0, 2 * MTU);
	response();
	before = vb_resp_pos_get(&resp);
	pkt = response();
	assert_true(vb_rc_response_fault(&resp, &before, &pkt));
	assert_ack(0x101, VB_AETH_NAK, VB_NAK_OP);
}

/*
 * Whoever has the data may have let the memory go (a seed of the simulator: it was given back with
 * a SEND, and a late duplicate of the READ was this QP's end).
 */
RESP_TEST(data_that_was_given_and_vanished_is_not_given_again)
{
	struct vb_resp_pos before;
	struct vb_pkt pkt;

	request(VB_OP_RC_READ_REQ, 0x100, 0, 2 * MTU);
	request(VB_OP_RC_READ_REQ, 0x102, 0, 1);
	for (unsigned i = 0; i < 3; i++)
		response();
	request_ackreq(VB_OP_RC_SEND_ONLY, 0x103, 1);
	response();
	assert_int_equal(request(VB_OP_RC_READ_REQ, 0x100, 0, 2 * MTU).outcome, VB_RESP_DUPLICATE);
	before = vb_resp_pos_get(&resp);
	pkt = response();
	assert_int_equal(pkt.psn, 0x100);
	assert_false(vb_rc_response_fault(&resp, &before, &pkt));
	assert_silent();
	assert_false(resp.broken);
	/* All goes on. */
	assert_int_equal(request(VB_OP_RC_READ_REQ, 0x104, 0, 1).outcome, VB_RESP_OWES);
	assert_answer(VB_OP_RC_READ_RESP_ONLY, 0x104);
	assert_int_equal(request(VB_OP_RC_READ_REQ, 0x102, 0, 1).outcome, VB_RESP_DUPLICATE);
	assert_answer(VB_OP_RC_READ_RESP_ONLY, 0x102);
}
