/* SPDX-License-Identifier: BSD-2-Clause */
/* Segmentation: what each frame of a stream differs in from the header that was given. */
#include "base/check.h"
#include "eth/checksum.h"
#include "eth/tso.h"
#include "frames.h"
#include "group.h"
#include "wire/bytes.h"

enum { FIN = 1, SYN = 2, PSH = 8, ACK = 16, CWR = 128, SEQ = 0xfffffe00 };

/* How the header is made: bits. */
enum { V6 = 1, VLAN = 2, OPTIONS = 4, VXLAN = 8, GRE = 16, KINDS = 32 };

struct header {
	struct frame frame;
	uint32_t udp_at, tcp_at;
};

static void ip(struct frame *frame, bool v6, uint8_t proto)
{
	uint32_t at = frame->bytes;

	if (v6)
		frame_ipv6(frame, proto);
	else
		frame_ipv4(frame, proto, 0x4000);
	if (!v6)
		vb_be16_put(frame->octets + at + 4, (uint16_t)(0xfffe + frame->ips));
}

static void build(struct header *h, unsigned kind)
{
	struct frame *frame = &h->frame;
	bool v6 = kind & V6;
	uint16_t type = v6 ? VB_ETHERTYPE_IPV6 : VB_ETHERTYPE_IPV4;

	*h = (struct header){.udp_at = 0};
	frame_eth(frame, frame_dst_mac, kind & VXLAN ? VB_ETHERTYPE_IPV4 : type);
	if (kind & VLAN)
		frame_vlan(frame, VB_ETHERTYPE_VLAN, 5);
	if (kind & VXLAN) {
		ip(frame, false, VB_IPPROTO_UDP);
		h->udp_at = frame->bytes;
		frame_udp(frame, VB_UDP_VXLAN);
		frame_vxlan(frame);
		frame_eth(frame, frame_dst_mac, type);
	} else if (kind & GRE) {
		ip(frame, v6, VB_IPPROTO_GRE);
		frame_gre(frame, 0, type);
	}
	ip(frame, v6, VB_IPPROTO_TCP);
	h->tcp_at = frame->bytes;
	frame_tcp(frame, kind & OPTIONS ? 3 : 0);
	vb_be32_put(frame->octets + h->tcp_at + 4, SEQ);
	frame->octets[h->tcp_at + 13] = ACK | CWR | FIN | PSH;
}

static uint8_t stream_octet(uint32_t at)
{
	return (uint8_t)(at * 7 + (at >> 8));
}

/* Its lengths, its numbers, its checksums; what else there is stays what it was. */
static void check_frame(const struct header *h, unsigned kind, const uint8_t *octets,
			uint32_t bytes, const struct vb_tso_cut *cut, bool last)
{
	uint8_t flags = ACK | (cut->index ? 0 : CWR) | (last ? FIN | PSH : 0);
	struct frame expected = h->frame;
	uint32_t header = expected.bytes;
	struct vb_eth_frame parsed;
	bool inner;

	expected.bytes = bytes;
	frame_close(&expected);
	if (h->udp_at)
		vb_be16_put(expected.octets + h->udp_at + 4, (uint16_t)(bytes - h->udp_at));
	for (uint32_t i = 0; i < expected.ips; i++) {
		uint8_t *at = expected.octets + expected.ip_at[i];

		if (at[0] >> 4 == 4)
			vb_be16_put(at + 4, (uint16_t)(vb_be16_get(at + 4) + cut->index));
	}
	vb_be32_put(expected.octets + h->tcp_at + 4, SEQ + cut->offset);
	expected.octets[h->tcp_at + 13] = flags;
	for (uint32_t i = 0; i < cut->bytes; i++)
		expected.octets[header + i] = stream_octet(cut->offset + i);
	vb_eth_tx_checksums(expected.octets, bytes, true);
	assert_memory_equal(octets, expected.octets, bytes);
	assert_true(vb_eth_parse(&parsed, octets, bytes));
	inner = kind & (VXLAN | GRE);
	assert_int_equal(parsed.has_inner, inner);
	assert_int_equal((inner ? parsed.inner : parsed.outer).payload_at, header);
	assert_int_equal((inner ? parsed.inner : parsed.outer).end, bytes);
	if (!(kind & V6))
		assert_true(vb_eth_rx_csum_ok(&parsed, inner));
}

