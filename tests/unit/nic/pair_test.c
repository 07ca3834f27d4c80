/* SPDX-License-Identifier: BSD-2-Clause */

/* Pacing: how much goes to a NIC before it said that it has taken in what came before. */
#include "nic/way/pair.h"
#include "nic_fixture.h"

enum { SRC_SLOT = 3, DST_SLOT = 7, BUFFER_BYTES = 212992, WINDOW_BYTES = BUFFER_BYTES / 4 };

#define WAIT_NS 20000000u

static bool offer(uint32_t bytes)
{
	struct vb_burst burst = { .slot = DST_SLOT, .frames = 1, .frame_bytes = bytes };

	memcpy(burst.path.src, own_gid, VB_GID_BYTES);
	memcpy(burst.path.dst, peer_gid, VB_GID_BYTES);
	return vb_pair_admit(fix.nic, SRC_SLOT, &burst, fake_ns);
}

/* Offer until nothing more may go: the octets that went. */
static uint32_t offer_all(void)
{
	uint32_t bytes = 0;

	while (bytes < 100 * WINDOW_BYTES && offer(4096))
		bytes += 4096;
	return bytes;
}

static struct vb_flow question(void)
{
	struct vb_flow flow;

	assert_true(vb_flow_parse(&flow, fix.last, VB_FLOW_FRAME_BYTES));
	assert_int_equal(flow.kind, VB_FLOW_ASK);
	assert_int_equal(flow.dqpn >> VB_INDEX_BITS, DST_SLOT);
	assert_int_equal(flow.slot, SRC_SLOT);
	return flow;
}

static bool tell(uint64_t bytes)
{
	const struct vb_flow flow = { .kind = VB_FLOW_TELL, .slot = DST_SLOT, .bytes = bytes };
	struct vb_frame frame = { .bytes = VB_FLOW_FRAME_BYTES };

	memcpy(frame.path.src, peer_gid, VB_GID_BYTES);
	memcpy(frame.path.dst, own_gid, VB_GID_BYTES);
	return vb_pair_rx(fix.nic, &frame, &flow);
}

NIC_TEST(little_goes_unasked)
{
	assert_true(offer(4096));
	assert_true(offer(4096));
	assert_int_equal(fix.sent, 0);
}

NIC_TEST(no_more_than_the_window_goes_unanswered)
{
	uint32_t bytes = offer_all();

	assert_true(bytes > WINDOW_BYTES / 2);
	assert_true(bytes <= WINDOW_BYTES);
	assert_int_equal(fix.sent, 1); /* one question, on the way there */
	assert_false(offer(4096));
	assert_int_equal(fix.sent, 1);
}

NIC_TEST(an_answer_lets_more_go)
{
	offer_all();
	for (unsigned i = 0; i < 5; i++) {
		assert_true(tell(question().bytes));
		assert_true(offer_all() > 0);
		assert_false(offer(4096));
	}
}

/* What never was asked is no answer, and opens nothing. */
NIC_TEST(a_made_up_answer_opens_nothing)
{
	offer_all();
	tell(question().bytes + 1000000);
	assert_false(offer(4096));
}

NIC_TEST(a_lost_question_is_asked_again)
{
	offer_all();
	tell(question().bytes);
	offer_all();
	for (unsigned i = 0; i < 10; i++) {
		unsigned sent = fix.sent;

		fake_ns += WAIT_NS;
		assert_false(offer(4096));
		assert_int_equal(fix.sent, sent + 1);
	}
	assert_true(tell(question().bytes));
	assert_true(offer(4096));
}

/* A NIC that never answers is none of ours: after some tries it is sent to without pacing. */
NIC_TEST(a_stranger_is_left_alone)
{
	unsigned tries = 0, sent;

	offer_all();
	while (!offer(4096)) {
		fake_ns += WAIT_NS;
		assert_true(++tries < 10);
	}
	sent = fix.sent;
	assert_true(offer_all() >= 100 * WINDOW_BYTES);
	assert_int_equal(fix.sent, sent);
	/* Later we try again, in case that it was only slow; an answer, however late, tells. */
	fake_ns += 2000000000;
	offer_all();
	assert_false(offer(4096));
	assert_true(tell(question().bytes));
	assert_true(offer(4096));
}

/* Whoever sends under the address of another NIC has not seen what that was asked. */
NIC_TEST(an_answer_to_nothing_makes_no_friend)
{
	static const uint64_t guesses[] = { 0, 1, 42, WINDOW_BYTES / 2, WINDOW_BYTES, UINT64_MAX };

	offer_all();
	while (!offer(4096))
		fake_ns += WAIT_NS;
	for (unsigned i = 0; i < sizeof(guesses) / sizeof(guesses[0]); i++) {
		assert_false(tell(guesses[i]));
		assert_true(offer_all() >= 100 * WINDOW_BYTES);
	}
}

/* A burst larger than the window goes when nothing else is on its way. */
NIC_TEST(a_large_burst_goes_alone)
{
	assert_true(offer(2 * WINDOW_BYTES));
	assert_false(offer(4096));
}

NIC_TEST(a_question_is_answered_at_once)
{
	const struct vb_flow ask = {
		.kind = VB_FLOW_ASK, .dqpn = SRC_SLOT << VB_INDEX_BITS, .slot = DST_SLOT,
		.bytes = 42,
	};
	struct vb_frame frame = { .bytes = VB_FLOW_FRAME_BYTES };
	struct vb_flow told;

	memcpy(frame.path.src, peer_gid, VB_GID_BYTES);
	memcpy(frame.path.dst, own_gid, VB_GID_BYTES);
	assert_false(vb_pair_rx(fix.nic, &frame, &ask));
	assert_int_equal(fix.sent, 1);
	assert_true(vb_flow_parse(&told, fix.last, VB_FLOW_FRAME_BYTES));
	assert_int_equal(told.kind, VB_FLOW_TELL);
	assert_int_equal(told.dqpn >> VB_INDEX_BITS, DST_SLOT);
	assert_int_equal(told.slot, SRC_SLOT);
	assert_true(told.bytes == 42);
}

NIC_TEST(held_queue_pairs_come_back_once)
{
	struct vb_cq *cq = make_cq(8, NULL);
	struct vb_qp *a = make_qp(IBV_QPT_UD, cq, NULL), *b = make_qp(IBV_QPT_UC, cq, NULL);

	vb_pair_hold(fix.nic, a);
	vb_pair_hold(fix.nic, a);
	vb_pair_hold(fix.nic, b);
	vb_pair_unhold(fix.nic, a);
	assert_ptr_equal(vb_pair_release(fix.nic), b);
	assert_null(vb_pair_release(fix.nic));
	vb_pair_hold(fix.nic, a);
	drop_qp(a); /* what is destroyed is held no longer */
	assert_null(vb_pair_release(fix.nic));
	drop_qp(b);
	drop_cq(cq);
}
