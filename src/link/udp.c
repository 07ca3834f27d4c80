/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/link.h"
#include "link/udp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "link/udp_senders.h"

#ifndef IPV6_FLOWINFO
#define IPV6_FLOWINFO 11 /* linux/in6.h */
#endif

enum {
	RX_BATCHES_MAX = 16,	/* datagrams, or merged runs of them, of one recvmmsg */
	RX_BATCH_BYTES = 65536, /* a merged run is never longer than the longest UDP datagram */
	RX_CONTROL_BYTES = 256,
	TX_CONTROL_BYTES = 128,
	UDP_HEADER_BYTES = 8,
	IPV4_HEADER_BYTES = 20,
	IPV6_HEADER_BYTES = 40,
	FLOW_LABEL_MASK = 0xfffff,
};

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

union rx_control {
	struct cmsghdr align;
	uint8_t octets[RX_CONTROL_BYTES];
};

/* What one recvmmsg brought, and how much of it has been handed on as frames. */
struct rx {
	unsigned ask;		 /* for so many, 1 to RX_BATCHES_MAX */
	unsigned batches, next;	 /* received; the one that comes next */
	uint32_t offset, frames; /* within that one: octets and frames handed on */
	uint32_t segment_bytes;
	struct vb_path path;
	struct mmsghdr msgs[RX_BATCHES_MAX];
	struct iovec iov[RX_BATCHES_MAX];
	union address from[RX_BATCHES_MAX];
	union rx_control control[RX_BATCHES_MAX];
	uint8_t data[RX_BATCHES_MAX][RX_BATCH_BYTES];
};

struct udp_link {
	struct vb_link link;
	int fd;
	int family;
	atomic_bool unsegmented; /* the kernel refused to segment: frames leave one by one */
	atomic_bool pending;	 /* frames wait in rx that the socket no longer shows */
	struct rx *rx;		 /* made at the first rx; the one rx thread's own */
	struct vb_udp_senders senders;
};

/*
 * Straight to the kernel: in the C library these are cancellation points, which costs something at
 * each call, and nobody may be cancelled in here anyway.
 */
