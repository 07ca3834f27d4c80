/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/udp_one.h"

#include <errno.h>

#include "link/udp_message.h"
#include "link/udp_path.h"

enum { CONTROL_BYTES = 256 };

int vb_udp_one_take(int fd, uint8_t octets[VB_UDP_ONE_BYTES], struct vb_path *path,
		    uint32_t *segment_bytes)
{
	union {
		struct cmsghdr align;
		uint8_t octets[CONTROL_BYTES];
	} control;
	struct iovec iov = {octets, VB_UDP_ONE_BYTES};
	union vb_udp_address from;
	struct msghdr msg = {
		.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t bytes = recvmsg(fd, &msg, MSG_DONTWAIT);

	if (bytes < 0)
		return -1;
	vb_udp_path_begin(path, &from);
	*segment_bytes = vb_udp_path_take(path, &msg, (uint32_t)bytes);
	return (int)bytes;
}

static void source_put(struct msghdr *msg, int family, const struct vb_path *path)
{
	if (family == AF_INET) {
		struct in_pktinfo info = {.ipi_ifindex = (int)path->ifindex};

		memcpy(&info.ipi_spec_dst, path->src + VB_GID_IPV4, 4);
		vb_udp_control_put(msg, IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
	} else {
		struct in6_pktinfo info = {.ipi6_ifindex = path->ifindex};

		memcpy(&info.ipi6_addr, path->src, VB_GID_BYTES);
		vb_udp_control_put(msg, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof(info));
	}
}

int vb_udp_one_send(int fd, const struct vb_path *path, const void *octets, uint32_t bytes)
{
	union {
		struct cmsghdr align;
		uint8_t octets[CONTROL_BYTES];
	} control;
	struct iovec iov = {(void *)octets, bytes};
	union vb_udp_address to;
	struct msghdr msg = {
		.msg_name = &to, .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
	};
	socklen_t size = sizeof(int);
	int family;

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size))
		return errno;
	if (!vb_udp_address_set(&to, &msg.msg_namelen, family, path->dst, VB_UDP_PORT,
				path->ifindex))
		return ENETUNREACH;
	source_put(&msg, family, path);
	return vb_udp_message_send(fd, &msg) < 0 ? errno : 0;
}
