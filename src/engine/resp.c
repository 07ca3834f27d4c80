/* SPDX-License-Identifier: BSD-2-Clause */

/* Shared by RC and UC responders: receiving SENDs and WRITEs, packet by packet. */

#include "engine/resp.h"

#include "base/psn.h"
#include "engine/host.h"

void vb_resp_reset(struct vb_resp *resp)
{
	struct vb_resource *ring = resp->ring;

	*resp = (struct vb_resp){ .ring = ring };
}

void vb_resp_drop_message(struct vb_resp *resp)
{
	resp->message = VB_M_NONE;
	resp->offset = 0;
}

/* IBA 9.7.4.1.2, 9.8.2.2: a packet continues the current message, or begins one. */
static bool in_sequence(const struct vb_resp *resp, const struct vb_op_info *info)
{
	if (info->pos & VB_P_FIRST)
		return resp->message == VB_M_NONE;
	return resp->message == (info->kind == VB_K_SEND ? VB_M_SEND : VB_M_WRITE);
}

/* IBA 9.7.4.1.7: all packets but the last are full, the last is neither empty nor too long. */
static bool length_fits(const struct vb_resp *resp, const struct vb_pkt *pkt,
			const struct vb_op_info *info)
{
	uint64_t total = (uint64_t)resp->offset + pkt->payload_bytes;

	if (!(info->pos & VB_P_LAST))
		return pkt->payload_bytes == resp->mtu &&
		       (info->kind == VB_K_SEND ? total <= 1u << 31 : total < resp->write.bytes);
	if (pkt->payload_bytes > resp->mtu)
		return false;
	if (info->pos == VB_P_LAST && !pkt->payload_bytes)
		return false;
	return info->kind == VB_K_SEND ? total <= 1u << 31 : total == resp->write.bytes;
}

static enum vb_verdict begin_write(struct vb_resp *resp, const struct vb_pkt *pkt)
{
	enum vb_verdict verdict;

	if (!(resp->access & IBV_ACCESS_REMOTE_WRITE))
		return VB_BAD_ACCESS;
	if (pkt->reth.bytes > 1u << 31)
		return VB_BAD_LENGTH;
	/* IBA 9.7.4.1.6: a zero-length WRITE accesses nothing, and its rkey is not checked. */
	if (pkt->reth.bytes) {
		verdict = vb_host_remote_check(resp, pkt->reth.rkey, pkt->reth.va, pkt->reth.bytes,
					       IBV_ACCESS_REMOTE_WRITE);
		if (verdict != VB_OK)
			return verdict;
	}
	resp->write.rkey = pkt->reth.rkey;
	resp->write.va = pkt->reth.va;
	resp->write.bytes = pkt->reth.bytes;
	return VB_OK;
}

static enum vb_verdict place(struct vb_resp *resp, const struct vb_pkt *pkt,
			     const struct vb_op_info *info)
{
	if (!pkt->payload_bytes)
		return VB_OK;
	if (info->kind == VB_K_SEND)
		return vb_host_recv_write(resp, resp->offset, pkt->payload, pkt->payload_bytes);
	return vb_host_remote_write(resp, resp->write.rkey, resp->write.va + resp->offset,
				    pkt->payload, pkt->payload_bytes);
}

bool vb_resp_middle(struct vb_resp *resp, enum vb_kind kind, uint32_t psn, bool ackreq,
		    const uint8_t *payload, uint32_t bytes)
{
	uint64_t total = (uint64_t)resp->offset + bytes;
	enum vb_verdict verdict;

	if (psn != resp->epsn || bytes != resp->mtu || resp->broken || resp->nak_sent ||
	    resp->nak_owed)
		return false;
	if (kind == VB_K_WRITE && resp->message == VB_M_WRITE && total < resp->write.bytes)
		verdict = vb_host_remote_write(resp, resp->write.rkey,
					       resp->write.va + resp->offset, payload, bytes);
	else if (kind == VB_K_SEND && resp->message == VB_M_SEND && total <= 1u << 31)
		verdict = vb_host_recv_write(resp, resp->offset, payload, bytes);
	else
		return false;
	if (verdict != VB_OK)
		return false;
	resp->offset = (uint32_t)total;
	resp->epsn = vb_psn_add(psn, 1);
	if (ackreq && vb_transport_acks(resp->transport))
		resp->ack_owed = true;
	return true;
}

/* Does this packet need a receive request: the first of a SEND, the last of a WRITE with imm? */
static bool takes_recv(const struct vb_resp *resp, const struct vb_op_info *info)
{
	if (info->kind == VB_K_SEND)
		return info->pos & VB_P_FIRST;
	return (info->headers & VB_H_IMM) && !resp->unsolicited;
}

enum vb_verdict vb_resp_data(struct vb_resp *resp, const struct vb_pkt *pkt,
			     const struct vb_op_info *info)
{
	enum vb_verdict verdict;

	if (!in_sequence(resp, info))
		return VB_BAD_SEQUENCE;
	/*
	 * IBA 9.7.4.1: in this order. So a request refused below has taken a receive request, which
	 * reports it (9.9.3, class C); for a WRITE only the last packet takes one.
	 */
	if (takes_recv(resp, info) && !resp->has_recv) {
		if (!vb_host_recv_take(resp, pkt, info))
			return VB_NO_RECV;
		resp->has_recv = true;
	}
	if (info->pos & VB_P_FIRST) {
		resp->offset = 0;
		if (info->kind == VB_K_WRITE) {
			verdict = begin_write(resp, pkt);
			if (verdict != VB_OK)
				return verdict;
		}
	}
	if (!length_fits(resp, pkt, info))
		return VB_BAD_LENGTH;
	/* IBA 9.4.1.1.1: takes effect only if all else is valid. */
	if (info->headers & VB_H_IETH) {
		verdict = vb_host_invalidate(resp, pkt->inv_rkey);
		if (verdict != VB_OK)
			return verdict;
	}
	verdict = place(resp, pkt, info);
	if (verdict != VB_OK)
		return verdict;
	resp->offset += pkt->payload_bytes;
	resp->message = info->kind == VB_K_SEND ? VB_M_SEND : VB_M_WRITE;
	if (!(info->pos & VB_P_LAST))
		return VB_OK;
	resp->message = VB_M_NONE;
	resp->msn = vb_psn_add(resp->msn, 1);
	if (info->kind == VB_K_SEND || (info->headers & VB_H_IMM)) {
		resp->has_recv = false;
		vb_host_recv_done(resp, pkt, info, resp->offset, IBV_WC_SUCCESS);
	}
	return VB_OK;
}
