/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/service/ud/ud.h"

#include <errno.h>

#include "base/check.h"
#include "engine/uc_ud.h"
#include "nic/core/ah.h"
#include "nic/core/ahn.h"
#include "nic/core/slots.h"
#include "nic/data/demux.h"
#include "nic/data/explain.h"
#include "nic/data/qp_extra.h"
#include "nic/data/transition.h"
#include "nic/way/send_ring.h"
#include "nic/way/send_wire.h"
#include "wire/grh.h"
#include "wire/opcode.h"

static const struct vb_transition transitions[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, T_PKEY | T_PORT | T_QKEY, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, T_PKEY | T_PORT | T_QKEY },
	{ IBV_QPS_INIT, IBV_QPS_RTR, 0, T_PKEY | T_QKEY },
	{ IBV_QPS_RTR, IBV_QPS_RTS, T_SPSN, T_CUR | T_QKEY | T_RATE },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, T_CUR | T_QKEY | T_RATE },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, T_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0, T_PKEY | T_QKEY | T_RATE },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, T_CUR | T_QKEY | T_RATE },
	{ IBV_QPS_SQE, IBV_QPS_RTS, 0, T_CUR | T_QKEY },
};

static void request(struct vb_batch *batch, struct vb_qp *qp, const struct vb_frame *frame,
		    const struct vb_pkt *pkt, const struct vb_op_info *info)
{
	uint8_t grh[VB_GRH_BYTES];

	/* ibv_create_qp_ex(3): a QP with another source QPN receives nothing. */
	if (qp->special.sqpn != qp->ibv.qp.qp_num) {
		vb_batch_count(batch, VB_STAT_DROP_NO_QP);
		vb_explain_drop(batch->nic, qp, &frame->path, pkt, info, VB_STAT_DROP_NO_QP);
		return;
	}
	if (pkt->qkey != qp->attr.qkey) {
		vb_batch_count(batch, VB_STAT_DROP_QKEY);
		atomic_fetch_add_explicit(&qp->recv.wrong_qkeys, 1, memory_order_relaxed);
		vb_explain_drop(batch->nic, qp, &frame->path, pkt, info, VB_STAT_DROP_QKEY);
		return;
	}
	qp->special.rx_ipv4 = vb_gid_is_ipv4(frame->path.src);
	vb_grh_build(grh, &frame->path, frame->bytes);
	vb_batch_heed(batch, qp, vb_ud_request(&qp->resp, pkt, info, grh));
}

static void request_efa(struct vb_batch *batch, struct vb_qp *qp, const struct vb_frame *frame,
			const struct vb_pkt *pkt, const struct vb_op_info *info)
{
	struct vb_nic *nic = qp->nic;

	qp->special.rx_from = vb_ahn_sender(nic, vb_ahn_enter(nic, frame->path.src));
	request(batch, qp, frame, pkt, info);
}

/* A parent domain and the PD behind it are equal. */
static bool same_domain(const struct ibv_pd *a, const struct ibv_pd *b)
{
	return a == b || ((const struct vb_pd *)a)->id == ((const struct vb_pd *)b)->id;
}

static int check(const struct vb_qp *qp, const struct ibv_send_wr *wr, const struct vb_post *post)
{
	if (!wr->wr.ud.ah)
		return EINVAL;
	return same_domain(wr->wr.ud.ah->pd, qp->ibv.qp.pd) ? 0 : VB_POST_LATE;
}

static inline void address_to(struct vb_qp *qp, struct vb_wqe *wqe, const struct ibv_send_wr *wr,
			      uint32_t dqpn)
{
	wqe->ud.path = ((struct vb_ah *)wr->wr.ud.ah)->path;
	wqe->ud.dqpn = dqpn;
	vb_path_sport_set(qp->nic, &wqe->ud.path, (uint16_t)(qp->ibv.qp.qp_num >> VB_INDEX_BITS),
			  dqpn);
	/* IBA 10.2.5: with the high bit set, the QP's own Q_Key is sent. */
	wqe->ud.qkey = wr->wr.ud.remote_qkey & 0x80000000 ? qp->attr.qkey : wr->wr.ud.remote_qkey;
}

static void address(struct vb_qp *qp, struct vb_wqe *wqe, const struct ibv_send_wr *wr,
		    const struct vb_post *post)
{
	address_to(qp, wqe, wr, wr->wr.ud.remote_qpn & 0xffffff);
}

static void address_efa(struct vb_qp *qp, struct vb_wqe *wqe, const struct ibv_send_wr *wr,
			const struct vb_post *post)
{
	address_to(qp, wqe, wr, vb_qpn_widen(wr->wr.ud.remote_qpn));
}

/* Each datagram takes the way to its address, in order. */
static void transmit(struct vb_qp *qp, enum ibv_qp_state state)
{
	bool more;

	qp->send.link_full = false;
	do
		more = vb_lane_datagrams(qp, state) && vb_wire_transmit(qp, state);
	while (more && vb_lane_is_next(qp));
}

/*
 * IBA C10-10 leaves open whether the call or the device reports an opcode that datagrams do
 * not have. Devices do, and programs rely on it.
 */
#define UD(ADDRESS, REQUEST) \
	{ \
		.name = "UD", \
		.offered = VB_OFFERS_UD, \
		.transport = VB_UD, \
		.traits = VB_GROUPS | VB_DATAGRAMS | VB_RECEIVES | VB_TAKES_SRQ | VB_RETURNS | \
			  VB_IS_COUNTED, \
		.create = { \
			.flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB | \
				 IBV_QP_CREATE_PCI_WRITE_END_PADDING | IBV_QP_CREATE_SOURCE_QPN, \
			.dv_flags = VB_QP_SCATTER_TO_CQE | VB_QP_OOO_DP, \
		}, \
		.modify = { \
			.transitions = transitions, \
			.rows = VB_ARRAY_LEN(transitions), \
		}, \
		.post = { \
			.opcodes = VB_POSTS(IBV_WR_SEND) | VB_POSTS(IBV_WR_SEND_WITH_IMM), \
			.late = VB_POSTS(IBV_WR_RDMA_WRITE) | \
				VB_POSTS(IBV_WR_RDMA_WRITE_WITH_IMM) | \
				VB_POSTS(IBV_WR_RDMA_READ) | VB_POSTS(IBV_WR_ATOMIC_CMP_AND_SWP) | \
				VB_POSTS(IBV_WR_ATOMIC_FETCH_AND_ADD), \
			.check = check, \
			.address = ADDRESS, \
		}, \
		.send = { .transmit = transmit }, \
		.receive = { .transport = VB_UD, .request = REQUEST }, \
	}

const struct vb_service vb_service_ud = UD(address, request);
const struct vb_service vb_service_ud_efa = UD(address_efa, request_efa);
