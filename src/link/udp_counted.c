/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/udp_counted.h"

#include <errno.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "link/udp_socket.h"
#include "link/udp_address.h"
#include "link/udp_message.h"

enum {
	DISCARD_PORT = 9, /* RFC 863 */
	SEGMENT_BYTES = 4, /* of the datagrams sent to learn the count */
	IPV4_BYTES = 20,
	HEADER_BYTES = IPV4_BYTES + 8,
	ID_OFFSET = 4,
	SOURCE_PORT_OFFSET = IPV4_BYTES,
	LEARN_FRAMES = 16, /* shorter bursts do not repay setting the segment size */
};

union control {
	struct cmsghdr align;
	uint8_t octets[CMSG_SPACE(sizeof(uint32_t)) + CMSG_SPACE(sizeof(uint16_t))];
};

/* --- learning the count --- */

/* Reads the headers of a datagram that has left, with `bytes` octets of payload. */
static bool headers_see(int fd, uint16_t port, size_t bytes, uint16_t *id)
{
	uint8_t octets[256], control[512];
	struct iovec iov = { octets, sizeof(octets) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			      .msg_controllen = sizeof(control) };
	ssize_t got = recvmsg(fd, &msg, MSG_ERRQUEUE | MSG_DONTWAIT);
	const uint8_t *ip;

	/* The interface's own header may precede them. */
	if (got < (ssize_t)(HEADER_BYTES + bytes) || (msg.msg_flags & MSG_TRUNC))
		return false;
	ip = octets + got - bytes - HEADER_BYTES;
	if (ip[0] != 0x45 || ip[9] != IPPROTO_UDP ||
	    (ip[SOURCE_PORT_OFFSET] << 8 | ip[SOURCE_PORT_OFFSET + 1]) != port)
		return false;
	*id = (uint16_t)(ip[ID_OFFSET] << 8 | ip[ID_OFFSET + 1]);
	return true;
}

/* Learns the identification of a datagram of one segment or two, by sending it. */
static bool id_ask(int fd, const union vb_udp_address *to, socklen_t to_bytes, uint16_t port,
		   unsigned segments, uint16_t *id)
{
	static const uint8_t zeros[2 * SEGMENT_BYTES];
	const uint32_t tell = SOF_TIMESTAMPING_TX_SCHED;
	const uint16_t segment_bytes = SEGMENT_BYTES;
	union control control;
	struct iovec iov = { (void *)zeros, segments * (size_t)SEGMENT_BYTES };
	struct msghdr msg = { .msg_name = (void *)to, .msg_namelen = to_bytes, .msg_iov = &iov,
			      .msg_iovlen = 1, .msg_control = &control };

	vb_udp_control_put(&msg, SOL_SOCKET, SO_TIMESTAMPING, &tell, sizeof(tell));
	if (segments > 1)
		vb_udp_control_put(&msg, IPPROTO_UDP, UDP_SEGMENT, &segment_bytes,
				   sizeof(segment_bytes));
	return vb_udp_message_send(fd, &msg) >= 0 &&
	       headers_see(fd, port, iov.iov_len, id);
}

/*
 * The kernel counts a send once, however many segments it has; these count on by themselves. Three
 * sends, the second with two segments, show that.
 */
static int count_learn(int fd, const uint8_t src[VB_GID_BYTES], uint16_t port, uint16_t *next)
{
	int on = SOF_TIMESTAMPING_SOFTWARE, off = 0;
	uint16_t id[3] = { 0 };
	union vb_udp_address to;
	socklen_t bytes;

	if (!vb_udp_address_set(&to, &bytes, AF_INET, src, DISCARD_PORT, 0) ||
	    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &on, sizeof(on)))
		return EOPNOTSUPP;
	for (unsigned i = 0; i < VB_ARRAY_LEN(id); i++) {
		if (!id_ask(fd, &to, bytes, port, 1 + i % 2, &id[i]))
			return EOPNOTSUPP;
	}
	*next = (uint16_t)(id[2] + 1);
	if ((uint16_t)(id[1] - id[0]) != 1 || (uint16_t)(id[2] - id[1]) != 1 ||
	    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &off, sizeof(off)))
		return EOPNOTSUPP;
	return 0;
}

