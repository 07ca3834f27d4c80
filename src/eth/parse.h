/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ETH_PARSE_H
#define VB_ETH_PARSE_H

/*
 * Finds the headers of an Ethernet frame: VLAN tags (IEEE 802.1Q), IPv4 (RFC 791), IPv6 and its
 * extension headers (RFC 8200), TCP, UDP and similar, and one tunnel with its content: VXLAN (RFC
 * 7348), GRE (RFC 2784, 2890), MPLS on Ethernet (RFC 3032), in GRE (RFC 4023) or UDP (RFC 7510).
 *
 * Checks only that headers are present: no checksum, no address. Everything found is within the
 * frame. Pure functions; any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#define VB_ETH_HEADER_BYTES 14u
#define VB_MAC_BYTES 6u
#define VB_ETH_VLANS_MAX 4u	  /* behind more tags, nothing is parsed */
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

/* UDP destination ports of tunnels. */
enum {
	VB_UDP_VXLAN = 4789,
	VB_UDP_MPLS = 6635,
};

enum vb_l3 { VB_L3_NONE, VB_L3_IPV4, VB_L3_IPV6 };
enum vb_tunnel { VB_TUNNEL_NONE, VB_TUNNEL_VXLAN, VB_TUNNEL_GRE, VB_TUNNEL_MPLS };

/* Offsets are from the frame's first octet. */
struct vb_eth_headers {
	bool has_l2;
	bool fragment;	     /* any fragment of an IP packet */
	bool first_fragment; /* ... which begins with the L4 header */
	bool whole;	     /* IP has a length, and the frame has that many octets */
	bool routed;	     /* by an IPv6 header with segments left (RFC 8200 4.4) */
	uint8_t vlans;
	uint8_t proto; /* of IP; with IPv6, what follows the extension headers; else 0 */
	enum vb_l3 l3;
	uint16_t vlan_tci;  /* of the outermost tag, host order */
	/* behind all tags; in a tunnel without Ethernet, the protocol it names */
	uint16_t ethertype;
	uint16_t l2_at;
	uint16_t l3_at; /* 0: no complete, valid IP header */
	/*
	 * 0: none. For TCP, UDP, GRE, ESP and SCTP the header is complete, for other protocols it
	 * has at least one octet. Fragments after the first have none.
	 */
	uint16_t l4_at;
	uint16_t payload_at; /* behind the innermost header found */
	/*
	 * End of the packet by IP's length, or of the frame if that is shorter. A length of 0 is
	 * ignored: a sender that leaves segmentation to the NIC may not set it.
	 */
	uint32_t end;
};

struct vb_eth_frame {
	const uint8_t *octets;
	uint32_t bytes; /* without FCS */
	/* MPLS in GRE counts as MPLS: outer.proto and outer.l4_at describe the GRE header. */
	enum vb_tunnel tunnel;
	uint16_t tunnel_at; /* its header; for MPLS the first label */
	struct vb_eth_headers outer, inner;
	bool has_inner; /* the tunnel contains Ethernet or IP */
};

/*
 * Returns false, with only octets and bytes set, if the frame is shorter than an Ethernet header. A
 * deeper header that is truncated or invalid ends the parse. Fragments are not searched for
 * tunnels.
 */
bool vb_eth_parse(struct vb_eth_frame *frame, const uint8_t *octets, uint32_t bytes);

/* The same for headers without their data: lengths in IP headers are taken as 0. */
bool vb_eth_parse_template(struct vb_eth_frame *frame, const uint8_t *octets, uint32_t bytes);

#endif
