/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/flow.h"

#include <string.h>

#include "wire/bytes.h"

#define FLOW_MAGIC 0x76626d31u /* "vbm1": other manufacturers use the same opcodes */

void vb_flow_emit(uint8_t *out, const struct vb_flow *flow)
{
	memset(out, 0, VB_FLOW_FRAME_BYTES - 4);
	out[0] = (uint8_t)flow->kind;
	vb_be16_put(out + 2, 0xffff);
	vb_be32_put(out + 4, flow->dqpn & 0xffffff);
	vb_be32_put(out + 12, FLOW_MAGIC);
	vb_be32_put(out + 16, flow->slot);
	vb_be64_put(out + 20, flow->bytes);
}

bool vb_flow_parse(struct vb_flow *flow, const uint8_t *frame, size_t bytes)
{
	if (bytes != VB_FLOW_FRAME_BYTES || (frame[0] != VB_FLOW_ASK && frame[0] != VB_FLOW_TELL) ||
	    vb_be32_get(frame + 12) != FLOW_MAGIC)
		return false;
	*flow = (struct vb_flow){
		.kind = (enum vb_flow_kind)frame[0],
		.dqpn = vb_be32_get(frame + 4) & 0xffffff,
		.slot = (uint16_t)(vb_be32_get(frame + 16) & 0x3ff),
		.bytes = vb_be64_get(frame + 20),
	};
	return true;
}
