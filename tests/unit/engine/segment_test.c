/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/check.h"
#include "base/psn.h"
#include "engine/segment.h"
#include "group.h"

static struct vb_wqe make(enum vb_kind kind, uint32_t bytes, uint32_t mtu, uint32_t psn)
{
	struct vb_wqe wqe = { .kind = (uint8_t)kind, .bytes = bytes, .psn = psn };

	wqe.packets = vb_wqe_is_atomic(&wqe) ? 1 : vb_packets(bytes, mtu);
	return wqe;
}

/* IBA 9.7.2: a message takes as many PSNs as it has packets, and at least one. */
TEST(a_message_takes_at_least_one_psn)
{
	static const struct {
		uint32_t bytes, mtu, packets;
	} rows[] = {
		{ 0, 1024, 1 },	     { 1, 1024, 1 },	   { 1023, 1024, 1 },
		{ 1024, 1024, 1 },   { 1025, 1024, 2 },	   { 2048, 1024, 2 },
		{ 2049, 1024, 3 },   { 1u << 31, 256, 1u << 23 }, { (1u << 31) - 1, 256, 1u << 23 },
		{ 1u << 31, 4096, 1u << 19 },
	};

	for (unsigned i = 0; i < VB_ARRAY_LEN(rows); i++)
		assert_int_equal(vb_packets(rows[i].bytes, rows[i].mtu), rows[i].packets);
}

static void check_all_packets(enum vb_kind kind, uint8_t extra, uint32_t bytes, uint32_t mtu)
{
	struct vb_wqe wqe = make(kind, bytes, mtu, 0xfffffe);
	uint32_t offset = 0;

	wqe.extra = extra;
	for (uint32_t i = 0; i < wqe.packets; i++) {
		const struct vb_op_info *info;
		struct vb_segment seg;
		bool last = i + 1 == wqe.packets;

		vb_segment_at(&seg, VB_RC, &wqe, vb_psn_add(wqe.psn, i), mtu);
		info = vb_op_info(seg.opcode);
		assert_int_equal(info->kind, kind);
		assert_int_equal(info->pos, (i == 0 ? VB_P_FIRST : 0) | (last ? VB_P_LAST : 0));
		assert_int_equal(info->headers & VB_H_IMM, last ? extra : 0);
		assert_int_equal(seg.first, i == 0);
		assert_int_equal(seg.last, last);
		assert_int_equal(seg.span, 1);
		assert_int_equal(seg.offset, offset);
		assert_true(last || seg.bytes == mtu);
		offset += seg.bytes;
	}
	assert_int_equal(offset, bytes);
}

TEST(packets_cover_the_message)
{
	static const uint32_t mtus[] = { 256, 512, 1024, 2048, 4096 };

	for (unsigned i = 0; i < VB_ARRAY_LEN(mtus); i++) {
		uint32_t mtu = mtus[i];
		const uint32_t bytes[] = { 0, 1, mtu - 1, mtu, mtu + 1, 2 * mtu - 1, 2 * mtu,
					   2 * mtu + 1, 3 * mtu, 7 * mtu + 13 };

		for (unsigned j = 0; j < VB_ARRAY_LEN(bytes); j++) {
			check_all_packets(VB_K_SEND, 0, bytes[j], mtu);
			check_all_packets(VB_K_SEND, VB_H_IMM, bytes[j], mtu);
			check_all_packets(VB_K_WRITE, 0, bytes[j], mtu);
			check_all_packets(VB_K_WRITE, VB_H_IMM, bytes[j], mtu);
		}
	}
}

/* The longest message there is takes half of all PSNs at the smallest MTU. */
TEST(the_longest_message_ends_where_it_should)
{
	struct vb_wqe wqe = make(VB_K_SEND, 1u << 31, 256, 0x800001);
	struct vb_segment seg;

	vb_segment_at(&seg, VB_RC, &wqe, 0x000000, 256);
	assert_int_equal(seg.offset, ((1u << 23) - 1) * 256u);
	assert_int_equal(seg.bytes, 256);
	assert_true(seg.last && !seg.first);
	assert_true(vb_wqe_has_psn(&wqe, 0x800001));
	assert_true(vb_wqe_has_psn(&wqe, 0x000000));
	assert_false(vb_wqe_has_psn(&wqe, 0x000001));
	assert_false(vb_wqe_has_psn(&wqe, 0x800000));
	wqe.bytes--;
	vb_segment_at(&seg, VB_RC, &wqe, 0x000000, 256);
	assert_int_equal(seg.bytes, 255);
}

