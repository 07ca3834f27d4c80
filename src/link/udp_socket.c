/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/udp_socket.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/ipv6.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/failure.h"
#include "link/udp_address.h"

/* Kernel ABI (linux/in6.h), missing in glibc's headers, with which linux/in6.h conflicts. */
#ifndef IPV6_FLOWINFO
#define IPV6_FLOWINFO 11
#endif
#ifndef IPV6_FLOWINFO_SEND
#define IPV6_FLOWINFO_SEND 33
#endif

/*
 * The offset of the destination QPN in the BTH (IBA 9.2: octets 5 to 7), and the shift that leaves
 * its upper ten bits of the two octets that contain them.
 */
enum {
	TRANSPORT_MASK = 0xe0, /* of the opcode, the first octet */
	TRANSPORT_XRC = 0xa0,
	BTH_DESTQP_OFFSET = 5,
	XRCETH_SRQN_OFFSET = 13,
	SLOT_SHIFT = 6,
};

enum { DRAIN_ERRORS_MAX = 16, SOCKET_TYPE = SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC };

struct option {
	int level, name, value;
	bool required;
};

/* clang-format off */
static const struct option options_both[] = {
	{ SOL_SOCKET, SO_REUSEPORT,  1, true },
	{ SOL_SOCKET, SO_SNDBUF, VB_UDP_BUFFER_BYTES, true },
	{ SOL_SOCKET, SO_RCVBUF, VB_UDP_BUFFER_BYTES, true },
	/* Beyond the administrator's limit, if this process may; else refused. */
	{ SOL_SOCKET, SO_SNDBUFFORCE, VB_UDP_BUFFER_BYTES, false },
	{ SOL_SOCKET, SO_RCVBUFFORCE, VB_UDP_BUFFER_BYTES, false },
	{ IPPROTO_UDP, UDP_GRO, 1, false },
	/*
	 * DF set: the identification is 0 (IP), or counted within segments, so ICRCs can cover it.
	 */
	{ IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO, true },
	{ IPPROTO_IP, IP_RECVTOS, 1, true },
	{ IPPROTO_IP, IP_RECVTTL, 1, true },
	/* Only the groups that this socket joined, not those of other sockets. */
	{ IPPROTO_IP, IP_MULTICAST_ALL, 0, true },
	{ IPPROTO_IP, IP_TTL, VB_UDP_HOP_LIMIT_DEFAULT, true },
	{ IPPROTO_IP, IP_MULTICAST_TTL, VB_UDP_HOP_LIMIT_DEFAULT, true },
};

static const struct option options_ipv4[] = {
	{ IPPROTO_IP, IP_PKTINFO, 1, true },
};

static const struct option options_ipv6[] = {
	{ IPPROTO_IPV6, IPV6_V6ONLY, 0, true },
	/* covers IPv4 destinations, as mapped addresses */
	{ IPPROTO_IPV6, IPV6_RECVPKTINFO, 1, true },
	{ IPPROTO_IPV6, IPV6_RECVTCLASS, 1, true },
	{ IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1, true },
	{ IPPROTO_IPV6, IPV6_FLOWINFO, 1, false },
	{ IPPROTO_IPV6, IPV6_FLOWINFO_SEND, 1, false },
	{ IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO, true },
	{ IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0, false },
	{ IPPROTO_IPV6, IPV6_UNICAST_HOPS, VB_UDP_HOP_LIMIT_DEFAULT, true },
	{ IPPROTO_IPV6, IPV6_MULTICAST_HOPS, VB_UDP_HOP_LIMIT_DEFAULT, true },
	/* Linux's rdma_rxe sends without a UDP checksum, over IPv6, too. */
	{ IPPROTO_UDP, UDP_NO_CHECK6_RX, 1, true },
};
/* clang-format on */

static int options_set(int fd, const struct option *option, size_t n)
{
	for (; n--; option++) {
		if (setsockopt(fd, option->level, option->name, &option->value,
			       sizeof(option->value)) &&
		    option->required)
			return vb_failed(errno, "setsockopt");
	}
	return 0;
}

static int options_set_all(int fd, bool ipv6)
{
	int rc = options_set(fd, options_both, VB_ARRAY_LEN(options_both));

	if (!rc && ipv6)
		rc = options_set(fd, options_ipv6, VB_ARRAY_LEN(options_ipv6));
	if (!rc && !ipv6)
		rc = options_set(fd, options_ipv4, VB_ARRAY_LEN(options_ipv4));
	return rc;
}

