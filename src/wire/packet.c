/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/packet.h"

#include <string.h>

#include "wire/bytes.h"

#define QPN_MASK 0xffffffu /* also of PSN, MSN and SRQN: 24 bits beside a reserved octet */

/* --- parse and emit, header by header --- */

/* Three words each, since the hot path begins with this. */
static void bth_parse(struct vb_pkt *pkt, const uint8_t *in)
{
	uint32_t first = vb_be32_get(in), qpn = vb_be32_get(in + 4), psn = vb_be32_get(in + 8);

	pkt->opcode = (uint8_t)(first >> 24);
	pkt->se = first >> 23 & 1;
	pkt->migreq = first >> 22 & 1;
	pkt->pad = first >> 20 & 3;
	pkt->tver = first >> 16 & 15;
	pkt->pkey = (uint16_t)first;
	pkt->fecn = qpn >> 31;
	pkt->becn = qpn >> 30 & 1;
	pkt->dqpn = qpn & QPN_MASK;
	pkt->ackreq = psn >> 31;
	pkt->psn = psn & QPN_MASK;
}

static void bth_emit(uint8_t *out, const struct vb_pkt *pkt)
{
	vb_be32_put(out, (uint32_t)pkt->opcode << 24 | (uint32_t)pkt->se << 23 |
				 (uint32_t)pkt->migreq << 22 | (pkt->pad & 3u) << 20 |
				 (pkt->tver & 15u) << 16 | pkt->pkey);
	vb_be32_put(out + 4, (uint32_t)pkt->fecn << 31 | (uint32_t)pkt->becn << 30 |
				     (pkt->dqpn & QPN_MASK));
	vb_be32_put(out + 8, (uint32_t)pkt->ackreq << 31 | (pkt->psn & QPN_MASK));
}

/* In both functions the headers have the order of the wire. */
static const uint8_t *extended_parse(struct vb_pkt *pkt, unsigned headers, const uint8_t *in)
{
	if (headers & VB_H_XRCETH) {
		pkt->srqn = vb_be32_get(in) & QPN_MASK;
		in += 4;
	}
	if (headers & VB_H_DETH) {
		pkt->qkey = vb_be32_get(in);
		pkt->sqpn = vb_be32_get(in + 4) & QPN_MASK;
		in += 8;
	}
	if (headers & VB_H_DCETH) {
		pkt->dceth.mtu_code = in[0] & 7;
		pkt->sqpn = vb_be32_get(in) & QPN_MASK;
		pkt->dceth.start_psn = vb_be32_get(in + 4) & QPN_MASK;
		pkt->dceth.connection = vb_be64_get(in + 8);
		in += VB_DCETH_BYTES;
	}
	if (headers & VB_H_SRDETH) {
		pkt->srd.qpn = vb_be32_get(in) & QPN_MASK;
		pkt->srd.qkey = vb_be32_get(in + 4);
		memcpy(pkt->srd.gid, in + 8, sizeof(pkt->srd.gid));
		in += VB_SRDETH_BYTES;
	}
	if (headers & VB_H_DCKEY) {
		pkt->dceth.key = vb_be64_get(in);
		in += 8;
	}
	if (headers & VB_H_FETH) {
		pkt->flush.level = in[3] >> 4 & 3;
		pkt->flush.type = in[3] & 15;
		in += 4;
	}
	if (headers & VB_H_RETH) {
		pkt->reth.va = vb_be64_get(in);
		pkt->reth.rkey = vb_be32_get(in + 8);
		pkt->reth.bytes = vb_be32_get(in + 12);
		in += 16;
	}
	if (headers & VB_H_ATOMIC) {
		pkt->reth.va = vb_be64_get(in);
		pkt->reth.rkey = vb_be32_get(in + 8);
		pkt->atomic.swap_add = vb_be64_get(in + 12);
		pkt->atomic.compare = vb_be64_get(in + 20);
		in += 28;
	}
	if (headers & VB_H_AETH) {
		pkt->aeth.syndrome = in[0];
		pkt->aeth.msn = vb_be32_get(in) & QPN_MASK;
		in += 4;
	}
	if (headers & VB_H_ATOMICACK) {
		pkt->atomic.orig = vb_be64_get(in);
		in += 8;
	}
	if (headers & VB_H_IMM) {
		memcpy(&pkt->imm_be, in, sizeof(pkt->imm_be));
		in += 4;
	}
	if (headers & VB_H_IETH) {
		pkt->inv_rkey = vb_be32_get(in);
		in += 4;
	}
	if (headers & VB_H_CNP)
		in += 16;
	return in;
}

