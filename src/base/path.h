/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BASE_PATH_H
#define VB_BASE_PATH_H

/*
 * The addresses of a frame and what else links and the ICRC need to know of its way.
 *
 * Addresses are GIDs: 16 octets in network order, an IPv4 address as ::ffff:a.b.c.d.
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define VB_GID_BYTES 16

struct vb_path {
	uint8_t src[VB_GID_BYTES];
	uint8_t dst[VB_GID_BYTES];
	uint32_t flow_label; /* 20 bits, IPv6 only */
	uint32_t ifindex;    /* scope of link-local addresses, 0: none */
	uint16_t sport;      /* UDP source port, host order; from vb_link_ops.sport */
	uint8_t tclass;      /* IPv4: the TOS octet */
	uint8_t hop_limit;
	/* dst is an address of this host; unknown (false) in received frames */
	bool local;
};

/* Who the destination is to us, which bounds the resources spent on it. */
enum vb_whom {
	VB_OURS,     /* a peer that this process has addressed itself */
	VB_GUEST,    /* a peer that sent to us and has proved that it is admitted */
	VB_STRANGER, /* any sender, under any address */
};

/* True for a GID that stands for an IPv4 address (::ffff:0:0/96). */
static inline bool vb_gid_is_ipv4(const uint8_t gid[VB_GID_BYTES])
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(gid, prefix, sizeof(prefix)) == 0;
}

static inline bool vb_gid_is_link_local(const uint8_t gid[VB_GID_BYTES])
{
	return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

/* True for a multicast group: 224.0.0.0/4, or an IPv6 address in ff00::/8. */
static inline bool vb_gid_is_group(const uint8_t gid[VB_GID_BYTES])
{
	return gid[0] == 0xff || (vb_gid_is_ipv4(gid) && (gid[12] & 0xf0) == 0xe0);
}

enum { VB_ADDRESS_BYTES = 46 };

/* A GID as people write it: "10.0.0.1", "fe80::1". Returns text. */
const char *vb_gid_text(char text[VB_ADDRESS_BYTES], const uint8_t gid[VB_GID_BYTES]);

#endif
