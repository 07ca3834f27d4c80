/* SPDX-License-Identifier: BSD-2-Clause */

/* The RC responder: what came to the specification later. */
#include "resp_fixture.h"

#include "engine/newer.h"

/* --- SEND with invalidate --- */

static struct vb_resp_result send_inv(uint8_t opcode, uint32_t psn, uint32_t payload)
{
	struct vb_pkt pkt = packet(opcode, psn, payload, 0);

	pkt.inv_rkey = 0x4711;
	return give(&pkt);
}

RESP_TEST(the_last_packet_invalidates_once)
{
	request(VB_OP_RC_SEND_FIRST, 0x100, MTU, 0);
	request(VB_OP_RC_SEND_MIDDLE, 0x101, MTU, 0);
	assert_int_equal(fake.invalidated, 0);
	assert_int_equal(send_inv(VB_OP_RC_SEND_LAST_INV, 0x102, 1).verdict, VB_OK);
	assert_int_equal(fake.invalidated, 1);
	assert_int_equal(fake.inv_rkey, 0x4711);
	assert_int_equal(fake.recv_done_count, 1);
	/* A duplicate has its effect once (IBA C9-105). */
	assert_int_equal(send_inv(VB_OP_RC_SEND_LAST_INV, 0x102, 1).outcome, VB_RESP_DUPLICATE);
	assert_int_equal(fake.invalidated, 1);
	assert_int_equal(send_inv(VB_OP_RC_SEND_ONLY_INV, 0x103, 0).verdict, VB_OK);
	assert_int_equal(fake.invalidated, 2);
}

RESP_TEST(without_a_receive_nothing_is_invalidated)
{
	fake.recv_posted = 0;
	assert_int_equal(send_inv(VB_OP_RC_SEND_ONLY_INV, 0x100, 1).verdict, VB_NO_RECV);
	assert_int_equal(fake.invalidated, 0);
	fake.recv_posted = 1;
	assert_int_equal(send_inv(VB_OP_RC_SEND_ONLY_INV, 0x100, 1).verdict, VB_OK);
	assert_int_equal(fake.invalidated, 1);
}

RESP_TEST(a_key_that_is_no_window_fails_the_receive)
{
	fake.invalidate = VB_BAD_ACCESS;
	assert_refused(send_inv(VB_OP_RC_SEND_ONLY_INV, 0x100, 1), VB_BAD_ACCESS, VB_NAK_ACCESS);
	assert_int_equal(fake.recv_done_count, 1);
	assert_int_equal(fake.recv_done[0].status, IBV_WC_LOC_ACCESS_ERR);
	assert_int_equal(fake.recv_bytes, 0);
}

/* --- ATOMIC_WRITE --- */

RESP_TEST(an_atomic_write_is_answered_with_an_empty_read_response)
{
	struct vb_pkt pkt;

	request(VB_OP_RC_WRITE_ONLY, 0x100, 4, 4);
	assert_int_equal(request(VB_OP_RC_ATOMIC_WRITE, 0x101, 8, 8).outcome, VB_RESP_OWES);
	assert_int_equal(fake.atomic_kind, VB_K_ATOMIC_WRITE);
	pkt = response();
	assert_int_equal(pkt.opcode, VB_OP_RC_READ_RESP_ONLY);
	assert_int_equal(pkt.psn, 0x101);
	assert_int_equal(pkt.aeth.msn, 2);
	assert_int_equal(pkt.reth.bytes, 0);
	assert_silent();
}

RESP_TEST(a_duplicate_of_it_is_answered_not_executed)
{
	request(VB_OP_RC_ATOMIC_WRITE, 0x100, 8, 8);
	response();
	request(VB_OP_RC_WRITE_ONLY, 0x101, 4, 4);
	assert_int_equal(request(VB_OP_RC_ATOMIC_WRITE, 0x100, 8, 8).outcome, VB_RESP_DUPLICATE);
	assert_int_equal(fake.atomics, 1);
	assert_answer(VB_OP_RC_READ_RESP_ONLY, 0x100);
	/* What was something else is none of its duplicates. */
	assert_int_equal(request(VB_OP_RC_READ_REQ, 0x100, 0, 8).outcome, VB_RESP_DROPPED);
	assert_int_equal(request(VB_OP_RC_FETCH_ADD, 0x100, 0, 0).outcome, VB_RESP_DROPPED);
}

