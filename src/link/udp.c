/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/udp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/failure.h"
#include "base/fd.h"
#include "link/mail.h"
#include "link/udp_address.h"
#include "link/udp_groups.h"
#include "link/udp_message.h"
#include "link/udp_rx.h"
#include "link/udp_senders.h"
#include "link/udp_socket.h"

enum {
	TX_CONTROL_BYTES = 128,
	UDP_HEADER_BYTES = 8,
	IPV4_HEADER_BYTES = 20,
	IPV6_HEADER_BYTES = 40,
	FLOW_LABEL_MASK = 0xfffff,
};

struct udp_link {
	struct vb_link link;
	int fd;
	int family;
	atomic_bool unsegmented; /* the kernel refused to segment: frames leave one by one */
	_Atomic(struct vb_udp_rx *) rx; /* made at the first rx */
	struct vb_udp_senders senders;
	struct vb_udp_groups groups;
	struct vb_mail mail;
	vb_identify *identify;
};

static struct udp_link *udp_of(struct vb_link *link)
{
	return vb_container_of(link, struct udp_link, link);
}

/* Appends a control message; the buffer has room for all that tx appends. */
static void control_put(struct msghdr *msg, int level, int type, const void *data, size_t bytes)
{
	vb_check(msg->msg_controllen + CMSG_SPACE(bytes) <= TX_CONTROL_BYTES);
	vb_udp_control_put(msg, level, type, data, bytes);
}

/* Appends the parts of the IP header that differ from the socket's defaults. */
static void control_put_path(struct msghdr *msg, int family, const struct vb_udp_sender *sender,
			     const struct vb_path *path)
{
	bool ipv4 = vb_gid_is_ipv4(path->dst);
	int tclass = path->tclass, hops = path->hop_limit;

	if (vb_gid_is_zero(path->src) || memcmp(path->src, sender->src, VB_GID_BYTES) == 0) {
		/* The source address is the socket's, or the kernel chooses one. */
	} else if (family == AF_INET) {
		struct in_pktinfo info = {.ipi_ifindex = (int)path->ifindex};

		memcpy(&info.ipi_spec_dst, path->src + VB_GID_IPV4, 4);
		control_put(msg, IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
	} else {
		/* With a mapped source address the kernel accepts an IPv4 destination. */
		struct in6_pktinfo info = {.ipi6_ifindex = path->ifindex};

		memcpy(&info.ipi6_addr, path->src, VB_GID_BYTES);
		control_put(msg, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof(info));
	}
	if (tclass && ipv4)
		control_put(msg, IPPROTO_IP, IP_TOS, &tclass, sizeof(tclass));
	else if (tclass)
		control_put(msg, IPPROTO_IPV6, IPV6_TCLASS, &tclass, sizeof(tclass));
	if (!hops || hops == sender->hop_limit)
		return;
	if (ipv4)
		control_put(msg, IPPROTO_IP, IP_TTL, &hops, sizeof(hops));
	else
		control_put(msg, IPPROTO_IPV6, IPV6_HOPLIMIT, &hops, sizeof(hops));
}

/*
 * The socket with the path's source port: a sender's, or the slot's own. Another one would send a
 * port that the ICRC does not match.
 */
static int fd_of_path(struct udp_link *udp, const struct vb_path *path,
		      const struct vb_udp_sender **sender)
{
	static const struct vb_udp_sender own = {.hop_limit = VB_UDP_HOP_LIMIT_DEFAULT};

	*sender = &own;
	if (path->sport < VB_UDP_ANSWER_PORT)
		return udp->fd;
	return vb_udp_senders_fd(&udp->senders, path, sender);
}

/* Is the path's destination what the socket is connected to? Then the datagram needs no address. */
static bool goes_without_saying(const struct vb_udp_sender *sender, const struct vb_path *path)
{
	return memcmp(path->dst, sender->dst, VB_GID_BYTES) == 0 &&
	       memcmp(path->src, sender->src, VB_GID_BYTES) == 0 &&
	       (vb_gid_is_ipv4(path->dst) || !path->flow_label);
}

/* Sends by one sendmsg. segment_bytes 0: a single datagram. */
static int datagram_send(struct udp_link *udp, const struct vb_path *path, const struct iovec *iov,
			 uint32_t iovcnt, uint16_t segment_bytes)
{
	union {
		struct cmsghdr align;
		uint8_t octets[TX_CONTROL_BYTES];
	} control;
	const struct vb_udp_sender *sender;
	int fd = fd_of_path(udp, path, &sender);
	union vb_udp_address to;
	struct msghdr msg = {
		.msg_name = &to,
		.msg_iov = (struct iovec *)iov,
		.msg_iovlen = iovcnt,
		.msg_control = &control,
	};

	if (fd < 0)
		return EADDRNOTAVAIL;
	if (goes_without_saying(sender, path))
		msg.msg_name = NULL;
	else if (!vb_udp_address_set(&to, &msg.msg_namelen, udp->family, path->dst, VB_UDP_PORT,
				     path->ifindex))
		return ENETUNREACH;
	else if (udp->family == AF_INET6 && !vb_gid_is_ipv4(path->dst))
		to.in6.sin6_flowinfo = htonl(path->flow_label & FLOW_LABEL_MASK);
	control_put_path(&msg, udp->family, sender, path);
	if (segment_bytes)
		control_put(&msg, IPPROTO_UDP, UDP_SEGMENT, &segment_bytes, sizeof(segment_bytes));
	if (vb_udp_message_send(fd, &msg) >= 0 ||
	    (vb_udp_tells_of_earlier(errno) && vb_udp_message_send(fd, &msg) >= 0))
		return 0;
	return errno == ENOBUFS || errno == EINTR ? EAGAIN : errno;
}

/* Sends the first frame alone. */
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
 * The kernel refused a segmented send. EIO and EOPNOTSUPP mean that the interface cannot do it.
 * EINVAL means that, or that a segment exceeds the MTU, or a bad address: the first frame is sent
 * alone, and if that works, segmentation was the cause. The other frames are lost either way, since
 * their ICRCs assume the identifications of segments.
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

	if (burst->claim)
		return vb_udp_counted_send(burst->claim, burst);
	if (burst->frames <= 1)
		return datagram_send(udp, &burst->path, burst->iov, burst->iovcnt, 0);
	rc = datagram_send(udp, &burst->path, burst->iov, burst->iovcnt,
			   (uint16_t)burst->frame_bytes);
	if (rc == EIO || rc == EINVAL || rc == EOPNOTSUPP)
		return segmented_refused(udp, burst, rc);
	return rc;
}