static void cut_all(unsigned kind, const struct header *h, uint32_t payload, uint32_t mss)
{
	uint8_t octets[FRAME_BYTES_MAX];
	uint32_t done = 0, index = 0;
	struct vb_tso_cut cut;
	struct vb_tso tso;

	assert_true(vb_tso_begin(&tso, h->frame.octets, h->frame.bytes, payload, mss));
	while (vb_tso_next(&tso, &cut)) {
		assert_int_equal(cut.offset, done);
		assert_int_equal(cut.index, index++);
		done += cut.bytes;
		assert_int_equal(cut.bytes, done == payload ? payload - cut.offset : mss);
		for (uint32_t i = 0; i < cut.bytes; i++)
			octets[h->frame.bytes + i] = stream_octet(cut.offset + i);
		vb_tso_frame(&tso, &cut, octets);
		check_frame(h, kind, octets, h->frame.bytes + cut.bytes, &cut, done == payload);
	}
	assert_int_equal(done, payload);
	assert_int_equal(index, payload ? (payload + mss - 1) / mss : 1);
}

TEST(test_all_kinds)
{
	static const struct {
		uint32_t payload, mss;
	} sizes[] = {{0, 100},	 {1, 1},     {5, 1},	  {99, 100},
		     {100, 100}, {101, 100}, {1000, 100}, {3001, 1460}};

	for (unsigned kind = 0; kind < KINDS; kind++) {
		struct header h;

		build(&h, kind);
		for (size_t i = 0; i < VB_ARRAY_LEN(sizes); i++)
			cut_all(kind, &h, sizes[i].payload, sizes[i].mss);
	}
}

/* The lengths in it are left to us, so they may be any: of the whole, too short, none. */
TEST(test_lengths_do_not_matter)
{
	static const uint16_t lengths[] = {0, 1, 19, 20, 39, 40, 64, 1500, 65535};

	for (size_t i = 0; i < VB_ARRAY_LEN(lengths); i++) {
		for (unsigned kind = 0; kind < KINDS; kind++) {
			uint8_t octets[FRAME_BYTES_MAX];
			struct vb_tso_cut cut;
			struct vb_tso tso;
			struct header h;

			build(&h, kind);
			for (uint32_t k = 0; k < h.frame.ips; k++) {
				uint8_t *at = h.frame.octets + h.frame.ip_at[k];

				vb_be16_put(at + (at[0] >> 4 == 4 ? 2 : 4), lengths[i]);
			}
			assert_true(vb_tso_begin(&tso, h.frame.octets, h.frame.bytes, 10, 4));
			assert_true(vb_tso_next(&tso, &cut));
			for (uint32_t k = 0; k < 4; k++)
				octets[h.frame.bytes + k] = stream_octet(k);
			vb_tso_frame(&tso, &cut, octets);
			check_frame(&h, kind, octets, h.frame.bytes + 4, &cut, false);
		}
	}
}

