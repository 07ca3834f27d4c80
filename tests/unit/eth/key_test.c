/* SPDX-License-Identifier: BSD-2-Clause */
/* What flow rules see of frames: every field of every kind of header, at both levels. */
#include "eth/key.h"
#include "frames.h"
#include "group.h"
#include "wire/bytes.h"

static union vb_eth_key key_of(struct frame *frame)
{
	struct vb_eth_frame parsed;
	union vb_eth_key key;

	frame_close(frame);
	assert_true(vb_eth_parse(&parsed, frame->octets, frame->bytes));
	memset(&key, 0xa5, sizeof(key));
	vb_eth_key_outer(&key.outer, &parsed);
	vb_eth_key_inner(&key.inner, &parsed);
	return key;
}

static void assert_nothing(const struct vb_eth_level *level)
{
	static const struct vb_eth_level none;

	assert_memory_equal(level, &none, sizeof(none));
}

/* A key with this alone in it. */
static void assert_only(const struct vb_eth_level *level, const struct vb_eth_level *expected)
{
	for (unsigned i = 0; i < sizeof(*level); i++)
		assert_int_equal(((const uint8_t *)level)[i], ((const uint8_t *)expected)[i]);
}

static struct vb_eth_level ethernet(uint16_t ethertype)
{
	struct vb_eth_level level = { .bits = VB_KEY_L2 };

	memcpy(level.dst_mac, frame_dst_mac, 6);
	memcpy(level.src_mac, frame_src_mac, 6);
	vb_be16_put(level.ethertype, ethertype);
	return level;
}

static void add_ipv4(struct vb_eth_level *level, uint8_t proto)
{
	level->version = 4;
	level->proto = proto;
	level->tos = FRAME_TOS;
	level->ttl = FRAME_TTL;
	vb_be32_put(level->src_ip, FRAME_SRC_IPV4);
	vb_be32_put(level->dst_ip, FRAME_DST_IPV4);
}

static void add_ipv6(struct vb_eth_level *level, uint8_t proto)
{
	level->version = 6;
	level->proto = proto;
	level->tos = FRAME_TOS;
	level->ttl = FRAME_TTL;
	vb_be32_put(level->flow_label, FRAME_FLOW_LABEL);
	for (unsigned i = 0; i < 16; i++) {
		level->src_ip[i] = (uint8_t)(0x20 + i);
		level->dst_ip[i] = (uint8_t)(0x40 + i);
	}
}

static void add_ports(struct vb_eth_level *level, uint16_t dport)
{
	level->bits |= VB_KEY_L4;
	vb_be16_put(level->l4, FRAME_SPORT);
	vb_be16_put(level->l4 + 2, dport);
}

TEST(test_ethernet)
{
	struct vb_eth_level expected = ethernet(0x0806);
	struct frame frame = frame_of(0x0806);
	union vb_eth_key key;

	key = key_of(&frame);
	assert_only(&key.outer, &expected);
	assert_nothing(&key.inner);
}

TEST(test_vlan)
{
	struct vb_eth_level expected = ethernet(0x0806);
	struct frame frame = frame_of(0x0806);
	union vb_eth_key key;

	frame_vlan(&frame, VB_ETHERTYPE_QINQ, 0xb123);
	frame_vlan(&frame, VB_ETHERTYPE_VLAN, 0x0001);
	key = key_of(&frame);
	expected.bits |= VB_KEY_VLAN;
	vb_be16_put(expected.tci, 0xb123);
	assert_only(&key.outer, &expected);
}

TEST(test_ipv4_udp)
{
	struct vb_eth_level expected = ethernet(VB_ETHERTYPE_IPV4);
	struct frame frame = frame_of_ipv4(VB_IPPROTO_UDP, 0x4000);
	union vb_eth_key key;

	frame_udp(&frame, FRAME_DPORT);
	key = key_of(&frame);
	add_ipv4(&expected, VB_IPPROTO_UDP);
	add_ports(&expected, FRAME_DPORT);
	expected.ip_flags = 2; /* DF */
	assert_only(&key.outer, &expected);
	assert_nothing(&key.inner);

	vb_be16_put(frame.octets + 20, 0x8000); /* the bit that means nothing */
	key = key_of(&frame);
	assert_int_equal(key.outer.ip_flags, 1);
}

