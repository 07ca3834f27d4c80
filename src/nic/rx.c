/* SPDX-License-Identifier: BSD-2-Clause */

/* The way in: from a frame to the QP that it is for. Every drop is counted with its reason. */

#include "base/check.h"
#include "nic/pair.h"
#include "nic/qp.h"
#include "wire/grh.h"
#include "wire/icrc.h"

/* A batch of frames: its QPs are answered for when it is through. */
struct batch {
	struct vb_nic *nic;
	uint64_t now_ns;
	struct vb_qp *touched;
	struct vb_qp *locked; /* frames come in runs: keep the lock over a run */
};

static void count(struct vb_nic *nic, enum vb_stat stat)
{
	vb_stat_add(&nic->stats, stat, 1);
}

static void hold(struct batch *batch, struct vb_qp *qp)
{
	if (batch->locked == qp)
		return;
	if (batch->locked)
		vb_lock_drop(&batch->locked->lock);
	batch->locked = qp;
	if (!qp)
		return;
	vb_lock_take(&qp->lock);
	qp->now_ns = batch->now_ns;
}

static void touch(struct batch *batch, struct vb_qp *qp)
{
	if (qp->touched)
		return;
	qp->touched = true;
	qp->touched_next = batch->touched;
	batch->touched = qp;
}

static const enum vb_stat verdict_stat[VB_VERDICTS] = {
	[VB_NO_RECV] = VB_STAT_DROP_NO_RECV,	[VB_BAD_SEQUENCE] = VB_STAT_DROP_SEQUENCE,
	[VB_BAD_OPCODE] = VB_STAT_DROP_SEQUENCE, [VB_BAD_LENGTH] = VB_STAT_DROP_LENGTH,
	[VB_TOO_LONG] = VB_STAT_DROP_LENGTH,	[VB_BAD_ACCESS] = VB_STAT_DROP_ACCESS,
	[VB_MISALIGNED] = VB_STAT_DROP_ACCESS,	[VB_BAD_RESOURCES] = VB_STAT_DROP_SEQUENCE,
	[VB_BAD_RECV_SGE] = VB_STAT_DROP_ACCESS, [VB_BAD_MEMORY] = VB_STAT_DROP_ACCESS,
};

/* The responder gave up: what it owes goes out first, then everything is flushed. */
static void responder_failed(struct vb_qp *qp, enum vb_verdict verdict)
{
	vb_qp_transmit_locked(qp);
	if (qp->ibv.qp.qp_type == IBV_QPT_RC && !vb_verdict_rows[verdict].silent)
		vb_qp_event(qp, vb_verdict_rows[verdict].event);
	vb_qp_fail_locked(qp);
	vb_qp_after_locked(qp, VB_REQ_NOTHING);
}

static void request(struct batch *batch, struct vb_qp *qp, const struct vb_frame *frame,
		    const struct vb_pkt *pkt, const struct vb_op_info *info)
{
	uint8_t grh[VB_GRH_BYTES];
	struct vb_resp_result result;

	if (vb_qp_state(qp) == IBV_QPS_RTR && !qp->comm_est) {
		qp->comm_est = true;
		vb_qp_event(qp, IBV_EVENT_COMM_EST);
	}
	switch (qp->ibv.qp.qp_type) {
	case IBV_QPT_RC:
		result = vb_rc_request(&qp->resp, pkt, info);
		break;
	case IBV_QPT_UC:
		result = vb_uc_request(&qp->resp, pkt, info);
		break;
	default:
		if (pkt->qkey != qp->attr.qkey) {
			count(batch->nic, VB_STAT_DROP_QKEY);
			return;
		}
		qp->rx_ipv4 = vb_gid_is_ipv4(frame->path.src);
		vb_grh_build(grh, &frame->path, frame->bytes);
		result = vb_ud_request(&qp->resp, pkt, info, grh);
		break;
	}
	switch (result.outcome) {
	case VB_RESP_NOTHING:
		break;
	case VB_RESP_DUPLICATE:
		count(batch->nic, VB_STAT_DUPLICATES);
		touch(batch, qp);
		break;
	case VB_RESP_OWES:
		if (result.verdict != VB_OK)
			count(batch->nic, result.verdict == VB_NO_RECV ? VB_STAT_RNR_NAKS_SENT
								       : VB_STAT_PSN_NAKS_SENT);
		touch(batch, qp);
		break;
	case VB_RESP_DROPPED:
		count(batch->nic, verdict_stat[result.verdict]);
		break;
	case VB_RESP_FAILED:
		responder_failed(qp, result.verdict);
		break;
	}
}

static void answer(struct batch *batch, struct vb_qp *qp, const struct vb_pkt *pkt,
		   const struct vb_op_info *info)
{
	enum vb_req_outcome outcome;
	enum ibv_qp_state state = vb_qp_state(qp);

	if (qp->ibv.qp.qp_type != IBV_QPT_RC || (state != IBV_QPS_RTS && state != IBV_QPS_SQD)) {
		count(batch->nic, VB_STAT_DROP_STATE);
		return;
	}
	outcome = vb_rc_answer(&qp->req, pkt, info, batch->now_ns);
	if (outcome == VB_REQ_STALE)
		count(batch->nic, VB_STAT_DROP_STALE);
	if (info->kind == VB_K_ACK && vb_aeth_class(pkt->syndrome) == VB_AETH_RNR)
		count(batch->nic, VB_STAT_RNR_NAKS_SEEN);
	if (info->kind == VB_K_ACK && pkt->syndrome == vb_aeth_nak(VB_NAK_PSN))
		count(batch->nic, VB_STAT_PSN_NAKS_SEEN);
	if (outcome == VB_REQ_FAILED)
		vb_qp_after_locked(qp, outcome);
	else
		touch(batch, qp);
}

