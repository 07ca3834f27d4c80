/* SPDX-License-Identifier: BSD-2-Clause */
/* The requester of XRC: one of RC whose messages name SRQs, and change slots in between only. */
#include "req_fixture.h"

enum { INDEX_BITS = 14 }; /* of an SRQ's number; the others are its NIC's slot */

static uint32_t srqn(uint32_t slot, uint32_t index)
{
	return slot << INDEX_BITS | index;
}

static int begin_xrc(void **state)
{
	begin(state);
	req.transport = VB_XRC;
	return 0;
}

#define XRC_REQ_TEST(name) TEST_AFTER(name, begin_xrc)

static void post_to(unsigned kind, uint32_t bytes, uint32_t to)
{
	struct vb_wqe *wqe = vb_sq_at(&req.sq, req.tail);

	*wqe = (struct vb_wqe){ .wr_id = req.tail, .kind = (uint8_t)kind, .bytes = bytes };
	wqe->remote.srqn = to;
	wqe->remote.target = to >> INDEX_BITS;
	vb_req_commit(&req, wqe);
}

static enum vb_req_outcome xrc_ack(uint32_t psn)
{
	return answer(VB_OP_XRC_ACK, psn, vb_aeth_ack(VB_CREDIT_CODE_UNLIMITED), 0, 0);
}

/* IBTA Annex A14: the same operations as RC's, each request with opcodes of its own. */
XRC_REQ_TEST(each_request_has_an_opcode_of_its_own)
{
	static const struct {
		enum vb_kind kind;
		uint32_t bytes;
		uint8_t opcodes[3];
		unsigned count;
	} rows[] = {
		{ VB_K_SEND, 10, { VB_OP_XRC_SEND_ONLY }, 1 },
		{ VB_K_SEND,
		  3 * MTU,
		  { VB_OP_XRC_SEND_FIRST, VB_OP_XRC_SEND_MIDDLE, VB_OP_XRC_SEND_LAST },
		  3 },
		{ VB_K_WRITE, MTU, { VB_OP_XRC_WRITE_ONLY }, 1 },
		{ VB_K_WRITE,
		  2 * MTU + 1,
		  { VB_OP_XRC_WRITE_FIRST, VB_OP_XRC_WRITE_MIDDLE, VB_OP_XRC_WRITE_LAST },
		  3 },
		{ VB_K_READ_REQ, 5 * MTU, { VB_OP_XRC_READ_REQ }, 1 },
		{ VB_K_CMP_SWP, 8, { VB_OP_XRC_CMP_SWP }, 1 },
		{ VB_K_FETCH_ADD, 8, { VB_OP_XRC_FETCH_ADD }, 1 },
	};

	for (unsigned i = 0; i < VB_ARRAY_LEN(rows); i++) {
		begin_xrc(state);
		post_to(rows[i].kind, rows[i].bytes, srqn(3, 1));
		assert_int_equal(send_all(), rows[i].count);
		for (unsigned k = 0; k < rows[i].count; k++)
			assert_int_equal(sent[k].opcode, rows[i].opcodes[k]);
	}
}

XRC_REQ_TEST(what_is_on_its_way_is_for_one_slot)
{
	post_to(VB_K_SEND, 10, srqn(3, 1));
	post_to(VB_K_SEND, 10, srqn(3, 2)); /* another SRQ of the same NIC */
	post_to(VB_K_SEND, 2 * MTU, srqn(4, 1));
	post_to(VB_K_SEND, 10, srqn(3, 1));
	assert_int_equal(send_all(), 2);
	assert_int_equal(xrc_ack(START_PSN), VB_REQ_MOVED);
	assert_int_equal(send_all(), 0); /* the second is still out */
	assert_int_equal(xrc_ack(START_PSN + 1), VB_REQ_MOVED);
	assert_int_equal(send_all(), 2); /* all packets of the third */
	assert_int_equal(xrc_ack(START_PSN + 2), VB_REQ_MOVED);
	assert_int_equal(send_all(), 0);
	assert_int_equal(xrc_ack(START_PSN + 3), VB_REQ_MOVED);
	assert_int_equal(send_all(), 1);
	assert_int_equal(xrc_ack(START_PSN + 4), VB_REQ_MOVED);
	assert_done(4);
}

/* Nothing is done before its data came. */
XRC_REQ_TEST(a_read_keeps_other_slots_waiting_until_its_data_came)
{
	post_to(VB_K_READ_REQ, 100, srqn(5, 1));
	post_to(VB_K_SEND, 10, srqn(6, 1));
	assert_int_equal(send_all(), 1);
	assert_int_equal(answer(VB_OP_XRC_READ_RESP_ONLY, START_PSN,
				vb_aeth_ack(VB_CREDIT_CODE_UNLIMITED), 0, 100),
			 VB_REQ_MOVED);
	assert_int_equal(send_all(), 1);
	assert_int_equal(sent[0].psn, START_PSN + 1);
}

XRC_REQ_TEST(what_is_sent_again_waits_as_it_did)
{
	post_to(VB_K_SEND, 10, srqn(3, 1));
	post_to(VB_K_SEND, 10, srqn(4, 1));
	assert_int_equal(send_all(), 1);
	now_ns += 1000000000;
	assert_int_equal(vb_rc_timeout(&req, now_ns), VB_REQ_MOVED);
	assert_int_equal(send_all(), 1);
	assert_int_equal(sent[0].psn, START_PSN);
	assert_int_equal(send_all(), 0);
	assert_int_equal(xrc_ack(START_PSN), VB_REQ_MOVED);
	assert_int_equal(send_all(), 1);
	assert_int_equal(sent[0].psn, START_PSN + 1);
}