TEST(a_read_is_asked_for_in_pieces_that_end_at_fixed_places)
{
	/* 200000 octets at 1024: 196 packets, pieces of 64. */
	static const struct {
		uint32_t index, span, bytes;
		bool first, last;
	} rows[] = {
		{ 0, 64, 65536, true, false },	 { 1, 63, 64512, false, false },
		{ 63, 1, 1024, false, false },	 { 64, 64, 65536, false, false },
		{ 100, 28, 28672, false, false }, { 127, 1, 1024, false, false },
		{ 128, 64, 65536, false, false }, { 192, 4, 3392, false, true },
		{ 194, 2, 1344, false, true },	 { 195, 1, 320, false, true },
	};
	struct vb_wqe wqe = make(VB_K_READ_REQ, 200000, 1024, 0xffffc0);

	assert_int_equal(wqe.packets, 196);
	for (unsigned i = 0; i < VB_ARRAY_LEN(rows); i++) {
		struct vb_segment seg;

		vb_segment_at(&seg, VB_RC, &wqe, vb_psn_add(wqe.psn, rows[i].index), 1024);
		assert_int_equal(seg.span, rows[i].span);
		assert_int_equal(seg.bytes, rows[i].bytes);
		assert_int_equal(seg.offset, rows[i].index * 1024);
		assert_int_equal(seg.first, rows[i].first);
		assert_int_equal(seg.last, rows[i].last);
		assert_int_equal(seg.opcode, VB_OP_RC_READ_REQ);
	}
}

TEST(small_reads_are_one_piece)
{
	static const uint32_t bytes[] = { 0, 1, 4096, 65536 };

	for (unsigned i = 0; i < VB_ARRAY_LEN(bytes); i++) {
		struct vb_wqe wqe = make(VB_K_READ_REQ, bytes[i], 256, 5);
		struct vb_segment seg;

		vb_segment_at(&seg, VB_RC, &wqe, 5, 256);
		assert_true(seg.first && seg.last);
		assert_int_equal(seg.span, wqe.packets);
		assert_int_equal(seg.bytes, bytes[i]);
	}
}

TEST(an_atomic_is_one_packet_without_payload)
{
	static const struct {
		enum vb_kind kind;
		uint8_t opcode;
	} rows[] = { { VB_K_CMP_SWP, VB_OP_RC_CMP_SWP }, { VB_K_FETCH_ADD, VB_OP_RC_FETCH_ADD } };

	for (unsigned i = 0; i < VB_ARRAY_LEN(rows); i++) {
		struct vb_wqe wqe = make(rows[i].kind, 8, 256, 9);
		struct vb_segment seg;

		vb_segment_at(&seg, VB_RC, &wqe, 9, 256);
		assert_int_equal(seg.opcode, rows[i].opcode);
		assert_int_equal(seg.bytes, 0);
		assert_int_equal(seg.span, 1);
		assert_true(seg.first && seg.last);
	}
}

TEST(the_transport_is_in_the_opcode)
{
	struct vb_wqe wqe = make(VB_K_SEND, 100, 256, 0);
	struct vb_segment seg;

	vb_segment_at(&seg, VB_UC, &wqe, 0, 256);
	assert_int_equal(seg.opcode, VB_OP_UC_SEND_ONLY);
	vb_segment_at(&seg, VB_UD, &wqe, 0, 256);
	assert_int_equal(seg.opcode, VB_OP_UD_SEND_ONLY);
	wqe.extra = VB_H_IMM;
	vb_segment_at(&seg, VB_UD, &wqe, 0, 256);
	assert_int_equal(seg.opcode, VB_OP_UD_SEND_ONLY_IMM);
}
