/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the headers of frames are, of all kinds and of all lengths. */
#include <stdlib.h>

#include "eth/parse.h"
#include "frames.h"
#include "group.h"
#include "wire/bytes.h"

static struct vb_eth_frame parsed(struct frame *frame)
{
	struct vb_eth_frame out;

	frame_close(frame);
	assert_true(vb_eth_parse(&out, frame->octets, frame->bytes));
	assert_ptr_equal(out.octets, frame->octets);
	assert_int_equal(out.bytes, frame->bytes);
	return out;
}

static void assert_no_tunnel(const struct vb_eth_frame *frame)
{
	static const struct vb_eth_headers none;

	assert_int_equal(frame->tunnel, VB_TUNNEL_NONE);
	assert_int_equal(frame->tunnel_at, 0);
	assert_false(frame->has_inner);
	assert_memory_equal(&frame->inner, &none, sizeof(none));
}

TEST(test_ethernet)
{
	struct frame frame = frame_of(0x0806);
	struct vb_eth_frame out;

	frame_data(&frame, 28);
	out = parsed(&frame);
	assert_true(out.outer.has_l2);
	assert_int_equal(out.outer.l2_at, 0);
	assert_int_equal(out.outer.ethertype, 0x0806);
	assert_int_equal(out.outer.vlans, 0);
	assert_int_equal(out.outer.l3, VB_L3_NONE);
	assert_int_equal(out.outer.l3_at, 0);
	assert_int_equal(out.outer.l4_at, 0);
	assert_int_equal(out.outer.proto, 0);
	assert_int_equal(out.outer.payload_at, 14);
	assert_int_equal(out.outer.end, 42);
	assert_no_tunnel(&out);
	for (uint32_t bytes = 0; bytes < VB_ETH_HEADER_BYTES; bytes++)
		assert_false(vb_eth_parse(&out, frame.octets, bytes));
	assert_true(vb_eth_parse(&out, frame.octets, VB_ETH_HEADER_BYTES));
	assert_int_equal(out.outer.end, VB_ETH_HEADER_BYTES);
}

/* The tag that tells is the first; the type is behind the last. */
TEST(test_vlans)
{
	for (unsigned tags = 1; tags <= VB_ETH_VLANS_MAX + 1; tags++) {
		struct frame frame = frame_of(VB_ETHERTYPE_IPV4);
		struct vb_eth_frame out;

		for (unsigned i = 0; i < tags; i++)
			frame_vlan(&frame, i ? VB_ETHERTYPE_VLAN : VB_ETHERTYPE_QINQ,
				   (uint16_t)(0xa123 + i));
		frame_ipv4(&frame, VB_IPPROTO_UDP, 0);
		frame_udp(&frame, FRAME_DPORT);
		out = parsed(&frame);
		assert_int_equal(out.outer.vlan_tci, 0xa123);
		if (tags > VB_ETH_VLANS_MAX) {
			assert_int_equal(out.outer.vlans, VB_ETH_VLANS_MAX);
			assert_int_equal(out.outer.ethertype, VB_ETHERTYPE_VLAN);
			assert_int_equal(out.outer.l3, VB_L3_NONE);
		} else {
			assert_int_equal(out.outer.vlans, tags);
			assert_int_equal(out.outer.ethertype, VB_ETHERTYPE_IPV4);
			assert_int_equal(out.outer.l3_at, 14 + 4 * tags);
			assert_int_equal(out.outer.l4_at, 34 + 4 * tags);
		}
	}
}