/* Opens a UDP socket, IPv6 if possible. */
static int socket_open(int *fd, bool *ipv6)
{
	*ipv6 = true;
	*fd = socket(AF_INET6, SOCKET_TYPE, 0);
	if (*fd < 0 && errno == EAFNOSUPPORT) {
		*ipv6 = false;
		*fd = socket(AF_INET, SOCKET_TYPE, 0);
	}
	return *fd < 0 ? vb_failed(errno, "socket") : 0;
}

/* Lets nothing in. Returns 0 or a positive errno. */
static int filter_attach(int fd)
{
	struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
	struct sock_fprog nothing = {VB_ARRAY_LEN(code), code};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &nothing, sizeof(nothing)) ? errno : 0;
}

int vb_udp_socket_create(int *fd)
{
	bool ipv6;
	int rc = socket_open(fd, &ipv6);

	if (rc)
		return rc;
	rc = options_set_all(*fd, ipv6);
	if (rc)
		close(*fd);
	return rc;
}

int vb_udp_socket_steer(int fd)
{
	/*
	 * A datagram too short for the load ends the program with 0: slot 0, the hub's. An XRC
	 * request goes to the slot of the SRQ that it names.
	 */
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, BTH_DESTQP_OFFSET),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, SLOT_SHIFT),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 5),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, TRANSPORT_MASK),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TRANSPORT_XRC, 0, 3),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, XRCETH_SRQN_OFFSET),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, SLOT_SHIFT),
		BPF_STMT(BPF_RET | BPF_A, 0),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog program = {VB_ARRAY_LEN(code), code};

	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof(program)))
		return vb_failed(errno, "setsockopt(SO_ATTACH_REUSEPORT_CBPF)");
	return 0;
}

/* src: NULL for every address. */
static int port_bind(int fd, const uint8_t src[VB_GID_BYTES], uint16_t port)
{
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} address = {0};
	socklen_t bytes = sizeof(address);

	/* An unbound socket's name already has the right family and the wildcard address. */
	if (getsockname(fd, &address.any, &bytes))
		return errno;
	if (address.any.sa_family == AF_INET6) {
		address.in6.sin6_port = htons(port);
		if (src)
			memcpy(&address.in6.sin6_addr, src, VB_GID_BYTES);
	} else {
		address.in.sin_port = htons(port);
		if (src)
			memcpy(&address.in.sin_addr, src + 12, sizeof(address.in.sin_addr));
	}
	return bind(fd, &address.any, bytes) ? vb_failed(errno, "bind") : 0;
}

int vb_udp_socket_bind(int fd)
{
	return port_bind(fd, NULL, VB_UDP_PORT);
}

int vb_udp_socket_sender(int *fd, int family, const uint8_t src[VB_GID_BYTES], uint16_t port,
			 uint8_t hop_limit, bool alone)
{
	static const struct option shared[] = { { SOL_SOCKET, SO_REUSEPORT, 0, true } };
	const struct option hops[] = {
		{ IPPROTO_IP, IP_TTL, hop_limit, true },
		{ IPPROTO_IPV6, IPV6_UNICAST_HOPS, hop_limit, family == AF_INET6 },
	};
	int rc;

	*fd = socket(family, SOCKET_TYPE, 0);
	if (*fd < 0)
		return errno;
	rc = options_set_all(*fd, family == AF_INET6);
	if (!rc)
		rc = options_set(*fd, hops, VB_ARRAY_LEN(hops));
	if (!rc && alone)
		rc = options_set(*fd, shared, VB_ARRAY_LEN(shared));
	/* No thread reads from it. */
	if (!rc)
		rc = filter_attach(*fd);
	if (!rc)
		rc = port_bind(*fd, src, port);
	if (rc)
		close(*fd);
	return rc;
}

int vb_udp_socket_unsum(int fd, int family)
{
	const struct option none[] = {
		{ SOL_SOCKET, SO_NO_CHECK, 1, true },
		{ IPPROTO_UDP, UDP_NO_CHECK6_TX, 1, family == AF_INET6 },
	};

	return options_set(fd, none, VB_ARRAY_LEN(none));
}