int vb_udp_counted_open(struct vb_udp_counted *counted, const uint8_t src[VB_GID_BYTES],
			const uint8_t dst[VB_GID_BYTES], uint16_t port, uint8_t hop_limit)
{
	union vb_udp_address to;
	socklen_t bytes;
	int fd, rc = 0;

	if (!vb_udp_address_set(&to, &bytes, AF_INET, dst, VB_UDP_PORT, 0))
		return EAFNOSUPPORT;
	rc = vb_udp_socket_sender(&fd, AF_INET, src, port, hop_limit, false);
	if (rc)
		return rc;
	if (connect(fd, &to.any, bytes))
		rc = errno;
	if (!rc)
		rc = count_learn(fd, src, port, &counted->id);
	if (rc) {
		close(fd);
		return rc;
	}
	vb_lock_init(&counted->lock, VB_RANK_UDP_COUNTED);
	memcpy(counted->dst, dst, VB_GID_BYTES);
	atomic_store(&counted->fd_plus_1, fd + 1);
	return 0;
}

void vb_udp_counted_close(struct vb_udp_counted *counted)
{
	int fd = atomic_exchange(&counted->fd_plus_1, 0) - 1;

	if (fd >= 0)
		close(fd);
}

/* --- sending --- */

bool vb_udp_counted_claim(struct vb_udp_counted *counted, uint16_t *id)
{
	if (!atomic_load_explicit(&counted->fd_plus_1, memory_order_acquire) ||
	    !vb_lock_try(&counted->lock))
		return false;
	if (!atomic_load(&counted->fd_plus_1)) {
		vb_lock_drop(&counted->lock);
		return false;
	}
	*id = counted->id;
	return true;
}

void vb_udp_counted_unclaim(struct vb_udp_counted *counted)
{
	vb_lock_drop(&counted->lock);
}

/* Does the socket segment this burst correctly by its setting? */
static bool cuts_right(const struct vb_udp_counted *counted, const struct vb_burst *burst)
{
	if (burst->frames > 1)
		return burst->frame_bytes == counted->segment_bytes;
	return !counted->segment_bytes || burst->frame_bytes <= counted->segment_bytes;
}

/* Sets the segment size for the many bursts of a long message. */
static void cut_learn(struct vb_udp_counted *counted, int fd, const struct vb_burst *burst)
{
	int bytes = (int)burst->frame_bytes;

	if (burst->frames >= LEARN_FRAMES && !cuts_right(counted, burst) &&
	    !setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &bytes, sizeof(bytes)))
		counted->segment_bytes = burst->frame_bytes;
}

/*
 * A burst in one piece that the socket segments by its setting needs no message header, which costs
 * a twentieth of a long burst to parse. System call without libc, as in udp_message.h.
 */
static ssize_t burst_send(const struct vb_udp_counted *counted, int fd,
			  const struct vb_burst *burst)
{
	uint16_t segment_bytes = burst->frames > 1 ? (uint16_t)burst->frame_bytes : 0;
	bool told = cuts_right(counted, burst);
	union control control;
	struct msghdr msg = { .msg_iov = (struct iovec *)burst->iov,
			      .msg_iovlen = burst->iovcnt };

	if (told && burst->iovcnt == 1)
		return syscall(SYS_sendto, fd, burst->iov->iov_base, burst->iov->iov_len,
			       VB_UDP_SEND_FLAGS, NULL, 0);
	if (!told) {
		msg.msg_control = &control;
		vb_udp_control_put(&msg, IPPROTO_UDP, UDP_SEGMENT, &segment_bytes,
				   sizeof(segment_bytes));
	}
	return vb_udp_message_send(fd, &msg);
}

/*
 * With these errors the kernel has not counted: it reports earlier errors, allocates, and reads the
 * octets before it counts.
 */
static bool is_uncounted(int error)
{
	return error == EAGAIN || error == EINTR || error == EFAULT ||
	       vb_udp_tells_of_earlier(error);
}

static int send_claimed(struct vb_udp_counted *counted, const struct vb_burst *burst)
{
	int fd = atomic_load(&counted->fd_plus_1) - 1;

	if (fd < 0)
		return EIO;
	cut_learn(counted, fd, burst);
	if (burst_send(counted, fd, burst) >= 0 ||
	    (vb_udp_tells_of_earlier(errno) && burst_send(counted, fd, burst) >= 0)) {
		counted->id++;
		return 0;
	}
	if (!is_uncounted(errno))
		vb_udp_counted_close(counted);
	return errno == EINTR ? EAGAIN : errno;
}

int vb_udp_counted_send(struct vb_udp_counted *counted, const struct vb_burst *burst)
{
	int rc = send_claimed(counted, burst);

	vb_lock_drop(&counted->lock);
	return rc;
}
