/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/service/rc/rc.h"
#include "nic/data/post.h"

#include "base/check.h"
#include "engine/newer.h"
#include "nic/data/transition.h"
#include "nic/mem/mkey.h"
#include "nic/data/qp_extra.h"
#include "wire/opcode.h"

static const struct vb_transition transitions[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, T_PKEY | T_PORT | T_ACCESS, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, T_PKEY | T_PORT | T_ACCESS },
	{ IBV_QPS_INIT, IBV_QPS_RTR, T_AV | T_MTU | T_DQPN | T_RPSN | T_DEST_RD | T_RNR_TIMER,
	  T_ALT | T_ACCESS | T_PKEY },
	{ IBV_QPS_RTR, IBV_QPS_RTS, T_TIMEOUT | T_RETRY | T_RNR_RETRY | T_SPSN | T_RD,
	  T_CUR | T_ALT | T_ACCESS | T_RNR_TIMER | T_MIG | T_RATE },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, T_CUR | T_ACCESS | T_ALT | T_MIG | T_RNR_TIMER | T_RATE },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, T_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0,
	  T_PORT | T_AV | T_TIMEOUT | T_RETRY | T_RNR_RETRY | T_RD | T_DEST_RD | T_ALT | T_ACCESS |
		  T_PKEY | T_RNR_TIMER | T_MIG | T_RATE },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, T_CUR | T_ALT | T_ACCESS | T_RNR_TIMER | T_MIG | T_RATE },
};

const struct vb_service vb_service_rc = {
	.name = "RC",
	.offered = VB_OFFERS_RC,
	.transport = VB_RC,
	.traits = VB_CONNECTS | VB_IS_REACHED | VB_MIGREQ | VB_IS_ANSWERED | VB_RECEIVES |
		  VB_TAKES_SRQ | VB_TAKES_TAGS | VB_PARCELS_RECV | VB_PARCELS_FETCH | VB_RETURNS |
		  VB_IS_COUNTED,
	.create = {
		.flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB | IBV_QP_CREATE_PCI_WRITE_END_PADDING,
		.dv_flags = VB_QP_SCATTER_TO_CQE | VB_QP_PACKET_CREDITS | VB_QP_DV_BUILDER |
			    VB_QP_OOO_DP,
	},
	.modify = {
		.transitions = transitions,
		.rows = VB_ARRAY_LEN(transitions),
	},
	.post = {
		.opcodes = VB_POSTS(IBV_WR_RDMA_WRITE) | VB_POSTS(IBV_WR_RDMA_WRITE_WITH_IMM) |
			   VB_POSTS(IBV_WR_SEND) | VB_POSTS(IBV_WR_SEND_WITH_IMM) |
			   VB_POSTS(IBV_WR_RDMA_READ) | VB_POSTS(IBV_WR_ATOMIC_CMP_AND_SWP) |
			   VB_POSTS(IBV_WR_ATOMIC_FETCH_AND_ADD) | VB_POSTS(IBV_WR_LOCAL_INV) |
			   VB_POSTS(IBV_WR_BIND_MW) | VB_POSTS(IBV_WR_SEND_WITH_INV) |
			   VB_POSTS(VB_WR_FLUSH) | VB_POSTS(IBV_WR_ATOMIC_WRITE) |
			   VB_POSTS(VB_WR_MKEY) | VB_POSTS(VB_WR_MEMCPY),
	},
	.receive = { .transport = VB_RC },
};
