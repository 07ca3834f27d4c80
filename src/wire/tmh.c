/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/tmh.h"

#include <string.h>

#include "wire/bytes.h"

bool vb_tmh_parse(struct vb_tmh *tmh, const uint8_t *octets, size_t bytes)
{
	static const uint8_t header_bytes[VB_TMH_OPS] = {
		[VB_TMH_NO_TAG] = VB_TMH_BYTES,
		[VB_TMH_RNDV] = VB_TMH_BYTES + VB_RVH_BYTES,
		[VB_TMH_FIN] = VB_TMH_BYTES,
		[VB_TMH_EAGER] = VB_TMH_BYTES,
	};

	if (bytes < VB_TMH_BYTES || octets[0] >= VB_TMH_OPS || bytes < header_bytes[octets[0]])
		return false;
	*tmh = (struct vb_tmh){
		.op = (enum vb_tmh_op)octets[0],
		.app_ctx = vb_be32_get(octets + 4),
		.tag = vb_be64_get(octets + 8),
	};
	if (tmh->op != VB_TMH_RNDV)
		return true;
	octets += VB_TMH_BYTES;
	tmh->va = vb_be64_get(octets);
	tmh->rkey = vb_be32_get(octets + 8);
	tmh->len = vb_be32_get(octets + 12);
	return true;
}

void vb_tmh_put(uint8_t out[VB_TMH_BYTES], enum vb_tmh_op op, uint32_t app_ctx, uint64_t tag)
{
	memset(out, 0, VB_TMH_BYTES);
	out[0] = (uint8_t)op;
	vb_be32_put(out + 4, app_ctx);
	vb_be64_put(out + 8, tag);
}
