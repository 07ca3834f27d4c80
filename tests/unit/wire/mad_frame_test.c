/* SPDX-License-Identifier: BSD-2-Clause */
#include "group.h"
#include "wire/icrc.h"
#include "wire/mad_frame.h"

static const struct vb_path path = {
	.src = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
	.dst = { [10] = 0xff, 0xff, 10, 0, 0, 2 },
	.sport = 0xc123,
};

static void frame_make(uint8_t frame[VB_MAD_FRAME_BYTES], uint8_t mad[VB_MAD_BYTES])
{
	for (unsigned i = 0; i < VB_MAD_BYTES; i++)
		mad[i] = (uint8_t)i;
	vb_mad_frame_emit(frame, &path, mad, 0x123456);
}

/* Opcode, P_Key, QPNs, PSN, Q_Key as IBTA 9.2 and 9.3.4 place them. */
TEST(the_headers_are_those_of_qp_1)
{
	static const uint8_t headers[VB_MAD_HEADERS_BYTES] = {
		0x64, 0, 0xff, 0xff, 0, 0, 0, 1, 0, 0x12, 0x34, 0x56,
		0x80, 0x01, 0, 0, 0, 0, 0, 1,
	};
	uint8_t frame[VB_MAD_FRAME_BYTES], mad[VB_MAD_BYTES];

	frame_make(frame, mad);
	assert_memory_equal(frame, headers, sizeof(headers));
	assert_memory_equal(frame + sizeof(headers), mad, sizeof(mad));
	assert_true(vb_icrc_check(&path, frame, sizeof(frame), 0, NULL));
	assert_ptr_equal(vb_mad_frame_parse(frame, sizeof(frame)), frame + sizeof(headers));
}

/* Each of these makes it something else than a MAD. */
TEST(other_frames_carry_none)
{
	static const struct { unsigned at; uint8_t octet; } others[] = {
		{ 0, 0x65 }, { 0, 0x04 }, { 7, 2 }, { 5, 1 }, { 12, 0x81 }, { 19, 2 }, { 1, 0x10 },
	};
	uint8_t frame[VB_MAD_FRAME_BYTES], mad[VB_MAD_BYTES];

	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		frame_make(frame, mad);
		frame[others[i].at] = others[i].octet;
		assert_null(vb_mad_frame_parse(frame, sizeof(frame)));
	}
	frame_make(frame, mad);
	for (size_t bytes = 0; bytes < sizeof(frame); bytes++)
		assert_null(vb_mad_frame_parse(frame, bytes));
}
