/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/cm_ip.h"

#include <string.h>

#include "base/check.h"
#include "wire/bytes.h"

enum {
	VERSION = 0, /* major in the upper half of the octet, minor in the lower */
	IP_VERSION_AT = 1,
	SPORT_AT = 2,
	SRC_AT = 4,
	DST_AT = 20,
	IPV4_AT = 12, /* of an address: the octets before are zero on the wire */
	IPV4_BYTES = 4,
};

_Static_assert(DST_AT + VB_GID_BYTES == VB_CM_IP_BYTES, "nothing behind the addresses");

bool vb_cm_service_port_space(uint64_t service_id, enum vb_cm_port_space *port_space)
{
	switch (service_id >> 16) {
	case VB_CM_PS_IPOIB:
	case VB_CM_PS_TCP:
	case VB_CM_PS_UDP:
	case VB_CM_PS_IB:
		*port_space = (enum vb_cm_port_space)(service_id >> 16);
		return true;
	default:
		return false;
	}
}

static void gid_parse(uint8_t gid[VB_GID_BYTES], const uint8_t *in, bool ipv4)
{
	if (!ipv4) {
		memcpy(gid, in, VB_GID_BYTES);
		return;
	}
	memset(gid, 0, IPV4_AT - 2);
	memset(gid + IPV4_AT - 2, 0xff, 2);
	memcpy(gid + IPV4_AT, in + IPV4_AT, IPV4_BYTES);
}

static void gid_emit(uint8_t *out, const uint8_t gid[VB_GID_BYTES], bool ipv4)
{
	vb_check(!ipv4 || vb_gid_is_ipv4(gid));
	memcpy(out, gid, VB_GID_BYTES);
	if (ipv4)
		memset(out, 0, IPV4_AT);
}

const char *vb_cm_port_space_name(unsigned port_space)
{
	switch (port_space) {
	case VB_CM_PS_TCP:
		return "TCP";
	case VB_CM_PS_UDP:
		return "UDP";
	case VB_CM_PS_IB:
		return "IB";
	case VB_CM_PS_IPOIB:
		return "IPOIB";
	default:
		return "?";
	}
}

bool vb_cm_ip_parse(struct vb_cm_ip *ip, const uint8_t in[VB_CM_IP_BYTES])
{
	unsigned ip_version = in[IP_VERSION_AT] >> 4;

	if (in[0] != VERSION || (ip_version != 4 && ip_version != 6))
		return false;
	ip->ipv4 = ip_version == 4;
	ip->sport = vb_be16_get(in + SPORT_AT);
	gid_parse(ip->src, in + SRC_AT, ip->ipv4);
	gid_parse(ip->dst, in + DST_AT, ip->ipv4);
	return true;
}

void vb_cm_ip_emit(const struct vb_cm_ip *ip, uint8_t out[VB_CM_IP_BYTES])
{
	out[0] = VERSION;
	out[IP_VERSION_AT] = (uint8_t)((ip->ipv4 ? 4 : 6) << 4);
	vb_be16_put(out + SPORT_AT, ip->sport);
	gid_emit(out + SRC_AT, ip->src, ip->ipv4);
	gid_emit(out + DST_AT, ip->dst, ip->ipv4);
}
