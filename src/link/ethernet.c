/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/ethernet.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fd.h"

enum {
	TAG_BYTES = 4,
	MACS_BYTES = 12,
	UDP_CHECKSUM_AT = 6, /* in the UDP header */
	FRAME_BYTES_MAX = 65536 + 64, /* what the host may have merged, with its headers */
	ROOM_BYTES = TAG_BYTES + FRAME_BYTES_MAX,
	BATCH = 64, /* frames per sendmmsg() */
	RECEIVE_BUFFER_BYTES = 4 << 20,
};

struct vb_ethernet {
	int fd;
	bool tap;
	uint8_t *room; /* VB_ETHERNET_FRAMES_MAX times ROOM_BYTES */
};

/* --- opening --- */

#define OWN_NAMESPACE                                                                 \
	"or start the program in a network namespace of your own "                    \
	"(unshare -Urn, then ip link set lo up)"
#define NO_TUN                                                                        \
	"there is no /dev/net/tun, or the kernel has no TAP devices: have the module " \
	"tun loaded (modprobe tun), and the device file put into this container if it is one"

/* The step that was refused. */
enum step { TUN_OPEN, TAP_ATTACH, INTERFACE_FIND, PACKET_SOCKET };

/* clang-format off */
static const struct refusal {
	enum step step;
	int error;
	const char *why;
} refusals[] = {
	{ TUN_OPEN, ENOENT, NO_TUN },
	{ TUN_OPEN, ENODEV, NO_TUN },
	{ TUN_OPEN, ENXIO,  NO_TUN },
	{ TUN_OPEN, EACCES,
	  "the modes of /dev/net/tun do not let this user open it for reading and writing" },
	{ TUN_OPEN, EPERM,
	  "this container may not open /dev/net/tun: its device rules have to allow it" },
	{ TAP_ATTACH, EPERM,
	  "a TAP device needs CAP_NET_ADMIN in the user namespace that owns this network "
	  "namespace: have root make it for you (ip tuntap add NAME mode tap user USER), "
	  OWN_NAMESPACE },
	{ TAP_ATTACH, EBUSY, "another program has this TAP device open" },
	{ TAP_ATTACH, EINVAL,
	  "there is an interface of that name which is no TAP device, or one of several queues" },
	{ INTERFACE_FIND, ENODEV,
	  "there is no such interface in this network namespace (ip link shows those that there "
	  "are)" },
	{ PACKET_SOCKET, EPERM,
	  "an interface needs CAP_NET_RAW in the user namespace that owns this network "
	  "namespace: start the program as root, " OWN_NAMESPACE },
	{ PACKET_SOCKET, EAFNOSUPPORT, "the kernel has no packet sockets: have af_packet loaded" },
};
/* clang-format on */

static int refused(enum step step, int error, const char **why)
{
	for (unsigned i = 0; i < VB_ARRAY_LEN(refusals); i++) {
		if (refusals[i].step == step && refusals[i].error == error)
			*why = refusals[i].why;
	}
	return error;
}

static int tap_open(struct vb_ethernet *eth, const char *name, const char **why)
{
	struct ifreq request = { .ifr_flags = IFF_TAP | IFF_NO_PI };
	int fd, rc = 0;

	if (!*name || strlen(name) >= sizeof(request.ifr_name))
		return EINVAL;
	memcpy(request.ifr_name, name, strlen(name));
	eth->tap = true;
	eth->fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (eth->fd < 0)
		return refused(TUN_OPEN, errno, why);
	if (ioctl(eth->fd, TUNSETIFF, &request)) {
		rc = refused(TAP_ATTACH, errno, why);
		vb_fd_close(&eth->fd);
		return rc;
	}
	/* If this fails, the device may be up already, or another user has to bring it up. */
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && !ioctl(fd, SIOCGIFFLAGS, &request) && !(request.ifr_flags & IFF_UP)) {
		request.ifr_flags |= IFF_UP;
		rc = ioctl(fd, SIOCSIFFLAGS, &request);
	}
	if (fd >= 0)
		close(fd);
	(void)rc;
	return 0;
}

static int set(int fd, int option, const void *value, socklen_t bytes)
{
	return setsockopt(fd, SOL_PACKET, option, value, bytes) ? errno : 0;
}

static int packet_options(int fd, int ifindex)
{
	static const int on = 1, buffer = RECEIVE_BUFFER_BYTES;
	struct packet_mreq promiscuous = { .mr_ifindex = ifindex, .mr_type = PACKET_MR_PROMISC };
	int rc;

	/* Processes on the segment have other addresses than the interface. */
	rc = set(fd, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof(promiscuous));
	if (rc == 0)
		rc = set(fd, PACKET_VNET_HDR, &on, sizeof(on));
	if (rc == 0)
		rc = set(fd, PACKET_AUXDATA, &on, sizeof(on));
	if (rc == 0)
		rc = set(fd, PACKET_IGNORE_OUTGOING, &on, sizeof(on));
	/* The kernel grants as much as is allowed. */
	(void)!setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
	return rc;
}