/* Is the packet one that this QP takes at all? IBA 9.6: the header checks, in their order. */
static bool admit(struct vb_nic *nic, struct vb_qp *qp, const struct vb_frame *frame,
		  const struct vb_pkt *pkt, const struct vb_op_info *info)
{
	static const enum vb_transport transports[] = {
		[IBV_QPT_RC] = VB_RC, [IBV_QPT_UC] = VB_UC, [IBV_QPT_UD] = VB_UD
	};
	enum ibv_qp_state state = vb_qp_state(qp);

	if (info->transport != transports[qp->ibv.qp.qp_type]) {
		count(nic, VB_STAT_DROP_TRANSPORT);
		return false;
	}
	if (state < IBV_QPS_RTR || state == IBV_QPS_ERR) {
		count(nic, VB_STAT_DROP_STATE);
		return false;
	}
	if ((pkt->pkey & 0x7fff) != (VB_PKEY_DEFAULT & 0x7fff)) {
		count(nic, VB_STAT_DROP_PKEY);
		return false;
	}
	if (info->transport != VB_UD &&
	    (memcmp(frame->path.src, qp->path.dst, VB_GID_BYTES) != 0 ||
	     memcmp(frame->path.dst, qp->path.src, VB_GID_BYTES) != 0)) {
		count(nic, VB_STAT_DROP_STRANGER);
		return false;
	}
	return true;
}

static void release_held(struct batch *batch)
{
	struct vb_qp *qp;

	/* One that comes round again is held back anew already; its clock will see to it. */
	while ((qp = vb_pair_release(batch->nic)) && !qp->touched)
		touch(batch, qp);
}

/* Between NICs, for no QP: true if it was such a frame. */
static bool take_flow(struct batch *batch, const struct vb_frame *frame)
{
	struct vb_flow flow;

	if (!vb_flow_parse(&flow, frame->data, frame->bytes))
		return false;
	if (!vb_icrc_check(&frame->path, frame->data, frame->bytes, frame->id_hint, NULL)) {
		count(batch->nic, VB_STAT_DROP_ICRC);
		return true;
	}
	hold(batch, NULL);
	if (vb_pair_rx(batch->nic, frame, &flow))
		release_held(batch);
	return true;
}

static void take_frame(struct batch *batch, const struct vb_frame *frame)
{
	struct vb_nic *nic = batch->nic;
	const struct vb_op_info *info;
	struct vb_pkt pkt;
	struct vb_qp *qp;

	if (vb_pkt_parse(&pkt, frame->data, frame->bytes) != VB_PARSE_OK) {
		if (!take_flow(batch, frame))
			count(nic, VB_STAT_DROP_MALFORMED);
		return;
	}
	if (!vb_icrc_check(&frame->path, frame->data, frame->bytes, frame->id_hint, NULL)) {
		count(nic, VB_STAT_DROP_ICRC);
		return;
	}
	info = vb_op_info(pkt.opcode);
	qp = vb_nic_qp_find(nic, pkt.dqpn);
	if (!qp) {
		count(nic, VB_STAT_DROP_NO_QP);
		return;
	}
	hold(batch, qp);
	if (!admit(nic, qp, frame, &pkt, info))
		return;
	switch (info->kind) {
	case VB_K_READ_RESP:
	case VB_K_ACK:
	case VB_K_ATOMIC_ACK:
		answer(batch, qp, &pkt, info);
		break;
	default:
		request(batch, qp, frame, &pkt, info);
		break;
	}
}

void vb_nic_rx(struct vb_nic *nic, const struct vb_frame *frames, unsigned n)
{
	struct batch batch = { .nic = nic, .now_ns = vb_nic_now_ns(nic) };

	vb_stat_add(&nic->stats, VB_STAT_RX_FRAMES, n);
	for (unsigned i = 0; i < n; i++)
		take_frame(&batch, &frames[i]);
	hold(&batch, NULL);
	while (batch.touched) {
		struct vb_qp *qp = batch.touched;

		batch.touched = qp->touched_next;
		qp->touched = false;
		vb_lock_take(&qp->lock);
		vb_qp_transmit_locked(qp);
		vb_lock_drop(&qp->lock);
	}
}

void vb_nic_turn(struct vb_nic *nic)
{
	uint64_t now_ns = vb_nic_now_ns(nic);
	struct vb_qp *qp;

	if (vb_nic_deadline_ns(nic) > now_ns)
		return;
	vb_lock_take(&nic->rx);
	while ((qp = vb_timer_take(nic, now_ns)))
		vb_qp_on_time(qp, now_ns);
	vb_lock_drop(&nic->rx);
}
