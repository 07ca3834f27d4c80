/* SPDX-License-Identifier: BSD-2-Clause */
#include "eth/parse.h"

#include <string.h>

#include "wire/bytes.h"

#define VLAN_BYTES 4u
#define IPV4_BYTES_MIN 20u
#define IPV6_BYTES 40u
#define UDP_BYTES 8u
#define VXLAN_BYTES 8u
#define LABEL_BYTES 4u
#define IPV4_OFFSET_MASK 0x1fffu
#define IPV4_MORE 0x2000u
#define IPV6_ROUTING 43u
#define IPV6_FRAGMENT 44u

/* The octets left to parse. */
struct span {
	const uint8_t *octets;
	uint32_t at, end;
	bool lengthless; /* IP's lengths are ignored */
};

static bool has(const struct span *span, uint32_t bytes)
{
	return bytes <= span->end - span->at;
}

/* --- L4 --- */

/* The least size of a protocol's header; 0: unknown. */
static uint32_t l4_bytes_min(uint8_t proto)
{
	switch (proto) {
	case VB_IPPROTO_TCP:
		return 20;
	case VB_IPPROTO_UDP:
	case VB_IPPROTO_ESP:
		return 8;
	case VB_IPPROTO_SCTP:
		return 12;
	case VB_IPPROTO_GRE:
		return 4;
	default:
		return 0;
	}
}

/* RFC 2784, 2890: a word each for checksum, key and sequence number. Other versions: 4 octets. */
static uint32_t gre_bytes(const uint8_t *gre)
{
	if (gre[1] & 7)
		return 4;
	return 4 + 4u * (gre[0] >> 7 & 1) + 4u * (gre[0] >> 5 & 1) + 4u * (gre[0] >> 4 & 1);
}

/* The size of the header that begins here. */
static uint32_t l4_bytes(uint8_t proto, const uint8_t *header)
{
	switch (proto) {
	case VB_IPPROTO_TCP:
		return 4u * (header[12] >> 4);
	case VB_IPPROTO_GRE:
		return gre_bytes(header);
	case VB_IPPROTO_UDP:
	case VB_IPPROTO_ESP:
	case VB_IPPROTO_SCTP:
		return l4_bytes_min(proto);
	default:
		return 0;
	}
}

static void parse_l4(struct vb_eth_headers *headers, struct span *span)
{
	const uint8_t *header = span->octets + span->at;
	uint32_t least = l4_bytes_min(headers->proto), bytes;

	if ((headers->fragment && !headers->first_fragment) || headers->proto == VB_IPPROTO_NONE ||
	    !has(span, least ? least : 1))
		return;
	bytes = l4_bytes(headers->proto, header);
	if (bytes < least || !has(span, bytes))
		return;
	headers->l4_at = (uint16_t)span->at;
	span->at += bytes;
	headers->payload_at = (uint16_t)span->at;
}

/* --- L3 --- */

/* Applies the packet's length, unless the frame is shorter. */
static void cut(struct vb_eth_headers *headers, struct span *span, uint32_t bytes)
{
	headers->whole = bytes <= span->end - headers->l3_at;
	if (headers->whole)
		span->end = headers->l3_at + bytes;
	headers->end = span->end;
}

static bool parse_ipv4(struct vb_eth_headers *headers, struct span *span)
{
	const uint8_t *ip = span->octets + span->at;
	uint32_t header_bytes, total_bytes;
	uint16_t offset;

	if (!has(span, IPV4_BYTES_MIN) || ip[0] >> 4 != 4)
		return false;
	header_bytes = 4u * (ip[0] & 15);
	total_bytes = span->lengthless ? 0 : vb_be16_get(ip + 2);
	if (header_bytes < IPV4_BYTES_MIN || !has(span, header_bytes) ||
	    (total_bytes && total_bytes < header_bytes))
		return false;
	offset = vb_be16_get(ip + 6);
	headers->l3 = VB_L3_IPV4;
	headers->l3_at = (uint16_t)span->at;
	headers->proto = ip[9];
	headers->fragment = offset & (IPV4_OFFSET_MASK | IPV4_MORE);
	headers->first_fragment = headers->fragment && !(offset & IPV4_OFFSET_MASK);
	if (total_bytes)
		cut(headers, span, total_bytes);
	span->at += header_bytes;
	return true;
}

