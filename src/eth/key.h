/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ETH_KEY_H
#define VB_ETH_KEY_H

/*
 * The fields of a frame that flow rules compare, at fixed offsets: so a rule is a key and a mask,
 * and rules with the same mask are found by a hash. Numbers are in network order, as in the frame.
 * Fields that a frame lacks are zero. Pure functions; any thread.
 */

#include "eth/parse.h"

/* vb_eth_level.bits */
enum {
	VB_KEY_L2 = 1,	    /* there is an Ethernet header: not in every tunnel */
	VB_KEY_VLAN = 2,    /* ... with a tag */
	VB_KEY_L4 = 4,	    /* the L4 header is there */
	VB_KEY_GRE_KEY = 8, /* ... and GRE has a key */
};

/* vb_eth_level.label_in */
enum { VB_KEY_LABEL_NONE, VB_KEY_LABEL_ETH, VB_KEY_LABEL_UDP, VB_KEY_LABEL_GRE };

struct vb_eth_level {
	uint8_t bits;
	uint8_t version; /* of IP, 0: none */
	uint8_t label_in;
	uint8_t tunnel; /* 1: VXLAN */
	uint8_t dst_mac[VB_MAC_BYTES], src_mac[VB_MAC_BYTES];
	uint8_t ethertype[2]; /* behind all tags */
	uint8_t tci[2];	      /* of the outermost tag */
	uint8_t proto;	      /* of IPv6, behind the extension headers */
	uint8_t tos;	      /* or traffic class */
	uint8_t ttl;	      /* or hop limit */
	uint8_t ip_flags;     /* of IPv4: 2 DF, 4 MF */
	uint8_t src_ip[16], dst_ip[16]; /* IPv4: the first four octets */
	/*
	 * TCP, UDP: source port, destination port. ESP: SPI, sequence number. GRE: flags, protocol,
	 * key.
	 */
	uint8_t l4[8];
	uint8_t flow_label[4];
	uint8_t label[4]; /* of MPLS: the whole first label entry */
	uint8_t vni[4];
	uint8_t zero[4];
};

enum {
	VB_KEY_WORDS_LEVEL = sizeof(struct vb_eth_level) / 8,
	VB_KEY_WORDS = 2 * VB_KEY_WORDS_LEVEL,
};

union vb_eth_key {
	struct {
		struct vb_eth_level outer, inner;
	};
	uint64_t word[VB_KEY_WORDS];
};

/*
 * Fills in one level of a frame. IP below MPLS labels directly on Ethernet counts for both levels:
 * rules may mean either.
 */
void vb_eth_key_outer(struct vb_eth_level *level, const struct vb_eth_frame *frame);
void vb_eth_key_inner(struct vb_eth_level *level, const struct vb_eth_frame *frame);

#endif
