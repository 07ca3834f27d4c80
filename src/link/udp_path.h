/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_UDP_PATH_H
#define VB_LINK_UDP_PATH_H

/* The path that a datagram came by, from what the kernel tells beside it (ip(7), ipv6(7)). */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "link/udp_socket.h"
#include "link/udp_address.h"

#ifndef IPV6_FLOWINFO
#define IPV6_FLOWINFO 11 /* linux/in6.h */
#endif

#define VB_UDP_FLOW_LABEL_MASK 0xfffffu

static inline int vb_udp_control_int(const struct cmsghdr *cmsg)
{
	int value = 0;

	/* IP_TOS comes as one octet, everything else as an int. */
	if (cmsg->cmsg_len < CMSG_LEN(sizeof(value)))
		return *CMSG_DATA(cmsg);
	memcpy(&value, CMSG_DATA(cmsg), sizeof(value));
	return value;
}

static inline void vb_udp_path_begin(struct vb_path *path, const union vb_udp_address *from)
{
	*path = (struct vb_path){.hop_limit = VB_UDP_HOP_LIMIT_DEFAULT};
	path->sport = vb_udp_address_port(from);
	vb_udp_address_gid(from, path->src);
}

static inline void vb_udp_path_take_ipv4(struct vb_path *path, const struct cmsghdr *cmsg)
{
	struct in_pktinfo info;

	switch (cmsg->cmsg_type) {
	case IP_TOS:
		path->tclass = (uint8_t)vb_udp_control_int(cmsg);
		break;
	case IP_TTL:
		path->hop_limit = (uint8_t)vb_udp_control_int(cmsg);
		break;
	case IP_PKTINFO:
		memcpy(&info, CMSG_DATA(cmsg), sizeof(info));
		vb_gid_from_ipv4(path->dst, &info.ipi_addr);
		break;
	default:
		break;
	}
}

static inline void vb_udp_path_take_ipv6(struct vb_path *path, const struct cmsghdr *cmsg)
{
	struct in6_pktinfo info;
	uint32_t flow;

	switch (cmsg->cmsg_type) {
	case IPV6_TCLASS:
		path->tclass = (uint8_t)vb_udp_control_int(cmsg);
		break;
	case IPV6_HOPLIMIT:
		path->hop_limit = (uint8_t)vb_udp_control_int(cmsg);
		break;
	case IPV6_FLOWINFO:
		memcpy(&flow, CMSG_DATA(cmsg), sizeof(flow));
		path->flow_label = ntohl(flow) & VB_UDP_FLOW_LABEL_MASK;
		break;
	case IPV6_PKTINFO:
		memcpy(&info, CMSG_DATA(cmsg), sizeof(info));
		memcpy(path->dst, &info.ipi6_addr, VB_GID_BYTES);
		if (vb_gid_is_link_local(path->src) || vb_gid_is_link_local(path->dst))
			path->ifindex = info.ipi6_ifindex;
		break;
	default:
		break;
	}
}

/* All that is told of one message, datagram or merged run; returns the octets of each datagram. */
static inline uint32_t vb_udp_path_take(struct vb_path *path, struct msghdr *msg, uint32_t bytes)
{
	uint32_t segment_bytes = 0;

	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
		if (cmsg->cmsg_level == IPPROTO_UDP && cmsg->cmsg_type == UDP_GRO)
			segment_bytes = (uint32_t)vb_udp_control_int(cmsg);
		else if (cmsg->cmsg_level == IPPROTO_IP)
			vb_udp_path_take_ipv4(path, cmsg);
		else if (cmsg->cmsg_level == IPPROTO_IPV6)
			vb_udp_path_take_ipv6(path, cmsg);
	}
	return segment_bytes ? segment_bytes : bytes;
}

#endif
