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

/* As rdma-core lays out a struct rs_sge and a struct rs_iomap: in the reader's byte order. */
TEST(test_entries)
{
	static const struct vb_rs_map map = {
		.offset = 0x0102030405060708, .area = {0x1112131415161718, 0x21222324, 0x31323334},
	};
	static const uint8_t big[VB_RS_MAP_BYTES] = {
		1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
		0x21, 0x22, 0x23, 0x24, 0x31, 0x32, 0x33, 0x34,
	}, little[VB_RS_MAP_BYTES] = {
		8, 7, 6, 5, 4, 3, 2, 1, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,
		0x24, 0x23, 0x22, 0x21, 0x34, 0x33, 0x32, 0x31,
	};
	bool here_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	uint8_t out[VB_RS_MAP_BYTES];
	struct vb_rs_area area;
	struct vb_rs_map read;

	vb_rs_map_put(out, &map, !here_big);
	assert_memory_equal(out, big, sizeof(big));
	vb_rs_map_put(out, &map, here_big);
	assert_memory_equal(out, little, sizeof(little));
	vb_rs_area_put(out, &map.area, here_big);
	assert_memory_equal(out, little + 8, VB_RS_AREA_BYTES);
	vb_rs_map_get(&read, here_big ? big : little);
	assert_int_equal(read.offset, map.offset);
	assert_int_equal(read.area.addr, map.area.addr);
	vb_rs_area_get(&area, (here_big ? big : little) + 8);
	assert_int_equal(area.addr, map.area.addr);
	assert_int_equal(area.key, map.area.key);
	assert_int_equal(area.length, map.area.length);
}

/* Each message as the 32 bits of an immediate: three say what it is. */
TEST(test_each_message)
{
	assert_int_equal(vb_rs_msg(VB_RS_DATA, 2048), 0x00000800);
	assert_int_equal(vb_rs_msg(VB_RS_WRITE, 1), 0x40000001);
	assert_int_equal(vb_rs_msg(VB_RS_CREDIT, 0x17f), 0x8000017f);
	assert_int_equal(vb_rs_msg(VB_RS_MAPPED, 3), 0xc0000003);
	assert_int_equal(vb_rs_msg(VB_RS_CONTROL, VB_RS_DISCONNECT), 0xe0000000);
	assert_int_equal(vb_rs_msg(VB_RS_CONTROL, VB_RS_KEEPALIVE), 0xe0000001);
	/* The largest transfer. */
	assert_int_equal(vb_rs_msg_data(vb_rs_msg(VB_RS_DATA, VB_RS_DATA_MAX)), 0x1fffffff);
}

/* Up to 128 as it is; above that in steps of 256. */
TEST(test_counts_of_maps)
{
	static const struct {
		unsigned asked;
		uint16_t said;
	} rows[] = {{0, 0}, {1, 1}, {127, 127}, {128, 128}, {129, 128}, {255, 128}, {256, 256},
		    {511, 256}, {512, 512}, {32512, 32512}, {100000, 32512}};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(vb_rs_maps_round(rows[i].asked), rows[i].said);
}

TEST(test_from)
{
	static const uint8_t ipv4[] = {4, 8, 0x12, 0x34, 192, 0, 2, 1};
	static const uint8_t ipv6[] = {6, 24, 0x12, 0x34, 0xa, 0xb, 0xc, 0xd,
				       0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9};
	uint8_t out[VB_RS_FROM_BYTES_MAX];
	struct vb_rs_from from;

	assert_int_equal(vb_rs_from_parse(&from, ipv4, sizeof(ipv4)), sizeof(ipv4));
	assert_true(from.ipv4);
	assert_int_equal(from.port, 0x1234);
	assert_int_equal(vb_rs_from_emit(&from, out), sizeof(ipv4));
	assert_memory_equal(out, ipv4, sizeof(ipv4));
	assert_int_equal(vb_rs_from_parse(&from, ipv6, sizeof(ipv6)), sizeof(ipv6));
	assert_memory_equal(from.addr, ipv6 + 8, 16);
	assert_int_equal(vb_rs_from_emit(&from, out), sizeof(ipv6));
	assert_memory_equal(out, ipv6, sizeof(ipv6));
	assert_int_equal(vb_rs_from_parse(&from, ipv6, sizeof(ipv6) - 1), 0);
	assert_int_equal(vb_rs_from_parse(&from, ipv4, sizeof(ipv4) - 1), 0);
}

TEST(test_first_of_ipv6)
{
	static const uint8_t data[] = {0x55, 0x55, 0x55, 0x55, 6, 0, 28, 0, 0, 1, 2, 3, 0x20, 1,
				       0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 'h', 'i'};
	uint8_t out[VB_RS_FIRST_BYTES_MAX];
	struct vb_rs_first first;

	assert_int_equal(vb_rs_first_parse(&first, data, sizeof(data)), VB_RS_FIRST_IPV6_BYTES);
	assert_false(first.ipv4);
	assert_false(first.answers);
	assert_int_equal(first.qpn, 0x010203);
	assert_int_equal(vb_rs_first_emit(&first, out), VB_RS_FIRST_IPV6_BYTES);
	assert_memory_equal(out, data, sizeof(out));
}