static bool is_extension(uint8_t proto)
{
	switch (proto) {
	case 0:	  /* hop by hop */
	case IPV6_ROUTING:
	case IPV6_FRAGMENT:
	case 60:  /* destination */
	case 135: /* mobility */
	case 139: /* host identity */
	case 140: /* shim6 */
		return true;
	default:
		return false;
	}
}

/*
 * RFC 8200, 4: each header names the next. If this ends early, proto is the header that could not
 * be parsed, with nothing behind it.
 */
static void parse_extensions(struct vb_eth_headers *headers, struct span *span)
{
	for (unsigned i = 0; is_extension(headers->proto); i++) {
		const uint8_t *extension = span->octets + span->at;
		uint32_t bytes = 8;

		if (i == VB_ETH_EXTENSIONS_MAX || !has(span, bytes))
			goto nothing;
		if (headers->proto == IPV6_FRAGMENT) {
			uint16_t offset = vb_be16_get(extension + 2);

			/* Offset 0 without more fragments is a whole packet (RFC 6946). */
			headers->fragment = offset & 0xfff9;
			headers->first_fragment = headers->fragment && !(offset & 0xfff8);
		} else {
			if (headers->proto == IPV6_ROUTING && extension[3])
				headers->routed = true;
			bytes += 8u * extension[1];
		}
		if (!has(span, bytes))
			goto nothing;
		headers->proto = extension[0];
		span->at += bytes;
		if (headers->fragment && !headers->first_fragment)
			return; /* the rest is from the middle of a packet */
	}
	return;
nothing:
	span->end = span->at;
}

static bool parse_ipv6(struct vb_eth_headers *headers, struct span *span)
{
	const uint8_t *ip = span->octets + span->at;
	uint32_t payload_bytes;

	if (!has(span, IPV6_BYTES) || ip[0] >> 4 != 6)
		return false;
	payload_bytes = span->lengthless ? 0 : vb_be16_get(ip + 4);
	headers->l3 = VB_L3_IPV6;
	headers->l3_at = (uint16_t)span->at;
	headers->proto = ip[6];
	if (payload_bytes)
		cut(headers, span, IPV6_BYTES + payload_bytes);
	span->at += IPV6_BYTES;
	parse_extensions(headers, span);
	return true;
}

static void parse_l3(struct vb_eth_headers *headers, struct span *span)
{
	bool found = false;

	headers->payload_at = (uint16_t)span->at;
	headers->end = span->end;
	if (headers->ethertype == VB_ETHERTYPE_IPV4)
		found = parse_ipv4(headers, span);
	else if (headers->ethertype == VB_ETHERTYPE_IPV6)
		found = parse_ipv6(headers, span);
	if (!found)
		return;
	headers->payload_at = (uint16_t)span->at;
	parse_l4(headers, span);
}

/* --- L2 --- */

static bool parse_l2(struct vb_eth_headers *headers, struct span *span)
{
	if (!has(span, VB_ETH_HEADER_BYTES))
		return false;
	headers->has_l2 = true;
	headers->l2_at = (uint16_t)span->at;
	span->at += VB_ETH_HEADER_BYTES;
	headers->ethertype = vb_be16_get(span->octets + span->at - 2);
	while ((headers->ethertype == VB_ETHERTYPE_VLAN ||
		headers->ethertype == VB_ETHERTYPE_QINQ) &&
	       headers->vlans < VB_ETH_VLANS_MAX && has(span, VLAN_BYTES)) {
		if (!headers->vlans++)
			headers->vlan_tci = vb_be16_get(span->octets + span->at);
		span->at += VLAN_BYTES;
		headers->ethertype = vb_be16_get(span->octets + span->at - 2);
	}
	parse_l3(headers, span);
	return true;
}

/* --- tunnels --- */

static void inner_l2(struct vb_eth_frame *frame, struct span *span)
{
	frame->has_inner = parse_l2(&frame->inner, span);
}

