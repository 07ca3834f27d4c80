/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/headers.h"

#include <arpa/inet.h>

#include "link/udp_socket.h"

enum {
	IPV4_HEADER_BYTES = 20,
	IPV6_HEADER_BYTES = 40,
	UDP_HEADER_BYTES = 8,
	IPV4_DONT_FRAGMENT = 0x4000,
	HOP_LIMIT_DEFAULT = VB_UDP_HOP_LIMIT_DEFAULT,
};

_Static_assert(VB_HEADERS_BYTES_MAX == IPV6_HEADER_BYTES + UDP_HEADER_BYTES, "IPv6's are longer");

static void put16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* Adds to the ones' complement sum of RFC 1071, not folded. */
static uint32_t sum16(uint32_t sum, const uint8_t *data, uint32_t bytes)
{
	for (; bytes > 1; bytes -= 2, data += 2)
		sum += (uint32_t)data[0] << 8 | data[1];
	return bytes ? sum + ((uint32_t)data[0] << 8) : sum;
}

static uint16_t fold16(uint32_t sum)
{
	sum = (sum >> 16) + (sum & 0xffff);
	sum = (sum >> 16) + (sum & 0xffff);
	return (uint16_t)~sum;
}

static void put_ipv4(uint8_t *ip, const struct vb_path *path, uint16_t id, uint32_t bytes)
{
	memset(ip, 0, IPV4_HEADER_BYTES);
	ip[0] = 0x45; /* version 4, five words */
	ip[1] = path->tclass;
	put16(ip + 2, IPV4_HEADER_BYTES + bytes);
	put16(ip + 4, id);
	put16(ip + 6, IPV4_DONT_FRAGMENT);
	ip[8] = path->hop_limit ? path->hop_limit : HOP_LIMIT_DEFAULT;
	ip[9] = IPPROTO_UDP;
	memcpy(ip + 12, path->src + 12, 4);
	memcpy(ip + 16, path->dst + 12, 4);
	put16(ip + 10, fold16(sum16(0, ip, IPV4_HEADER_BYTES)));
}

static void put_ipv6(uint8_t *ip, const struct vb_path *path, uint32_t bytes)
{
	uint32_t first = htonl(6u << 28 | (uint32_t)path->tclass << 20 | path->flow_label);

	memcpy(ip, &first, sizeof(first));
	put16(ip + 4, bytes);
	ip[6] = IPPROTO_UDP;
	ip[7] = path->hop_limit ? path->hop_limit : HOP_LIMIT_DEFAULT;
	memcpy(ip + 8, path->src, VB_GID_BYTES);
	memcpy(ip + 24, path->dst, VB_GID_BYTES);
}

/* Writes the UDP header before a frame, with the checksum that the kernel would have computed. */
static void put_udp(uint8_t *udp, const struct vb_path *path, uint32_t bytes)
{
	/* Also for mapped IPv4 addresses: the mapping adds ffff, which is zero in this sum. */
	uint32_t sum = IPPROTO_UDP + bytes;
	uint16_t folded;

	put16(udp, path->sport);
	put16(udp + 2, VB_UDP_PORT);
	put16(udp + 4, bytes);
	put16(udp + 6, 0);
	sum = sum16(sum, path->src, VB_GID_BYTES);
	sum = sum16(sum, path->dst, VB_GID_BYTES);
	folded = fold16(sum16(sum, udp, bytes));
	put16(udp + 6, folded ? folded : 0xffff);
}

static uint32_t ip_bytes(const struct vb_path *path)
{
	return vb_gid_is_ipv4(path->dst) ? IPV4_HEADER_BYTES : IPV6_HEADER_BYTES;
}

uint32_t vb_headers_bytes(const struct vb_path *path)
{
	return ip_bytes(path) + UDP_HEADER_BYTES;
}

void vb_headers_put(uint8_t *headers, const struct vb_path *path, uint16_t id,
		    uint32_t frame_bytes)
{
	uint32_t udp_bytes = UDP_HEADER_BYTES + frame_bytes;

	put_udp(headers + ip_bytes(path), path, udp_bytes);
	if (vb_gid_is_ipv4(path->dst))
		put_ipv4(headers, path, id, udp_bytes);
	else
		put_ipv6(headers, path, udp_bytes);
}
