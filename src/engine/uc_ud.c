/* SPDX-License-Identifier: BSD-2-Clause */

/* The responders without acknowledgement: invalid packets are dropped (IBA 9.8). */

#include "engine/uc_ud.h"

#include "base/psn.h"
#include "engine/host.h"
#include "wire/grh.h"

static struct vb_resp_result dropped(enum vb_verdict why)
{
	return (struct vb_resp_result){ VB_RESP_DROPPED, why };
}

/* The sender is told nothing; who looks for a message that is gone wants to know why. */
static __attribute__((cold, noinline)) struct vb_resp_result
refused(struct vb_resp *resp, const struct vb_pkt *pkt, const struct vb_op_info *info,
	enum vb_verdict why)
{
	vb_host_refused(resp, pkt, info, why);
	return dropped(why);
}

/* A local fault: completes the current receive request with it, and the QP fails. */
static struct vb_resp_result recv_fault(struct vb_resp *resp, const struct vb_pkt *pkt,
					const struct vb_op_info *info, enum vb_verdict verdict)
{
	resp->has_recv = false;
	resp->broken = true;
	resp->verdict = verdict;
	vb_host_refused(resp, pkt, info, verdict);
	vb_host_recv_done(resp, pkt, info, resp->offset, vb_verdict_rows[verdict].recv_status);
	return (struct vb_resp_result){ VB_RESP_FAILED, verdict };
}

/*
 * The specification has no late packets: InfiniBand fabrics never reorder or duplicate. UDP does
 * both, and a message must not come twice or after its successors. Further back than this it is not
 * a late packet, but a peer that restarted.
 */
#define LATE_PSNS 65536

struct vb_resp_result vb_uc_request(struct vb_resp *resp, const struct vb_pkt *pkt,
				    const struct vb_op_info *info)
{
	int32_t ahead = vb_psn_diff(pkt->psn, resp->epsn);
	bool gap = ahead != 0;
	enum vb_verdict verdict;

	if (resp->broken || (ahead < 0 && ahead >= -LATE_PSNS))
		return dropped(VB_BAD_SEQUENCE);
	resp->epsn = vb_psn_add(pkt->psn, 1);
	if (info->kind != VB_K_SEND && info->kind != VB_K_WRITE)
		return dropped(VB_BAD_OPCODE);
	/* IBA 9.8.2.2.1: after a gap the message is lost; the next one that begins is accepted. */
	if (gap || (info->pos & VB_P_FIRST)) {
		vb_resp_drop_message(resp);
		if (!(info->pos & VB_P_FIRST))
			return dropped(VB_BAD_SEQUENCE);
	}
	verdict = vb_resp_data(resp, pkt, info);
	if (verdict == VB_OK)
		return (struct vb_resp_result){ VB_RESP_NOTHING, VB_OK };
	vb_resp_drop_message(resp);
	/* The next message gets the receive request that a dropped one had taken. */
	if (vb_verdict_rows[verdict].uc == VB_FAULT_A)
		return recv_fault(resp, pkt, info, verdict);
	return refused(resp, pkt, info, verdict);
}

struct vb_resp_result vb_ud_request(struct vb_resp *resp, const struct vb_pkt *pkt,
				    const struct vb_op_info *info, const uint8_t *grh)
{
	enum vb_verdict verdict;

	if (resp->broken)
		return dropped(VB_BAD_SEQUENCE);
	if (pkt->payload_bytes > resp->mtu)
		return refused(resp, pkt, info, VB_BAD_LENGTH);
	/* An SRQ takes nothing back, so the length is checked first. */
	verdict = vb_host_datagram_take(resp, VB_GRH_BYTES + pkt->payload_bytes);
	if (verdict != VB_OK)
		return refused(resp, pkt, info, verdict);
	resp->has_recv = true;
	resp->offset = 0;
	verdict = vb_host_recv_write(resp, 0, grh, VB_GRH_BYTES);
	if (verdict == VB_OK && pkt->payload_bytes)
		verdict = vb_host_recv_write(resp, VB_GRH_BYTES, pkt->payload, pkt->payload_bytes);
	if (verdict != VB_OK)
		return recv_fault(resp, pkt, info, verdict);
	resp->has_recv = false;
	vb_host_recv_done(resp, pkt, info, VB_GRH_BYTES + pkt->payload_bytes, IBV_WC_SUCCESS);
	return (struct vb_resp_result){ VB_RESP_NOTHING, VB_OK };
}