/* The end is where IP has it, and the padding of a short frame is behind that. */
TEST(test_ipv4)
{
	struct frame frame = frame_of_ipv4(VB_IPPROTO_UDP, 0);
	struct vb_eth_frame out;

	frame_udp(&frame, FRAME_DPORT);
	frame_data(&frame, 3);
	out = parsed(&frame);
	frame_data(&frame, 15);
	assert_true(vb_eth_parse(&out, frame.octets, frame.bytes));
	assert_int_equal(out.outer.l3, VB_L3_IPV4);
	assert_int_equal(out.outer.l3_at, 14);
	assert_int_equal(out.outer.proto, VB_IPPROTO_UDP);
	assert_int_equal(out.outer.l4_at, 34);
	assert_int_equal(out.outer.payload_at, 42);
	assert_int_equal(out.outer.end, 45);
	assert_false(out.outer.fragment);
	assert_false(out.outer.first_fragment);
	assert_true(out.outer.whole);
	assert_no_tunnel(&out);

	vb_be16_put(frame.octets + 16, 0); /* left to who cuts segments */
	assert_true(vb_eth_parse(&out, frame.octets, frame.bytes));
	assert_int_equal(out.outer.end, frame.bytes);
	assert_false(out.outer.whole);
	vb_be16_put(frame.octets + 16, 0xffff);
	assert_true(vb_eth_parse(&out, frame.octets, frame.bytes));
	assert_int_equal(out.outer.end, frame.bytes);
	assert_int_equal(out.outer.l4_at, 34);
	assert_false(out.outer.whole);
	for (uint16_t bytes = 0; bytes < 50; bytes++) {
		vb_be16_put(frame.octets + 16, bytes);
		assert_true(vb_eth_parse_template(&out, frame.octets, frame.bytes));
		assert_int_equal(out.outer.end, frame.bytes);
		assert_int_equal(out.outer.l4_at, 34);
	}
}

TEST(test_ipv4_options)
{
	struct frame frame = frame_of_ipv4(VB_IPPROTO_TCP, 0);
	struct vb_eth_frame out;

	frame.octets[14] = 0x4f;
	frame_room(&frame, 40);
	frame_tcp(&frame, 10);
	frame_data(&frame, 5);
	out = parsed(&frame);
	assert_int_equal(out.outer.l4_at, 74);
	assert_int_equal(out.outer.payload_at, 134);
	assert_int_equal(out.outer.end, 139);
	/* RFC 9293 3.1: a data offset within the header itself is none. */
	for (uint8_t words = 0; words < 5; words++) {
		frame.octets[74 + 12] = (uint8_t)(words << 4);
		assert_int_equal(parsed(&frame).outer.l4_at, 0);
	}
}

TEST(test_ipv4_wrong)
{
	static const struct {
		unsigned at;
		uint8_t octet;
	} wrong[] = { { 14, 0x55 }, { 14, 0x44 }, { 14, 0x40 }, { 14, 0x4f }, { 17, 19 } };

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct frame frame = frame_of_ipv4(VB_IPPROTO_UDP, 0);
		struct vb_eth_frame out;

		frame_udp(&frame, FRAME_DPORT);
		frame_close(&frame);
		frame.octets[wrong[i].at] = wrong[i].octet;
		assert_true(vb_eth_parse(&out, frame.octets, frame.bytes));
		assert_int_equal(out.outer.l3, VB_L3_NONE);
		assert_int_equal(out.outer.l3_at, 0);
		assert_int_equal(out.outer.l4_at, 0);
		assert_int_equal(out.outer.payload_at, 14);
		assert_int_equal(out.outer.end, frame.bytes);
	}
}

TEST(test_ipv4_fragments)
{
	static const struct {
		uint16_t field;
		bool fragment, first;
	} rows[] = {
		{ 0x4000, false, false }, { 0x8000, false, false }, { 0x2000, true, true },
		{ 0x0001, true, false },  { 0x2001, true, false },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct frame frame = frame_of_ipv4(VB_IPPROTO_UDP, rows[i].field);
		struct vb_eth_frame out;

		frame_udp(&frame, VB_UDP_VXLAN);
		frame_vxlan(&frame);
		frame_eth(&frame, frame_dst_mac, 0x0806);
		out = parsed(&frame);
		assert_int_equal(out.outer.fragment, rows[i].fragment);
		assert_int_equal(out.outer.first_fragment, rows[i].first);
		assert_int_equal(out.outer.proto, VB_IPPROTO_UDP);
		assert_int_equal(out.outer.l4_at, rows[i].fragment && !rows[i].first ? 0 : 34);
		assert_int_equal(out.outer.payload_at,
				 rows[i].fragment && !rows[i].first ? 34 : 42);
		assert_int_equal(out.tunnel, rows[i].fragment ? VB_TUNNEL_NONE : VB_TUNNEL_VXLAN);
	}
}

