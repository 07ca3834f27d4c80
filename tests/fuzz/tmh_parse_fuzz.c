/* SPDX-License-Identifier: BSD-2-Clause */
/* Any octets as the headers of tag matching: what is read, written again, is what was there. */
#include <string.h>

#include "base/check.h"
#include "fuzz.h"
#include "wire/bytes.h"
#include "wire/tmh.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	uint8_t out[VB_TMH_BYTES];
	struct vb_tmh tmh;

	if (!vb_tmh_parse(&tmh, data, bytes)) {
		vb_check(bytes < VB_TMH_BYTES || data[0] >= VB_TMH_OPS ||
			 (data[0] == VB_TMH_RNDV && bytes < VB_TMH_BYTES + VB_RVH_BYTES));
		return 0;
	}
	vb_tmh_put(out, tmh.op, tmh.app_ctx, tmh.tag);
	vb_check(out[0] == data[0] && memcmp(out + 4, data + 4, VB_TMH_BYTES - 4) == 0);
	if (tmh.op == VB_TMH_RNDV)
		vb_check(tmh.va == vb_be64_get(data + VB_TMH_BYTES) &&
			 tmh.rkey == vb_be32_get(data + VB_TMH_BYTES + 8) &&
			 tmh.len == vb_be32_get(data + VB_TMH_BYTES + 12));
	else
		vb_check(!tmh.va && !tmh.rkey && !tmh.len);
	return 0;
}
