/* SPDX-License-Identifier: BSD-2-Clause */

/* The responders without acknowledgement: what does not fit is dropped (IBA 9.8). */
#include "resp_fixture.h"

static int begin_uc(void **state)
{
	begin(state);
	resp.transport = VB_UC;
	return 0;
}

#define UC(name) TEST_AFTER(name, begin_uc)

static int begin_ud(void **state)
{
	begin(state);
	resp.transport = VB_UD;
	return 0;
}

#define UD(name) TEST_AFTER(name, begin_ud)

UC(messages_come_through)
{
	request(VB_OP_UC_SEND_ONLY, 0x100, 10, 0);
	request(VB_OP_UC_SEND_FIRST, 0x101, MTU, 0);
	request(VB_OP_UC_SEND_MIDDLE, 0x102, MTU, 0);
	request(VB_OP_UC_SEND_LAST_IMM, 0x103, 1, 0);
	request(VB_OP_UC_WRITE_FIRST, 0x104, MTU, MTU + 1);
	assert_result(request(VB_OP_UC_WRITE_LAST_IMM, 0x105, 1, 0), VB_RESP_NOTHING, VB_OK);
	assert_int_equal(fake.recv_done_count, 3);
	assert_int_equal(fake.recv_done[1].bytes, 2 * MTU + 1);
	assert_int_equal(fake.recv_done[2].bytes, MTU + 1);
	assert_int_equal(fake.writes, 2);
}

/* IBA 9.8.2.2: of a message with a hole nothing is told; the next is taken again. */
UC(a_hole_loses_its_message_only)
{
	request(VB_OP_UC_SEND_FIRST, 0x100, MTU, 0);
	assert_result(request(VB_OP_UC_SEND_LAST, 0x102, 1, 0), VB_RESP_DROPPED,
		      VB_BAD_SEQUENCE);
	assert_int_equal(fake.recv_done_count, 0);
	request(VB_OP_UC_SEND_ONLY, 0x103, 7, 0);
	assert_int_equal(fake.recv_done_count, 1);
	assert_int_equal(fake.recv_done[0].bytes, 7);
	/* It had the receive request of the one that was lost. */
	assert_int_equal(fake.recv_done[0].wr_id, 0);
	assert_int_equal(fake.recv_taken, 1);
}

UC(a_beginning_is_taken_after_a_hole)
{
	request(VB_OP_UC_SEND_FIRST, 0x100, MTU, 0);
	assert_result(request(VB_OP_UC_SEND_FIRST, 0x109, MTU, 0), VB_RESP_NOTHING, VB_OK);
	request(VB_OP_UC_SEND_LAST, 0x10a, 5, 0);
	assert_int_equal(fake.recv_done_count, 1);
	assert_int_equal(fake.recv_done[0].bytes, MTU + 5);
}

/* UDP may double a packet or let one overtake another (simulator, seed 36). */
UC(late_packets_change_nothing)
{
	request(VB_OP_UC_SEND_ONLY, 0x100, 1, 0);
	request(VB_OP_UC_SEND_FIRST, 0x101, MTU, 0);
	assert_int_equal(request(VB_OP_UC_SEND_ONLY, 0x100, 1, 0).outcome, VB_RESP_DROPPED);
	assert_int_equal(request(VB_OP_UC_SEND_ONLY, 0x0f0, 1, 0).outcome, VB_RESP_DROPPED);
	request(VB_OP_UC_SEND_LAST, 0x102, 3, 0);
	assert_int_equal(fake.recv_done_count, 2);
	assert_int_equal(fake.recv_done[1].bytes, MTU + 3);
}

/* The other side may have started afresh, with any PSN. */
UC(a_psn_far_behind_is_a_new_beginning)
{
	resp.epsn = 0x400000;
	assert_result(request(VB_OP_UC_SEND_ONLY, 0x000005, 1, 0), VB_RESP_NOTHING, VB_OK);
	assert_int_equal(resp.epsn, 6);
}