/* Behind the first fragment there are no ports, but there is a protocol. */
TEST(test_fragments)
{
	for (unsigned first = 0; first < 2; first++) {
		struct vb_eth_level expected = ethernet(VB_ETHERTYPE_IPV4);
		struct frame frame = frame_of_ipv4(VB_IPPROTO_TCP, first ? 0x2000 : 0x2004);
		union vb_eth_key key;

		frame_tcp(&frame, 0);
		key = key_of(&frame);
		add_ipv4(&expected, VB_IPPROTO_TCP);
		expected.ip_flags = 4; /* MF */
		if (first)
			add_ports(&expected, FRAME_DPORT);
		assert_only(&key.outer, &expected);
	}
}

/* The protocol is the one behind the extension headers. */
TEST(test_ipv6_tcp)
{
	struct vb_eth_level expected = ethernet(VB_ETHERTYPE_IPV6);
	struct frame frame = frame_of_ipv6(60);
	union vb_eth_key key;

	frame_extension(&frame, VB_IPPROTO_TCP, 0);
	frame_tcp(&frame, 0);
	key = key_of(&frame);
	add_ipv6(&expected, VB_IPPROTO_TCP);
	add_ports(&expected, FRAME_DPORT);
	assert_only(&key.outer, &expected);
}

TEST(test_esp)
{
	struct vb_eth_level expected = ethernet(VB_ETHERTYPE_IPV4);
	struct frame frame = frame_of_ipv4(VB_IPPROTO_ESP, 0);
	union vb_eth_key key;

	frame_esp(&frame);
	key = key_of(&frame);
	add_ipv4(&expected, VB_IPPROTO_ESP);
	expected.bits |= VB_KEY_L4;
	vb_be32_put(expected.l4, FRAME_SPI);
	vb_be32_put(expected.l4 + 4, FRAME_ESP_SEQ);
	assert_only(&key.outer, &expected);
}

/* A protocol whose header no rule can name: that it is there is all. */
TEST(test_icmp)
{
	struct vb_eth_level expected = ethernet(VB_ETHERTYPE_IPV4);
	struct frame frame = frame_of_ipv4(VB_IPPROTO_ICMP, 0);
	union vb_eth_key key;

	frame_data(&frame, 8);
	key = key_of(&frame);
	add_ipv4(&expected, VB_IPPROTO_ICMP);
	expected.bits |= VB_KEY_L4;
	assert_only(&key.outer, &expected);
}

TEST(test_gre)
{
	static const struct {
		uint16_t flags;
		bool key;
	} rows[] = { { 0, false }, { 0x8000, false }, { 0x2000, true }, { 0xb000, true },
		     { 0x2001, false } };

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vb_eth_level expected = ethernet(VB_ETHERTYPE_IPV4), inner = { .bits = 0 };
		struct frame frame = frame_of_ipv4(VB_IPPROTO_GRE, 0);
		union vb_eth_key key;

		frame_gre(&frame, rows[i].flags, VB_ETHERTYPE_IPV6);
		frame_ipv6(&frame, VB_IPPROTO_UDP);
		frame_udp(&frame, 7);
		key = key_of(&frame);
		add_ipv4(&expected, VB_IPPROTO_GRE);
		expected.bits |= VB_KEY_L4 | (rows[i].key ? VB_KEY_GRE_KEY : 0);
		vb_be16_put(expected.l4, rows[i].flags);
		vb_be16_put(expected.l4 + 2, VB_ETHERTYPE_IPV6);
		if (rows[i].key)
			vb_be32_put(expected.l4 + 4, FRAME_GRE_KEY);
		assert_only(&key.outer, &expected);
		if (rows[i].flags & 7)
			continue;
		vb_be16_put(inner.ethertype, VB_ETHERTYPE_IPV6);
		add_ipv6(&inner, VB_IPPROTO_UDP);
		add_ports(&inner, 7);
		assert_only(&key.inner, &inner);
	}
}

