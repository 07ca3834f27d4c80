/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/data/demux.h"

#include "base/probe.h"
#include "engine/rc_answer.h"
#include "engine/rc_resp.h"
#include "nic/data/acks.h"
#include "nic/data/explain.h"
#include "nic/data/migrate.h"
#include "nic/service/xrc/xrc_rx.h"
#include "nic/way/send_ring.h"
#include "nic/way/peer.h"

struct vb_qp *vb_batch_find(struct vb_batch *batch, uint32_t dqpn)
{
	if (vb_qpn_is_shared(dqpn))
		return vb_xrc_shadow(batch->nic, dqpn);
	return vb_nic_qp_find(batch->nic, dqpn);
}

void vb_batch_count(struct vb_batch *batch, enum vb_stat stat)
{
	batch->reason = (uint8_t)stat;
	vb_stat_add(&batch->nic->stats, stat, 1);
	if (vb_stat_is_drop(stat))
		VB_PROBE(packet_drop, vb_stat_name(stat),
			 batch->locked ? batch->locked->ibv.qp.qp_num : 0);
}

void vb_batch_touch(struct vb_batch *batch, struct vb_qp *qp)
{
	if (!vb_later_is_in(&qp->later.touched))
		vb_later_put_first(&batch->touched, &qp->later.touched);
}

static const enum vb_stat verdict_stat[VB_VERDICTS] = {
	[VB_NO_RECV] = VB_STAT_DROP_NO_RECV,	[VB_BAD_SEQUENCE] = VB_STAT_DROP_SEQUENCE,
	[VB_BAD_OPCODE] = VB_STAT_DROP_SEQUENCE, [VB_BAD_LENGTH] = VB_STAT_DROP_LENGTH,
	[VB_TOO_LONG] = VB_STAT_DROP_LENGTH,	[VB_BAD_ACCESS] = VB_STAT_DROP_ACCESS,
	[VB_BAD_INVALIDATE] = VB_STAT_DROP_ACCESS,
	[VB_MISALIGNED] = VB_STAT_DROP_ACCESS,	[VB_BAD_RESOURCES] = VB_STAT_DROP_SEQUENCE,
	[VB_BAD_RECV_SGE] = VB_STAT_DROP_ACCESS, [VB_BAD_MEMORY] = VB_STAT_DROP_ACCESS,
};

static void nak_tell(const struct vb_qp *qp)
{
	VB_PROBE(nak_sent, qp->ibv.qp.qp_num, qp->resp.nak_syndrome, qp->resp.epsn);
}

/* The responder gave up: sends what it owes, then flushes everything. */
static void responder_failed(struct vb_qp *qp, enum vb_verdict verdict)
{
	if (qp->resp.nak_owed)
		nak_tell(qp);
	vb_qp_transmit_locked(qp);
	if (vb_transport_acks(qp->resp.transport) && !vb_verdict_rows[verdict].silent)
		vb_qp_event(qp, vb_verdict_rows[verdict].event);
	vb_qp_fail_locked(qp);
	vb_qp_after_locked(qp, VB_REQ_NOTHING);
}

static bool completes_recv(const struct vb_op_info *info)
{
	return (info->pos & VB_P_LAST) &&
	       (info->kind == VB_K_SEND || (info->headers & VB_H_IMM));
}

void vb_batch_acknowledge(struct vb_batch *batch, struct vb_qp *qp)
{
	bool owes = vb_resp_owes(&qp->resp);

	if (!qp->recv.unacked->count)
		return;
	if (owes && !vb_unacked_is_full(qp)) {
		vb_batch_touch(batch, qp);
		return;
	}
	if (owes)
		vb_qp_transmit_locked(qp);
	vb_unacked_give(qp);
}

/* A message found no receive: `verbatim check` wants to know. QP locked. */
static void __attribute__((cold, noinline)) came_early(struct vb_qp *qp)
{
	uint64_t late = atomic_load_explicit(&qp->recv.late, memory_order_relaxed);
	const struct vb_rq *rq = qp->recv.rq;
	uint32_t wanted = rq ? atomic_load_explicit(&rq->head, memory_order_relaxed) : 0;

	atomic_store_explicit(&qp->recv.late, ((late >> 32) + 1) << 32 | wanted,
			      memory_order_relaxed);
}