static uint8_t *extended_emit(uint8_t *out, unsigned headers, const struct vb_pkt *pkt)
{
	if (headers & VB_H_XRCETH) {
		vb_be32_put(out, pkt->srqn & QPN_MASK);
		out += 4;
	}
	if (headers & VB_H_DETH) {
		vb_be32_put(out, pkt->qkey);
		vb_be32_put(out + 4, pkt->sqpn & QPN_MASK);
		out += 8;
	}
	if (headers & VB_H_DCETH) {
		vb_be32_put(out,
			    (uint32_t)(pkt->dceth.mtu_code & 7) << 24 | (pkt->sqpn & QPN_MASK));
		vb_be32_put(out + 4, pkt->dceth.start_psn & QPN_MASK);
		vb_be64_put(out + 8, pkt->dceth.connection);
		out += VB_DCETH_BYTES;
	}
	if (headers & VB_H_SRDETH) {
		vb_be32_put(out, pkt->srd.qpn & QPN_MASK);
		vb_be32_put(out + 4, pkt->srd.qkey);
		memcpy(out + 8, pkt->srd.gid, sizeof(pkt->srd.gid));
		out += VB_SRDETH_BYTES;
	}
	if (headers & VB_H_DCKEY) {
		vb_be64_put(out, pkt->dceth.key);
		out += 8;
	}
	if (headers & VB_H_FETH) {
		vb_be32_put(out, (pkt->flush.level & 3u) << 4 | (pkt->flush.type & 15u));
		out += 4;
	}
	if (headers & VB_H_RETH) {
		vb_reth_put(out, pkt->reth.va, pkt->reth.rkey, pkt->reth.bytes);
		out += VB_RETH_BYTES;
	}
	if (headers & VB_H_ATOMIC) {
		vb_be64_put(out, pkt->reth.va);
		vb_be32_put(out + 8, pkt->reth.rkey);
		vb_be64_put(out + 12, pkt->atomic.swap_add);
		vb_be64_put(out + 20, pkt->atomic.compare);
		out += 28;
	}
	if (headers & VB_H_AETH) {
		vb_be32_put(out, (uint32_t)pkt->aeth.syndrome << 24 | (pkt->aeth.msn & QPN_MASK));
		out += 4;
	}
	if (headers & VB_H_ATOMICACK) {
		vb_be64_put(out, pkt->atomic.orig);
		out += 8;
	}
	if (headers & VB_H_IMM) {
		memcpy(out, &pkt->imm_be, sizeof(pkt->imm_be));
		out += 4;
	}
	if (headers & VB_H_IETH) {
		vb_be32_put(out, pkt->inv_rkey);
		out += 4;
	}
	if (headers & VB_H_CNP) {
		memset(out, 0, 16);
		out += 16;
	}
	return out;
}

/* --- whole packets --- */

enum vb_parse vb_pkt_parse(struct vb_pkt *pkt, const uint8_t *frame, size_t bytes)
{
	const struct vb_op_info *op;
	size_t rest;

	memset(pkt, 0, sizeof(*pkt));
	if (bytes < VB_FRAME_BYTES_MIN)
		return VB_PARSE_SHORT;
	bth_parse(pkt, frame);
	/*
	 * The version is checked first: with another one, the rest of the BTH could mean anything.
	 */
	if (pkt->tver != 0)
		return VB_PARSE_VERSION;
	op = vb_op_info(pkt->opcode);
	if (!op)
		return VB_PARSE_OPCODE;
	if (bytes < (size_t)op->header_bytes + VB_ICRC_BYTES)
		return VB_PARSE_SHORT;
	if (bytes % 4)
		return VB_PARSE_ALIGN;
	rest = bytes - op->header_bytes - VB_ICRC_BYTES;
	if ((rest && !op->payload) || bytes > VB_FRAME_BYTES_MAX)
		return VB_PARSE_LENGTH;
	if (pkt->pad > rest)
		return VB_PARSE_PAD;
	pkt->payload = extended_parse(pkt, op->headers, frame + VB_BTH_BYTES);
	pkt->payload_bytes = (uint32_t)rest - pkt->pad;
	return VB_PARSE_OK;
}

const struct vb_op_info *vb_pkt_parse_head(struct vb_pkt *pkt, const uint8_t *head, size_t bytes)
{
	const struct vb_op_info *op;

	if (bytes < VB_BTH_BYTES)
		return NULL;
	bth_parse(pkt, head);
	op = vb_op_info(pkt->opcode);
	if (!op || pkt->tver != 0 || bytes < op->header_bytes)
		return NULL;
	if (op->headers)
		extended_parse(pkt, op->headers, head + VB_BTH_BYTES);
	return op;
}

size_t vb_pkt_emit(uint8_t *out, const struct vb_pkt *pkt)
{
	const struct vb_op_info *op = vb_op_info(pkt->opcode);

	vb_check(op);
	bth_emit(out, pkt);
	if (!op->headers)
		return VB_BTH_BYTES;
	return (size_t)(extended_emit(out + VB_BTH_BYTES, op->headers, pkt) - out);
}

const char *vb_parse_str(enum vb_parse verdict)
{
	static const char *const names[VB_PARSE_COUNT] = {
		[VB_PARSE_OK] = "ok",
		[VB_PARSE_SHORT] = "short",
		[VB_PARSE_VERSION] = "version",
		[VB_PARSE_OPCODE] = "opcode",
		[VB_PARSE_ALIGN] = "align",
		[VB_PARSE_LENGTH] = "length",
		[VB_PARSE_PAD] = "pad",
	};

	return (unsigned)verdict < VB_PARSE_COUNT ? names[verdict] : "unknown";
}
