/* SPDX-License-Identifier: BSD-2-Clause */

/* What happens to a QP after a failure, and when its timer expires. */

#include "nic/data/qp_error.h"

#include "base/probe.h"
#include "engine/rc_answer.h"
#include "nic/core/quiesce.h"
#include "nic/core/timer.h"
#include "nic/data/acks.h"
#include "nic/queue/comp_cntr.h"
#include "nic/data/explain.h"
#include "nic/data/migrate.h"
#include "nic/data/qp.h"
#include "nic/queue/rq.h"
#include "nic/service/eth/wq.h"
#include "nic/service/tm/tm.h"
#include "nic/way/peer.h"

void vb_qp_event(struct vb_qp *qp, enum ibv_event_type type)
{
	struct ibv_async_event event = { .element.qp = &qp->ibv.qp, .event_type = type };

	if (qp->service->fail.event) {
		qp->service->fail.event(qp, type);
		return;
	}
	vb_ctx_event_push(vb_ctx_of(qp->ibv.qp.context), &event, &qp->events.delivered);
}

void vb_qp_flush_one_recv(struct vb_qp *qp, uint64_t wr_id)
{
	struct vb_cqe cqe = {
		.wc = { .wr_id = wr_id,
			.status = IBV_WC_WR_FLUSH_ERR,
			.opcode = IBV_WC_RECV,
			.vendor_err = vb_why_vendor(qp->nic, IBV_WC_WR_FLUSH_ERR,
						     VB_WHY_FLUSHED),
			.qp_num = qp->ibv.qp.qp_num },
		.solicited = true,
	};

	VB_PROBE(wc_error, cqe.wc.qp_num, wr_id, cqe.wc.status, cqe.wc.vendor_err);
	if (qp->user.is_counted)
		vb_counted_received(qp->user.counted, &cqe.wc);
	if (qp->resp.mark)
		vb_tm_done(qp, &cqe);
	else
		vb_cq_push((struct vb_cq *)qp->ibv.qp.recv_cq, &cqe);
}

