/* SPDX-License-Identifier: BSD-2-Clause */

/* The service tables of QPs for Ethernet frames (nic/data/service.h). */

#include "base/check.h"
#include "nic/data/qp_extra.h"
#include "nic/data/transition.h"
#include "nic/service/eth/raw.h"
#include "nic/service/eth/raw_tx.h"
#include "nic/service/eth/rss.h"

#define DV_FLAGS                                                                                  \
	(VB_QP_SCATTER_TO_CQE | VB_QP_TUNNEL_OFFLOADS | VB_QP_LOOPBACK_UC | VB_QP_LOOPBACK_MC)

static const struct vb_transition transitions[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, T_PORT, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, T_PORT },
	{ IBV_QPS_INIT, IBV_QPS_RTR, 0, 0 },
	{ IBV_QPS_RTR, IBV_QPS_RTS, 0, T_CUR | T_RATE },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, T_CUR | T_RATE },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, T_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0, T_RATE },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, T_CUR | T_RATE },
	{ IBV_QPS_SQE, IBV_QPS_RTS, 0, T_CUR },
};

const struct vb_service vb_service_raw = {
	.name = "RAW_PACKET",
	.offered = VB_OFFERS_RAW,
	.transport = VB_UD,
	.traits = VB_MIGREQ | VB_WHOLE | VB_TSO | VB_RECEIVES | VB_RETURNS,
	.create = {
		.flags = IBV_QP_CREATE_CVLAN_STRIPPING | IBV_QP_CREATE_SCATTER_FCS |
			 IBV_QP_CREATE_BLOCK_SELF_MCAST_LB | IBV_QP_CREATE_PCI_WRITE_END_PADDING,
		.dv_flags = DV_FLAGS,
		.make = vb_raw_make,
		.room = vb_raw_wqe_room,
		.unmake = vb_raw_unmake,
	},
	.modify = {
		.transitions = transitions,
		.rows = VB_ARRAY_LEN(transitions),
		.reset = vb_raw_reset,
	},
	/* ibv_post_send(3): IP_CSUM applies where the application provides the headers. */
	.post = {
		.opcodes = VB_POSTS(IBV_WR_SEND) | VB_POSTS(IBV_WR_TSO),
		.flags = IBV_SEND_IP_CSUM,
		.tso_decode = vb_raw_tso_decode,
	},
	.send = { .transmit = vb_raw_transmit },
	.receive = { .transport = VB_RD }, /* which no packet has */
};

static const struct vb_service_handle rss_handle = {
	.modify = vb_rss_qp_modify,
	.query = vb_rss_qp_query,
	.destroy = vb_rss_qp_destroy,
};

const struct vb_service vb_service_rss = {
	.name = "RAW_PACKET",
	.offered = VB_OFFERS_RAW,
	.transport = VB_UD,
	.create = { .unmake = vb_rss_qp_unmake },
	.receive = { .transport = VB_RD },
	.handle = &rss_handle,
};
