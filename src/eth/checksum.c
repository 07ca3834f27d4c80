/* SPDX-License-Identifier: BSD-2-Clause */
#include "eth/checksum.h"

#include <isa-l/crc.h>
#include <string.h>

#include "base/check.h"
#include "wire/bytes.h"

enum {
	MACS_BYTES = 2 * VB_MAC_BYTES,
	IPV4_CSUM_AT = 10,
	TCP_CSUM_AT = 16,
	TCP_BYTES_MIN = 20,
	UDP_LENGTH_AT = 4,
	UDP_CSUM_AT = 6,
	UDP_BYTES = 8,
	GRE_CSUM_AT = 4,
	GRE_CSUM_PRESENT = 0x80,
};

/*
 * RFC 1071: the sum does not depend on byte order as long as it is always the same. So words are
 * added, and the result stored, in this machine's order.
 */
static uint64_t sum_add(uint64_t sum, const uint8_t *octets, uint32_t bytes)
{
	uint64_t eight;

	for (; bytes >= 8; bytes -= 8, octets += 8) {
		memcpy(&eight, octets, 8);
		sum += (eight & 0xffffffff) + (eight >> 32);
	}
	eight = 0;
	memcpy(&eight, octets, bytes);
	return sum + (eight & 0xffffffff) + (eight >> 32);
}

static uint16_t sum_fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* RFC 9293 3.1, RFC 8200 8.1: the sum includes addresses, protocol and length. */
static uint64_t sum_pseudo(const struct vb_eth_headers *h, const uint8_t *octets, uint32_t bytes)
{
	uint8_t last[8] = {[7] = h->proto};
	uint64_t sum;

	if (h->l3 == VB_L3_IPV4)
		sum = sum_add(0, octets + h->l3_at + 12, 8);
	else
		sum = sum_add(0, octets + h->l3_at + 8, 32);
	vb_be32_put(last, bytes);
	return sum_add(sum, last, sizeof(last));
}

/* The transport's checksum. */
struct l4 {
	uint32_t csum_at; /* offset in the frame */
	uint32_t bytes;	  /* of header and data, from l4_at on */
};

static bool l4_find(const struct vb_eth_headers *h, const uint8_t *octets, struct l4 *l4)
{
	uint32_t rest, length;

	if (h->l3 == VB_L3_NONE || !h->l4_at || h->fragment || h->routed || h->end < h->l4_at)
		return false;
	rest = h->end - h->l4_at;
	l4->bytes = rest;
	if (h->proto == VB_IPPROTO_TCP) {
		l4->csum_at = h->l4_at + TCP_CSUM_AT;
		return rest >= TCP_BYTES_MIN;
	}
	if (h->proto != VB_IPPROTO_UDP || rest < UDP_BYTES)
		return false;
	/*
	 * Data beyond the datagram's own length is not part of it. When sending, an impossible
	 * length is ignored.
	 */
	length = vb_be16_get(octets + h->l4_at + UDP_LENGTH_AT);
	if (length >= UDP_BYTES && length < rest)
		l4->bytes = length;
	l4->csum_at = h->l4_at + UDP_CSUM_AT;
	return true;
}

static uint16_t l4_sum(const struct vb_eth_headers *h, const uint8_t *octets, const struct l4 *l4)
{
	uint64_t sum = sum_pseudo(h, octets, l4->bytes);

	return sum_fold(sum_add(sum, octets + h->l4_at, l4->bytes));
}

static uint32_t ipv4_header_bytes(const struct vb_eth_headers *h, const uint8_t *octets)
{
	return (octets[h->l3_at] & 15u) * 4;
}

static void write_csums(const struct vb_eth_headers *h, uint8_t *octets)
{
	struct l4 l4;
	uint16_t csum;

	if (h->l3 == VB_L3_IPV4) {
		uint8_t *ip = octets + h->l3_at;

		memset(ip + IPV4_CSUM_AT, 0, 2);
		csum = (uint16_t)~sum_fold(sum_add(0, ip, ipv4_header_bytes(h, octets)));
		memcpy(ip + IPV4_CSUM_AT, &csum, 2);
	}
	if (!l4_find(h, octets, &l4))
		return;
	memset(octets + l4.csum_at, 0, 2);
	csum = (uint16_t)~l4_sum(h, octets, &l4);
	/* RFC 768: 0 means no checksum, and all ones is equivalent. */
	if (!csum && h->proto == VB_IPPROTO_UDP)
		csum = 0xffff;
	memcpy(octets + l4.csum_at, &csum, 2);
}