void vb_qp_flush_recv_locked(struct vb_qp *qp)
{
	struct vb_recv recv;

	vb_unacked_give(qp);
	if (qp->resp.has_recv) {
		qp->resp.has_recv = false;
		vb_qp_flush_one_recv(qp, qp->resp.recv.wr_id);
	}
	if (!qp->ibv.qp.srq) {
		vb_rq_await_posts(qp->recv.rq);
		vb_explain_flush(qp, "receive", vb_rq_count(qp->recv.rq));
		while (vb_rq_take(qp->recv.rq, &recv))
			vb_qp_flush_one_recv(qp, recv.wr_id);
	} else if (!qp->events.last_wqe) {
		/* IBA 10.2.9.3: this QP takes nothing from the SRQ any more. */
		qp->events.last_wqe = true;
		vb_qp_event(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
	}
}

/* In order, signaled or not (ibv_modify_qp to ERR). */
static void flush_send(struct vb_qp *qp)
{
	struct vb_req *req = &qp->req;

	vb_explain_flush(qp, "send", req->tail - req->head);
	while (req->head != req->tail)
		vb_req_complete_head(req, IBV_WC_WR_FLUSH_ERR);
	req->pos.next = req->tail;
	req->una_psn = req->top_psn = req->pos.next_psn = req->post_psn;
	req->fault_met.status = IBV_WC_SUCCESS;
	req->retry.rnr_waits = false;
	req->clock.resend_ns = VB_NEVER_NS;
}

void vb_qp_fail_locked(struct vb_qp *qp)
{
	enum ibv_qp_state from = vb_qp_state(qp);

	if (from != IBV_QPS_ERR)
		VB_PROBE(qp_state, qp->ibv.qp.qp_num, from, IBV_QPS_ERR);
	atomic_store(&qp->state, IBV_QPS_ERR);
	vb_export_qp_locked(qp);
	if (qp->service->fail.fail)
		qp->service->fail.fail(qp);
	flush_send(qp);
	vb_qp_flush_recv_locked(qp);
}

/* A send failed. IBA 10.3.1.6: UC and UD only stop sending (SQE), RC fails completely. */
static void send_failed(struct vb_qp *qp)
{
	if (qp->service->fail.isolate && qp->service->fail.isolate(qp))
		return;
	if (vb_transport_acks(qp->req.transport)) {
		vb_qp_fail_locked(qp);
		return;
	}
	VB_PROBE(qp_state, qp->ibv.qp.qp_num, vb_qp_state(qp), IBV_QPS_SQE);
	atomic_store(&qp->state, IBV_QPS_SQE);
	flush_send(qp);
}

static void tell_drained(struct vb_qp *qp)
{
	if (!qp->send.drain_event || vb_qp_state(qp) != IBV_QPS_SQD || !vb_req_drained(&qp->req))
		return;
	qp->send.drain_event = false;
	vb_qp_event(qp, IBV_EVENT_SQ_DRAINED);
}

/* Through shared memory: an occasional timer instead of one per packet. */
static void watch(struct vb_qp *qp)
{
	if (qp->req.una_psn == qp->req.top_psn || !vb_transport_acks(qp->req.transport) ||
	    vb_timer_at_ns(&qp->later.timer) != UINT64_MAX)
		return;
	vb_rc_watch(&qp->req, vb_nic_now_ns(qp->nic));
	vb_timer_arm(qp->nic, qp, vb_rc_deadline_ns(&qp->req));
}

/* Is the last packet to or from the peer still unread? Then the peer is not silent. */
static bool is_unread(const struct vb_qp *qp)
{
	struct vb_lane *tx = qp->lane.tx;
	bool unread;

	if (vb_peer_is_lost(qp->to.peer))
		return false;
	if (atomic_load_explicit(&qp->to.peer->has_rx, memory_order_acquire) &&
	    vb_ring_ready(&qp->lane.rx->rx))
		return true;
	vb_lock_take(&tx->tx_lock);
	unread = !vb_ring_tx_is_empty(&tx->tx);
	vb_lock_drop(&tx->tx_lock);
	return unread;
}

static enum vb_req_outcome timeout(struct vb_qp *qp, uint64_t now_ns)
{
	if (qp->to.peer)
		return vb_rc_look(&qp->req, is_unread(qp), now_ns);
	return vb_rc_timeout(&qp->req, now_ns);
}

void vb_qp_after_locked(struct vb_qp *qp, enum vb_req_outcome outcome)
{
	/* When the link was full: long enough for it to drain, short compared with any timeout. */
	const uint64_t link_retry_ns = 50000;
	enum ibv_qp_state state = vb_qp_state(qp);

	if (outcome == VB_REQ_FAILED)
		send_failed(qp);
	else if (state == IBV_QPS_ERR || state == IBV_QPS_SQE)
		flush_send(qp);
	tell_drained(qp);
	if (qp->send.link_full)
		vb_timer_arm(qp->nic, qp, qp->now_ns + link_retry_ns);
	vb_timer_arm(qp->nic, qp, vb_rc_deadline_ns(&qp->req));
	if (qp->to.peer)
		watch(qp);
}

/* IBA 11.6.3.1: a QP that could not complete on its CQ cannot continue. */
static void fail_for_cq(struct vb_qp *qp)
{
	enum ibv_qp_state state;

	vb_lock_take(&qp->lock);
	state = vb_qp_state(qp);
	if (state != IBV_QPS_RESET && state != IBV_QPS_ERR) {
		vb_qp_fail_locked(qp);
		vb_qp_event(qp, IBV_EVENT_QP_FATAL);
	}
	vb_lock_drop(&qp->lock);
}

/*
 * Fails all QPs of a CQ, since it is unknown whose completions were lost. Rx right held, so no QP
 * is destroyed.
 */
static void fail_all_of(struct vb_nic *nic, const struct vb_cq *cq)
{
	for (unsigned i = 0; i < VB_SLOTS_PER_NIC_MAX; i++) {
		struct vb_slot *slot = atomic_load(&nic->leased.slot[i]);

		for (unsigned k = 0; slot && k < VB_INDICES; k++) {
			struct vb_qp *qp = atomic_load(&slot->qp[k]);

			if (qp && (qp->ibv.qp.send_cq == &cq->ibv.cq ||
				   qp->ibv.qp.recv_cq == &cq->ibv.cq ||
				   vb_tm_cq(qp) == &cq->ibv.cq))
				fail_for_cq(qp);
		}
	}
	vb_rwqs_fail(nic, cq, NULL);
}

static void heed_overrun(struct vb_qp *qp, struct ibv_cq *cq)
{
	if (cq && vb_cq_is_broken((struct vb_cq *)cq))
		fail_all_of(qp->nic, (struct vb_cq *)cq);
}

bool vb_nic_has_failed(const struct vb_nic *nic)
{
	return atomic_load_explicit(&nic->failed, memory_order_relaxed);
}

static void slot_fail(struct vb_slot *slot, const struct ibv_context *of)
{
	for (unsigned i = 0; i < VB_INDICES; i++) {
		struct vb_qp *qp = atomic_load(&slot->qp[i]);

		if (!qp || (of && qp->ibv.qp.context != of))
			continue;
		vb_lock_take(&qp->lock);
		if (vb_qp_state(qp) != IBV_QPS_RESET) {
			vb_qp_fail_locked(qp);
			vb_qp_after_locked(qp, VB_REQ_NOTHING);
		}
		vb_lock_drop(&qp->lock);
	}
}

/* Fails all QPs and WQs, or those of a context. */
static void fail_what_is(struct vb_nic *nic, const struct ibv_context *of)
{
	/* Destroying a QP takes the rx right before freeing it. */
	vb_lock_take(&nic->rx);
	for (unsigned i = 0; i < VB_SLOTS_PER_NIC_MAX; i++) {
		struct vb_slot *slot = atomic_load(&nic->leased.slot[i]);

		if (slot)
			slot_fail(slot, of);
	}
	vb_rwqs_fail(nic, NULL, of);
	vb_lock_drop(&nic->rx);
}

bool vb_ctx_fail(struct vb_ctx *ctx)
{
	fail_what_is(ctx->nic, &ctx->ibv.context);
	return vb_nic_settle(ctx->nic, 0);
}

void vb_nic_fail(struct vb_nic *nic)
{
	if (atomic_exchange(&nic->failed, true))
		return;
	/* A thread that changes a QP at the same time sees the flag, or is undone here. */
	fail_what_is(nic, NULL);
	vb_nic_event(nic, IBV_EVENT_DEVICE_FATAL);
}

/* The completion reports it. IBA 10.2.5: a QP does not continue after a completion in error. */
static void heed_parcels(struct vb_qp *qp)
{
	if (!vb_parcels_failed(qp))
		return;
	vb_lock_take(&qp->lock);
	/* Checked again: before we got the lock the QP may have been reset and reused. */
	if (atomic_exchange(&qp->user.parcels->failed, false) &&
	    vb_qp_state(qp) != IBV_QPS_RESET && vb_qp_state(qp) != IBV_QPS_ERR)
		vb_qp_fail_locked(qp);
	vb_lock_drop(&qp->lock);
}

void vb_qp_on_time(struct vb_qp *qp, uint64_t now_ns)
{
	enum vb_req_outcome outcome = VB_REQ_NOTHING;
	bool waited;

	heed_overrun(qp, qp->ibv.qp.send_cq);
	heed_overrun(qp, qp->ibv.qp.recv_cq);
	heed_overrun(qp, vb_tm_cq(qp));
	heed_parcels(qp);
	vb_lock_take(&qp->lock);
	qp->now_ns = now_ns;
	waited = qp->req.retry.rnr_waits;
	if (vb_qp_state(qp) == IBV_QPS_RTS || vb_qp_state(qp) == IBV_QPS_SQD)
		outcome = timeout(qp, now_ns);
	if (waited && !qp->req.retry.rnr_waits)
		VB_PROBE(rnr_wait_end, qp->ibv.qp.qp_num);
	if (outcome != VB_REQ_NOTHING && !waited) {
		vb_stat_add(&qp->nic->stats, VB_STAT_TIMEOUTS, 1);
		qp->tally.timeouts++;
		VB_PROBE(ack_timeout, qp->ibv.qp.qp_num, qp->req.una_psn, qp->req.retry.left);
	}
	if (outcome == VB_REQ_MIGRATE)
		vb_migrate_locked(qp);
	if (qp->service->fail.on_time)
		qp->service->fail.on_time(qp);
	if (outcome == VB_REQ_FAILED)
		vb_qp_after_locked(qp, outcome);
	else
		vb_qp_transmit_locked(qp);
	vb_lock_drop(&qp->lock);
}

void vb_nic_turn(struct vb_nic *nic)
{
	uint64_t now_ns = vb_nic_now_ns(nic);
	struct vb_timer *timer;

	if (vb_nic_deadline_ns(nic) > now_ns)
		return;
	vb_lock_take(&nic->rx);
	while ((timer = vb_timer_take(nic, now_ns))) {
		if (timer->of_cq)
			vb_cq_on_time(vb_container_of(timer, struct vb_cq, timer), now_ns);
		else
			vb_qp_on_time(vb_container_of(timer, struct vb_qp, later.timer), now_ns);
	}
	vb_acks_turn(nic, now_ns);
	vb_lock_drop(&nic->rx);
}
