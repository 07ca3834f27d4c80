/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/mad.h"

#include <string.h>

#include "wire/bytes.h"

void vb_mad_parse(struct vb_mad *mad, const uint8_t in[VB_MAD_HEADER_BYTES])
{
	*mad = (struct vb_mad){
		.base_version = in[0],
		.mgmt_class = in[1],
		.class_version = in[2],
		.method = in[3],
		.status = vb_be16_get(in + 4),
		.class_specific = vb_be16_get(in + 6),
		.transaction_id = vb_be64_get(in + 8),
		.attribute = vb_be16_get(in + 16),
		.attribute_modifier = vb_be32_get(in + 20),
	};
}

void vb_mad_emit(const struct vb_mad *mad, uint8_t out[VB_MAD_HEADER_BYTES])
{
	memset(out, 0, VB_MAD_HEADER_BYTES);
	out[0] = mad->base_version;
	out[1] = mad->mgmt_class;
	out[2] = mad->class_version;
	out[3] = mad->method;
	vb_be16_put(out + 4, mad->status);
	vb_be16_put(out + 6, mad->class_specific);
	vb_be64_put(out + 8, mad->transaction_id);
	vb_be16_put(out + 16, mad->attribute);
	vb_be32_put(out + 20, mad->attribute_modifier);
}