/* Every request has an XRCETH: by the wire none is of the kind that is sent without a thought. */
XRC_REQ_TEST(only_a_reliable_link_has_a_short_way)
{
	for (unsigned reliable = 0; reliable < 2; reliable++) {
		struct vb_segment seg;
		bool ackreq;

		begin_xrc(state);
		vb_req_link_set(&req, reliable, 64);
		req.flight.window = 64;
		post_to(VB_K_WRITE, 20 * MTU, srqn(3, 1));
		assert_true(vb_req_next(&req, &seg, &ackreq));
		assert_int_equal(vb_req_run(&req), reliable ? 18 : 0);
		assert_true(vb_req_next(&req, &seg, &ackreq));
		assert_int_equal(seg.opcode, VB_OP_XRC_WRITE_MIDDLE);
	}
}

/* What was skipped after going back is on its way to its slot: what follows need not wait. */
XRC_REQ_TEST(what_is_skipped_goes_to_its_slot)
{
	struct vb_segment seg;
	bool ackreq;

	vb_req_link_set(&req, true, 64);
	post_to(VB_K_WRITE, 5 * MTU, srqn(3, 1));
	post_to(VB_K_SEND, 10, srqn(4, 1));
	assert_true(vb_req_next(&req, &seg, &ackreq));
	vb_req_skip(&req, vb_req_run(&req));
	vb_req_sent(&req, &(struct vb_req_pos){ .next_psn = START_PSN }, now_ns);
	assert_int_equal(xrc_ack(START_PSN + 1), VB_REQ_MOVED);
	vb_req_rewind(&req);
	assert_int_equal(vb_req_run(&req), 2);
	vb_req_skip(&req, 2);
	assert_true(vb_req_next(&req, &seg, &ackreq));
	assert_int_equal(seg.opcode, VB_OP_XRC_WRITE_LAST);
	assert_false(vb_req_next(&req, &seg, &ackreq)); /* another slot's */
}

XRC_REQ_TEST(small_messages_wait_for_their_slot_on_a_reliable_link_too)
{
	vb_req_link_set(&req, true, 64);
	post_to(VB_K_SEND, 10, srqn(3, 1));
	post_to(VB_K_WRITE, 10, srqn(3, 2));
	post_to(VB_K_SEND, 10, srqn(4, 1));
	assert_int_equal(send_all(), 2);
	assert_int_equal(sent[1].opcode, VB_OP_XRC_WRITE_ONLY);
	assert_int_equal(xrc_ack(START_PSN), VB_REQ_MOVED);
	assert_int_equal(send_all(), 0);
	assert_int_equal(xrc_ack(START_PSN + 1), VB_REQ_MOVED);
	assert_int_equal(send_all(), 1);
}

/* Of one link nothing is known but its window; the other has none to find, and no clocks. */
XRC_REQ_TEST(each_link_begins_afresh)
{
	vb_req_link_set(&req, true, 1000);
	assert_int_equal(req.flight.window, 1000);
	post_to(VB_K_SEND, 10, srqn(3, 1));
	assert_int_equal(send_all(), 1);
	assert_int_equal(vb_rc_deadline_ns(&req), VB_NEVER_NS);
	assert_int_equal(xrc_ack(START_PSN), VB_REQ_MOVED);
	vb_req_link_set(&req, false, 1000);
	assert_int_equal(req.flight.window, 65536 / MTU);
	post_to(VB_K_SEND, 10, srqn(4, 1));
	assert_int_equal(send_all(), 1);
	assert_true(vb_rc_deadline_ns(&req) != VB_NEVER_NS);
}

/* What waits is cut as the way wants it that it will take; what has begun, as it was begun. */
XRC_REQ_TEST(messages_are_cut_anew_in_between_only)
{
	post_to(VB_K_SEND, 10, srqn(3, 1));
	post_to(VB_K_SEND, 3 * MTU + 1, srqn(4, 1));
	post_to(VB_K_READ_REQ, 5 * MTU, srqn(4, 1));
	post_to(VB_K_WRITE, 10, srqn(4, 1));
	assert_true(vb_req_is_between(&req));
	assert_int_equal(send_all(), 1);
	assert_false(vb_req_is_between(&req));
	assert_int_equal(xrc_ack(START_PSN), VB_REQ_MOVED);
	assert_true(vb_req_is_between(&req));
	vb_req_mtu_set(&req, 4 * MTU);
	assert_int_equal(req.post_psn, START_PSN + 1 + 1 + 2 + 1);
	assert_int_equal(send_all(), 3);
	assert_int_equal(sent[0].opcode, VB_OP_XRC_SEND_ONLY);
	assert_int_equal(sent[0].psn, START_PSN + 1);
	assert_int_equal(sent[1].psn, START_PSN + 2);
	assert_int_equal(sent[2].psn, START_PSN + 4);
	assert_int_equal(sent[2].opcode, VB_OP_XRC_WRITE_ONLY);
}

XRC_REQ_TEST(it_ends_as_rc_does_where_nobody_answers)
{
	req.retry.timeout = 1;
	req.retry.count = req.retry.left = 1;
	post_to(VB_K_SEND, 10, srqn(3, 1));
	for (unsigned i = 0; i < 1000 && !fake.done_count; i++) {
		send_all();
		now_ns += 10000000;
		vb_rc_timeout(&req, now_ns);
	}
	assert_failed(0, IBV_WC_RETRY_EXC_ERR);
}
