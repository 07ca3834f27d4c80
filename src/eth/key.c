/* SPDX-License-Identifier: BSD-2-Clause */
#include "eth/key.h"

#include <string.h>

#include "wire/bytes.h"

_Static_assert(sizeof(struct vb_eth_level) == 8 * VB_KEY_WORDS_LEVEL, "no octet between");
_Static_assert(sizeof(union vb_eth_key) == 8 * VB_KEY_WORDS, "nor here");

static void key_l2(struct vb_eth_level *level, const struct vb_eth_headers *headers,
		   const uint8_t *octets)
{
	vb_be16_put(level->ethertype, headers->ethertype);
	if (!headers->has_l2)
		return;
	level->bits |= VB_KEY_L2;
	memcpy(level->dst_mac, octets + headers->l2_at, VB_MAC_BYTES);
	memcpy(level->src_mac, octets + headers->l2_at + VB_MAC_BYTES, VB_MAC_BYTES);
	if (headers->vlans) {
		level->bits |= VB_KEY_VLAN;
		vb_be16_put(level->tci, headers->vlan_tci);
	}
}

static void key_ip(struct vb_eth_level *level, const struct vb_eth_headers *headers,
		   const uint8_t *octets)
{
	const uint8_t *ip = octets + headers->l3_at;

	level->proto = headers->proto;
	if (headers->l3 == VB_L3_IPV4) {
		level->version = 4;
		level->tos = ip[1];
		level->ttl = ip[8];
		/* The first bit on the wire is the lowest here. */
		level->ip_flags = (uint8_t)(ip[6] >> 7 | (ip[6] >> 5 & 2) | (ip[6] >> 3 & 4));
		memcpy(level->src_ip, ip + 12, 4);
		memcpy(level->dst_ip, ip + 16, 4);
	} else if (headers->l3 == VB_L3_IPV6) {
		level->version = 6;
		level->tos = (uint8_t)(vb_be16_get(ip) >> 4);
		level->ttl = ip[7];
		vb_be32_put(level->flow_label, vb_be32_get(ip) & 0xfffff);
		memcpy(level->src_ip, ip + 8, 16);
		memcpy(level->dst_ip, ip + 24, 16);
	}
}

static void key_gre(struct vb_eth_level *level, const uint8_t *gre)
{
	memcpy(level->l4, gre, 4);
	if ((gre[0] & 0x20) && !(gre[1] & 7)) { /* the key follows the checksum, if there is one */
		level->bits |= VB_KEY_GRE_KEY;
		memcpy(level->l4 + 4, gre + (gre[0] & 0x80 ? 8 : 4), 4);
	}
}

static void key_l4(struct vb_eth_level *level, const struct vb_eth_headers *headers,
		   const uint8_t *octets)
{
	const uint8_t *l4 = octets + headers->l4_at;

	if (!headers->l4_at)
		return;
	level->bits |= VB_KEY_L4;
	switch (headers->proto) {
	case VB_IPPROTO_TCP:
	case VB_IPPROTO_UDP:
		memcpy(level->l4, l4, 4);
		break;
	case VB_IPPROTO_ESP:
		memcpy(level->l4, l4, 8);
		break;
	case VB_IPPROTO_GRE:
		key_gre(level, l4);
		break;
	}
}

static bool is_mpls(uint16_t ethertype)
{
	return ethertype == VB_ETHERTYPE_MPLS || ethertype == VB_ETHERTYPE_MPLS_MC;
}

/* What carries MPLS labels behind these headers, if anything does. */
static uint8_t label_in(const struct vb_eth_headers *headers, const uint8_t *octets)
{
	const uint8_t *l4 = octets + headers->l4_at;

	if (headers->end - headers->payload_at < 4)
		return VB_KEY_LABEL_NONE;
	if (is_mpls(headers->ethertype))
		return VB_KEY_LABEL_ETH;
	if (!headers->l4_at || headers->fragment)
		return VB_KEY_LABEL_NONE;
	if (headers->proto == VB_IPPROTO_UDP && vb_be16_get(l4 + 2) == VB_UDP_MPLS)
		return VB_KEY_LABEL_UDP;
	if (headers->proto == VB_IPPROTO_GRE && !(l4[1] & 7) && is_mpls(vb_be16_get(l4 + 2)))
		return VB_KEY_LABEL_GRE;
	return VB_KEY_LABEL_NONE;
}

static void key_level(struct vb_eth_level *level, const struct vb_eth_headers *l2,
		      const struct vb_eth_headers *ip, const uint8_t *octets)
{
	memset(level, 0, sizeof(*level));
	key_l2(level, l2, octets);
	key_ip(level, ip, octets);
	key_l4(level, ip, octets);
	level->label_in = label_in(l2, octets);
	if (level->label_in)
		memcpy(level->label, octets + l2->payload_at, 4);
}

void vb_eth_key_outer(struct vb_eth_level *level, const struct vb_eth_frame *frame)
{
	const struct vb_eth_headers *outer = &frame->outer;
	bool labelled = frame->has_inner && is_mpls(outer->ethertype);

	key_level(level, outer, labelled ? &frame->inner : outer, frame->octets);
	if (frame->tunnel == VB_TUNNEL_VXLAN) {
		level->tunnel = 1;
		memcpy(level->vni + 1, frame->octets + frame->tunnel_at + 4, 3);
	}
}

void vb_eth_key_inner(struct vb_eth_level *level, const struct vb_eth_frame *frame)
{
	if (frame->has_inner)
		key_level(level, &frame->inner, &frame->inner, frame->octets);
	else
		memset(level, 0, sizeof(*level));
}
