/* SPDX-License-Identifier: BSD-2-Clause */
/* The short way of a responder: what it does is what the long one would have done. */
#include "resp_fixture.h"

static const uint8_t data[2 * MTU];

static bool middle(enum vb_kind kind, uint32_t psn, bool ackreq, uint32_t bytes)
{
	return vb_resp_middle(&resp, kind, psn, ackreq, data, bytes);
}

/* A middle packet goes both ways, from the same beginning to the same end. */
static void assert_same(enum vb_kind kind, uint8_t opcode, bool ackreq)
{
	struct vb_resp before = resp, moved;
	struct vb_pkt pkt = packet(opcode, resp.epsn, MTU, 0);
	struct vb_resp_result result;

	assert_true(middle(kind, resp.epsn, ackreq, MTU));
	moved = resp;
	resp = before;
	pkt.ackreq = ackreq;
	result = give(&pkt);
	assert_int_equal(result.verdict, VB_OK);
	assert_int_equal(result.outcome == VB_RESP_OWES, moved.ack_owed);
	assert_memory_equal(&moved, &resp, sizeof(resp));
}

RESP_TEST(in_its_turn_it_counts_as_ever)
{
	request(VB_OP_RC_WRITE_FIRST, EPSN, MTU, 5 * MTU);
	assert_same(VB_K_WRITE, VB_OP_RC_WRITE_MIDDLE, false);
	assert_same(VB_K_WRITE, VB_OP_RC_WRITE_MIDDLE, true);
	assert_same(VB_K_WRITE, VB_OP_RC_WRITE_MIDDLE, false);
	assert_int_equal(fake.va, 0x10000 + 3 * MTU);
	/* The last one is not in the midst, whatever it says. */
	assert_false(middle(VB_K_WRITE, EPSN + 4, false, MTU));
	assert_int_equal(request(VB_OP_RC_WRITE_LAST, EPSN + 4, MTU, 0).verdict, VB_OK);
	request(VB_OP_RC_SEND_FIRST, EPSN + 5, MTU, 0);
	assert_same(VB_K_SEND, VB_OP_RC_SEND_MIDDLE, true);
	resp.transport = VB_UC;
	resp.ack_owed = false;
	assert_same(VB_K_SEND, VB_OP_UC_SEND_MIDDLE, true);
	assert_false(resp.ack_owed);
}

static void assert_untouched(enum vb_kind kind, uint32_t psn, uint32_t bytes)
{
	struct vb_resp before = resp;

	assert_false(middle(kind, psn, true, bytes));
	assert_memory_equal(&before, &resp, sizeof(resp));
}

RESP_TEST(anything_else_is_left_alone)
{
	assert_untouched(VB_K_WRITE, EPSN, MTU);
	assert_untouched(VB_K_SEND, EPSN, MTU);
	request(VB_OP_RC_WRITE_FIRST, EPSN, MTU, 9 * MTU);
	assert_untouched(VB_K_SEND, EPSN + 1, MTU);
	assert_untouched(VB_K_WRITE, EPSN, MTU);
	assert_untouched(VB_K_WRITE, EPSN + 2, MTU);
	assert_untouched(VB_K_WRITE, EPSN + 1, MTU - 4);
	assert_untouched(VB_K_WRITE, EPSN + 1, 2 * MTU);
	assert_untouched(VB_K_READ_RESP, EPSN + 1, MTU);
	fake.remote_write = VB_BAD_ACCESS;
	assert_untouched(VB_K_WRITE, EPSN + 1, MTU);
	fake.remote_write = VB_OK;
	/* A hole was told of, and what fills it ends that. */
	request(VB_OP_RC_WRITE_MIDDLE, EPSN + 2, MTU, 0);
	assert_untouched(VB_K_WRITE, EPSN + 1, MTU);
	assert_ack(EPSN + 1, VB_AETH_NAK, VB_NAK_PSN);
	assert_untouched(VB_K_WRITE, EPSN + 1, MTU);
}