static void *udp_claim(struct vb_link *link, const struct vb_path *path, uint16_t *first_id)
{
	struct vb_udp_counted *counted = vb_udp_senders_counted(&udp_of(link)->senders, path);

	return counted && vb_udp_counted_claim(counted, first_id) ? counted : NULL;
}

static void udp_unclaim(struct vb_link *link, void *claim)
{
	vb_udp_counted_unclaim(claim);
}

static unsigned udp_rx(struct vb_link *link, struct vb_frame *frames, unsigned max)
{
	struct udp_link *udp = udp_of(link);
	struct vb_udp_rx *rx = atomic_load_explicit(&udp->rx, memory_order_relaxed);
	unsigned n = 0;

	if (!rx) {
		rx = vb_udp_rx_create(udp->fd, udp->family, &udp->groups, &udp->senders,
				      udp->identify);
		atomic_store(&udp->rx, rx);
	}
	if (vb_mail_waits(&udp->mail))
		n = vb_mail_take(&udp->mail, frames, max);
	return n || !rx ? n : vb_udp_rx_take(rx, frames, max);
}

static unsigned udp_burst_frames_max(struct vb_link *link)
{
	bool single = atomic_load_explicit(&udp_of(link)->unsegmented, memory_order_relaxed);

	return single ? 1 : VB_LINK_BURST_FRAMES_MAX;
}

static int udp_rx_fd(struct vb_link *link, unsigned i)
{
	struct udp_link *udp = udp_of(link);
	struct vb_udp_rx *rx = atomic_load(&udp->rx);

	if (i == VB_LINK_RX_FDS_MAX - 1) /* after those of rx */
		return vb_udp_groups_fd(&udp->groups);
	return rx ? vb_udp_rx_fd(rx, i) : i == 0 ? udp->fd : -1;
}

static uint64_t udp_deadline_ns(struct vb_link *link)
{
	struct udp_link *udp = udp_of(link);
	struct vb_udp_rx *rx = atomic_load_explicit(&udp->rx, memory_order_acquire);

	return (rx && vb_udp_rx_pending(rx)) || vb_mail_waits(&udp->mail) ? 0 : UINT64_MAX;
}

/* For a group the path's interface decides, not a route. */
static bool way_out_set(int fd, const struct vb_path *path)
{
	struct ip_mreqn ipv4 = {.imr_ifindex = (int)path->ifindex};
	int ipv6 = (int)path->ifindex;

	if (!vb_gid_is_group(path->dst))
		return true;
	if (vb_gid_is_ipv4(path->dst))
		return !setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &ipv4, sizeof(ipv4));
	return !setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &ipv6, sizeof(ipv6));
}