TEST(test_vxlan)
{
	struct vb_eth_level expected = ethernet(VB_ETHERTYPE_IPV4);
	struct vb_eth_level inner = ethernet(VB_ETHERTYPE_IPV4);
	struct frame frame = frame_of_ipv4(VB_IPPROTO_UDP, 0);
	union vb_eth_key key;

	frame_udp(&frame, VB_UDP_VXLAN);
	frame_vxlan(&frame);
	frame_eth(&frame, frame_dst_mac, VB_ETHERTYPE_IPV4);
	frame_vlan(&frame, VB_ETHERTYPE_VLAN, 9);
	frame_ipv4(&frame, VB_IPPROTO_TCP, 0);
	frame_tcp(&frame, 0);
	key = key_of(&frame);
	add_ipv4(&expected, VB_IPPROTO_UDP);
	add_ports(&expected, VB_UDP_VXLAN);
	expected.tunnel = 1;
	vb_be32_put(expected.vni, FRAME_VNI);
	assert_only(&key.outer, &expected);
	inner.bits |= VB_KEY_VLAN;
	vb_be16_put(inner.tci, 9);
	add_ipv4(&inner, VB_IPPROTO_TCP);
	add_ports(&inner, FRAME_DPORT);
	assert_only(&key.inner, &inner);
}

/* Labels on Ethernet: the packet under them is of both levels. */
TEST(test_mpls)
{
	static const uint32_t label = 16 << 12 | 64;
	struct vb_eth_level expected = ethernet(VB_ETHERTYPE_MPLS), inner = { .bits = 0 };
	struct frame frame = frame_of(VB_ETHERTYPE_MPLS);
	union vb_eth_key key;

	frame_label(&frame, 16, false);
	frame_label(&frame, 17, true);
	frame_ipv4(&frame, VB_IPPROTO_UDP, 0);
	frame_udp(&frame, 7);
	key = key_of(&frame);
	expected.label_in = VB_KEY_LABEL_ETH;
	vb_be32_put(expected.label, label);
	add_ipv4(&expected, VB_IPPROTO_UDP);
	add_ports(&expected, 7);
	assert_only(&key.outer, &expected);
	vb_be16_put(inner.ethertype, VB_ETHERTYPE_IPV4);
	add_ipv4(&inner, VB_IPPROTO_UDP);
	add_ports(&inner, 7);
	assert_only(&key.inner, &inner);
}

TEST(test_mpls_in_udp_and_gre)
{
	for (unsigned gre = 0; gre < 2; gre++) {
		struct frame frame = frame_of_ipv4(gre ? VB_IPPROTO_GRE : VB_IPPROTO_UDP, 0);
		union vb_eth_key key;

		if (gre)
			frame_gre(&frame, 0x2000, VB_ETHERTYPE_MPLS_MC);
		else
			frame_udp(&frame, VB_UDP_MPLS);
		frame_label(&frame, 18, true);
		frame_ipv6(&frame, VB_IPPROTO_NONE);
		key = key_of(&frame);
		assert_int_equal(key.outer.label_in,
				 gre ? VB_KEY_LABEL_GRE : VB_KEY_LABEL_UDP);
		assert_int_equal(vb_be32_get(key.outer.label), 18 << 12 | 1 << 8 | 64);
		assert_int_equal(key.outer.version, 4);
		assert_int_equal(key.inner.version, 6);
	}
}

/* Labels within a tunnel are of the inner level. */
TEST(test_mpls_inside)
{
	struct frame frame = frame_of_ipv4(VB_IPPROTO_UDP, 0);
	union vb_eth_key key;

	frame_udp(&frame, VB_UDP_VXLAN);
	frame_vxlan(&frame);
	frame_eth(&frame, frame_dst_mac, VB_ETHERTYPE_MPLS);
	frame_label(&frame, 5, true);
	key = key_of(&frame);
	assert_int_equal(key.outer.label_in, VB_KEY_LABEL_NONE);
	assert_int_equal(key.inner.label_in, VB_KEY_LABEL_ETH);
	assert_int_equal(vb_be32_get(key.inner.label), 5 << 12 | 1 << 8 | 64);
	frame.bytes--; /* a label that is cut off is none */
	key = key_of(&frame);
	assert_int_equal(key.inner.label_in, VB_KEY_LABEL_NONE);
}
