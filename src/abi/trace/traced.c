/* SPDX-License-Identifier: BSD-2-Clause */
/* See ops.h. */
#include "abi/trace/traced.h"

#include "abi/verbs/ops.h"
#include "base/probe.h"
#include "base/psn.h"
#include "base/refusal.h"
#include "nic/control/nic.h"
#include "nic/data/qp.h"
#include "run/process/trail.h"

/* What this thread has posted to last: looked at while its polls find nothing. */
static _Thread_local uint32_t last_qpn;

/* Does the next request wait for a credit? QP locked. */
static bool lacks_credit(const struct vb_req *req)
{
	const struct vb_wqe *wqe;

	if (!req->credits.known || req->credits.of_packets || req->pos.next == req->tail)
		return false;
	wqe = vb_sq_at(&req->sq, req->pos.next);
	return vb_wqe_takes_recv(wqe) && vb_psn_diff(wqe->ssn, req->credits.limit) > 0;
}

/* Notes how far the requester is, if that has changed. QP locked. */
static void state_note(struct vb_qp *qp)
{
	const struct vb_req *req = &qp->req;
	struct vb_trail_event event = {
		.kind = VB_TRAIL_STATE, .qpn = qp->ibv.qp.qp_num, .dqpn = qp->to.dqpn,
		.index = req->head, .psn = req->pos.next_psn, .una = req->una_psn,
	};

	if (req->retry.rnr_waits)
		event.flags |= VB_TRAIL_RNR;
	if (lacks_credit(req))
		event.flags |= VB_TRAIL_NO_CREDIT;
	if (event.psn == qp->tally.traced.psn && event.una == qp->tally.traced.una &&
	    event.index == qp->tally.traced.head && event.flags == qp->tally.traced.flags)
		return;
	qp->tally.traced.psn = event.psn;
	qp->tally.traced.una = event.una;
	qp->tally.traced.head = event.index;
	qp->tally.traced.flags = event.flags;
	vb_trail_add(event);
}

void vb_trace_posted(struct vb_qp *qp, uint32_t from, uint64_t since_ns)
{
	last_qpn = qp->ibv.qp.qp_num;
	vb_lock_take(&qp->lock);
	for (uint32_t i = from; qp->req.sq.ring && i != qp->req.tail; i++) {
		const struct vb_wqe *wqe = vb_sq_at(&qp->req.sq, i);

		vb_trail_add((struct vb_trail_event){
			.kind = VB_TRAIL_POST, .ns = since_ns, .wr_id = wqe->wr_id,
			.qpn = qp->ibv.qp.qp_num, .dqpn = qp->to.dqpn, .index = i,
			.psn = wqe->psn, .packets = wqe->packets, .bytes = wqe->bytes,
			.op = wqe->kind,
		});
		VB_PROBE(post, qp->ibv.qp.qp_num, wqe->wr_id, wqe->bytes);
	}
	state_note(qp);
	vb_lock_drop(&qp->lock);
}

int vb_traced_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct vb_qp *qp = (struct vb_qp *)ibv;
	uint64_t since_ns = vb_trail_now_ns();
	uint32_t from = qp->req.tail;
	int rc = vb_refusals_are_wanted() ? vb_told_post_send(ibv, wr, bad)
					  : vb_abi_post_send(ibv, wr, bad);

	vb_trace_posted(qp, from, since_ns);
	return rc;
}

/* A QP that is destroyed meanwhile is not freed while the rx right is held. */
static void qp_look(struct vb_nic *nic, uint32_t qpn, uint32_t *released)
{
	struct vb_qp *qp;

	if (!vb_nic_rx_try(nic))
		return;
	qp = vb_nic_qp_find(nic, qpn);
	if (qp) {
		vb_lock_take(&qp->lock);
		state_note(qp);
		*released = atomic_load(&qp->user.sq_released);
		vb_lock_drop(&qp->lock);
	}
	vb_nic_rx_drop(nic);
}

int vb_traced_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	int got = vb_refusals_are_wanted() ? vb_told_poll_cq(cq, num_entries, wc)
					   : vb_abi_poll_cq(cq, num_entries, wc);

	vb_trace_taken(cq->context, wc, got);
	return got;
}

void vb_trace_taken(struct ibv_context *context, const struct ibv_wc *wc, int got)
{
	struct vb_nic *nic = vb_nic_of(context);
	uint64_t now_ns = vb_trail_now_ns();
	uint32_t released = 0;

	if (got == 0 && last_qpn)
		qp_look(nic, last_qpn, &released);
	for (int i = 0; i < got; i++) {
		bool recv = wc[i].opcode & IBV_WC_RECV;

		if (i == 0 || wc[i].qp_num != wc[i - 1].qp_num)
			qp_look(nic, wc[i].qp_num, &released);
		vb_trail_add((struct vb_trail_event){
			.kind = recv ? VB_TRAIL_RECV_WC : VB_TRAIL_SENT_WC, .ns = now_ns,
			.wr_id = wc[i].wr_id, .qpn = wc[i].qp_num, .index = released,
			.bytes = wc[i].byte_len, .op = (uint8_t)wc[i].opcode,
			.status = (uint8_t)wc[i].status,
		});
		VB_PROBE(completion, wc[i].qp_num, wc[i].wr_id, wc[i].opcode, wc[i].status,
			 wc[i].byte_len);
	}
}