static __attribute__((cold, noinline)) void nak_count(struct vb_batch *batch, struct vb_qp *qp,
						      enum vb_verdict verdict)
{
	nak_tell(qp);
	if (verdict == VB_NO_RECV) {
		vb_batch_count(batch, VB_STAT_RNR_NAKS_SENT);
		qp->tally.rnr_sent++;
		came_early(qp);
	} else {
		vb_batch_count(batch, VB_STAT_PSN_NAKS_SENT);
		qp->tally.naks_sent++;
	}
}

static __attribute__((cold, noinline)) void nak_heed(struct vb_batch *batch, struct vb_qp *qp,
						     const struct vb_pkt *pkt, bool waited)
{
	uint8_t syndrome = pkt->aeth.syndrome;

	VB_PROBE(nak_seen, qp->ibv.qp.qp_num, syndrome, pkt->psn);
	if (qp->req.retry.rnr_waits && !waited)
		VB_PROBE(rnr_wait_begin, qp->ibv.qp.qp_num,
			 vb_rnr_timer_ns(vb_aeth_value(syndrome)));
	if (vb_aeth_class(syndrome) == VB_AETH_RNR) {
		vb_batch_count(batch, VB_STAT_RNR_NAKS_SEEN);
		qp->tally.rnr_seen++;
	} else if (syndrome == vb_aeth_nak(VB_NAK_PSN)) {
		vb_batch_count(batch, VB_STAT_PSN_NAKS_SEEN);
		qp->tally.naks_seen++;
	}
}

void vb_batch_heed(struct vb_batch *batch, struct vb_qp *qp, struct vb_resp_result result)
{
	switch (result.outcome) {
	case VB_RESP_NOTHING:
		break;
	case VB_RESP_DUPLICATE:
		vb_batch_count(batch, VB_STAT_DUPLICATES);
		vb_batch_touch(batch, qp);
		break;
	case VB_RESP_OWES:
		if (result.verdict != VB_OK)
			nak_count(batch, qp, result.verdict);
		vb_batch_touch(batch, qp);
		break;
	case VB_RESP_DROPPED:
		if (result.verdict == VB_NO_RECV)
			came_early(qp);
		else if (result.verdict == VB_TOO_LONG)
			atomic_fetch_add_explicit(&qp->recv.too_long, 1, memory_order_relaxed);
		vb_batch_count(batch, verdict_stat[result.verdict]);
		break;
	case VB_RESP_FAILED:
		batch->reason = (uint8_t)verdict_stat[result.verdict];
		responder_failed(qp, result.verdict);
		break;
	}
}

void vb_batch_rc_request(struct vb_batch *batch, struct vb_qp *qp, const struct vb_pkt *pkt,
			 const struct vb_op_info *info)
{
	struct vb_resp_result result = vb_rc_request(&qp->resp, pkt, info);

	if (batch->polled && result.outcome <= VB_RESP_OWES && completes_recv(info))
		vb_ack_message(qp, batch->now_ns);
	vb_batch_heed(batch, qp, result);
}

static void request(struct vb_batch *batch, struct vb_qp *qp, const struct vb_frame *frame,
		    const struct vb_pkt *pkt, const struct vb_op_info *info)
{
	if (vb_qp_state(qp) == IBV_QPS_RTR && !qp->events.comm_est) {
		qp->events.comm_est = true;
		vb_export_qp_locked(qp);
		vb_qp_event(qp, IBV_EVENT_COMM_EST);
	}
	if (info->transport == VB_RC)
		vb_batch_rc_request(batch, qp, pkt, info);
	else
		qp->service->receive.request(batch, qp, frame, pkt, info);
}

void vb_batch_answer(struct vb_batch *batch, struct vb_qp *qp, const struct vb_pkt *pkt,
		     const struct vb_op_info *info)
{
	enum vb_req_outcome outcome;
	enum ibv_qp_state state = vb_qp_state(qp);
	uint64_t now_ns = batch->now_ns;
	bool waited;

	if (!vb_qp_is(qp, VB_IS_ANSWERED) ||
	    (state != IBV_QPS_RTS && state != IBV_QPS_SQD)) {
		vb_batch_count(batch, VB_STAT_DROP_STATE);
		return;
	}
	/* Without clocks, only a NAK needs the time. */
	if (!now_ns && info->kind == VB_K_ACK && vb_aeth_class(pkt->aeth.syndrome) != VB_AETH_ACK)
		now_ns = qp->now_ns = vb_nic_now_ns(batch->nic);
	waited = qp->req.retry.rnr_waits;
	outcome = vb_rc_answer(&qp->req, pkt, info, now_ns);
	if (outcome == VB_REQ_STALE)
		vb_batch_count(batch, VB_STAT_DROP_STALE);
	if (outcome == VB_REQ_MIGRATE)
		vb_migrate_locked(qp);
	if (info->kind == VB_K_ACK && vb_aeth_class(pkt->aeth.syndrome) != VB_AETH_ACK)
		nak_heed(batch, qp, pkt, waited);
	if (outcome == VB_REQ_FAILED)
		vb_qp_after_locked(qp, outcome);
	else if (vb_qp_wants_to_send(qp))
		vb_batch_touch(batch, qp);
}