/* As many as READs and atomics may be outstanding, all together. */
RESP_TEST(it_takes_a_place_of_the_resources)
{
	for (unsigned i = 0; i < RESOURCES; i++)
		assert_int_equal(request(VB_OP_RC_ATOMIC_WRITE, 0x100 + i, 8, 8).verdict, VB_OK);
	assert_int_equal(request(VB_OP_RC_ATOMIC_WRITE, 0x100 + RESOURCES, 8, 8).verdict,
			 VB_BAD_RESOURCES);
}

/* --- FLUSH --- */

static struct vb_resp_result flush(uint32_t psn, uint8_t type, uint8_t level)
{
	struct vb_pkt pkt = packet(VB_OP_RC_FLUSH, psn, 0, 64);

	pkt.flush.type = type;
	pkt.flush.level = level;
	return give(&pkt);
}

RESP_TEST(a_flush_is_answered_like_an_empty_read)
{
	struct vb_pkt pkt;

	resp.access |= VB_ACCESS_FLUSH_GLOBAL;
	request(VB_OP_RC_WRITE_ONLY, 0x100, 4, 4);
	assert_int_equal(flush(0x101, VB_FLUSH_GLOBAL, VB_FLUSH_MR).outcome, VB_RESP_OWES);
	assert_int_equal(fake.access, VB_ACCESS_FLUSH_GLOBAL);
	assert_int_equal(fake.flush_level, VB_FLUSH_MR);
	pkt = response();
	assert_int_equal(pkt.opcode, VB_OP_RC_READ_RESP_ONLY);
	assert_int_equal(pkt.psn, 0x101);
	assert_int_equal(pkt.reth.bytes, 0);
	/* oA19-15: its duplicate is answered only. */
	fake.checks = 0;
	assert_int_equal(flush(0x101, VB_FLUSH_GLOBAL, VB_FLUSH_MR).outcome, VB_RESP_DUPLICATE);
	assert_int_equal(fake.checks, 0);
	assert_answer(VB_OP_RC_READ_RESP_ONLY, 0x101);
}

RESP_TEST(a_flush_needs_its_rights)
{
	static const struct {
		unsigned granted;
		uint8_t type, level;
		enum vb_verdict verdict;
	} rows[] = {
		{ VB_ACCESS_FLUSH_GLOBAL, 1, 0, VB_OK },
		{ VB_ACCESS_FLUSH_GLOBAL, 1, 1, VB_OK },
		{ VB_ACCESS_FLUSH_PERSISTENT, 2, 0, VB_OK },
		{ VB_ACCESS_FLUSH_PERSISTENT | VB_ACCESS_FLUSH_GLOBAL, 3, 1, VB_OK },
		{ 0, 1, 0, VB_BAD_ACCESS },
		{ VB_ACCESS_FLUSH_PERSISTENT, 1, 0, VB_BAD_ACCESS },
		{ VB_ACCESS_FLUSH_GLOBAL, 2, 0, VB_BAD_ACCESS },
		{ VB_ACCESS_FLUSH_GLOBAL, 3, 0, VB_BAD_ACCESS },
		{ VB_ACCESS_FLUSH_GLOBAL, 0, 0, VB_BAD_OPCODE },
		{ VB_ACCESS_FLUSH_GLOBAL, 5, 0, VB_BAD_OPCODE },
		{ VB_ACCESS_FLUSH_GLOBAL, 8, 0, VB_BAD_OPCODE },
		{ VB_ACCESS_FLUSH_GLOBAL, 1, 2, VB_BAD_OPCODE },
		{ VB_ACCESS_FLUSH_GLOBAL, 1, 3, VB_BAD_OPCODE },
	};

	for (unsigned i = 0; i < VB_ARRAY_LEN(rows); i++) {
		begin(NULL);
		resp.access |= rows[i].granted;
		assert_int_equal(flush(0x100, rows[i].type, rows[i].level).verdict,
				 rows[i].verdict);
	}
	begin(NULL);
	resp.access |= VB_ACCESS_FLUSH_GLOBAL;
	fake.remote_check = VB_BAD_ACCESS;
	assert_refused(flush(0x100, 1, 0), VB_BAD_ACCESS, VB_NAK_ACCESS);
}
