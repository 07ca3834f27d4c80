/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/mad_frame.h"

#include <string.h>

#include "wire/icrc.h"
#include "wire/packet.h"

#define PKEY_DEFAULT 0xffff

void vb_mad_frame_emit(uint8_t out[VB_MAD_FRAME_BYTES], const struct vb_path *path,
		       const uint8_t mad[VB_MAD_BYTES], uint32_t psn)
{
	struct vb_pkt pkt = { .opcode = VB_OP_UD_SEND_ONLY, .psn = psn, .qkey = VB_MAD_QKEY,
			      .sqpn = VB_MAD_QPN };

	vb_pkt_begin(&pkt, VB_MAD_QPN, PKEY_DEFAULT);
	vb_pkt_emit(out, &pkt);
	memcpy(out + VB_MAD_HEADERS_BYTES, mad, VB_MAD_BYTES);
	vb_icrc_put(out + VB_MAD_FRAME_BYTES - VB_ICRC_BYTES,
		    vb_icrc_frame(path, out, VB_MAD_FRAME_BYTES, 0));
}

const uint8_t *vb_mad_frame_parse(const uint8_t *frame, size_t bytes)
{
	struct vb_pkt pkt;

	if (vb_pkt_parse(&pkt, frame, bytes) != VB_PARSE_OK || pkt.opcode != VB_OP_UD_SEND_ONLY ||
	    pkt.dqpn != VB_MAD_QPN || pkt.sqpn != VB_MAD_QPN || pkt.qkey != VB_MAD_QKEY ||
	    pkt.payload_bytes != VB_MAD_BYTES)
		return NULL;
	return pkt.payload;
}
