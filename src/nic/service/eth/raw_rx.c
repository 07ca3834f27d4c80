/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/service/eth/raw_rx.h"

#include "eth/checksum.h"
#include "nic/mem/payload.h"
#include "nic/data/qp_extra.h"
#include "nic/queue/rq.h"
#include "nic/service/eth/rss.h"
#include "nic/service/eth/steer.h"

/* The most queues that a frame may go to. */
enum { HITS_MAX = 64 };

static bool scatter(const struct vb_raw_sink *sink, const struct vb_recv *recv,
		    const struct vb_eth_pieces *pieces)
{
	uint32_t offset = 0;

	for (unsigned i = 0; i < pieces->count; i++) {
		uint32_t bytes = (uint32_t)pieces->iov[i].iov_len;

		if (!vb_mr_scatter(sink->nic, sink->pd, recv->sge, recv->sge_count, offset,
				   pieces->iov[i].iov_base, bytes))
			return false;
		offset += bytes;
	}
	return true;
}

enum ibv_wc_status vb_raw_receive(const struct vb_raw_sink *sink, const struct vb_eth_frame *frame,
				  uint32_t tag)
{
	struct vb_eth_pieces pieces;
	struct vb_recv recv;
	struct vb_cqe cqe = {
		.wc = { .opcode = IBV_WC_RECV, .qp_num = sink->number },
	};

	if (!vb_rq_take(sink->rq, &recv)) {
		vb_stat_add(&sink->nic->stats, VB_STAT_DROP_NO_RECV, 1);
		return IBV_WC_SUCCESS;
	}
	vb_eth_rx_pieces(&pieces, frame->octets, frame->bytes, sink->strips_cvlan,
			 sink->scatters_fcs);
	if (pieces.bytes > recv.bytes)
		cqe.wc.status = IBV_WC_LOC_LEN_ERR;
	else if (!scatter(sink, &recv, &pieces))
		cqe.wc.status = IBV_WC_LOC_PROT_ERR;
	cqe.wc.wr_id = recv.wr_id;
	cqe.wc.byte_len = pieces.bytes;
	cqe.solicited = cqe.wc.status != IBV_WC_SUCCESS;
	if (cqe.wc.status == IBV_WC_SUCCESS) {
		if (vb_eth_rx_csum_ok(frame, sink->checks_inner))
			cqe.wc.wc_flags |= IBV_WC_IP_CSUM_OK;
		cqe.flow_tag = tag;
		cqe.cvlan = pieces.stripped ? pieces.tci : 0;
	} else {
		vb_stat_add(&sink->nic->stats, VB_STAT_DROP_LENGTH, 1);
	}
	vb_cq_push(sink->cq, &cqe);
	return cqe.wc.status;
}

/* mlx5dv_create_qp(3): frames of a context come back to it only if its QP was created for that. */
static bool is_loopback(const struct vb_qp *qp, const struct vb_eth_frame *frame,
			uint64_t context)
{
	bool group = vb_segment_is_group(vb_segment_mac(frame->octets));

	if (!context || context != qp->special.raw->context)
		return false;
	if (group && (qp->made.create_flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB))
		return true;
	return !(qp->made.dv_flags & (group ? VB_QP_LOOPBACK_MC : VB_QP_LOOPBACK_UC));
}

/* IBA 10.3.1: a receive request that ends in error makes the QP fail. */
static void deliver(struct vb_qp *qp, const struct vb_eth_frame *frame, uint32_t tag)
{
	struct vb_raw_sink sink = {
		.nic = qp->nic,
		.pd = qp->ibv.qp.pd,
		.rq = qp->recv.rq,
		.cq = (struct vb_cq *)qp->ibv.qp.recv_cq,
		.number = qp->ibv.qp.qp_num,
		.strips_cvlan = qp->made.create_flags & IBV_QP_CREATE_CVLAN_STRIPPING,
		.scatters_fcs = qp->made.create_flags & IBV_QP_CREATE_SCATTER_FCS,
		.checks_inner = qp->made.dv_flags & VB_QP_TUNNEL_OFFLOADS,
	};
	enum ibv_qp_state state;

	vb_lock_take(&qp->lock);
	state = vb_qp_state(qp);
	if (state < IBV_QPS_RTR || state == IBV_QPS_ERR)
		vb_stat_add(&qp->nic->stats, VB_STAT_DROP_STATE, 1);
	else if (vb_raw_receive(&sink, frame, tag) != IBV_WC_SUCCESS)
		vb_qp_fail_locked(qp);
	vb_lock_drop(&qp->lock);
}

/* For a QP with a table of queues instead of its own. */
static void spread(struct vb_qp *qp, const struct vb_eth_frame *frame, uint32_t tag)
{
	uint32_t hash;

	vb_rwq_receive(vb_rss_pick(qp, frame, &hash), frame, tag,
		       qp->made.dv_flags & VB_QP_TUNNEL_OFFLOADS);
}

/* Rules for sent frames may belong to a UD QP. */
static bool is_raw(const struct vb_qp *qp)
{
	return qp->service == &vb_service_raw || qp->service == &vb_service_rss;
}

void vb_raw_rx(struct vb_nic *nic, const uint8_t *octets, uint32_t bytes, uint64_t context)
{
	struct vb_steer_hit hits[HITS_MAX];
	struct vb_eth_frame frame;
	unsigned count;

	if (!vb_eth_parse(&frame, octets, bytes)) {
		vb_stat_add(&nic->stats, VB_STAT_DROP_MALFORMED, 1);
		return;
	}
	count = vb_steer_match(nic, &frame, hits, HITS_MAX);
	for (unsigned i = 0; i < count; i++) {
		struct vb_qp *qp = hits[i].qp;

		if (!is_raw(qp) || (!hits[i].sniffed && is_loopback(qp, &frame, context)))
			continue;
		if (qp->special.rss)
			spread(qp, &frame, hits[i].has_tag ? hits[i].tag : 0);
		else
			deliver(qp, &frame, hits[i].has_tag ? hits[i].tag : 0);
	}
}

void vb_raw_query(struct ibv_device_attr_ex *attr)
{
	attr->tso_caps = (struct ibv_tso_caps){
		.max_tso = VB_TSO_BYTES_MAX,
		.supported_qpts = 1u << IBV_QPT_RAW_PACKET,
	};
	attr->packet_pacing_caps.supported_qpts |= 1u << IBV_QPT_RAW_PACKET;
	attr->raw_packet_caps = IBV_RAW_PACKET_CAP_CVLAN_STRIPPING |
				IBV_RAW_PACKET_CAP_SCATTER_FCS | IBV_RAW_PACKET_CAP_IP_CSUM;
	attr->device_cap_flags_ex |= IBV_DEVICE_RAW_SCATTER_FCS;
	attr->packet_pacing_caps.supported_qpts |= 1u << IBV_QPT_RAW_PACKET;
	vb_rss_query(attr);
}