/* Not admitted. Returns false. */
static __attribute__((cold, noinline)) bool drop(struct vb_batch *batch, struct vb_qp *qp,
						 const struct vb_pkt *pkt,
						 const struct vb_op_info *info, enum vb_stat reason)
{
	vb_batch_count(batch, reason);
	vb_explain_drop(batch->nic, qp, NULL, pkt, info, reason);
	return false;
}

bool vb_batch_admit(struct vb_batch *batch, struct vb_qp *qp, const struct vb_pkt *pkt,
		    const struct vb_op_info *info)
{
	enum ibv_qp_state state = vb_qp_state(qp);

	if (info->transport != qp->service->receive.transport) {
		return info->transport != VB_CNP &&
		       drop(batch, qp, pkt, info, VB_STAT_DROP_TRANSPORT);
	}
	if (state < IBV_QPS_RTR || state == IBV_QPS_ERR)
		return drop(batch, qp, pkt, info, VB_STAT_DROP_STATE);
	if ((pkt->pkey & 0x7fff) != (VB_PKEY_DEFAULT & 0x7fff))
		return drop(batch, qp, pkt, info, VB_STAT_DROP_PKEY);
	return true;
}

void vb_batch_packet(struct vb_batch *batch, struct vb_qp *qp, const struct vb_frame *frame,
		     const struct vb_pkt *pkt, const struct vb_op_info *info)
{
	if (vb_kind_is_answer(info->kind))
		vb_batch_answer(batch, qp, pkt, info);
	else
		request(batch, qp, frame, pkt, info);
}

bool vb_batch_expects(const struct vb_batch *batch, const struct vb_bare *bare)
{
	const struct vb_op_info *info = vb_op_info(bare->opcode);
	const struct vb_qp *qp = batch->locked;
	enum ibv_qp_state state;

	if (!qp || bare->dqpn != qp->ibv.qp.qp_num || info->pos != VB_P_MIDDLE ||
	    info->transport != qp->resp.transport || qp->to.migrates)
		return false;
	state = vb_qp_state(qp);
	return state == IBV_QPS_RTS || (state == IBV_QPS_RTR && info->kind != VB_K_READ_RESP);
}

bool vb_batch_middle(struct vb_batch *batch, const struct vb_bare *bare, const uint8_t *payload,
		     uint32_t bytes)
{
	enum vb_kind kind = (enum vb_kind)vb_op_info(bare->opcode)->kind;
	struct vb_qp *qp = batch->locked;
	bool taken;

	if (kind == VB_K_READ_RESP)
		taken = vb_rc_middle(&qp->req, bare->psn, payload, bytes, batch->now_ns);
	else
		taken = vb_resp_middle(&qp->resp, kind, bare->psn, bare->ackreq, payload, bytes);
	if (taken && (kind == VB_K_READ_RESP || qp->resp.ack_owed))
		vb_batch_touch(batch, qp);
	return taken;
}

void vb_batch_end(struct vb_batch *batch)
{
	while (!vb_later_is_empty(&batch->touched)) {
		struct vb_qp *qp = vb_container_of(batch->touched.first, struct vb_qp,
						   later.touched);

		vb_batch_hold(batch, qp);
		vb_later_take(&batch->touched);
		if (batch->polled)
			vb_ack_hold(qp, batch->now_ns);
		if (vb_qp_wants_to_send(qp))
			vb_qp_transmit_locked(qp);
		if (vb_transport_aims(qp->resp.transport))
			vb_unacked_give(qp);
		if (batch->polled)
			vb_ack_keep(qp);
	}
	vb_batch_hold(batch, NULL);
}