/*
 * Until it is connected, the socket must neither join the slots' reuseport group, whose positions
 * would be wrong once it closes, nor receive what is for them. So it is bound to every address, but
 * of one family only. For the kernel that is another group. It looks at such sockets in the order
 * of binding, so at this one last. (A socket bound to a specific address would come first.) If the
 * slots' sockets are IPv4 themselves there is no such difference, and no flow.
 */
static int flow_bind(int fd, int family, const struct vb_path *path)
{
	static const struct option only_ipv6 = { IPPROTO_IPV6, IPV6_V6ONLY, 1, true };
	uint8_t any_ipv4[VB_GID_BYTES];
	int rc;

	if (family != AF_INET6)
		return EAFNOSUPPORT;
	if (vb_gid_is_ipv4(path->src)) {
		vb_gid_from_ipv4(any_ipv4, &(struct in_addr){ .s_addr = htonl(INADDR_ANY) });
		return port_bind(fd, any_ipv4, VB_UDP_PORT);
	}
	rc = options_set(fd, &only_ipv6, 1);
	return rc ? rc : port_bind(fd, NULL, VB_UDP_PORT);
}

int vb_udp_socket_flow(int *fd, int family, const struct vb_path *path)
{
	static const struct option without[] = {
		{ IPPROTO_IP, IP_PKTINFO, 0, false },
		{ IPPROTO_IPV6, IPV6_RECVPKTINFO, 0, false },
	};
	union vb_udp_address address;
	uint8_t local[VB_GID_BYTES];
	socklen_t bytes;
	int rc;

	*fd = socket(family, SOCKET_TYPE, 0);
	if (*fd < 0)
		return errno;
	rc = options_set_all(*fd, family == AF_INET6);
	if (!rc)
		rc = options_set(*fd, without, VB_ARRAY_LEN(without));
	if (!rc && !vb_udp_address_set(&address, &bytes, family, path->src, path->sport,
				       path->ifindex))
		rc = EAFNOSUPPORT;
	if (!rc)
		rc = flow_bind(*fd, family, path);
	if (!rc && connect(*fd, &address.any, bytes))
		rc = errno;
	bytes = sizeof(address);
	if (!rc && getsockname(*fd, &address.any, &bytes))
		rc = errno;
	/* The kernel chooses the local address; with several it may be a different one. */
	if (!rc) {
		vb_udp_address_gid(&address, local);
		rc = memcmp(local, path->dst, VB_GID_BYTES) == 0 ? 0 : EADDRNOTAVAIL;
	}
	if (rc)
		close(*fd);
	return rc;
}

int vb_udp_socket_group(int *fd, const uint8_t gid[VB_GID_BYTES], uint32_t scope)
{
	bool ipv6 = !vb_gid_is_ipv4(gid);
	union vb_udp_address address;
	socklen_t bytes = 0;
	int rc;

	*fd = socket(ipv6 ? AF_INET6 : AF_INET, SOCKET_TYPE, 0);
	if (*fd < 0)
		return errno;
	rc = options_set_all(*fd, ipv6);
	vb_udp_address_set(&address, &bytes, ipv6 ? AF_INET6 : AF_INET, gid, VB_UDP_PORT, scope);
	if (!rc && bind(*fd, &address.any, bytes))
		rc = errno;
	if (rc)
		close(*fd);
	return rc;
}

bool vb_udp_socket_bound(int fd)
{
	struct sockaddr_in6 address = {0};
	socklen_t bytes = sizeof(address);

	/* The port is at the same offset in sockaddr_in. */
	return !getsockname(fd, (struct sockaddr *)&address, &bytes) && address.sin6_port != 0;
}

int vb_udp_port_probe(void)
{
	int fd, rc, v6only = 0;
	bool ipv6;

	rc = socket_open(&fd, &ipv6);
	if (rc)
		return rc;
	if (ipv6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6only, sizeof(v6only)))
		rc = vb_failed(errno, "setsockopt");
	if (!rc)
		rc = port_bind(fd, NULL, VB_UDP_PORT);
	close(fd);
	return rc;
}

void vb_udp_socket_shut(int fd)
{
	int errors = 0;
	char octet;

	filter_attach(fd);
	/* Reading clears a pending error; errors that do not end are something else. */
	while (errors < DRAIN_ERRORS_MAX) {
		if (recv(fd, &octet, sizeof(octet), MSG_DONTWAIT) >= 0)
			continue;
		if (errno == EAGAIN)
			break;
		errors++;
	}
}

void vb_udp_socket_open(int fd)
{
	int unused = 0;

	setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof(unused));
}
