/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/grh.h"

#include <string.h>

#include "wire/bytes.h"

#define IPV4_BYTES 20
#define IPV4_AT (VB_GRH_BYTES - IPV4_BYTES)
#define UDP_BYTES 8
#define PROTOCOL_UDP 17
#define PROTOCOL_BTH 0x1b /* follows a native GRH (IBTA 8.3) */
#define IPV4_DF 0x4000

/* The internet checksum of an IPv4 header (RFC 1071); 0 if the header includes a valid one. */
static uint16_t ipv4_checksum(const uint8_t header[IPV4_BYTES])
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < IPV4_BYTES; i += 2)
		sum += vb_be16_get(header + i);
	sum = (sum & 0xffff) + (sum >> 16);
	sum += sum >> 16;
	return (uint16_t)~sum;
}

static void ipv4_build(uint8_t *out, const struct vb_path *path, size_t udp_payload_bytes)
{
	memset(out, 0, IPV4_BYTES);
	out[0] = 0x45;
	out[1] = path->tclass;
	vb_be16_put(out + 2, (uint16_t)(udp_payload_bytes + UDP_BYTES + IPV4_BYTES));
	vb_be16_put(out + 6, IPV4_DF);
	out[8] = path->hop_limit;
	out[9] = PROTOCOL_UDP;
	memcpy(out + 12, path->src + 12, 4);
	memcpy(out + 16, path->dst + 12, 4);
	vb_be16_put(out + 10, ipv4_checksum(out));
}

void vb_grh_build(uint8_t out[VB_GRH_BYTES], const struct vb_path *path, size_t udp_payload_bytes)
{
	if (vb_gid_is_ipv4(path->dst)) {
		memset(out, 0, IPV4_AT);
		ipv4_build(out + IPV4_AT, path, udp_payload_bytes);
		return;
	}
	vb_be32_put(out, 6u << 28 | (uint32_t)path->tclass << 20 | (path->flow_label & 0xfffff));
	vb_be16_put(out + 4, (uint16_t)(udp_payload_bytes + UDP_BYTES));
	out[6] = PROTOCOL_UDP;
	out[7] = path->hop_limit;
	memcpy(out + 8, path->src, VB_GID_BYTES);
	memcpy(out + 24, path->dst, VB_GID_BYTES);
}

static void gid_from_ipv4(uint8_t gid[VB_GID_BYTES], const uint8_t addr[4])
{
	memset(gid, 0, 10);
	memset(gid + 10, 0xff, 2);
	memcpy(gid + 12, addr, 4);
}

static bool ipv4_parse(struct vb_grh *grh, const uint8_t *in)
{
	if (in[0] != 0x45 || in[9] != PROTOCOL_UDP || ipv4_checksum(in) != 0)
		return false;
	gid_from_ipv4(grh->sgid, in + 12);
	gid_from_ipv4(grh->dgid, in + 16);
	grh->flow_label = 0;
	grh->tclass = in[1];
	grh->hop_limit = in[8];
	grh->ipv4 = true;
	return true;
}

static bool ipv6_parse(struct vb_grh *grh, const uint8_t *in)
{
	uint32_t word = vb_be32_get(in);

	if (in[6] != PROTOCOL_UDP && in[6] != PROTOCOL_BTH)
		return false;
	memcpy(grh->sgid, in + 8, VB_GID_BYTES);
	memcpy(grh->dgid, in + 24, VB_GID_BYTES);
	grh->flow_label = word & 0xfffff;
	grh->tclass = (uint8_t)(word >> 20);
	grh->hop_limit = in[7];
	grh->ipv4 = false;
	return true;
}

bool vb_grh_parse(struct vb_grh *grh, const uint8_t in[VB_GRH_BYTES])
{
	static const uint8_t zero[IPV4_AT];

	/* An IPv6 header cannot begin with zeros, so the first octet tells the forms apart. */
	if (in[0] >> 4 == 6)
		return ipv6_parse(grh, in);
	return memcmp(in, zero, IPV4_AT) == 0 && ipv4_parse(grh, in + IPV4_AT);
}
