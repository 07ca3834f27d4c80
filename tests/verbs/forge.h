/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_VERBS_FORGE_H
#define VB_TESTS_VERBS_FORGE_H

/*
 * RoCEv2 packets put together by hand, with an ICRC of their own, and thrown at port 4791 from any
 * address of 127/8. Nothing here is shared with the library: two that read the specification.
 */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FORGE_PORT = 4791, FORGE_BYTES_MAX = 8192, FORGE_BTH_BYTES = 12, FORGE_ICRC_BYTES = 4 };

enum forge_opcode {
	RC_SEND_FIRST = 0x00,
	RC_SEND_ONLY = 0x04,
	RC_WRITE_FIRST = 0x06,
	RC_WRITE_MIDDLE = 0x07,
	RC_WRITE_ONLY = 0x0a,
	RC_READ_REQUEST = 0x0c,
	RC_READ_RESPONSE_ONLY = 0x10,
	RC_ACK = 0x11,
	RC_ATOMIC_ACK = 0x12,
	RC_FETCH_ADD = 0x14,
	UC_WRITE_ONLY = 0x2a,
	UD_SEND_ONLY = 0x64,
	RESERVED_OPCODE = 0x1f,
	NO_TRANSPORT = 0xff,
};

#define FORGE_PORT_BE 0xb712 /* in network order, of a little-endian machine as all of ours are */

union forge_address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* Grows from the BTH on; the ICRC comes last. */
struct forged {
	size_t bytes;
	uint8_t octets[FORGE_BYTES_MAX];
};

static inline void forge_be(struct forged *f, uint64_t value, unsigned bytes)
{
	while (bytes--)
		f->octets[f->bytes++] = (uint8_t)(value >> 8 * bytes);
}

static inline void forge_bth(struct forged *f, enum forge_opcode opcode, uint32_t qpn, uint32_t psn)
{
	f->bytes = 0;
	forge_be(f, opcode, 1);
	forge_be(f, 0, 1);
	forge_be(f, 0xffff, 2);
	forge_be(f, qpn & 0xffffff, 4);
	forge_be(f, psn & 0xffffff, 4);
}

static inline void forge_reth(struct forged *f, uint64_t va, uint32_t rkey, uint32_t bytes)
{
	forge_be(f, va, 8);
	forge_be(f, rkey, 4);
	forge_be(f, bytes, 4);
}

static inline void forge_fill(struct forged *f, uint8_t octet, size_t bytes)
{
	memset(f->octets + f->bytes, octet, bytes);
	f->bytes += bytes;
}