/*
 * Asks by means of a temporary socket, connected as the path goes: so the path MTU that the kernel
 * has learned (RFC 8201) counts, not only the interface's.
 */
static uint32_t udp_frame_bytes_max(struct vb_link *link, const struct vb_path *path)
{
	bool ipv4 = vb_gid_is_ipv4(path->dst);
	int family = ipv4 ? AF_INET : AF_INET6;
	int overhead = UDP_HEADER_BYTES + (ipv4 ? IPV4_HEADER_BYTES : IPV6_HEADER_BYTES);
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	union vb_udp_address src, dst;
	socklen_t src_bytes, dst_bytes, mtu_bytes = sizeof(int);
	int mtu = 0;

	/* No descriptor to ask with: assume that everything fits. */
	if (fd < 0)
		return errno == EMFILE || errno == ENFILE ? VB_LINK_BURST_BYTES_MAX : 0;
	if (way_out_set(fd, path) &&
	    vb_udp_address_set(&dst, &dst_bytes, family, path->dst, VB_UDP_PORT, path->ifindex) &&
	    (vb_gid_is_zero(path->src) ||
	     (vb_udp_address_set(&src, &src_bytes, family, path->src, 0, path->ifindex) &&
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

static uint16_t udp_sport(struct vb_link *link, const struct vb_path *path, uint16_t slot,
			  enum vb_whom whom)
{
	/* Within a host there is no GRO, so the slot's own port does; a group has no slot. */
	if (!memcmp(path->src, path->dst, VB_GID_BYTES) || vb_gid_is_group(path->dst))
		return VB_UDP_PORT;
	return vb_udp_senders_port(&udp_of(link)->senders, path, slot, whom);
}

static int udp_sport_choose(struct vb_link *link, const struct vb_path *path, uint16_t slot,
			    uint16_t port)
{
	return vb_udp_senders_choose(&udp_of(link)->senders, path, slot, port);
}

static int udp_join(struct vb_link *link, const uint8_t gid[VB_GID_BYTES], uint32_t ifindex)
{
	return vb_udp_groups_join(&udp_of(link)->groups, gid, ifindex);
}

static void udp_leave(struct vb_link *link, const uint8_t gid[VB_GID_BYTES])
{
	vb_udp_groups_leave(&udp_of(link)->groups, gid);
}

static bool udp_deliver(struct vb_link *link, const struct vb_frame *frame)
{
	return vb_mail_put(&udp_of(link)->mail, frame);
}

static void udp_forget(struct vb_link *link)
{
	struct udp_link *udp = udp_of(link);

	vb_fd_close(&udp->fd);
	if (udp->rx)
		vb_udp_rx_forget(udp->rx);
	vb_udp_senders_close(&udp->senders);
	vb_udp_groups_close(&udp->groups);
}

static void udp_destroy(struct vb_link *link)
{
	struct udp_link *udp = udp_of(link);

	udp_forget(link);
	vb_lock_fini(&udp->senders.lock);
	vb_udp_groups_fini(&udp->groups);
	vb_udp_rx_destroy(udp->rx);
	vb_mail_fini(&udp->mail);
	free(udp);
}

static const struct vb_link_ops udp_ops = {
	.tx = udp_tx,
	.claim = udp_claim,
	.unclaim = udp_unclaim,
	.rx = udp_rx,
	.burst_frames_max = udp_burst_frames_max,
	.rx_fd = udp_rx_fd,
	.deadline_ns = udp_deadline_ns,
	.frame_bytes_max = udp_frame_bytes_max,
	.sport = udp_sport,
	.sport_choose = udp_sport_choose,
	.join = udp_join,
	.leave = udp_leave,
	.deliver = udp_deliver,
	.forget = udp_forget,
	.destroy = udp_destroy,
};

int vb_link_udp_create(struct vb_link **link, int fd, vb_identify *identify)
{
	struct udp_link *udp;
	socklen_t bytes = sizeof(int);
	int family;

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &bytes))
		return vb_failed(errno, "getsockopt(SO_DOMAIN)");
	if (family != AF_INET && family != AF_INET6)
		return vb_failed(EAFNOSUPPORT, "the slot's socket");
	udp = calloc(1, sizeof(*udp));
	if (!udp)
		return vb_failed(ENOMEM, "calloc");
	udp->link.ops = &udp_ops;
	udp->fd = fd;
	udp->family = family;
	udp->identify = identify;
	vb_udp_senders_init(&udp->senders, family);
	vb_udp_groups_init(&udp->groups);
	vb_mail_init(&udp->mail);
	*link = &udp->link;
	return 0;
}
