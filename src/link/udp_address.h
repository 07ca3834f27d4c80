/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_UDP_ADDRESS_H
#define VB_LINK_UDP_ADDRESS_H

/* GIDs as socket addresses, for the files of the UDP link. */

#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "base/path.h"

enum { VB_GID_IPV4 = 12 }; /* offset of the IPv4 address in a GID */

union vb_udp_address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

static inline bool vb_gid_is_zero(const uint8_t gid[VB_GID_BYTES])
{
	static const uint8_t zero[VB_GID_BYTES];

	return memcmp(gid, zero, sizeof(zero)) == 0;
}

static inline void vb_gid_from_ipv4(uint8_t gid[VB_GID_BYTES], const void *ipv4)
{
	memset(gid, 0, 10);
	memset(gid + 10, 0xff, 2);
	memcpy(gid + VB_GID_IPV4, ipv4, 4);
}

/* Writes a GID as a socket address of that family. False if the family cannot express it. */
static inline bool vb_udp_address_set(union vb_udp_address *address, socklen_t *bytes, int family,
			const uint8_t gid[VB_GID_BYTES], uint16_t port, uint32_t ifindex)
{
	memset(address, 0, sizeof(*address));
	if (family == AF_INET) {
		if (!vb_gid_is_ipv4(gid))
			return false;
		address->in.sin_family = AF_INET;
		address->in.sin_port = htons(port);
		memcpy(&address->in.sin_addr, gid + VB_GID_IPV4, 4);
		*bytes = sizeof(address->in);
		return true;
	}
	address->in6.sin6_family = AF_INET6;
	address->in6.sin6_port = htons(port);
	memcpy(&address->in6.sin6_addr, gid, VB_GID_BYTES);
	address->in6.sin6_scope_id = ifindex;
	*bytes = sizeof(address->in6);
	return true;
}

/* Reads a GID from an address of either family. */
static inline void vb_udp_address_gid(const union vb_udp_address *address,
				      uint8_t gid[VB_GID_BYTES])
{
	if (address->any.sa_family == AF_INET)
		vb_gid_from_ipv4(gid, &address->in.sin_addr);
	else
		memcpy(gid, &address->in6.sin6_addr, VB_GID_BYTES);
}

/* The port is at the same offset in both. */
static inline uint16_t vb_udp_address_port(const union vb_udp_address *address)
{
	return ntohs(address->in.sin_port);
}

#endif