/* RFC 2784, 2.4: covers the GRE header and all that follows. */
static void write_gre_csum(const struct vb_eth_headers *h, uint8_t *octets)
{
	uint8_t *gre = octets + h->l4_at;
	uint16_t csum;

	if (h->proto != VB_IPPROTO_GRE || !(gre[0] & GRE_CSUM_PRESENT))
		return;
	memset(gre + GRE_CSUM_AT, 0, 2);
	csum = (uint16_t)~sum_fold(sum_add(0, gre, h->end - h->l4_at));
	memcpy(gre + GRE_CSUM_AT, &csum, 2);
}

void vb_eth_tx_checksums(uint8_t *octets, uint32_t bytes, bool inner)
{
	struct vb_eth_frame frame;

	if (!vb_eth_parse(&frame, octets, bytes))
		return;
	/* From the inside out, since the outer ones cover the inner. */
	if (inner && frame.has_inner) {
		write_csums(&frame.inner, octets);
		write_gre_csum(&frame.outer, octets);
	}
	write_csums(&frame.outer, octets);
}

static bool l3_ok(const struct vb_eth_headers *h, const uint8_t *octets)
{
	return sum_fold(sum_add(0, octets + h->l3_at, ipv4_header_bytes(h, octets))) == 0xffff;
}

static bool l4_ok(const struct vb_eth_headers *h, const uint8_t *octets)
{
	struct l4 l4;

	if (!h->whole || !l4_find(h, octets, &l4))
		return false;
	if (h->proto == VB_IPPROTO_UDP &&
	    vb_be16_get(octets + h->l4_at + UDP_LENGTH_AT) != l4.bytes)
		return false;
	/* RFC 8200 8.1: over IPv6 a checksum is required. */
	if (h->proto == VB_IPPROTO_UDP && h->l3 == VB_L3_IPV4 && !vb_be16_get(octets + l4.csum_at))
		return true;
	if (h->proto == VB_IPPROTO_UDP && !vb_be16_get(octets + l4.csum_at))
		return false;
	return l4_sum(h, octets, &l4) == 0xffff;
}

bool vb_eth_rx_csum_ok(const struct vb_eth_frame *frame, bool inner)
{
	const struct vb_eth_headers *out = &frame->outer, *in = &frame->inner;
	bool out_ok = out->l3 != VB_L3_IPV4 || l3_ok(out, frame->octets);

	out_ok = out_ok && (out->l3 == VB_L3_NONE || out->whole);
	if (!inner || !frame->has_inner)
		return out->l3 == VB_L3_IPV4 && out_ok && l4_ok(out, frame->octets);
	return out_ok && (in->l3 != VB_L3_IPV4 || l3_ok(in, frame->octets)) &&
	       l4_ok(in, frame->octets);
}

/* The ICRC is the same CRC (wire/icrc.h), stored with the lowest octet first. */
void vb_eth_fcs(const uint8_t *octets, uint32_t bytes, uint8_t fcs[VB_ETH_FCS_BYTES])
{
	uint32_t crc = htole32(crc32_gzip_refl(0, octets, bytes));

	memcpy(fcs, &crc, sizeof(crc));
}

static void piece_add(struct vb_eth_pieces *pieces, const void *octets, uint32_t bytes)
{
	pieces->iov[pieces->count++] = (struct iovec){.iov_base = (void *)octets, .iov_len = bytes};
	pieces->bytes += bytes;
}

void vb_eth_rx_pieces(struct vb_eth_pieces *pieces, const uint8_t *octets, uint32_t bytes,
		      bool strip, bool fcs)
{
	uint32_t from = 0;

	pieces->count = 0;
	pieces->bytes = 0;
	pieces->tci = 0;
	pieces->stripped = strip && bytes >= MACS_BYTES + VB_ETH_VLAN_BYTES + 2 &&
			   vb_be16_get(octets + MACS_BYTES) == VB_ETHERTYPE_VLAN;
	if (pieces->stripped) {
		pieces->tci = vb_be16_get(octets + MACS_BYTES + 2);
		piece_add(pieces, octets, MACS_BYTES);
		from = MACS_BYTES + VB_ETH_VLAN_BYTES;
	}
	piece_add(pieces, octets + from, bytes - from);
	if (fcs) {
		vb_eth_fcs(octets, bytes, pieces->fcs);
		piece_add(pieces, pieces->fcs, VB_ETH_FCS_BYTES);
	}
}
