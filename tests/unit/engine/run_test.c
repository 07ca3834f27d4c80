/* SPDX-License-Identifier: BSD-2-Clause */
/* The short ways of a requester: what they do is what the long ones would have done. */
#include "req_fixture.h"

#include "base/prng.h"

/* As many as vb_req_run() says leave one by one as it says, and to the same place. */
static void check_run(void)
{
	struct vb_req copy = req;
	uint32_t n = vb_req_run(&req);
	struct vb_segment seg;
	bool ackreq;

	for (uint32_t i = 0; i < n; i++) {
		assert_true(vb_req_next(&copy, &seg, &ackreq));
		assert_false(ackreq);
		assert_false(seg.first || seg.last);
		assert_int_equal(seg.bytes, req.mtu);
	}
	vb_req_skip(&req, n);
	assert_memory_equal(&copy.pos, &req.pos, sizeof(req.pos));
}

REQ_TEST(a_run_is_what_would_leave_one_by_one)
{
	static const enum vb_kind kinds[] = { VB_K_SEND, VB_K_WRITE, VB_K_READ_REQ, VB_K_CMP_SWP };
	struct vb_segment seg;
	bool ackreq;

	for (uint64_t seed = 1; seed <= 300; seed++) {
		uint64_t random = seed;

		begin(state);
		req.transport = seed % 8 ? VB_RC : VB_UC;
		req.reliable = seed % 3 == 0;
		req.flight.window = 4 + (uint32_t)(vb_prng_next(&random) % 100);
		for (unsigned i = 0; i < 8; i++) {
			enum vb_kind kind = kinds[vb_prng_next(&random) % (req.transport ? 2 : 4)];

			post(kind, kind == VB_K_CMP_SWP
					   ? 8
					   : (uint32_t)(vb_prng_next(&random) % (50 * MTU)));
		}
		for (unsigned i = 0; i < 1000 && req.head != req.tail; i++) {
			switch (vb_prng_next(&random) % 4) {
			case 0:
				check_run();
				break;
			case 1:
				vb_req_next(&req, &seg, &ackreq);
				break;
			case 2:
				vb_req_sent(&req, &(struct vb_req_pos){ .next_psn = req.top_psn },
					    now_ns);
				break;
			default:
				if (req.una_psn != req.top_psn)
					ack(vb_psn_add(req.top_psn, VB_PSN_MASK));
				break;
			}
		}
	}
}

/* In the middle of a long READ, all that is said of it is in the two requesters the same. */
REQ_TEST(data_in_its_turn_moves_it_as_ever)
{
	static const uint8_t data[MTU];
	struct vb_req copy;
	unsigned taken = 0;

	post(VB_K_READ_REQ, 100 * MTU);
	send_all();
	for (uint32_t i = 0; i < 100; i++) {
		uint32_t psn = START_PSN + i;
		bool last = (i + 1) % (VB_READ_CHUNK_BYTES / MTU) == 0 || i == 99;

		copy = req;
		if (vb_rc_middle(&req, psn, data, MTU, now_ns)) {
			struct vb_req moved = req;

			assert_false(last);
			taken++;
			assert_int_equal(fake.local_offset, i * MTU);
			req = copy;
			answer(VB_OP_RC_READ_RESP_MIDDLE, psn, 0, 0, MTU);
			assert_memory_equal(&moved, &req, sizeof(req));
		} else {
			assert_true(last);
			answer(VB_OP_RC_READ_RESP_LAST, psn,
			       vb_aeth_ack(VB_CREDIT_CODE_UNLIMITED), 0, MTU);
		}
		send_all();
	}
	assert_true(taken > 90);
	assert_done(1);
}

REQ_TEST(data_out_of_turn_is_left_alone)
{
	static const uint8_t data[2 * MTU];
	struct vb_req before;

	post(VB_K_WRITE, 8);
	post(VB_K_READ_REQ, 10 * MTU);
	send_all();
	before = req;
	assert_false(vb_rc_middle(&req, START_PSN, data, MTU, now_ns));
	assert_false(vb_rc_middle(&req, START_PSN + 1, data, MTU, now_ns));
	assert_memory_equal(&before, &req, sizeof(req));
	ack(START_PSN);
	before = req;
	assert_false(vb_rc_middle(&req, START_PSN, data, MTU, now_ns));
	assert_false(vb_rc_middle(&req, START_PSN + 2, data, MTU, now_ns));
	assert_false(vb_rc_middle(&req, START_PSN + 1, data, MTU - 4, now_ns));
	assert_false(vb_rc_middle(&req, START_PSN + 1, data, 2 * MTU, now_ns));
	fake.local_status = IBV_WC_LOC_PROT_ERR;
	assert_false(vb_rc_middle(&req, START_PSN + 1, data, MTU, now_ns));
	assert_memory_equal(&before, &req, sizeof(req));
	fake.local_status = IBV_WC_SUCCESS;
	/* Nothing was asked for any more: the answer to what was asked before we went back. */
	vb_req_rewind(&req);
	before = req;
	assert_false(vb_rc_middle(&req, START_PSN + 1, data, MTU, now_ns));
	assert_memory_equal(&before, &req, sizeof(req));
}