static ssize_t message_send(int fd, const struct msghdr *msg)
{
	return syscall(SYS_sendmsg, fd, msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static ssize_t message_receive(int fd, struct msghdr *msg)
{
	return syscall(SYS_recvmsg, fd, msg, MSG_DONTWAIT);
}

static int messages_receive(int fd, struct mmsghdr *msgs, unsigned n)
{
	return (int)syscall(SYS_recvmmsg, fd, msgs, n, MSG_DONTWAIT, NULL);
}

static struct udp_link *udp_of(struct vb_link *link)
{
	return vb_container_of(link, struct udp_link, link);
}

static const uint8_t *ipv4_of(const uint8_t gid[VB_GID_BYTES])
{
	return gid + 12;
}

static void gid_from_ipv4(uint8_t gid[VB_GID_BYTES], const void *ipv4)
{
	memset(gid, 0, 10);
	memset(gid + 10, 0xff, 2);
	memcpy(gid + 12, ipv4, 4);
}

static bool gid_is_zero(const uint8_t gid[VB_GID_BYTES])
{
	static const uint8_t zero[VB_GID_BYTES];

	return memcmp(gid, zero, sizeof(zero)) == 0;
}

/* A GID as a socket address of that family; false if the family cannot say it. */
static bool address_set(union address *address, socklen_t *bytes, int family,
			const uint8_t gid[VB_GID_BYTES], uint16_t port, uint32_t ifindex)
{
	memset(address, 0, sizeof(*address));
	if (family == AF_INET) {
		if (!vb_gid_is_ipv4(gid))
			return false;
		address->in.sin_family = AF_INET;
		address->in.sin_port = htons(port);
		memcpy(&address->in.sin_addr, ipv4_of(gid), 4);
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

/* Append one control message; the buffer is sized for all that tx ever appends. */
static void control_put(struct msghdr *msg, int level, int type, const void *data, size_t bytes)
{
	struct cmsghdr *cmsg = (void *)((uint8_t *)msg->msg_control + msg->msg_controllen);

	vb_check(msg->msg_controllen + CMSG_SPACE(bytes) <= TX_CONTROL_BYTES);
	/* The padding as well: valgrind looks at all that the kernel gets. */
	memset(cmsg, 0, CMSG_SPACE(bytes));
	cmsg->cmsg_level = level;
	cmsg->cmsg_type = type;
	cmsg->cmsg_len = CMSG_LEN(bytes);
	memcpy(CMSG_DATA(cmsg), data, bytes);
	msg->msg_controllen += CMSG_SPACE(bytes);
}

/* Source address, if not the socket's own, and what of the IP header is not as it is by default. */
static void control_put_path(struct msghdr *msg, int family, bool bound, const struct vb_path *path)
{
	bool ipv4 = vb_gid_is_ipv4(path->dst);
	int tclass = path->tclass, hops = path->hop_limit;

	if (bound) {
		/* Nothing to be said. */
	} else if (family == AF_INET) {
		struct in_pktinfo info = {.ipi_ifindex = (int)path->ifindex};

		memcpy(&info.ipi_spec_dst, ipv4_of(path->src), 4);
		control_put(msg, IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
	} else if (!gid_is_zero(path->src)) {
		/* The kernel takes a mapped address here for an IPv4 destination. */
		struct in6_pktinfo info = {.ipi6_ifindex = path->ifindex};

		memcpy(&info.ipi6_addr, path->src, VB_GID_BYTES);
		control_put(msg, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof(info));
	}
	if (tclass && ipv4)
		control_put(msg, IPPROTO_IP, IP_TOS, &tclass, sizeof(tclass));
	else if (tclass)
		control_put(msg, IPPROTO_IPV6, IPV6_TCLASS, &tclass, sizeof(tclass));
	if (!hops || hops == VB_UDP_HOP_LIMIT_DEFAULT)
		return;
	if (ipv4)
		control_put(msg, IPPROTO_IP, IP_TTL, &hops, sizeof(hops));
	else
		control_put(msg, IPPROTO_IPV6, IPV6_HOPLIMIT, &hops, sizeof(hops));
}

/*
 * The socket that sends from that port: the slot's own, unless it is a sender's. Another socket
 * would put another port into the header than the ICRC was made for.
 */
static int fd_of_path(struct udp_link *udp, const struct vb_path *path, bool *bound)
{
	*bound = false;
	if (path->sport < VB_UDP_SENDER_PORT)
		return udp->fd;
	return vb_udp_senders_fd(&udp->senders, path, bound);
}

/* One sendmsg. segment_bytes 0: a single datagram. */
static int datagram_send(struct udp_link *udp, const struct vb_path *path, const struct iovec *iov,
			 uint32_t iovcnt, uint16_t segment_bytes)
{
	union {
		struct cmsghdr align;
		uint8_t octets[TX_CONTROL_BYTES];
	} control;
	bool bound;
	int fd = fd_of_path(udp, path, &bound);
	union address to;
	struct msghdr msg = {
		.msg_name = &to,
		.msg_iov = (struct iovec *)iov,
		.msg_iovlen = iovcnt,
		.msg_control = &control,
	};

	if (fd < 0)
		return EADDRNOTAVAIL;
	if (!address_set(&to, &msg.msg_namelen, udp->family, path->dst, VB_UDP_PORT, path->ifindex))
		return ENETUNREACH;
	if (udp->family == AF_INET6 && !vb_gid_is_ipv4(path->dst))
		to.in6.sin6_flowinfo = htonl(path->flow_label & FLOW_LABEL_MASK);
	control_put_path(&msg, udp->family, bound, path);
	if (segment_bytes)
		control_put(&msg, IPPROTO_UDP, UDP_SEGMENT, &segment_bytes, sizeof(segment_bytes));
	if (message_send(fd, &msg) >= 0)
		return 0;
	return errno == ENOBUFS || errno == EINTR ? EAGAIN : errno;
}

/* The first frame on its own. */
static int first_frame_send(struct udp_link *udp, const struct vb_burst *burst)
{
	struct iovec iov[VB_LINK_BURST_IOV_MAX];
	uint32_t left = burst->frame_bytes, n = 0;

	while (left) {
		iov[n] = burst->iov[n];
		iov[n].iov_len = vb_min_u64(iov[n].iov_len, left);
		left -= iov[n++].iov_len;
	}
	return datagram_send(udp, &burst->path, iov, n, 0);
}

/*
 * The kernel refused a segmented send. EIO and EOPNOTSUPP say that the way out cannot do it.
 * EINVAL says that, or that a segment does not fit the MTU, or dislikes the address: the first
 * frame goes alone, and if that is accepted it was the segmenting. The other frames are lost
 * either way: their ICRCs count on identifications that only segmentation gives.
 */
static int segmented_refused(struct udp_link *udp, const struct vb_burst *burst, int error)
{
	if (error == EINVAL) {
		int rc = first_frame_send(udp, burst);

		if (rc)
			return rc == EAGAIN ? EIO : rc;
	}
	atomic_store_explicit(&udp->unsegmented, true, memory_order_relaxed);
	return EIO;
}

static int udp_tx(struct vb_link *link, const struct vb_burst *burst)
{
	struct udp_link *udp = udp_of(link);
	int rc;

	if (burst->frames <= 1)
		return datagram_send(udp, &burst->path, burst->iov, burst->iovcnt, 0);
	rc = datagram_send(udp, &burst->path, burst->iov, burst->iovcnt,
			   (uint16_t)burst->frame_bytes);
	if (rc == EIO || rc == EINVAL || rc == EOPNOTSUPP)
		return segmented_refused(udp, burst, rc);
	return rc;
}

static struct rx *rx_create(void)
{
	struct rx *rx = aligned_alloc(64, (sizeof(*rx) + 63) / 64 * 64);

	if (!rx)
		return NULL;
	/* The buffers stay untouched, so that pages come into being as they are needed. */
	memset(rx, 0, offsetof(struct rx, data));
	rx->ask = 1;
	for (unsigned i = 0; i < RX_BATCHES_MAX; i++) {
		rx->iov[i] = (struct iovec){rx->data[i], RX_BATCH_BYTES};
		rx->msgs[i].msg_hdr = (struct msghdr){
			.msg_name = &rx->from[i],
			.msg_namelen = sizeof(rx->from[i]),
			.msg_iov = &rx->iov[i],
			.msg_iovlen = 1,
			.msg_control = &rx->control[i],
			.msg_controllen = sizeof(rx->control[i]),
		};
	}
	return rx;
}

/*
 * So many messages as `ask` says; their number. Where they come one by one, which is what the
 * fastest ping-pong is, asking for one only saves asking in vain for a second.
 */
static unsigned rx_messages(struct rx *rx, int fd)
{
	ssize_t n;

	if (rx->ask > 1) {
		n = messages_receive(fd, rx->msgs, rx->ask);
		return n > 0 ? (unsigned)n : 0;
	}
	n = message_receive(fd, &rx->msgs[0].msg_hdr);
	if (n < 0)
		return 0;
	rx->msgs[0].msg_len = (unsigned)n;
	return 1;
}

/* Ask the kernel for more. Only the messages that it filled last time need their sizes back. */
static bool rx_refill(struct rx *rx, int fd)
{
	unsigned n;

	for (unsigned i = 0; i < rx->batches; i++) {
		rx->msgs[i].msg_hdr.msg_namelen = sizeof(rx->from[i]);
		rx->msgs[i].msg_hdr.msg_controllen = sizeof(rx->control[i]);
	}
	n = rx_messages(rx, fd);
	rx->batches = n;
	rx->next = 0;
	rx->offset = 0;
	if (n < rx->ask)
		rx->ask = n ? n : 1;
	else if (2 * n <= RX_BATCHES_MAX)
		rx->ask = 2 * n;
	return n > 0;
}

static int control_int(const struct cmsghdr *cmsg)
{
	int value = 0;

	/* IP_TOS comes as one octet, everything else as an int. */
	if (cmsg->cmsg_len < CMSG_LEN(sizeof(value)))
		return *CMSG_DATA(cmsg);
	memcpy(&value, CMSG_DATA(cmsg), sizeof(value));
	return value;
}

static void control_take_ipv4(struct rx *rx, const struct cmsghdr *cmsg)
{
	struct in_pktinfo info;

	switch (cmsg->cmsg_type) {
	case IP_TOS:
		rx->path.tclass = (uint8_t)control_int(cmsg);
		break;
	case IP_TTL:
		rx->path.hop_limit = (uint8_t)control_int(cmsg);
		break;
	case IP_PKTINFO:
		memcpy(&info, CMSG_DATA(cmsg), sizeof(info));
		gid_from_ipv4(rx->path.dst, &info.ipi_addr);
		break;
	default:
		break;
	}
}

static void control_take_ipv6(struct rx *rx, const struct cmsghdr *cmsg)
{
	struct in6_pktinfo info;
	uint32_t flow;

	switch (cmsg->cmsg_type) {
	case IPV6_TCLASS:
		rx->path.tclass = (uint8_t)control_int(cmsg);
		break;
	case IPV6_HOPLIMIT:
		rx->path.hop_limit = (uint8_t)control_int(cmsg);
		break;
	case IPV6_FLOWINFO:
		memcpy(&flow, CMSG_DATA(cmsg), sizeof(flow));
		rx->path.flow_label = ntohl(flow) & FLOW_LABEL_MASK;
		break;
	case IPV6_PKTINFO:
		memcpy(&info, CMSG_DATA(cmsg), sizeof(info));
		memcpy(rx->path.dst, &info.ipi6_addr, VB_GID_BYTES);
		if (vb_gid_is_link_local(rx->path.src) || vb_gid_is_link_local(rx->path.dst))
			rx->path.ifindex = info.ipi6_ifindex;
		break;
	default:
		break;
	}
}

/* Start on the next datagram, or merged run: where it came from, and how long its pieces are. */
static void batch_begin(struct rx *rx)
{
	struct mmsghdr *mmsg = &rx->msgs[rx->next];
	union address *from = &rx->from[rx->next];

	rx->path = (struct vb_path){.hop_limit = VB_UDP_HOP_LIMIT_DEFAULT};
	rx->segment_bytes = mmsg->msg_len;
	rx->frames = 0;
	if (from->any.sa_family == AF_INET) {
		gid_from_ipv4(rx->path.src, &from->in.sin_addr);
		rx->path.sport = ntohs(from->in.sin_port);
	} else {
		memcpy(rx->path.src, &from->in6.sin6_addr, VB_GID_BYTES);
		rx->path.sport = ntohs(from->in6.sin6_port);
	}
	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(&mmsg->msg_hdr); cmsg;
	     cmsg = CMSG_NXTHDR(&mmsg->msg_hdr, cmsg)) {
		if (cmsg->cmsg_level == IPPROTO_UDP && cmsg->cmsg_type == UDP_GRO)
			rx->segment_bytes = (uint32_t)control_int(cmsg);
		else if (cmsg->cmsg_level == IPPROTO_IP)
			control_take_ipv4(rx, cmsg);
		else if (cmsg->cmsg_level == IPPROTO_IPV6)
			control_take_ipv6(rx, cmsg);
	}
	if (rx->segment_bytes == 0)
		rx->segment_bytes = mmsg->msg_len;
}

static unsigned udp_rx(struct vb_link *link, struct vb_frame *frames, unsigned max)
{
	struct udp_link *udp = udp_of(link);
	struct rx *rx = udp->rx ? udp->rx : (udp->rx = rx_create());
	unsigned n = 0;

	if (!rx || (rx->next == rx->batches && !rx_refill(rx, udp->fd)))
		return 0;
	while (n < max && rx->next < rx->batches) {
		uint32_t left = rx->msgs[rx->next].msg_len - rx->offset;

		if (rx->offset == 0)
			batch_begin(rx);
		if (left) {
			uint32_t bytes = (uint32_t)vb_min_u64(left, rx->segment_bytes);

			frames[n++] = (struct vb_frame){
				.path = rx->path,
				.data = rx->data[rx->next] + rx->offset,
				.bytes = bytes,
				.id_hint = (uint16_t)rx->frames++,
			};
			rx->offset += bytes;
			left -= bytes;
		}
		if (!left) {
			rx->next++;
			rx->offset = 0;
		}
	}
	atomic_store_explicit(&udp->pending, rx->next < rx->batches, memory_order_relaxed);
	return n;
}

static unsigned udp_burst_frames_max(struct vb_link *link)
{
	bool single = atomic_load_explicit(&udp_of(link)->unsegmented, memory_order_relaxed);

	return single ? 1 : VB_LINK_BURST_FRAMES_MAX;
}

static int udp_rx_fd(struct vb_link *link)
{
	return udp_of(link)->fd;
}

static uint64_t udp_deadline_ns(struct vb_link *link)
{
	bool pending = atomic_load_explicit(&udp_of(link)->pending, memory_order_relaxed);

	return pending ? 0 : UINT64_MAX;
}

/*
 * A scratch socket asks, connected as the path goes: what the kernel has learned of the path's MTU
 * (RFC 8201) counts, not only the interface's.
 */
static uint32_t udp_frame_bytes_max(struct vb_link *link, const struct vb_path *path)
{
	bool ipv4 = vb_gid_is_ipv4(path->dst);
	int family = ipv4 ? AF_INET : AF_INET6;
	int overhead = UDP_HEADER_BYTES + (ipv4 ? IPV4_HEADER_BYTES : IPV6_HEADER_BYTES);
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	union address src, dst;
	socklen_t src_bytes, dst_bytes, mtu_bytes = sizeof(int);
	int mtu = 0;

	if (fd < 0)
		return 0;
	if (address_set(&dst, &dst_bytes, family, path->dst, VB_UDP_PORT, path->ifindex) &&
	    (gid_is_zero(path->src) ||
	     (address_set(&src, &src_bytes, family, path->src, 0, path->ifindex) &&
	      !bind(fd, &src.any, src_bytes))) &&
	    !connect(fd, &dst.any, dst_bytes) &&
	    getsockopt(fd, ipv4 ? IPPROTO_IP : IPPROTO_IPV6, ipv4 ? IP_MTU : IPV6_MTU, &mtu,
		       &mtu_bytes))
		mtu = 0;
	close(fd);
	if (mtu <= overhead)
		return 0;
	return (uint32_t)vb_min_u64((unsigned)(mtu - overhead), VB_LINK_BURST_BYTES_MAX);
}

static uint16_t udp_sport(struct vb_link *link, const struct vb_path *path, uint16_t slot)
{
	/* What stays on this host meets no GRO, and the sockets are saved. */
	if (!memcmp(path->src, path->dst, VB_GID_BYTES))
		return VB_UDP_PORT;
	return vb_udp_senders_port(&udp_of(link)->senders, path, slot);
}

static void udp_forget(struct vb_link *link)
{
	struct udp_link *udp = udp_of(link);

	close(udp->fd);
	vb_udp_senders_close(&udp->senders);
}

static void udp_destroy(struct vb_link *link)
{
	struct udp_link *udp = udp_of(link);

	udp_forget(link);
	vb_lock_fini(&udp->senders.lock);
	free(udp->rx);
	free(udp);
}

static const struct vb_link_ops udp_ops = {
	.tx = udp_tx,
	.rx = udp_rx,
	.burst_frames_max = udp_burst_frames_max,
	.rx_fd = udp_rx_fd,
	.deadline_ns = udp_deadline_ns,
	.frame_bytes_max = udp_frame_bytes_max,
	.sport = udp_sport,
	.forget = udp_forget,
	.destroy = udp_destroy,
};

int vb_link_udp_create(struct vb_link **link, int fd)
{
	struct udp_link *udp;
	socklen_t bytes = sizeof(int);
	int family;

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &bytes))
		return errno;
	if (family != AF_INET && family != AF_INET6)
		return EAFNOSUPPORT;
	udp = calloc(1, sizeof(*udp));
	if (!udp)
		return ENOMEM;
	udp->link.ops = &udp_ops;
	udp->fd = fd;
	udp->family = family;
	vb_udp_senders_init(&udp->senders, family);
	*link = &udp->link;
	return 0;
}
