/* SPDX-License-Identifier: BSD-2-Clause */
/* What rsockets say to each other, octet by octet. */
#include "group.h"
#include "wire/rs.h"

TEST(test_hello)
{
	static const struct vb_rs_hello hello = {
		.credits = 0x180, .maps = 256,
		.targets = {0x0102030405060708, 0x11121314, 2},
		.buffer = {0x2122232425262728, 0x31323334, 0x10000},
	};
	static const uint8_t expected[VB_RS_HELLO_BYTES] = {
		1, 2 | (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__), 1, 0x80, 0, 0, 0, 129,
		1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0, 0, 0, 2,
		0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0x31, 0x32, 0x33, 0x34, 0, 1, 0, 0,
	};
	uint8_t out[VB_RS_HELLO_BYTES];
	struct vb_rs_hello read;

	vb_rs_hello_emit(&hello, out);
	assert_memory_equal(out, expected, sizeof(out));
	assert_true(vb_rs_hello_parse(&read, out));
	assert_int_equal(read.maps, 256);
	assert_int_equal(read.credits, 0x180);
	assert_false(read.swapped);
	assert_int_equal(read.buffer.addr, hello.buffer.addr);
	out[1] ^= 1;
	assert_true(vb_rs_hello_parse(&read, out));
	assert_true(read.swapped);
	out[0] = 2;
	assert_false(vb_rs_hello_parse(&read, out));
}

TEST(test_messages)
{
	uint32_t msg = vb_rs_msg(VB_RS_CONTROL, VB_RS_SHUTDOWN);

	assert_int_equal(msg, 0xe0000002);
	assert_int_equal(vb_rs_msg_op(msg), VB_RS_CONTROL);
	assert_int_equal(vb_rs_msg_data(msg), VB_RS_SHUTDOWN);
	assert_int_equal(vb_rs_msg(VB_RS_CREDIT, 0xffff), 0x8000ffff);
}

TEST(test_first)
{
	static const uint8_t expected[] = {0x55, 0x55, 0x55, 0x55, 4, 7, 16, 0, 0, 0xab, 0xcd, 0xef,
					   127, 0, 0, 1};
	struct vb_rs_first first = {
		.ipv4 = true, .answers = true, .qpn = 0xabcdef, .addr = {127, 0, 0, 1},
	};
	uint8_t out[VB_RS_FIRST_BYTES_MAX];

	assert_int_equal(vb_rs_first_emit(&first, out), sizeof(expected));
	assert_memory_equal(out, expected, sizeof(expected));
	assert_int_equal(vb_rs_first_parse(&first, out, sizeof(expected)), sizeof(expected));
	assert_int_equal(vb_rs_first_parse(&first, out, sizeof(expected) - 1), 0);
}
