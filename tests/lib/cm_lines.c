/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of communication management and what is in them, a line each, for others to read:
 *
 *   REQ OCTETS local_comm_id=VALUE req.service_id=VALUE ... private=OCTETS info=OCTETS
 *
 * all in hexadecimal: the 256 octets of the MAD, each member that the message has, private data and
 * additional information. First come messages with one member of ones and the others zero, then
 * some filled at random, then two with an IP header, whose fields are ip.version, ip.sport, ip.src
 * and ip.dst.
 */
#include <stdio.h>

#include "cm_members.h"
#include "wire/cm_ip.h"

enum { FILLED = 8 };

static void octets_print(const uint8_t *octets, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		printf("%02x", octets[i]);
}

static void member_print(const struct vb_cm_msg *msg, const struct cm_member *m)
{
	const uint8_t *at = (const uint8_t *)msg + m->at;

	printf(" %s=", m->name);
	if (m->bytes == VB_GID_BYTES || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__) {
		octets_print(at, m->bytes);
		return;
	}
	for (size_t i = m->bytes; i--;)
		printf("%02x", at[i]);
}

static void msg_print(const struct vb_cm_msg *msg)
{
	uint8_t mad[VB_MAD_BYTES];
	const struct cm_member *m;

	vb_cm_emit(msg, mad);
	printf("%s ", vb_cm_attr_name(msg->attr));
	octets_print(mad, sizeof(mad));
	for (m = cm_member_next(msg->attr, NULL); m; m = cm_member_next(msg->attr, m))
		member_print(msg, m);
	printf(" private=");
	octets_print(msg->private_data, msg->private_bytes);
	printf(" info=");
	octets_print(msg->info, msg->info_bytes);
}

static void alone_print(unsigned attr)
{
	static const uint8_t zeros[VB_CM_INFO_BYTES];
	const struct cm_member *m;

	for (m = cm_member_next(attr, NULL); m; m = cm_member_next(attr, m)) {
		struct vb_cm_msg msg = cm_msg_empty(attr);

		cm_member_set(&msg, m, UINT64_MAX);
		msg.info = zeros;
		msg.info_bytes &= 0x40; /* more is more than there is room for */
		msg_print(&msg);
		putchar('\n');
	}
}

static void ip_print(bool ipv4)
{
	struct vb_cm_ip ip = {
		.ipv4 = ipv4,
		.sport = 0x9c41,
		.src = { [10] = 0xff, 0xff, 10, 1, 2, 3 },
		.dst = { [10] = 0xff, 0xff, 10, 4, 5, 6 },
	};
	struct vb_cm_msg msg = cm_msg_empty(VB_CM_REQ);
	uint8_t header[VB_CM_IP_BYTES];

	if (!ipv4)
		ip.src[0] = 0xfd, ip.dst[0] = 0xfe;
	vb_cm_ip_emit(&ip, header);
	msg.req.service_id = vb_cm_service_id(VB_CM_PS_TCP, 0x1234);
	msg.private_data = header;
	msg.private_bytes = sizeof(header);
	msg_print(&msg);
	printf(" ip.version=%c ip.sport=%04x ip.src=", ipv4 ? '4' : '6', ip.sport);
	octets_print(ip.src, VB_GID_BYTES);
	printf(" ip.dst=");
	octets_print(ip.dst, VB_GID_BYTES);
	putchar('\n');
}

int main(void)
{
	uint64_t seed = 3;

	for (size_t i = 0; i < VB_ARRAY_LEN(cm_attrs); i++)
		alone_print(cm_attrs[i]);
	for (size_t i = 0; i < VB_ARRAY_LEN(cm_attrs) * FILLED; i++) {
		uint8_t octets[2 * VB_MAD_BYTES];
		struct vb_cm_msg msg = cm_msg_random(cm_attrs[i / FILLED], &seed, octets);

		msg_print(&msg);
		putchar('\n');
	}
	ip_print(true);
	ip_print(false);
	return 0;
}
