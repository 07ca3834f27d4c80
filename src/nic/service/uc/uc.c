/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/service/uc/uc.h"

#include "base/check.h"
#include "engine/uc_ud.h"
#include "nic/data/transition.h"
#include "nic/data/demux.h"
#include "nic/data/explain.h"
#include "nic/data/qp_extra.h"
#include "wire/opcode.h"

static const struct vb_transition transitions[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, T_PKEY | T_PORT | T_ACCESS, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, T_PKEY | T_PORT | T_ACCESS },
	{ IBV_QPS_INIT, IBV_QPS_RTR, T_AV | T_MTU | T_DQPN | T_RPSN, T_ALT | T_ACCESS | T_PKEY },
	{ IBV_QPS_RTR, IBV_QPS_RTS, T_SPSN, T_CUR | T_ALT | T_ACCESS | T_MIG | T_RATE },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, T_CUR | T_ACCESS | T_ALT | T_MIG | T_RATE },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, T_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0, T_AV | T_ALT | T_ACCESS | T_PKEY | T_MIG | T_RATE },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, T_CUR | T_ALT | T_ACCESS | T_MIG | T_RATE },
	{ IBV_QPS_SQE, IBV_QPS_RTS, 0, T_CUR | T_ACCESS },
};

/*
 * IBA 9.9.3: a UC request with an invalid key is just dropped, so guessing keys would cost a sender
 * nothing. But UC may lose any packet: after some invalid keys, WRITEs that come too fast after an
 * invalid one are dropped, and a guesser cannot tell a valid key. A program that used an outdated
 * key for a while is served again within VB_BRAKE_NS.
 */
static bool is_braked(struct vb_qp *qp, const struct vb_op_info *info)
{
	uint64_t now_ns;

	if (!qp->special.brake_ns || info->kind != VB_K_WRITE)
		return false;
	now_ns = vb_nic_now_ns(qp->nic);
	if (now_ns >= qp->special.brake_ns)
		qp->special.brake_ns = 0;
	return qp->special.brake_ns > now_ns + (uint64_t)VB_BRAKE_FREE * VB_BRAKE_NS;
}

static void request(struct vb_batch *batch, struct vb_qp *qp, const struct vb_frame *frame,
		    const struct vb_pkt *pkt, const struct vb_op_info *info)
{
	struct vb_resp_result result;

	(void)frame;
	if (is_braked(qp, info)) {
		vb_batch_count(batch, VB_STAT_DROP_BRAKE);
		vb_explain_drop(batch->nic, qp, NULL, pkt, info, VB_STAT_DROP_BRAKE);
		return;
	}
	result = vb_uc_request(&qp->resp, pkt, info);
	if (result.outcome == VB_RESP_DROPPED && result.verdict == VB_BAD_ACCESS)
		qp->special.brake_ns =
			vb_max_u64(qp->special.brake_ns, vb_nic_now_ns(qp->nic)) + VB_BRAKE_NS;
	vb_batch_heed(batch, qp, result);
}

const struct vb_service vb_service_uc = {
	.name = "UC",
	.offered = VB_OFFERS_UC,
	.transport = VB_UC,
	.traits = VB_CONNECTS | VB_RECEIVES | VB_MIGREQ | VB_RETURNS |
		  VB_IS_COUNTED | VB_PARCELS_RECV,
	.create = {
		.flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB | IBV_QP_CREATE_PCI_WRITE_END_PADDING,
		.dv_flags = VB_QP_SCATTER_TO_CQE | VB_QP_OOO_DP,
	},
	.modify = {
		.transitions = transitions,
		.rows = VB_ARRAY_LEN(transitions),
	},
	/* IBA 9.2.1 has no SEND with invalidate on UC, though the man page allows it. */
	.post = {
		.opcodes = VB_POSTS(IBV_WR_RDMA_WRITE) | VB_POSTS(IBV_WR_RDMA_WRITE_WITH_IMM) |
			   VB_POSTS(IBV_WR_SEND) | VB_POSTS(IBV_WR_SEND_WITH_IMM) |
			   VB_POSTS(IBV_WR_LOCAL_INV) | VB_POSTS(IBV_WR_BIND_MW),
	},
	.receive = { .transport = VB_UC, .request = request },
};
