/* SPDX-License-Identifier: BSD-2-Clause */
#include "group.h"
#include "wire/flow.h"
#include "wire/packet.h"

static const struct vb_flow example = {
	.kind = VB_FLOW_ASK,
	.dqpn = 0x123456,
	.slot = 0x3ff,
	.bytes = 0x0102030405060708,
};

TEST(what_is_emitted_is_parsed)
{
	uint8_t frame[VB_FLOW_FRAME_BYTES] = { 0 };
	struct vb_flow flow = { 0 };

	(void)state;
	vb_flow_emit(frame, &example);
	assert_true(vb_flow_parse(&flow, frame, sizeof(frame)));
	assert_int_equal(flow.kind, example.kind);
	assert_int_equal(flow.dqpn, example.dqpn);
	assert_int_equal(flow.slot, example.slot);
	assert_true(flow.bytes == example.bytes);
}

/* The destination QPN stands where the kernel's steering looks for it in any packet. */
TEST(it_is_steered_like_a_packet)
{
	uint8_t frame[VB_FLOW_FRAME_BYTES] = { 0 };

	(void)state;
	vb_flow_emit(frame, &example);
	assert_int_equal(frame[5], 0x12);
	assert_int_equal(frame[6], 0x34);
	assert_int_equal(frame[7], 0x56);
}

/* IBTA 9.2.1: other NICs know no such opcode, so they drop it; our own packet parser too. */
TEST(it_is_no_packet)
{
	uint8_t frame[VB_FLOW_FRAME_BYTES] = { 0 };
	struct vb_pkt pkt;

	(void)state;
	vb_flow_emit(frame, &example);
	assert_int_equal(vb_pkt_parse(&pkt, frame, sizeof(frame)), VB_PARSE_OPCODE);
}

TEST(nothing_else_is_taken)
{
	uint8_t frame[VB_FLOW_FRAME_BYTES + 4] = { 0 };
	struct vb_flow flow;

	(void)state;
	vb_flow_emit(frame, &example);
	for (size_t bytes = 0; bytes < sizeof(frame); bytes++)
		assert_int_equal(vb_flow_parse(&flow, frame, bytes), bytes == VB_FLOW_FRAME_BYTES);
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		frame[0] = (uint8_t)opcode;
		assert_int_equal(vb_flow_parse(&flow, frame, VB_FLOW_FRAME_BYTES),
				 opcode == VB_FLOW_ASK || opcode == VB_FLOW_TELL);
	}
	frame[0] = VB_FLOW_TELL;
	frame[12] ^= 1;
	assert_false(vb_flow_parse(&flow, frame, VB_FLOW_FRAME_BYTES));
}