UC(what_uc_drops)
{
	static const struct {
		uint8_t opcode;
		uint32_t payload, dma;
		enum vb_verdict check, write;
		unsigned access_taken;
		unsigned recv_posted;
		enum vb_verdict verdict;
	} rows[] = {
		{ VB_OP_UC_SEND_ONLY, 1, 0, .verdict = VB_NO_RECV },
		{ VB_OP_UC_WRITE_ONLY_IMM, 1, 1, .verdict = VB_NO_RECV },
		{ VB_OP_UC_WRITE_ONLY, 1, 1, .check = VB_BAD_ACCESS, .verdict = VB_BAD_ACCESS },
		{ VB_OP_UC_WRITE_ONLY, 1, 1, .write = VB_BAD_MEMORY, .verdict = VB_BAD_MEMORY },
		{ VB_OP_UC_WRITE_ONLY, 1, 1, .access_taken = IBV_ACCESS_REMOTE_WRITE,
		  .verdict = VB_BAD_ACCESS },
		{ VB_OP_UC_WRITE_ONLY, 1, 2, .verdict = VB_BAD_LENGTH },
		{ VB_OP_UC_SEND_ONLY, MTU + 1, 0, .recv_posted = 1, .verdict = VB_BAD_LENGTH },
		{ VB_OP_UC_SEND_FIRST, 5, 0, .recv_posted = 1, .verdict = VB_BAD_LENGTH },
		{ VB_OP_UC_SEND_LAST, 5, 0, .recv_posted = 1, .verdict = VB_BAD_SEQUENCE },
		{ VB_OP_UC_WRITE_MIDDLE, MTU, 0, .verdict = VB_BAD_SEQUENCE },
	};

	for (unsigned i = 0; i < VB_ARRAY_LEN(rows); i++) {
		begin_uc(NULL);
		fake.recv_posted = rows[i].recv_posted;
		fake.remote_check = rows[i].check;
		fake.remote_write = rows[i].write;
		resp.access &= ~rows[i].access_taken;
		assert_result(request(rows[i].opcode, 0x100, rows[i].payload, rows[i].dma),
			      VB_RESP_DROPPED, rows[i].verdict);
		assert_false(resp.broken);
		assert_int_equal(fake.recv_done_count, 0);
		/* The next one is taken. */
		fake.recv_posted = 10;
		fake.remote_check = fake.remote_write = VB_OK;
		assert_result(request(VB_OP_UC_SEND_ONLY, 0x101, 1, 0), VB_RESP_NOTHING, VB_OK);
	}
}

/* The owner's own fault: whoever sends cannot bring it about. */
UC(a_receive_in_a_bad_place_ends_the_qp)
{
	for (unsigned ud = 0; ud < 2; ud++) {
		uint8_t opcode = ud ? VB_OP_UD_SEND_ONLY : VB_OP_UC_SEND_ONLY;

		ud ? begin_ud(NULL) : begin_uc(NULL);
		fake.recv_write = VB_BAD_RECV_SGE;
		assert_result(request(opcode, 0x100, 5, 0), VB_RESP_FAILED, VB_BAD_RECV_SGE);
		assert_int_equal(fake.recv_done_count, 1);
		assert_int_equal(fake.recv_done[0].status, IBV_WC_LOC_PROT_ERR);
		assert_true(resp.broken);
		assert_int_equal(request(opcode, 0x101, 5, 0).outcome, VB_RESP_DROPPED);
	}
}

UD(datagrams_come_behind_a_grh)
{
	/* Their PSNs mean nothing (IBA 9.8.3). */
	request(VB_OP_UD_SEND_ONLY, 0x555, 100, 0);
	request(VB_OP_UD_SEND_ONLY_IMM, 0x111, 0, 0);
	assert_int_equal(fake.recv_done_count, 2);
	assert_int_equal(fake.recv_done[0].bytes, 140);
	assert_int_equal(fake.recv_done[1].bytes, 40);
	assert_true(fake.recv_done[1].imm);
	assert_int_equal(fake.recv_bytes, 180);
}

UD(datagrams_that_do_not_fit_are_dropped)
{
	assert_result(request(VB_OP_UD_SEND_ONLY, 0, MTU + 1, 0), VB_RESP_DROPPED, VB_BAD_LENGTH);
	assert_int_equal(fake.recv_taken, 0);
	fake.recv_posted = 0;
	assert_result(request(VB_OP_UD_SEND_ONLY, 0, 1, 0), VB_RESP_DROPPED, VB_NO_RECV);
	assert_int_equal(fake.recv_done_count, 0);
	fake.recv_posted = 1;
	fake.no_room = true;
	assert_result(request(VB_OP_UD_SEND_ONLY, 0, 1, 0), VB_RESP_DROPPED, VB_TOO_LONG);
	assert_int_equal(fake.recv_taken, 0);
	fake.no_room = false;
	assert_result(request(VB_OP_UD_SEND_ONLY, 0, MTU, 0), VB_RESP_NOTHING, VB_OK);
}