static inline uint32_t forge_crc(uint32_t crc, const uint8_t *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		crc ^= data[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return crc;
}

/*
 * The ICRC of an IPv4 packet without options (IBTA Annex A17), so many octets from its IP header
 * on, the ICRC not among them: what routers change counts as ones, as does an LRH in front.
 */
static inline uint32_t forge_icrc(const uint8_t *ip, size_t bytes)
{
	enum { LRH = 8, TOS = LRH + 1, TTL = LRH + 8, IP_SUM = LRH + 10, UDP_SUM = LRH + 26,
	       BTH_RESERVED = LRH + 32, HEADERS = LRH + 28 + FORGE_BTH_BYTES };
	uint8_t head[HEADERS];
	size_t n = bytes < HEADERS - LRH ? bytes : HEADERS - LRH;

	memset(head, 0xff, LRH);
	memcpy(head + LRH, ip, n);
	head[TOS] = head[TTL] = head[BTH_RESERVED] = 0xff;
	memset(head + IP_SUM, 0xff, 2);
	memset(head + UDP_SUM, 0xff, 2);
	return ~forge_crc(forge_crc(UINT32_MAX, head, LRH + n), ip + n, bytes - n);
}

/* The ICRC behind what is there: identification 0, DF set. */
static inline void forge_seal(struct forged *f, const struct sockaddr_in *from)
{
	size_t udp = 8 + f->bytes + FORGE_ICRC_BYTES, ip = 20 + udp;
	uint8_t packet[28 + FORGE_BYTES_MAX] = {
		0x45, 0, (uint8_t)(ip >> 8), (uint8_t)ip, 0, 0, 0x40, 0,
		0, 17, 0, 0, 0, 0, 0, 0, 127, 0, 0, 1,
		0, 0, FORGE_PORT >> 8, FORGE_PORT & 255,
		(uint8_t)(udp >> 8), (uint8_t)udp, 0, 0,
	};
	uint32_t icrc;

	memcpy(packet + 12, &from->sin_addr, 4);
	memcpy(packet + 20, &from->sin_port, 2);
	memcpy(packet + 28, f->octets, f->bytes);
	icrc = forge_icrc(packet, 28 + f->bytes);
	for (int i = 0; i < FORGE_ICRC_BYTES; i++)
		f->octets[f->bytes++] = (uint8_t)(icrc >> 8 * i);
}

/* The same of an IPv6 packet to ::1: class, flow label and hop limit count as ones. */
static inline void forge_seal_ipv6(struct forged *f, const struct sockaddr_in6 *from)
{
	enum { LRH = 8, IP = 40, UDP = LRH + IP, BTH = UDP + 8 };
	size_t udp = 8 + f->bytes + FORGE_ICRC_BYTES;
	uint8_t packet[BTH + FORGE_BYTES_MAX];
	uint32_t icrc;

	memset(packet, 0xff, LRH + 4);
	packet[LRH] = 0x6f;
	packet[LRH + 4] = (uint8_t)(udp >> 8);
	packet[LRH + 5] = (uint8_t)udp;
	packet[LRH + 6] = 17;
	packet[LRH + 7] = 0xff;
	memcpy(packet + LRH + 8, &from->sin6_addr, 16);
	memcpy(packet + LRH + 24, &in6addr_loopback, 16);
	memcpy(packet + UDP, &from->sin6_port, 2);
	packet[UDP + 2] = FORGE_PORT >> 8;
	packet[UDP + 3] = FORGE_PORT & 255;
	packet[UDP + 4] = (uint8_t)(udp >> 8);
	packet[UDP + 5] = (uint8_t)udp;
	memset(packet + UDP + 6, 0xff, 2);
	memcpy(packet + BTH, f->octets, f->bytes);
	packet[BTH + 4] = 0xff;
	icrc = ~forge_crc(UINT32_MAX, packet, BTH + f->bytes);
	for (int i = 0; i < FORGE_ICRC_BYTES; i++)
		f->octets[f->bytes++] = (uint8_t)(icrc >> 8 * i);
}

/* A socket on an address of this host and a port, which others of this uid may have as well. */
static inline int forge_socket_at(const char *address, uint16_t port, union forge_address *at)
{
	bool ipv6 = strchr(address, ':') != NULL;
	int fd = socket(ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1;
	int always_df = IP_PMTUDISC_DO;

	memset(at, 0, sizeof(*at));
	at->any.sa_family = ipv6 ? AF_INET6 : AF_INET;
	at->in.sin_port = htons(port);
	if (fd < 0 ||
	    inet_pton(at->any.sa_family, address,
		      ipv6 ? (void *)&at->in6.sin6_addr : (void *)&at->in.sin_addr) != 1 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) ||
	    setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &always_df, sizeof(always_df)) ||
	    /* A RoCE frame may come without a UDP checksum. */
	    (ipv6 && setsockopt(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, &on, sizeof(on))) ||
	    bind(fd, &at->any, ipv6 ? sizeof(at->in6) : sizeof(at->in)))
		return -1;
	return fd;
}

/* A socket on 127.0.0.last and any port. */
static inline int forge_socket(uint8_t last, struct sockaddr_in *addr)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), always_df = IP_PMTUDISC_DO;
	socklen_t size = sizeof(*addr);

	*addr = (struct sockaddr_in){ .sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(0x7f000000u + last) };
	if (fd < 0 || bind(fd, (struct sockaddr *)addr, size) ||
	    getsockname(fd, (struct sockaddr *)addr, &size) ||
	    setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &always_df, sizeof(always_df)))
		return -1;
	return fd;
}

static inline int forge_throw(int fd, const void *octets, size_t bytes)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(FORGE_PORT),
				  .sin_addr.s_addr = htonl(0x7f000001) };

	return sendto(fd, octets, bytes, 0, (struct sockaddr *)&to, sizeof(to)) == (ssize_t)bytes;
}

#endif
