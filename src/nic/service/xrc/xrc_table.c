/* SPDX-License-Identifier: BSD-2-Clause */

/* The service tables of XRC (nic/data/service.h). */

#include "base/check.h"
#include "nic/data/qp_extra.h"
#include "nic/data/transition.h"
#include "nic/service/xrc/xrc_rx.h"
#include "nic/service/xrc/xrc_tell.h"
#include "nic/service/xrc/xrc_tx.h"

#define NOT_DONE IBV_QP_RATE_LIMIT

/*
 * Some attributes are not needed, but perftest passes those of both ends to either, in RTR and in
 * RTS.
 */
static const struct vb_transition send_transitions[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, T_PKEY | T_PORT | T_ACCESS, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, T_PKEY | T_PORT | T_ACCESS },
	{ IBV_QPS_INIT, IBV_QPS_RTR, T_AV | T_MTU | T_DQPN | T_RPSN,
	  T_ALT | T_ACCESS | T_PKEY | T_DEST_RD | T_RNR_TIMER },
	{ IBV_QPS_RTR, IBV_QPS_RTS, T_TIMEOUT | T_RETRY | T_RNR_RETRY | T_SPSN | T_RD,
	  T_CUR | T_ALT | T_ACCESS | T_MIG },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, T_CUR | T_ACCESS | T_ALT | T_MIG },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, T_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0,
	  T_PORT | T_AV | T_TIMEOUT | T_RETRY | T_RNR_RETRY | T_RD | T_ALT | T_ACCESS | T_PKEY |
		  T_MIG },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, T_CUR | T_ALT | T_ACCESS | T_MIG },
};

static const struct vb_transition recv_transitions[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, T_PKEY | T_PORT | T_ACCESS, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, T_PKEY | T_PORT | T_ACCESS },
	{ IBV_QPS_INIT, IBV_QPS_RTR, T_AV | T_MTU | T_DQPN | T_RPSN | T_DEST_RD | T_RNR_TIMER,
	  T_ALT | T_ACCESS | T_PKEY },
	{ IBV_QPS_RTR, IBV_QPS_RTS, T_TIMEOUT | T_SPSN,
	  T_CUR | T_ALT | T_ACCESS | T_RNR_TIMER | T_MIG | T_RETRY | T_RNR_RETRY | T_RD },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, T_CUR | T_ACCESS | T_ALT | T_MIG | T_RNR_TIMER },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, T_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0,
	  T_PORT | T_AV | T_TIMEOUT | T_DEST_RD | T_ALT | T_ACCESS | T_PKEY | T_RNR_TIMER |
		  T_MIG },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, T_CUR | T_ALT | T_ACCESS | T_RNR_TIMER | T_MIG },
};

/* It sends requests, and accepts none. */
static void send_request(struct vb_batch *batch, struct vb_qp *qp, const struct vb_frame *frame,
			 const struct vb_pkt *pkt, const struct vb_op_info *info)
{
	(void)qp;
	(void)frame;
	(void)pkt;
	(void)info;
	vb_batch_count(batch, VB_STAT_DROP_TRANSPORT);
}

/* IBTA A14: an initiator has no receive queue, nor anything that goes with one. */
const struct vb_service vb_service_xrc_send = {
	.name = "XRC_SEND",
	.offered = VB_OFFERS_XRC,
	.transport = VB_XRC,
	.traits = VB_AIMS | VB_MIGREQ | VB_RETURNS | VB_IS_ANSWERED,
	.create = { .dv_flags = VB_QP_SCATTER_TO_CQE | VB_QP_OOO_DP },
	.modify = {
		.transitions = send_transitions,
		.rows = VB_ARRAY_LEN(send_transitions),
		.not_done = NOT_DONE,
		.header_bytes = VB_XRCETH_BYTES,
	},
	.post = {
		.opcodes = VB_POSTS(IBV_WR_RDMA_WRITE) | VB_POSTS(IBV_WR_RDMA_WRITE_WITH_IMM) |
			   VB_POSTS(IBV_WR_SEND) | VB_POSTS(IBV_WR_SEND_WITH_IMM) |
			   VB_POSTS(IBV_WR_RDMA_READ) | VB_POSTS(IBV_WR_ATOMIC_CMP_AND_SWP) |
			   VB_POSTS(IBV_WR_ATOMIC_FETCH_AND_ADD) | VB_POSTS(IBV_WR_LOCAL_INV) |
			   VB_POSTS(IBV_WR_BIND_MW) | VB_POSTS(IBV_WR_SEND_WITH_INV),
		.address = vb_xrc_address,
	},
	.send = {
		.transmit = vb_xrc_transmit,
		.could_do_better = vb_xrc_could_do_better,
	},
	.receive = { .transport = VB_XRC, .request = send_request },
};

static const struct vb_service_handle handle = {
	.modify = vb_xrc_qp_modify,
	.query = vb_xrc_qp_query,
	.destroy = vb_xrc_qp_destroy,
};

const struct vb_service vb_service_xrc_recv = {
	.name = "XRC_RECV",
	.offered = VB_OFFERS_XRC,
	.transport = VB_XRC,
	.traits = VB_MIGREQ | VB_RETURNS,
	.create = { .dv_flags = VB_QP_SCATTER_TO_CQE | VB_QP_OOO_DP,
		    .unmake = vb_xrc_rcv_unmake },
	.modify = {
		.transitions = recv_transitions,
		.rows = VB_ARRAY_LEN(recv_transitions),
		.not_done = NOT_DONE,
		.header_bytes = VB_XRCETH_BYTES,
	},
	.handle = &handle,
};

static uint16_t slot(const struct vb_qp *qp)
{
	return atomic_load(&qp->nic->special.xrc)->slot;
}

static uint32_t psn_awaited(const struct vb_qp *qp)
{
	return vb_xrc_at(atomic_load(&qp->special.xrc->rcv->word)).epsn;
}

const struct vb_service vb_service_xrc_shadow = {
	.name = "XRC_RECV",
	.transport = VB_XRC,
	.traits = VB_MIGREQ,
	.create = { .unmake = vb_xrc_rcv_unmake },
	.send = { .slot = slot },
	.receive = {
		.transport = VB_XRC,
		.take = vb_xrc_take,
		.middle = vb_xrc_middle,
		.request = vb_xrc_request,
	},
	.fail = {
		.fail = vb_xrc_failed,
		.event = vb_xrc_event,
		.on_time = vb_xrc_on_time,
		.psn_awaited = psn_awaited,
		.migrate = vb_xrc_migration,
	},
};
