/* SPDX-License-Identifier: BSD-2-Clause */
/* Checksums of frames against sums made word by word; pieces of a frame as they are scattered. */
#include "base/check.h"
#include "base/prng.h"
#include "eth/checksum.h"
#include "frames.h"
#include "group.h"
#include "wire/bytes.h"

/* RFC 1071, word by word, as it is written there: 0 where the checksum in it is right. */
static uint16_t check(const uint8_t *octets, uint32_t bytes, uint32_t sum)
{
	for (uint32_t i = 0; i < bytes; i++)
		sum += i & 1 ? octets[i] : (uint32_t)octets[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static uint32_t pseudo(const uint8_t *ip, uint8_t proto, uint32_t bytes)
{
	const uint8_t *addresses = ip[0] >> 4 == 4 ? ip + 12 : ip + 8;
	uint32_t sum = proto + bytes, count = ip[0] >> 4 == 4 ? 8 : 32;

	for (uint32_t i = 0; i < count; i += 2)
		sum += vb_be16_get(addresses + i);
	return sum;
}

static bool ip_right(const uint8_t *ip)
{
	return check(ip, (ip[0] & 15) * 4u, 0) == 0;
}

static bool l4_right(const uint8_t *ip, const uint8_t *l4, uint8_t proto, uint32_t bytes)
{
	return check(l4, bytes, pseudo(ip, proto, bytes)) == 0;
}

static bool rx_ok(const struct frame *frame, bool inner)
{
	struct vb_eth_frame parsed;

	assert_true(vb_eth_parse(&parsed, frame->octets, frame->bytes));
	return vb_eth_rx_csum_ok(&parsed, inner);
}

static void front(struct frame *frame, bool v6, uint8_t proto)
{
	*frame = (struct frame){.bytes = 0};
	frame_eth(frame, frame_dst_mac, v6 ? VB_ETHERTYPE_IPV6 : VB_ETHERTYPE_IPV4);
	frame_vlan(frame, VB_ETHERTYPE_VLAN, 7);
	if (v6)
		frame_ipv6(frame, proto);
	else
		frame_ipv4(frame, proto, 0);
}

/* The lengths of UDP that frame_close() leaves to us. */
static void udp_close(struct frame *frame, uint32_t udp)
{
	vb_be16_put(frame->octets + udp + 4, (uint16_t)(frame->bytes - udp));
}

/* Every length, so that every remainder of a word is summed up. */
TEST(test_all_lengths)
{
	for (unsigned i = 0; i < 4 * 80; i++) {
		bool v6 = i & 1, tcp = i & 2;
		uint8_t proto = tcp ? VB_IPPROTO_TCP : VB_IPPROTO_UDP, *ip, *l4;
		struct frame frame;
		uint64_t seed = i;

		front(&frame, v6, proto);
		ip = frame.octets + frame.ip_at[0];
		l4 = frame.octets + frame.bytes;
		if (tcp)
			frame_tcp(&frame, 1);
		else
			frame_udp(&frame, 9);
		for (unsigned k = 0; k < i / 4; k++)
			*frame_room(&frame, 1) = (uint8_t)vb_prng_next(&seed);
		frame_close(&frame);
		if (!tcp)
			udp_close(&frame, (uint32_t)(l4 - frame.octets));
		/* What stands there already does not matter. */
		memset(l4 + (tcp ? 16 : 6), 0x77, 2);
		if (!v6)
			memset(ip + 10, 0x77, 2);
		assert_false(rx_ok(&frame, false));
		vb_eth_tx_checksums(frame.octets, frame.bytes, false);
		assert_true(v6 || ip_right(ip));
		assert_true(l4_right(ip, l4, proto, (uint32_t)(frame.octets + frame.bytes - l4)));
		/* ibv_poll_cq(3): "TCP/UDP checksum over IPv4". */
		assert_int_equal(rx_ok(&frame, false), !v6);
	}
}

/* Any octet of the packet that is another is noticed; what is not of the packet is not. */
TEST(test_every_octet_counts)
{
	struct frame frame;

	front(&frame, false, VB_IPPROTO_TCP);
	frame_tcp(&frame, 0);
	frame_data(&frame, 33);
	frame_close(&frame);
	vb_eth_tx_checksums(frame.octets, frame.bytes, false);
	frame_room(&frame, 6); /* padding of Ethernet */
	assert_true(rx_ok(&frame, false));
	for (uint32_t at = 18; at < frame.bytes; at++) {
		frame.octets[at] ^= 0x10;
		assert_int_equal(rx_ok(&frame, false), at >= frame.bytes - 6);
		frame.octets[at] ^= 0x10;
	}
}

/* RFC 768: an all zero checksum means that there is none, and a computed one becomes all ones. */
TEST(test_zero_of_udp)
{
	struct frame frame;
	uint8_t *udp, *data;

	front(&frame, false, VB_IPPROTO_UDP);
	udp = frame.octets + frame.bytes;
	frame_udp(&frame, 9);
	data = frame_room(&frame, 2);
	frame_close(&frame);
	udp_close(&frame, (uint32_t)(udp - frame.octets));
	vb_eth_tx_checksums(frame.octets, frame.bytes, false);
	vb_be16_put(data, vb_be16_get(udp + 6)); /* makes the sum all ones */
	vb_eth_tx_checksums(frame.octets, frame.bytes, false);
	assert_int_equal(vb_be16_get(udp + 6), 0xffff);
	assert_true(rx_ok(&frame, false));
	vb_be16_put(udp + 6, 0);
	assert_true(rx_ok(&frame, false));
	vb_be16_put(udp + 6, 1);
	assert_false(rx_ok(&frame, false));
}

/* A datagram that is shorter than its packet is summed up to where it ends itself. */
TEST(test_udp_ends_early)
{
	struct frame frame;
	uint8_t *ip, *udp;

	front(&frame, true, VB_IPPROTO_UDP);
	ip = frame.octets + frame.ip_at[0];
	udp = frame.octets + frame.bytes;
	frame_udp(&frame, 9);
	frame_data(&frame, 11);
	udp_close(&frame, (uint32_t)(udp - frame.octets));
	frame_data(&frame, 5);
	frame_close(&frame);
	vb_eth_tx_checksums(frame.octets, frame.bytes, false);
	assert_true(l4_right(ip, udp, VB_IPPROTO_UDP, 19));
}

/* What is not whole is not right, be its sums what they may. */
TEST(test_not_whole)
{
	static const struct {
		uint8_t proto;
		int ip, udp; /* -1: as it should be */
		uint8_t words;
		bool ok;
	} rows[] = {
		{VB_IPPROTO_TCP, -1, -1, 5, true},   {VB_IPPROTO_TCP, -1, -1, 0, false},
		{VB_IPPROTO_TCP, -1, -1, 4, false},  {VB_IPPROTO_TCP, 0, -1, 5, false},
		{VB_IPPROTO_TCP, 20, -1, 5, false},  {VB_IPPROTO_TCP, 51, -1, 5, false},
		{VB_IPPROTO_TCP, 1500, -1, 5, false}, {VB_IPPROTO_TCP, 65535, -1, 5, false},
		{VB_IPPROTO_UDP, -1, -1, 0, true},   {VB_IPPROTO_UDP, -1, 8, 0, true},
		{VB_IPPROTO_UDP, -1, 0, 0, false},   {VB_IPPROTO_UDP, -1, 7, 0, false},
		{VB_IPPROTO_UDP, -1, 31, 0, false},  {VB_IPPROTO_UDP, -1, 65535, 0, false},
		{VB_IPPROTO_UDP, 1500, 1480, 0, false},
	};

	for (size_t i = 0; i < VB_ARRAY_LEN(rows); i++) {
		bool tcp = rows[i].proto == VB_IPPROTO_TCP;
		struct frame frame;
		uint8_t *ip, *l4;

		front(&frame, false, rows[i].proto);
		ip = frame.octets + frame.ip_at[0];
		l4 = frame.octets + frame.bytes;
		if (tcp)
			frame_tcp(&frame, 0);
		else
			frame_udp(&frame, 9);
		frame_data(&frame, tcp ? 10 : 22); /* 30 octets behind IP's header */
		frame_close(&frame);
		if (rows[i].ip >= 0)
			vb_be16_put(ip + 2, (uint16_t)rows[i].ip);
		if (tcp)
			l4[12] = (uint8_t)(rows[i].words << 4);
		else
			vb_be16_put(l4 + 4, (uint16_t)(rows[i].udp < 0 ? 30 : rows[i].udp));
		/* Sums over what there is, as the sender makes them. */
		vb_eth_tx_checksums(frame.octets, frame.bytes, false);
		assert_true(ip_right(ip));
		assert_int_equal(rx_ok(&frame, false), rows[i].ok);
	}
}

/* RFC 8200 8.1: the sum is about the final destination. There the header has it. */
TEST(test_routing_header)
{
	for (uint8_t left = 0; left < 2; left++) {
		struct frame frame;
		uint8_t *tcp;

		front(&frame, true, 43);
		frame_extension(&frame, VB_IPPROTO_TCP, 2);
		frame.octets[frame.bytes - 24 + 3] = left;
		tcp = frame.octets + frame.bytes;
		frame_tcp(&frame, 0);
		frame_data(&frame, 7);
		frame_close(&frame);
		vb_be16_put(tcp + 16, 0x7777);
		vb_eth_tx_checksums(frame.octets, frame.bytes, false);
		assert_int_equal(vb_be16_get(tcp + 16) == 0x7777, left);
		assert_int_equal(
			l4_right(frame.octets + frame.ip_at[0], tcp, VB_IPPROTO_TCP, 27), !left);
	}
}

/* RFC 2784, 2.4: GRE's sum is about what was written inside; it is data if that is. */
TEST(test_gre)
{
	for (unsigned i = 0; i < 2; i++) {
		bool inner = i;
		struct frame frame;
		uint8_t *gre;

		front(&frame, false, VB_IPPROTO_GRE);
		gre = frame.octets + frame.bytes;
		frame_gre(&frame, 0xb000, VB_ETHERTYPE_IPV6);
		frame_ipv6(&frame, VB_IPPROTO_TCP);
		frame_tcp(&frame, 0);
		frame_data(&frame, 7);
		frame_close(&frame);
		vb_be16_put(gre + 4, 0x7777);
		frame_data(&frame, 3); /* padding of Ethernet */
		vb_eth_tx_checksums(frame.octets, frame.bytes, inner);
		assert_int_equal(vb_be16_get(gre + 4) == 0x7777, !inner);
		assert_int_equal(
			check(gre, (uint32_t)(frame.octets + frame.bytes - 3 - gre), 0) == 0,
			inner);
		assert_int_equal(rx_ok(&frame, true), inner);
	}
}

/* Neither fragments nor other protocols have a checksum of TCP or UDP: nothing is verified. */
TEST(test_without_l4)
{
	struct frame frame, before;

	for (unsigned i = 0; i < 3; i++) {
		frame = (struct frame){.bytes = 0};
		frame_eth(&frame, frame_dst_mac, VB_ETHERTYPE_IPV4);
		frame_ipv4(&frame, i < 2 ? VB_IPPROTO_UDP : VB_IPPROTO_ICMP,
			   i == 0   ? 0x2000
			   : i == 1 ? 5
				    : 0);
		frame_data(&frame, 40);
		frame_close(&frame);
		before = frame;
		vb_eth_tx_checksums(frame.octets, frame.bytes, false);
		assert_true(ip_right(frame.octets + 14));
		assert_memory_equal(frame.octets + 34, before.octets + 34, 40);
		assert_false(rx_ok(&frame, false));
	}
	frame = (struct frame){.bytes = 0};
	frame_eth(&frame, frame_dst_mac, 0x88b5);
	frame_data(&frame, 40);
	before = frame;
	vb_eth_tx_checksums(frame.octets, frame.bytes, true);
	assert_memory_equal(&frame, &before, sizeof(frame));
	assert_false(rx_ok(&frame, true));
}

struct tunnel {
	struct frame frame;
	uint8_t *udp, *in_ip, *in_tcp;
};

static void tunnel_build(struct tunnel *t, bool v6_inside)
{
	struct frame *frame = &t->frame;

	front(frame, false, VB_IPPROTO_UDP);
	t->udp = frame->octets + frame->bytes;
	frame_udp(frame, VB_UDP_VXLAN);
	frame_vxlan(frame);
	frame_eth(frame, frame_dst_mac, v6_inside ? VB_ETHERTYPE_IPV6 : VB_ETHERTYPE_IPV4);
	t->in_ip = frame->octets + frame->bytes;
	if (v6_inside)
		frame_ipv6(frame, VB_IPPROTO_TCP);
	else
		frame_ipv4(frame, VB_IPPROTO_TCP, 0);
	t->in_tcp = frame->octets + frame->bytes;
	frame_tcp(frame, 0);
	frame_data(frame, 31);
	frame_close(frame);
	udp_close(frame, (uint32_t)(t->udp - frame->octets));
}

TEST(test_tunnels)
{
	for (unsigned v6 = 0; v6 < 2; v6++) {
		struct tunnel t, before;

		tunnel_build(&t, v6);
		before.frame = t.frame;
		vb_eth_tx_checksums(t.frame.octets, t.frame.bytes, false);
		assert_true(rx_ok(&t.frame, false));
		assert_false(rx_ok(&t.frame, true));
		/* What is inside is data. */
		assert_memory_equal(t.in_ip, before.frame.octets + (t.in_ip - t.frame.octets),
				    (size_t)(t.frame.octets + t.frame.bytes - t.in_ip));
		vb_eth_tx_checksums(t.frame.octets, t.frame.bytes, true);
		assert_true(v6 || ip_right(t.in_ip));
		assert_true(l4_right(t.in_ip, t.in_tcp, VB_IPPROTO_TCP, 51));
		assert_true(rx_ok(&t.frame, false));
		assert_true(rx_ok(&t.frame, true));
		/* RFC 7348: the datagram around it need not have one. */
		vb_be16_put(t.udp + 6, 0);
		assert_true(rx_ok(&t.frame, true));
		t.frame.octets[t.frame.ip_at[0] + 8]--; /* a router that forgets the checksum */
		assert_false(rx_ok(&t.frame, true));
		t.frame.octets[t.frame.ip_at[0] + 8]++;
		vb_be16_put(t.frame.octets + t.frame.ip_at[0] + 2, 0);
		vb_eth_tx_checksums(t.frame.octets, t.frame.bytes, true);
		assert_false(rx_ok(&t.frame, true)); /* it is whole inside, but not outside */
		frame_close(&t.frame);
		vb_eth_tx_checksums(t.frame.octets, t.frame.bytes, true);
		vb_be16_put(t.udp + 6, 0);
		assert_true(rx_ok(&t.frame, true));
		t.in_tcp[30] ^= 1;
		assert_false(rx_ok(&t.frame, true));
		assert_true(rx_ok(&t.frame, false));
	}
}

/* IEEE 802.3: CRC-32 bit by bit, lowest bit first. */
TEST(test_fcs)
{
	uint8_t octets[61], fcs[VB_ETH_FCS_BYTES], expected[4];
	uint32_t crc = 0xffffffff;
	uint64_t seed = 5;

	for (size_t i = 0; i < sizeof(octets); i++) {
		octets[i] = (uint8_t)vb_prng_next(&seed);
		crc ^= octets[i];
		for (unsigned bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	crc = ~crc;
	for (unsigned i = 0; i < 4; i++)
		expected[i] = (uint8_t)(crc >> 8 * i);
	vb_eth_fcs(octets, sizeof(octets), fcs);
	assert_memory_equal(fcs, expected, 4);
	/* The check value of the polynomial. */
	vb_eth_fcs((const uint8_t *)"123456789", 9, fcs);
	assert_memory_equal(fcs, "\x26\x39\xf4\xcb", 4);
}

static uint32_t joined(const struct vb_eth_pieces *pieces, uint8_t *out)
{
	uint32_t bytes = 0;

	for (unsigned i = 0; i < pieces->count; i++) {
		memcpy(out + bytes, pieces->iov[i].iov_base, pieces->iov[i].iov_len);
		bytes += (uint32_t)pieces->iov[i].iov_len;
	}
	assert_int_equal(bytes, pieces->bytes);
	return bytes;
}

TEST(test_pieces)
{
	uint8_t out[FRAME_BYTES_MAX], fcs[VB_ETH_FCS_BYTES];
	struct vb_eth_pieces pieces;
	struct frame frame = frame_of(0x88b5);

	frame_vlan(&frame, VB_ETHERTYPE_VLAN, 0xa123);
	frame_data(&frame, 50);
	vb_eth_fcs(frame.octets, frame.bytes, fcs);

	vb_eth_rx_pieces(&pieces, frame.octets, frame.bytes, false, false);
	assert_int_equal(joined(&pieces, out), frame.bytes);
	assert_memory_equal(out, frame.octets, frame.bytes);
	assert_false(pieces.stripped);
	assert_int_equal(pieces.tci, 0);

	vb_eth_rx_pieces(&pieces, frame.octets, frame.bytes, true, true);
	assert_int_equal(joined(&pieces, out), frame.bytes);
	assert_true(pieces.stripped);
	assert_int_equal(pieces.tci, 0xa123);
	assert_memory_equal(out, frame.octets, 12);
	assert_memory_equal(out + 12, frame.octets + 16, frame.bytes - 16);
	assert_memory_equal(out + frame.bytes - 4, fcs, 4);

	/* A service tag is not the customer's. */
	vb_be16_put(frame.octets + 12, VB_ETHERTYPE_QINQ);
	vb_eth_rx_pieces(&pieces, frame.octets, frame.bytes, true, false);
	assert_false(pieces.stripped);
	assert_int_equal(joined(&pieces, out), frame.bytes);
	assert_memory_equal(out, frame.octets, frame.bytes);
	/* Where the tag is cut off there is none. */
	vb_be16_put(frame.octets + 12, VB_ETHERTYPE_VLAN);
	vb_eth_rx_pieces(&pieces, frame.octets, 17, true, false);
	assert_false(pieces.stripped);
	assert_int_equal(joined(&pieces, out), 17);
}
