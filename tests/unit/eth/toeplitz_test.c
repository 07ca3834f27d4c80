/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Toeplitz hash against the values that Microsoft published ("Verifying the RSS Hash
 * Calculation"), and which octets of a frame it takes for each bit of enum ibv_rx_hash_fields.
 */
#include <arpa/inet.h>
#include <infiniband/verbs.h>

#include "base/check.h"
#include "eth/toeplitz.h"
#include "frames.h"
#include "group.h"
#include "wire/bytes.h"

static const uint8_t key[VB_TOEPLITZ_KEY_BYTES] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
	0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
	0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

static const struct published {
	int family;
	const char *dst, *src;
	uint16_t dport, sport;
	uint32_t of_addresses, of_all;
} published[] = {
	{AF_INET, "161.142.100.80", "66.9.149.187", 1766, 2794, 0x323e8fc2, 0x51ccc178},
	{AF_INET, "65.69.140.83", "199.92.111.2", 4739, 14230, 0xd718262a, 0xc626b0ea},
	{AF_INET, "12.22.207.184", "24.19.198.95", 38024, 12898, 0xd2d0a5de, 0x5c2b394a},
	{AF_INET, "209.142.163.6", "38.27.205.30", 2217, 48228, 0x82989176, 0xafc7327f},
	{AF_INET, "202.188.127.2", "153.39.163.191", 1303, 44251, 0x5d1809c5, 0x10e828a2},
	{AF_INET6, "3ffe:2501:200:3::1", "3ffe:2501:200:1fff::7", 1766, 2794, 0x2cc18cd5,
	 0x40207d3d},
	{AF_INET6, "ff02::1", "3ffe:501:8::260:97ff:fe40:efab", 4739, 14230, 0x0f0c461c,
	 0xdde51bbf},
	{AF_INET6, "fe80::200:f8ff:fe21:67cf", "3ffe:1900:4545:3:200:f8ff:fe21:67cf", 38024, 44251,
	 0x4b61e985, 0x02d1feef},
};

/* The packet of a published value, over TCP or UDP. */
static void build(struct frame *frame, const struct published *p, bool tcp, uint16_t fragment)
{
	uint8_t proto = tcp ? VB_IPPROTO_TCP : VB_IPPROTO_UDP, *ip, *l4;
	bool v4 = p->family == AF_INET;

	*frame = (struct frame){.bytes = 0};
	frame_eth(frame, frame_dst_mac, v4 ? VB_ETHERTYPE_IPV4 : VB_ETHERTYPE_IPV6);
	ip = frame->octets + frame->bytes;
	if (v4)
		frame_ipv4(frame, proto, fragment);
	else
		frame_ipv6(frame, proto);
	inet_pton(p->family, p->src, ip + (v4 ? 12 : 8));
	inet_pton(p->family, p->dst, ip + (v4 ? 16 : 24));
	l4 = frame->octets + frame->bytes;
	if (tcp)
		frame_tcp(frame, 0);
	else
		frame_udp(frame, 0);
	vb_be16_put(l4, p->sport);
	vb_be16_put(l4 + 2, p->dport);
	frame_data(frame, 10);
	frame_close(frame);
}

static uint32_t hash_of(const struct frame *frame, uint64_t fields)
{
	uint8_t input[VB_TOEPLITZ_INPUT_BYTES_MAX];
	struct vb_toeplitz toeplitz;
	struct vb_eth_frame parsed;

	vb_toeplitz_init(&toeplitz, key);
	assert_true(vb_eth_parse(&parsed, frame->octets, frame->bytes));
	return vb_toeplitz_hash(&toeplitz, input, vb_toeplitz_input(&parsed, fields, input));
}

#define ADDRESSES \
	(IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 | IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6)
#define TCP_PORTS (IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP)
#define UDP_PORTS (IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP)

TEST(test_published_values)
{
	for (size_t i = 0; i < VB_ARRAY_LEN(published); i++) {
		const struct published *p = &published[i];
		struct frame frame;

		build(&frame, p, true, 0);
		assert_int_equal(hash_of(&frame, ADDRESSES), p->of_addresses);
		assert_int_equal(hash_of(&frame, ADDRESSES | TCP_PORTS), p->of_all);
		/* Ports of UDP are other fields, and the hash is the same. */
		assert_int_equal(hash_of(&frame, ADDRESSES | UDP_PORTS), p->of_addresses);
		build(&frame, p, false, 0);
		assert_int_equal(hash_of(&frame, ADDRESSES | UDP_PORTS), p->of_all);
		assert_int_equal(hash_of(&frame, ADDRESSES | TCP_PORTS), p->of_addresses);
	}
}

/* All fragments of a packet go the same way, also the one that has the ports. */
TEST(test_no_ports_of_fragments)
{
	struct frame frame;

	build(&frame, &published[0], false, 0x2000);
	assert_int_equal(hash_of(&frame, ADDRESSES | UDP_PORTS), published[0].of_addresses);
	build(&frame, &published[0], false, 7);
	assert_int_equal(hash_of(&frame, ADDRESSES | UDP_PORTS), published[0].of_addresses);
}

static void expect_input(const struct frame *frame, uint64_t fields, const void *octets,
			 uint32_t bytes)
{
	uint8_t input[VB_TOEPLITZ_INPUT_BYTES_MAX];
	struct vb_eth_frame parsed;

	assert_true(vb_eth_parse(&parsed, frame->octets, frame->bytes));
	assert_int_equal(vb_toeplitz_input(&parsed, fields, input), bytes);
	assert_memory_equal(input, octets, bytes);
}

/* The values of verbs.h, which this layer does not know, and the octets that each stands for. */
TEST(test_each_field)
{
	const struct {
		uint64_t theirs, ours;
		bool v6, udp;
		uint32_t at, bytes;
	} rows[] = {
		{IBV_RX_HASH_SRC_IPV4, VB_HASH_SRC_IPV4, false, false, 14 + 12, 4},
		{IBV_RX_HASH_DST_IPV4, VB_HASH_DST_IPV4, false, false, 14 + 16, 4},
		{IBV_RX_HASH_SRC_IPV6, VB_HASH_SRC_IPV6, true, false, 14 + 8, 16},
		{IBV_RX_HASH_DST_IPV6, VB_HASH_DST_IPV6, true, false, 14 + 24, 16},
		{IBV_RX_HASH_SRC_PORT_TCP, VB_HASH_SRC_PORT_TCP, false, false, 14 + 20, 2},
		{IBV_RX_HASH_DST_PORT_TCP, VB_HASH_DST_PORT_TCP, true, false, 14 + 40 + 2, 2},
		{IBV_RX_HASH_SRC_PORT_UDP, VB_HASH_SRC_PORT_UDP, true, true, 14 + 40, 2},
		{IBV_RX_HASH_DST_PORT_UDP, VB_HASH_DST_PORT_UDP, false, true, 14 + 20 + 2, 2},
	};

	for (size_t i = 0; i < VB_ARRAY_LEN(rows); i++) {
		struct frame frame, other;

		assert_int_equal(rows[i].theirs, rows[i].ours);
		build(&frame, &published[rows[i].v6 ? 5 : 0], !rows[i].udp, 0);
		build(&other, &published[rows[i].v6 ? 0 : 5], !rows[i].udp, 0);
		expect_input(&frame, rows[i].ours, frame.octets + rows[i].at, rows[i].bytes);
		if (rows[i].bytes > 2) /* an address of the other family */
			expect_input(&other, rows[i].ours, "", 0);
	}
	assert_int_equal((uint32_t)IBV_RX_HASH_INNER, VB_HASH_INNER);
	assert_int_equal(IBV_RX_HASH_IPSEC_SPI, VB_HASH_IPSEC_SPI);
}

TEST(test_spi)
{
	static const uint8_t spi[4] = {1, 2, 3, 4};
	struct frame frame = frame_of_ipv4(VB_IPPROTO_ESP, 0);
	uint8_t *ah;

	frame_esp(&frame);
	frame_close(&frame);
	expect_input(&frame, VB_HASH_IPSEC_SPI, spi, 4);
	expect_input(&frame, VB_HASH_IPSEC_SPI | TCP_PORTS | UDP_PORTS, spi, 4);
	/* RFC 4302: that of AH stands in the second word. */
	frame = (struct frame){.bytes = 0};
	frame_eth(&frame, frame_dst_mac, VB_ETHERTYPE_IPV6);
	frame_ipv6(&frame, VB_IPPROTO_AH);
	ah = frame_room(&frame, 8);
	memcpy(ah + 4, spi, 4);
	frame_close(&frame);
	expect_input(&frame, VB_HASH_IPSEC_SPI, spi, 4);
	/* Cut off in the midst of it. */
	frame.bytes -= 1;
	expect_input(&frame, VB_HASH_IPSEC_SPI, spi, 0);
}

TEST(test_inner)
{
	static const uint64_t fields = VB_HASH_SRC_IPV4 | VB_HASH_SRC_PORT_TCP;
	struct frame frame = frame_of_ipv6(VB_IPPROTO_UDP);
	uint8_t expected[6];
	uint32_t ip;

	frame_udp(&frame, VB_UDP_VXLAN);
	frame_vxlan(&frame);
	frame_eth(&frame, frame_dst_mac, VB_ETHERTYPE_IPV4);
	ip = frame.bytes;
	frame_ipv4(&frame, VB_IPPROTO_TCP, 0);
	frame_tcp(&frame, 0);
	frame_close(&frame);
	memcpy(expected, frame.octets + ip + 12, 4);
	memcpy(expected + 4, frame.octets + ip + 20, 2);
	expect_input(&frame, fields | VB_HASH_INNER, expected, 6);
	/* Outside there is neither; and without a tunnel there is no inside. */
	expect_input(&frame, fields, expected, 0);
	build(&frame, &published[0], true, 0);
	expect_input(&frame, fields | VB_HASH_INNER, expected, 0);
}
