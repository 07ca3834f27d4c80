/* SPDX-License-Identifier: BSD-2-Clause */
/* Any octets as a frame: what parses lies within it, and survives being emitted again. */
#include <string.h>

#include "fuzz.h"
#include "wire/packet.h"

static void check_refused(const struct vb_pkt *pkt, enum vb_parse verdict)
{
	vb_check(verdict < VB_PARSE_COUNT);
	vb_check(strcmp(vb_parse_str(verdict), "unknown") != 0);
	vb_check(!pkt->payload && !pkt->payload_bytes);
}

static void check_accepted(const struct vb_pkt *pkt, const uint8_t *data, size_t bytes)
{
	const struct vb_op_info *op = vb_op_info(pkt->opcode);
	uint8_t header[VB_PKT_HEADER_BYTES_MAX];
	uint8_t frame[VB_PKT_HEADER_BYTES_MAX + 4 + VB_ICRC_BYTES] = { 0 };
	struct vb_pkt again;
	size_t header_bytes;

	vb_check(op);
	vb_check(pkt->payload == data + op->header_bytes);
	vb_check(pkt->payload + pkt->payload_bytes + pkt->pad + VB_ICRC_BYTES == data + bytes);
	vb_check(!pkt->payload_bytes || op->payload);

	/* Emitted with nothing behind it but the pad, only the payload may differ. */
	header_bytes = vb_pkt_emit(header, pkt);
	vb_check(header_bytes == op->header_bytes);
	memcpy(frame, header, header_bytes);
	vb_check(vb_pkt_parse(&again, frame, header_bytes + (pkt->pad ? 4 : 0) + VB_ICRC_BYTES) ==
		 VB_PARSE_OK);
	again.payload = pkt->payload;
	again.payload_bytes = pkt->payload_bytes;
	vb_check(memcmp(&again, pkt, sizeof(again)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct vb_pkt pkt;
	enum vb_parse verdict = vb_pkt_parse(&pkt, data, bytes);

	if (verdict == VB_PARSE_OK)
		check_accepted(&pkt, data, bytes);
	else
		check_refused(&pkt, verdict);
	return 0;
}