TEST(test_ipv6)
{
	struct frame frame = frame_of_ipv6(0);
	struct vb_eth_frame out;

	frame_extension(&frame, 60, 1);
	frame_extension(&frame, 43, 0);
	frame_extension(&frame, VB_IPPROTO_TCP, 2);
	frame_tcp(&frame, 3);
	frame_data(&frame, 9);
	out = parsed(&frame);
	assert_int_equal(out.outer.l3, VB_L3_IPV6);
	assert_int_equal(out.outer.l3_at, 14);
	assert_int_equal(out.outer.proto, VB_IPPROTO_TCP);
	assert_int_equal(out.outer.l4_at, 14 + 40 + 16 + 8 + 24);
	assert_int_equal(out.outer.payload_at, out.outer.l4_at + 32);
	assert_int_equal(out.outer.end, out.outer.payload_at + 9);
	frame.octets[14] = 0x50;
	assert_true(vb_eth_parse(&out, frame.octets, frame.bytes));
	assert_int_equal(out.outer.l3, VB_L3_NONE);
}

TEST(test_ipv6_extensions)
{
	/* Too many, one that is cut off, none next. */
	for (unsigned count = 1; count <= VB_ETH_EXTENSIONS_MAX + 1; count++) {
		struct frame frame = frame_of_ipv6(60);
		struct vb_eth_frame out;

		for (unsigned i = 1; i <= count; i++)
			frame_extension(&frame, i < count ? 60 : VB_IPPROTO_UDP, 0);
		frame_udp(&frame, FRAME_DPORT);
		out = parsed(&frame);
		if (count > VB_ETH_EXTENSIONS_MAX) {
			assert_int_equal(out.outer.proto, 60);
			assert_int_equal(out.outer.l4_at, 0);
			continue;
		}
		assert_int_equal(out.outer.proto, VB_IPPROTO_UDP);
		assert_int_equal(out.outer.l4_at, 54 + 8 * count);
		frame.octets[46 + 8 * count + 1] = 9;
		assert_true(vb_eth_parse(&out, frame.octets, frame.bytes));
		assert_int_equal(out.outer.proto, 60);
		assert_int_equal(out.outer.l4_at, 0);
		frame.octets[46 + 8 * count + 1] = 0;
		frame.octets[46 + 8 * count] = VB_IPPROTO_NONE;
		assert_true(vb_eth_parse(&out, frame.octets, frame.bytes));
		assert_int_equal(out.outer.proto, VB_IPPROTO_NONE);
		assert_int_equal(out.outer.l4_at, 0);
		assert_int_equal(out.outer.end, frame.bytes);
	}
}

TEST(test_ipv6_fragments)
{
	static const struct {
		uint16_t offset;
		bool more, fragment, first;
	} rows[] = {
		{ 0, false, false, false }, /* RFC 6946: a whole packet */
		{ 0, true, true, true },
		{ 8, false, true, false },
		{ 16, true, true, false },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct frame frame = frame_of_ipv6(44);
		struct vb_eth_frame out;

		frame_ipv6_fragment(&frame, VB_IPPROTO_UDP, rows[i].offset, rows[i].more);
		frame_udp(&frame, FRAME_DPORT);
		out = parsed(&frame);
		assert_int_equal(out.outer.fragment, rows[i].fragment);
		assert_int_equal(out.outer.first_fragment, rows[i].first);
		assert_int_equal(out.outer.proto, VB_IPPROTO_UDP);
		assert_int_equal(out.outer.l4_at, rows[i].fragment && !rows[i].first ? 0 : 62);
	}
}

/* A header that is not all there is none; of other protocols one octet is enough. */
TEST(test_l4_cut)
{
	static const struct {
		uint8_t proto;
		uint32_t least;
		uint32_t header;
	} rows[] = {
		{ VB_IPPROTO_TCP, 20, 20 }, { VB_IPPROTO_UDP, 8, 8 },	{ VB_IPPROTO_ESP, 8, 8 },
		{ VB_IPPROTO_GRE, 4, 4 },   { VB_IPPROTO_SCTP, 12, 12 }, { VB_IPPROTO_ICMP, 1, 0 },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (uint32_t bytes = 0; bytes < 24; bytes++) {
			struct frame frame = frame_of_ipv4(rows[i].proto, 0);
			struct vb_eth_frame out;

			frame_room(&frame, 24);
			frame.octets[34 + 12] = 0x50; /* a TCP header of 20 octets */
			frame.bytes = 34 + bytes;
			out = parsed(&frame);
			assert_int_equal(out.outer.l4_at, bytes < rows[i].least ? 0 : 34);
			assert_int_equal(out.outer.payload_at,
					 bytes < rows[i].least ? 34 : 34 + rows[i].header);
		}
	}
}