/* With every combination of flags: the sequence number counts up, all else but the sum stays. */
TEST(test_gre_words)
{
	for (unsigned i = 0; i < 8; i++) {
		uint16_t flags = (uint16_t)((i & 1) << 15 | (i & 2) << 12 | (i & 4) << 10);
		uint32_t gre, seq, sum = 0;
		uint8_t octets[FRAME_BYTES_MAX];
		struct frame frame = frame_of(VB_ETHERTYPE_IPV4);
		struct vb_tso_cut cut;
		struct vb_tso tso;

		ip(&frame, false, VB_IPPROTO_GRE);
		gre = frame.bytes;
		frame_gre(&frame, flags, VB_ETHERTYPE_IPV4);
		seq = frame.bytes - 4;
		if (i & 4)
			vb_be32_put(frame.octets + seq, 0xffffffff);
		ip(&frame, false, VB_IPPROTO_TCP);
		frame_tcp(&frame, 0);
		assert_true(vb_tso_begin(&tso, frame.octets, frame.bytes, 15, 10));
		for (uint32_t k = 0; vb_tso_next(&tso, &cut); k++) {
			memset(octets + frame.bytes, 0x5a, cut.bytes);
			vb_tso_frame(&tso, &cut, octets);
			if (i & 4)
				assert_int_equal(vb_be32_get(octets + seq), k - 1);
			if (i & 2)
				assert_int_equal(vb_be32_get(octets + gre + 4 + 4 * (i & 1)),
						 FRAME_GRE_KEY);
			assert_int_equal(vb_be16_get(octets + gre), flags);
			if (!(i & 1))
				continue;
			sum = 0;
			octets[frame.bytes + cut.bytes] = 0;
			for (uint32_t at = gre; at < frame.bytes + cut.bytes; at += 2)
				sum += vb_be16_get(octets + at);
			assert_int_equal(sum % 0xffff, 0);
			assert_true(sum != 0 && vb_be16_get(octets + gre + 4) != 0);
		}
	}
}

/* What the sums are about is told only by a router that has none left to visit. */
TEST(test_routing_header)
{
	for (uint8_t left = 0; left < 2; left++) {
		struct frame frame = frame_of(VB_ETHERTYPE_IPV6);
		struct vb_tso tso;

		ip(&frame, true, 43);
		frame_extension(&frame, VB_IPPROTO_TCP, 2);
		frame.octets[frame.bytes - 24 + 3] = left;
		frame_tcp(&frame, 0);
		assert_int_equal(vb_tso_begin(&tso, frame.octets, frame.bytes, 15, 10), !left);
	}
}

static void refused(const struct header *h, uint32_t bytes, uint32_t payload, uint32_t mss)
{
	struct vb_tso tso;

	assert_false(vb_tso_begin(&tso, h->frame.octets, bytes, payload, mss));
}

TEST(test_what_cannot_be_cut)
{
	static uint8_t zeros[VB_TSO_HEADER_BYTES_MAX + 1];
	struct vb_tso tso;
	struct header h;

	for (unsigned kind = 0; kind < KINDS; kind++) {
		build(&h, kind);
		/* Octets of the stream in the header, or a header that is not all there. */
		refused(&h, h.frame.bytes + 1, 10, 4);
		for (uint32_t bytes = 0; bytes < h.frame.bytes; bytes++)
			refused(&h, bytes, 10, 4);
		refused(&h, h.frame.bytes, 10, 0);
		refused(&h, h.frame.bytes, 100000, 65535);
		assert_true(vb_tso_begin(&tso, h.frame.octets, h.frame.bytes, 1, 65535));
	}
	assert_false(vb_tso_begin(&tso, zeros, sizeof(zeros), 10, 4));
	assert_false(vb_tso_begin(&tso, zeros, sizeof(zeros) - 1, 10, 4));
	h = (struct header){.udp_at = 0};
	frame_eth(&h.frame, frame_dst_mac, VB_ETHERTYPE_IPV4);
	frame_ipv4(&h.frame, VB_IPPROTO_UDP, 0);
	frame_udp(&h.frame, 9);
	refused(&h, h.frame.bytes, 10, 4);
	h = (struct header){.udp_at = 0};
	frame_eth(&h.frame, frame_dst_mac, VB_ETHERTYPE_IPV4);
	frame_ipv4(&h.frame, VB_IPPROTO_TCP, 0x2000);
	frame_tcp(&h.frame, 0);
	refused(&h, h.frame.bytes, 10, 4);
}