static int packet_open(struct vb_ethernet *eth, const char *name, const char **why)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = __builtin_bswap16(ETH_P_ALL),
	};
	int rc;

	address.sll_ifindex = (int)if_nametoindex(name);
	if (!address.sll_ifindex)
		return refused(INTERFACE_FIND, ENODEV, why);
	/* Protocol 0 until bind(): frames of other interfaces stay out. */
	eth->fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (eth->fd < 0)
		return refused(PACKET_SOCKET, errno, why);
	rc = packet_options(eth->fd, address.sll_ifindex);
	if (rc == 0 && bind(eth->fd, (struct sockaddr *)&address, sizeof(address)))
		rc = errno;
	if (rc != 0)
		vb_fd_close(&eth->fd);
	return rc;
}

int vb_ethernet_open(struct vb_ethernet **out, const char *setting, const char **why)
{
	static const char tap[] = "tap:";
	struct vb_ethernet *eth = calloc(1, sizeof(*eth));
	int rc = ENOMEM;

	*why = NULL;
	if (!eth)
		return rc;
	eth->room = malloc((size_t)VB_ETHERNET_FRAMES_MAX * ROOM_BYTES);
	if (eth->room && strncmp(setting, tap, strlen(tap)) == 0)
		rc = tap_open(eth, setting + strlen(tap), why);
	else if (eth->room)
		rc = packet_open(eth, setting, why);
	if (rc != 0) {
		free(eth->room);
		free(eth);
		return rc;
	}
	*out = eth;
	return 0;
}

int vb_ethernet_fd(const struct vb_ethernet *eth)
{
	return eth->fd;
}

void vb_ethernet_forget(struct vb_ethernet *eth)
{
	vb_fd_close(&eth->fd);
}

void vb_ethernet_close(struct vb_ethernet *eth)
{
	vb_fd_close(&eth->fd);
	free(eth->room);
	free(eth);
}

/* --- sending --- */

static unsigned tap_tx(struct vb_ethernet *eth, const struct iovec *frames, unsigned count)
{
	unsigned sent = 0;

	for (unsigned i = 0; i < count; i++) {
		if (write(eth->fd, frames[i].iov_base, frames[i].iov_len) >= 0)
			sent++;
	}
	return sent;
}

/* If a frame is refused (too long for the interface, say), continues with the next. */
static unsigned packet_tx(struct vb_ethernet *eth, const struct iovec *frames, unsigned count)
{
	static struct virtio_net_hdr whole; /* no offload: the frame is complete */
	struct mmsghdr messages[BATCH];
	struct iovec pieces[BATCH][2];
	unsigned sent = 0, next = 0;

	memset(messages, 0, sizeof(messages));
	count = count < BATCH ? count : BATCH;
	for (unsigned i = 0; i < count; i++) {
		pieces[i][0] = (struct iovec){ &whole, sizeof(whole) };
		pieces[i][1] = frames[i];
		messages[i].msg_hdr.msg_iov = pieces[i];
		messages[i].msg_hdr.msg_iovlen = 2;
	}
	while (next < count) {
		int n = sendmmsg(eth->fd, messages + next, count - next, MSG_DONTWAIT);

		if (n > 0)
			sent += (unsigned)n;
		next += n > 0 ? (unsigned)n : 1;
	}
	return sent;
}

unsigned vb_ethernet_tx(struct vb_ethernet *eth, const struct iovec *frames, unsigned count)
{
	unsigned sent = 0;

	if (eth->tap)
		return tap_tx(eth, frames, count);
	for (unsigned i = 0; i < count; i += BATCH)
		sent += packet_tx(eth, frames + i, count - i);
	return sent;
}

/* --- receiving --- */

/* Leaves room in front for a VLAN tag. */
static uint8_t *room_of(struct vb_ethernet *eth, unsigned i)
{
	return eth->room + (size_t)i * ROOM_BYTES + TAG_BYTES;
}

static unsigned tap_rx(struct vb_ethernet *eth, struct vb_ethernet_frame *frames)
{
	unsigned count = 0;

	while (count < VB_ETHERNET_FRAMES_MAX) {
		uint8_t *octets = room_of(eth, count);
		ssize_t bytes = read(eth->fd, octets, FRAME_BYTES_MAX);

		if (bytes <= 0)
			break;
		frames[count++] = (struct vb_ethernet_frame){ octets, (uint32_t)bytes, 0 };
	}
	return count;
}