TEST(test_vxlan)
{
	struct frame frame = frame_of_ipv6(VB_IPPROTO_UDP);
	struct vb_eth_frame out;

	frame_udp(&frame, VB_UDP_VXLAN);
	frame_vxlan(&frame);
	frame_eth(&frame, frame_dst_mac, VB_ETHERTYPE_IPV4);
	frame_vlan(&frame, VB_ETHERTYPE_VLAN, 77);
	frame_ipv4(&frame, VB_IPPROTO_TCP, 0);
	frame_tcp(&frame, 0);
	frame_data(&frame, 1);
	out = parsed(&frame);
	assert_int_equal(out.outer.payload_at, 62);
	assert_int_equal(out.tunnel, VB_TUNNEL_VXLAN);
	assert_int_equal(out.tunnel_at, 62);
	assert_true(out.has_inner);
	assert_true(out.inner.has_l2);
	assert_int_equal(out.inner.l2_at, 70);
	assert_int_equal(out.inner.vlans, 1);
	assert_int_equal(out.inner.vlan_tci, 77);
	assert_int_equal(out.inner.l3, VB_L3_IPV4);
	assert_int_equal(out.inner.l3_at, 88);
	assert_int_equal(out.inner.l4_at, 108);
	assert_int_equal(out.inner.payload_at, 128);
	assert_int_equal(out.inner.end, 129);

	frame.octets[62] = 0; /* no I flag */
	assert_true(vb_eth_parse(&out, frame.octets, frame.bytes));
	assert_no_tunnel(&out);
	frame.octets[62] = 8;
	vb_be16_put(frame.octets + 18, 8 + 8 + 13); /* the inner frame is not even a header */
	assert_true(vb_eth_parse(&out, frame.octets, frame.bytes));
	assert_int_equal(out.tunnel, VB_TUNNEL_VXLAN);
	assert_false(out.has_inner);
}

/* With every combination of its flags. */
TEST(test_gre)
{
	for (unsigned i = 0; i < 8; i++) {
		uint16_t flags = (uint16_t)((i & 1) << 15 | (i & 2) << 12 | (i & 4) << 10);
		uint32_t bytes = 4 + 4 * ((i & 1) + (i >> 1 & 1) + (i >> 2 & 1));
		struct frame frame = frame_of_ipv4(VB_IPPROTO_GRE, 0);
		struct vb_eth_frame out;

		frame_gre(&frame, flags, VB_ETHERTYPE_IPV6);
		frame_ipv6(&frame, VB_IPPROTO_UDP);
		frame_udp(&frame, FRAME_DPORT);
		out = parsed(&frame);
		assert_int_equal(out.tunnel, VB_TUNNEL_GRE);
		assert_int_equal(out.tunnel_at, 34);
		assert_int_equal(out.outer.payload_at, 34 + bytes);
		assert_true(out.has_inner);
		assert_false(out.inner.has_l2);
		assert_int_equal(out.inner.ethertype, VB_ETHERTYPE_IPV6);
		assert_int_equal(out.inner.l3_at, 34 + bytes);
		assert_int_equal(out.inner.l4_at, 34 + bytes + 40);

		frame.octets[35] = 1; /* of version 1 nothing is known */
		assert_true(vb_eth_parse(&out, frame.octets, frame.bytes));
		assert_int_equal(out.tunnel, VB_TUNNEL_GRE);
		assert_false(out.has_inner);
	}
}

TEST(test_gre_ethernet)
{
	struct frame frame = frame_of_ipv4(VB_IPPROTO_GRE, 0);
	struct vb_eth_frame out;

	frame_gre(&frame, 0x2000, VB_ETHERTYPE_TEB);
	frame_eth(&frame, frame_dst_mac, 0x0806);
	out = parsed(&frame);
	assert_int_equal(out.tunnel, VB_TUNNEL_GRE);
	assert_true(out.has_inner);
	assert_true(out.inner.has_l2);
	assert_int_equal(out.inner.l2_at, 42);
	assert_int_equal(out.inner.ethertype, 0x0806);
}

