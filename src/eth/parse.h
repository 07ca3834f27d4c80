/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ETH_PARSE_H
#define VB_ETH_PARSE_H

/*
 * Where the headers of an Ethernet frame are: VLAN tags (IEEE 802.1Q), IPv4 (RFC 791), IPv6 and its
 * extension headers (RFC 8200), TCP, UDP and their like, and one tunnel with what is in it: VXLAN
 * (RFC 7348), GRE (RFC 2784, 2890), MPLS by itself (RFC 3032), in GRE (RFC 4023) or UDP (RFC 7510).
 *
 * Nothing is verified but that headers are there: no checksum, no address. Whatever is found lies
 * within the frame. Pure functions; any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#define VB_ETH_HEADER_BYTES 14u
#define VB_MAC_BYTES 6u
#define VB_ETH_VLANS_MAX 4u	  /* what stands behind more tags is not looked at */
#define VB_ETH_EXTENSIONS_MAX 8u  /* of IPv6 */
#define VB_ETH_LABELS_MAX 16u	  /* of MPLS */

enum {
	VB_ETHERTYPE_IPV4 = 0x0800,
	VB_ETHERTYPE_VLAN = 0x8100,
	VB_ETHERTYPE_IPV6 = 0x86dd,
	VB_ETHERTYPE_QINQ = 0x88a8,
	VB_ETHERTYPE_MPLS = 0x8847,
	VB_ETHERTYPE_MPLS_MC = 0x8848,
	VB_ETHERTYPE_TEB = 0x6558, /* Ethernet in GRE */
};

enum {
	VB_IPPROTO_ICMP = 1,
	VB_IPPROTO_TCP = 6,
	VB_IPPROTO_UDP = 17,
	VB_IPPROTO_GRE = 47,
	VB_IPPROTO_ESP = 50,
	VB_IPPROTO_AH = 51,
	VB_IPPROTO_ICMPV6 = 58,
	VB_IPPROTO_NONE = 59,
	VB_IPPROTO_SCTP = 132,
};

/* What a destination port of UDP says. */
enum {
	VB_UDP_VXLAN = 4789,
	VB_UDP_MPLS = 6635,
};

enum vb_l3 { VB_L3_NONE, VB_L3_IPV4, VB_L3_IPV6 };
enum vb_tunnel { VB_TUNNEL_NONE, VB_TUNNEL_VXLAN, VB_TUNNEL_GRE, VB_TUNNEL_MPLS };

/* Offsets are from the frame's first octet. */
struct vb_eth_headers {
	bool has_l2;
	bool fragment;	     /* of an IP packet, whichever */
	bool first_fragment; /* ... which begins with the L4 header */
	bool whole;	     /* IP tells a length, and so much is there */
	bool routed;	     /* by IPv6, to somewhere else than its header says (RFC 8200 4.4) */
	uint8_t vlans;
	uint8_t proto; /* of IP; of IPv6, what stands behind the extension headers; else 0 */
	enum vb_l3 l3;
	uint16_t vlan_tci;  /* of the outermost tag, host order */
	uint16_t ethertype; /* behind all tags; in a tunnel without Ethernet, what it says it is */
	uint16_t l2_at;
	uint16_t l3_at; /* 0: no IP header that is whole and right */
	/*
	 * 0: none; of TCP, UDP, GRE, ESP and SCTP, the header is all there, of other protocols at
	 * least one octet. Behind the first fragment there is none.
	 */
	uint16_t l4_at;
	uint16_t payload_at; /* behind the innermost of these headers that there is */
	/*
	 * Where the packet ends by the length that IP tells, or the frame, if that is shorter. A
	 * length of 0 says nothing: whoever has the NIC cut segments need not know it.
	 */
	uint32_t end;
};

struct vb_eth_frame {
	const uint8_t *octets;
	uint32_t bytes; /* without FCS */
	/* MPLS in GRE is MPLS: outer.proto and outer.l4_at tell of the GRE header. */
	enum vb_tunnel tunnel;
	uint16_t tunnel_at; /* its header; of MPLS, the first label */
	struct vb_eth_headers outer, inner;
	bool has_inner; /* there is Ethernet or IP in the tunnel */
};

/*
 * False, and nothing set but octets and bytes: shorter than an Ethernet header. Deeper headers that
 * are cut off or wrong just end the parse. Fragments are not looked into for tunnels.
 */
bool vb_eth_parse(struct vb_eth_frame *frame, const uint8_t *octets, uint32_t bytes);

/* The same, of headers whose data is elsewhere: whatever lengths IP tells are taken for 0. */
bool vb_eth_parse_template(struct vb_eth_frame *frame, const uint8_t *octets, uint32_t bytes);

#endif