void vb_ethernet_checksum(uint8_t *octets, uint32_t bytes, uint32_t start, uint32_t offset)
{
	uint32_t sum = 0, at = start;

	if ((uint64_t)start + offset + 2 > bytes)
		return;
	for (; at + 1 < bytes; at += 2)
		sum += (uint32_t)octets[at] << 8 | octets[at + 1];
	if (at < bytes)
		sum += (uint32_t)octets[at] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	sum = ~sum & 0xffff;
	/* RFC 768: in UDP, 0 means no checksum. */
	if (sum == 0 && offset == UDP_CHECKSUM_AT)
		sum = 0xffff;
	octets[start + offset] = (uint8_t)(sum >> 8);
	octets[start + offset + 1] = (uint8_t)sum;
}

/* The kernel removes the outermost VLAN tag: puts it back. */
static void tag_restore(struct vb_ethernet_frame *frame, struct msghdr *message)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		struct tpacket_auxdata aux;
		uint16_t tpid = ETH_P_8021Q;

		if (c->cmsg_level != SOL_PACKET || c->cmsg_type != PACKET_AUXDATA)
			continue;
		memcpy(&aux, CMSG_DATA(c), sizeof(aux));
		if (!(aux.tp_status & TP_STATUS_VLAN_VALID))
			continue;
		if (aux.tp_status & TP_STATUS_VLAN_TPID_VALID)
			tpid = aux.tp_vlan_tpid;
		frame->octets -= TAG_BYTES;
		frame->bytes += TAG_BYTES;
		memmove(frame->octets, frame->octets + TAG_BYTES, MACS_BYTES);
		frame->octets[12] = (uint8_t)(tpid >> 8);
		frame->octets[13] = (uint8_t)tpid;
		frame->octets[14] = (uint8_t)(aux.tp_vlan_tci >> 8);
		frame->octets[15] = (uint8_t)aux.tp_vlan_tci;
	}
}

/* Does what the host left to the adapter: checksums. */
static void finish(struct vb_ethernet_frame *frame, const struct virtio_net_hdr *hdr)
{
	unsigned gso = hdr->gso_type & ~(unsigned)VIRTIO_NET_HDR_GSO_ECN;

	if (gso == VIRTIO_NET_HDR_GSO_TCPV4 || gso == VIRTIO_NET_HDR_GSO_TCPV6)
		frame->mss = hdr->gso_size;
	else if (hdr->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
		vb_ethernet_checksum(frame->octets, frame->bytes, hdr->csum_start,
				     hdr->csum_offset);
}

struct packet_batch {
	struct virtio_net_hdr hdr[VB_ETHERNET_FRAMES_MAX];
	struct iovec pieces[VB_ETHERNET_FRAMES_MAX][2];
	struct mmsghdr messages[VB_ETHERNET_FRAMES_MAX];
	_Alignas(8) uint8_t control[VB_ETHERNET_FRAMES_MAX]
				   [CMSG_SPACE(sizeof(struct tpacket_auxdata))];
};

static unsigned packet_rx(struct vb_ethernet *eth, struct vb_ethernet_frame *frames)
{
	struct packet_batch b;
	unsigned count = 0;
	int n;

	memset(b.messages, 0, sizeof(b.messages));
	for (unsigned i = 0; i < VB_ETHERNET_FRAMES_MAX; i++) {
		struct msghdr *message = &b.messages[i].msg_hdr;

		b.pieces[i][0] = (struct iovec){ &b.hdr[i], sizeof(b.hdr[i]) };
		b.pieces[i][1] = (struct iovec){ room_of(eth, i), FRAME_BYTES_MAX };
		message->msg_iov = b.pieces[i];
		message->msg_iovlen = 2;
		message->msg_control = b.control[i];
		message->msg_controllen = sizeof(b.control[i]);
	}
	n = recvmmsg(eth->fd, b.messages, VB_ETHERNET_FRAMES_MAX, MSG_DONTWAIT, NULL);
	for (int i = 0; i < n; i++) {
		struct vb_ethernet_frame *frame = &frames[count];

		if (b.messages[i].msg_len <= sizeof(b.hdr[i]) ||
		    (b.messages[i].msg_hdr.msg_flags & MSG_TRUNC))
			continue;
		*frame = (struct vb_ethernet_frame){
			.octets = room_of(eth, (unsigned)i),
			.bytes = b.messages[i].msg_len - (uint32_t)sizeof(b.hdr[i]),
		};
		finish(frame, &b.hdr[i]);
		tag_restore(frame, &b.messages[i].msg_hdr);
		count++;
	}
	return count;
}

unsigned vb_ethernet_rx(struct vb_ethernet *eth, struct vb_ethernet_frame *frames)
{
	return eth->tap ? tap_rx(eth, frames) : packet_rx(eth, frames);
}