/* By itself, in UDP and in GRE; with several labels. */
TEST(test_mpls)
{
	for (unsigned way = 0; way < 3; way++) {
		struct frame frame = { .bytes = 0 };
		struct vb_eth_frame out;
		uint32_t at;

		frame_eth(&frame, frame_dst_mac,
			  way ? VB_ETHERTYPE_IPV4 : VB_ETHERTYPE_MPLS_MC);
		if (way)
			frame_ipv4(&frame, way == 1 ? VB_IPPROTO_UDP : VB_IPPROTO_GRE, 0);
		if (way == 1)
			frame_udp(&frame, VB_UDP_MPLS);
		if (way == 2)
			frame_gre(&frame, 0, VB_ETHERTYPE_MPLS);
		at = frame.bytes;
		frame_label(&frame, 16, false);
		frame_label(&frame, 17, true);
		frame_ipv4(&frame, VB_IPPROTO_ICMP, 0);
		frame_data(&frame, 8);
		out = parsed(&frame);
		assert_int_equal(out.tunnel, VB_TUNNEL_MPLS);
		assert_int_equal(out.tunnel_at, at);
		assert_true(out.has_inner);
		assert_false(out.inner.has_l2);
		assert_int_equal(out.inner.ethertype, VB_ETHERTYPE_IPV4);
		assert_int_equal(out.inner.l3_at, at + 8);
		assert_int_equal(out.inner.l4_at, at + 28);
		assert_int_equal(out.outer.l3, way ? VB_L3_IPV4 : VB_L3_NONE);

		frame.octets[at + 8] = 0; /* neither version: something else */
		assert_true(vb_eth_parse(&out, frame.octets, frame.bytes));
		assert_int_equal(out.tunnel, VB_TUNNEL_MPLS);
		assert_false(out.has_inner);
		frame.octets[at + 8] = 0x45;
		frame.octets[at + 6] &= 0xfe; /* no bottom in sight */
		vb_be32_put(frame.octets + at + 8, 0x45000000);
		assert_true(vb_eth_parse(&out, frame.octets, frame.bytes));
		assert_false(out.has_inner);
	}
}

/* What has no bottom within the limit is not looked into. */
TEST(test_mpls_labels)
{
	for (unsigned labels = 1; labels <= VB_ETH_LABELS_MAX + 1; labels++) {
		struct frame frame = frame_of(VB_ETHERTYPE_MPLS);
		struct vb_eth_frame out;

		for (unsigned i = 1; i <= labels; i++)
			frame_label(&frame, 100 + i, i == labels);
		frame_ipv6(&frame, VB_IPPROTO_NONE);
		out = parsed(&frame);
		assert_int_equal(out.tunnel, VB_TUNNEL_MPLS);
		assert_int_equal(out.has_inner, labels <= VB_ETH_LABELS_MAX);
	}
}

/* Cut off anywhere, nothing is found beyond the end, and what was found before stays. */
TEST(test_cut_anywhere)
{
	struct frame frame = frame_of(VB_ETHERTYPE_IPV4);
	struct vb_eth_frame whole;

	frame_vlan(&frame, VB_ETHERTYPE_VLAN, 5);
	frame_ipv4(&frame, VB_IPPROTO_UDP, 0);
	frame_udp(&frame, VB_UDP_VXLAN);
	frame_vxlan(&frame);
	frame_eth(&frame, frame_dst_mac, VB_ETHERTYPE_IPV6);
	frame_ipv6(&frame, 0);
	frame_extension(&frame, VB_IPPROTO_TCP, 0);
	frame_tcp(&frame, 2);
	whole = parsed(&frame);
	assert_int_equal(whole.inner.payload_at, frame.bytes);
	for (uint32_t bytes = VB_ETH_HEADER_BYTES; bytes < frame.bytes; bytes++) {
		uint8_t *copy = malloc(bytes);
		struct vb_eth_frame out;

		assert_non_null(copy);
		memcpy(copy, frame.octets, bytes);
		assert_true(vb_eth_parse(&out, copy, bytes));
		assert_int_equal(out.outer.vlans, bytes >= 18);
		assert_int_equal(out.outer.l3, bytes >= 38 ? VB_L3_IPV4 : VB_L3_NONE);
		assert_int_equal(out.outer.l4_at, bytes >= 46 ? 38 : 0);
		assert_int_equal(out.tunnel, bytes >= 54 ? VB_TUNNEL_VXLAN : VB_TUNNEL_NONE);
		assert_int_equal(out.has_inner, bytes >= 68);
		assert_int_equal(out.inner.l3, bytes >= 108 ? VB_L3_IPV6 : VB_L3_NONE);
		assert_int_equal(out.inner.l4_at, 0);
		assert_true(out.outer.payload_at <= bytes);
		assert_true(out.inner.payload_at <= bytes);
		free(copy);
	}
}
