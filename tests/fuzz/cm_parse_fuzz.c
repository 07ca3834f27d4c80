/* SPDX-License-Identifier: BSD-2-Clause */
/* Any octets as a message of communication management: what is written again is what was read. */
#include <stdlib.h>
#include <string.h>

#include "cm_members.h"
#include "fuzz.h"
#include "wire/cm_ip.h"

/* Reserved bits are not written, so nothing is set that was not. */
static void check_written(const uint8_t *in, const uint8_t *out, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		vb_check((out[i] & ~in[i]) == 0);
}

static void check_ip(const uint8_t *data)
{
	uint8_t out[VB_CM_IP_BYTES];
	struct vb_cm_ip ip;

	if (vb_cm_ip_parse(&ip, data)) {
		vb_check(vb_gid_is_ipv4(ip.src) >= ip.ipv4 && vb_gid_is_ipv4(ip.dst) >= ip.ipv4);
		vb_cm_ip_emit(&ip, out);
		check_written(data, out, sizeof(out));
	} else {
		vb_check(data[0] || (data[1] >> 4 != 4 && data[1] >> 4 != 6));
	}
}

static void check_same(const struct vb_cm_msg *a, const struct vb_cm_msg *b)
{
	const struct cm_member *m;

	vb_check(a->attr == b->attr && a->transaction_id == b->transaction_id &&
		 a->ece_options == b->ece_options);
	for (m = cm_member_next(a->attr, NULL); m; m = cm_member_next(a->attr, m))
		vb_check(memcmp((const uint8_t *)a + m->at, (const uint8_t *)b + m->at, m->bytes) ==
			 0);
	vb_check(a->private_bytes == b->private_bytes &&
		 memcmp(a->private_data, b->private_data, a->private_bytes) == 0);
	vb_check(a->info_bytes == b->info_bytes && a->info_bytes <= VB_CM_INFO_BYTES);
	vb_check(a->info_bytes == 0 || memcmp(a->info, b->info, a->info_bytes) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	uint8_t *mad, out[VB_MAD_BYTES];
	struct vb_cm_msg msg, again;

	if (bytes < VB_MAD_BYTES)
		return 0;
	/* In memory of exactly that size, so that a sanitizer sees a read beyond it. */
	mad = malloc(VB_MAD_BYTES);
	vb_check(mad);
	memcpy(mad, data, VB_MAD_BYTES);
	if (vb_cm_parse(&msg, mad)) {
		vb_check(msg.private_data + msg.private_bytes == mad + VB_MAD_BYTES);
		vb_cm_emit(&msg, out);
		check_written(mad, out, sizeof(out));
		vb_check(vb_cm_parse(&again, out));
		check_same(&msg, &again);
		vb_check(strcmp(vb_cm_attr_name(msg.attr), "unknown") != 0);
		if (msg.attr == VB_CM_REQ || msg.attr == VB_CM_SIDR_REQ)
			check_ip(msg.private_data);
	}
	free(mad);
	return 0;
}
