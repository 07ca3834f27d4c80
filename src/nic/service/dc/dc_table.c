/* SPDX-License-Identifier: BSD-2-Clause */

/* The service tables of DC: initiators, targets, and contexts of targets (nic/data/service.h). */

#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "nic/data/transition.h"
#include "nic/mem/mkey.h"
#include "nic/service/dc/dc_target.h"

/*
 * As in the mlx5 driver. A target stays in RTR until it is destroyed. IBV_QP_CUR_STATE is allowed
 * everywhere.
 */
static const struct vb_transition initiator_transitions[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, T_PKEY | T_PORT, T_CUR },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, T_PKEY | T_PORT | T_CUR },
	{ IBV_QPS_INIT, IBV_QPS_RTR, T_MTU, T_PKEY | T_AV | T_CUR },
	{ IBV_QPS_RTR, IBV_QPS_RTS, T_TIMEOUT | T_RETRY | T_RNR_RETRY | T_SPSN | T_RD,
	  T_RNR_TIMER | T_CUR },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, T_RNR_TIMER | T_CUR },
};

static const struct vb_transition target_transitions[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, T_PKEY | T_PORT | T_ACCESS, T_CUR },
	{ IBV_QPS_INIT, IBV_QPS_RTR, T_RNR_TIMER | T_AV | T_MTU, T_CUR },
};

/* An initiator receives nothing, and ignores an SRQ. */
static int initiator_check(const struct ibv_qp_init_attr_ex *asked, const struct vb_dc_attr *dc,
			   struct ibv_qp_init_attr *plain)
{
	const uint32_t ops = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;

	if ((asked->comp_mask & ~ops) != IBV_QP_INIT_ATTR_PD || asked->cap.max_recv_wr ||
	    asked->cap.max_recv_sge || dc->streams_log > VB_DCI_STREAMS_LOG_MAX ||
	    dc->errored_log > VB_DCI_ERRORED_LOG_MAX)
		return EINVAL;
	memcpy(plain, asked, sizeof(*plain));
	plain->srq = NULL;
	plain->recv_cq = plain->recv_cq ? plain->recv_cq : plain->send_cq;
	return 0;
}

/* A target sends nothing, and needs nothing for that. */
static int target_check(const struct ibv_qp_init_attr_ex *asked, const struct vb_dc_attr *dc,
			struct ibv_qp_init_attr *plain)
{
	if (asked->comp_mask != IBV_QP_INIT_ATTR_PD || !asked->srq || !asked->recv_cq ||
	    dc->streams_log > VB_DCI_STREAMS_LOG_MAX || dc->errored_log > VB_DCI_ERRORED_LOG_MAX)
		return EINVAL;
	memcpy(plain, asked, sizeof(*plain));
	plain->cap.max_send_wr = plain->cap.max_send_sge = plain->cap.max_inline_data = 0;
	plain->send_cq = plain->send_cq ? plain->send_cq : plain->recv_cq;
	return 0;
}

const struct vb_service vb_service_dc_initiator = {
	.name = "DCI",
	.offered = VB_OFFERS_DC,
	.transport = VB_DC,
	.traits = VB_AIMS | VB_CHOOSES_PEER | VB_RECEIVES | VB_MIGREQ | VB_RETURNS |
		  VB_PARCELS_FETCH | VB_IS_ANSWERED,
	.create = {
		.dv_flags = VB_QP_SCATTER_TO_CQE | VB_QP_OOO_DP | VB_QP_DV_BUILDER,
		.check = initiator_check,
		.make = vb_dc_initiator_make,
		.leave = vb_dc_initiator_leave,
		.unmake = vb_dc_initiator_unmake,
	},
	.modify = {
		.transitions = initiator_transitions,
		.rows = VB_ARRAY_LEN(initiator_transitions),
		/* With 0 requested it may still have one, as with mlx5: programs rely on it. */
		.fetches_min = 1,
		.fetches_max = VB_DC_RESOURCES,
		.reset = vb_dc_reset,
	},
	.post = {
		.opcodes = VB_POSTS(IBV_WR_RDMA_WRITE) | VB_POSTS(IBV_WR_RDMA_WRITE_WITH_IMM) |
			   VB_POSTS(IBV_WR_SEND) | VB_POSTS(IBV_WR_SEND_WITH_IMM) |
			   VB_POSTS(IBV_WR_RDMA_READ) | VB_POSTS(IBV_WR_ATOMIC_CMP_AND_SWP) |
			   VB_POSTS(IBV_WR_ATOMIC_FETCH_AND_ADD) | VB_POSTS(IBV_WR_LOCAL_INV) |
			   VB_POSTS(IBV_WR_SEND_WITH_INV) | VB_POSTS(VB_WR_MKEY) |
			   VB_POSTS(VB_WR_MEMCPY),
		.check = vb_dc_address_check,
		.address = vb_dc_address_keep,
	},
	.send = {
		.transmit = vb_dc_initiator_transmit,
		.header_fill = vb_dc_pkt_fill,
		.could_do_better = vb_dc_could_do_better,
	},
	.receive = { .transport = VB_DC, .take = vb_dc_initiator_take },
	.fail = { .isolate = vb_dc_isolate, .fail = vb_dc_part },
};

/* The contexts send answers. */
static void target_transmit(struct vb_qp *qp, enum ibv_qp_state state)
{
	(void)qp;
	(void)state;
}

const struct vb_service vb_service_dc_target = {
	.name = "DCT",
	.offered = VB_OFFERS_DC,
	.transport = VB_DC,
	.traits = VB_AIMS | VB_CHOOSES_PEER | VB_HEARS_ANYBODY | VB_RECEIVES | VB_TAKES_SRQ |
		  VB_MIGREQ,
	.create = {
		.dv_flags = VB_QP_SCATTER_TO_CQE | VB_QP_OOO_DP,
		.check = target_check,
		.make = vb_dct_make,
		.leave = vb_dct_leave,
		.unmake = vb_dct_unmake,
	},
	.modify = {
		.transitions = target_transitions,
		.rows = VB_ARRAY_LEN(target_transitions),
		.fetches_min = 1,
		.fetches_max = VB_DC_RESOURCES,
	},
	.send = { .transmit = target_transmit },
	.receive = { .transport = VB_DC, .take = vb_dct_take },
	.fail = { .peer_gone = vb_dct_peer_gone },
};

/* It has no handle, and so no events. */
static void context_event(struct vb_qp *qp, enum ibv_event_type type)
{
	(void)qp;
	(void)type;
}

const struct vb_service vb_service_dc_context = {
	.name = "DCT",
	.transport = VB_DC,
	.traits = VB_AIMS | VB_CHOOSES_PEER | VB_RECEIVES | VB_TAKES_SRQ,
	.send = { .header_fill = vb_dc_pkt_fill },
	.receive = {
		.transport = VB_DC,
		.request = vb_dc_context_request,
		.recv_take = vb_dc_context_recv_take,
	},
	.fail = { .event = context_event },
};