static void inner_l3(struct vb_eth_frame *frame, struct span *span, uint16_t ethertype)
{
	frame->inner.ethertype = ethertype;
	parse_l3(&frame->inner, span);
	frame->has_inner = frame->inner.l3 != VB_L3_NONE;
	if (!frame->has_inner)
		frame->inner = (struct vb_eth_headers){ .has_l2 = false };
}

/* Only routers know what labels mean; the packet below is recognized by its IP version. */
static void parse_mpls(struct vb_eth_frame *frame, struct span *span)
{
	uint32_t label = 0;

	if (!has(span, LABEL_BYTES))
		return;
	frame->tunnel = VB_TUNNEL_MPLS;
	frame->tunnel_at = (uint16_t)span->at;
	for (unsigned i = 0; i < VB_ETH_LABELS_MAX && has(span, LABEL_BYTES); i++) {
		label = vb_be32_get(span->octets + span->at);
		span->at += LABEL_BYTES;
		if (label >> 8 & 1) /* bottom of the stack */
			break;
	}
	if (!(label >> 8 & 1) || !has(span, 1))
		return;
	switch (span->octets[span->at] >> 4) {
	case 4:
		inner_l3(frame, span, VB_ETHERTYPE_IPV4);
		break;
	case 6:
		inner_l3(frame, span, VB_ETHERTYPE_IPV6);
		break;
	}
}

static bool is_mpls(uint16_t ethertype)
{
	return ethertype == VB_ETHERTYPE_MPLS || ethertype == VB_ETHERTYPE_MPLS_MC;
}

static void parse_gre(struct vb_eth_frame *frame, struct span *span)
{
	const uint8_t *gre = span->octets + frame->outer.l4_at;
	uint16_t ethertype = vb_be16_get(gre + 2);

	frame->tunnel = VB_TUNNEL_GRE;
	frame->tunnel_at = frame->outer.l4_at;
	if (gre[1] & 7)
		return;
	if (ethertype == VB_ETHERTYPE_TEB)
		inner_l2(frame, span);
	else if (is_mpls(ethertype))
		parse_mpls(frame, span);
	else
		inner_l3(frame, span, ethertype);
}

/* RFC 7348, 5: without the I flag there is no identifier, and so no tunnel. */
static void parse_vxlan(struct vb_eth_frame *frame, struct span *span)
{
	if (!has(span, VXLAN_BYTES) || !(span->octets[span->at] & 8))
		return;
	frame->tunnel = VB_TUNNEL_VXLAN;
	frame->tunnel_at = (uint16_t)span->at;
	span->at += VXLAN_BYTES;
	inner_l2(frame, span);
}

static void parse_tunnel(struct vb_eth_frame *frame, struct span *span)
{
	const struct vb_eth_headers *outer = &frame->outer;

	if (is_mpls(outer->ethertype)) {
		parse_mpls(frame, span);
	} else if (!outer->l4_at || outer->fragment) {
		return;
	} else if (outer->proto == VB_IPPROTO_GRE) {
		parse_gre(frame, span);
	} else if (outer->proto == VB_IPPROTO_UDP) {
		uint16_t port = vb_be16_get(span->octets + outer->l4_at + 2);

		if (port == VB_UDP_VXLAN)
			parse_vxlan(frame, span);
		else if (port == VB_UDP_MPLS)
			parse_mpls(frame, span);
	}
}

static bool parse(struct vb_eth_frame *frame, struct span *span)
{
	memset(frame, 0, sizeof(*frame));
	frame->octets = span->octets;
	frame->bytes = span->end;
	if (!parse_l2(&frame->outer, span))
		return false;
	parse_tunnel(frame, span);
	return true;
}

bool vb_eth_parse(struct vb_eth_frame *frame, const uint8_t *octets, uint32_t bytes)
{
	struct span span = { .octets = octets, .end = bytes };

	return parse(frame, &span);
}

bool vb_eth_parse_template(struct vb_eth_frame *frame, const uint8_t *octets, uint32_t bytes)
{
	struct span span = { .octets = octets, .end = bytes, .lengthless = true };

	return parse(frame, &span);
}
