/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/data/tally.h"

#include "base/psn.h"
#include "nic/data/latency.h"

static uint64_t octets_before(const struct vb_req *req, uint32_t end, uint32_t count)
{
	uint64_t octets = 0;

	for (uint32_t i = 1; i <= count; i++)
		octets += vb_sq_at(&req->sq, end - i)->bytes;
	return octets;
}

static void sum_sent(struct vb_qp *qp)
{
	const struct vb_req *req = &qp->req;
	struct vb_qp_tally *tally = &qp->tally;
	uint32_t more = req->head - tally->head, places = req->sq.mask + 1;

	tally->head = req->head;
	if (!more || !req->sq.ring)
		return;
	tally->done += more;
	/* Newer requests have taken the places of some: as many octets on average as all in it. */
	if (more <= places - (req->tail - req->head))
		tally->octets += octets_before(req, req->head, more);
	else
		tally->octets += (uint64_t)((double)octets_before(req, req->tail, places) /
					    places * more);
}

void vb_qp_tally_sum(struct vb_qp *qp)
{
	struct vb_qp_tally *tally = &qp->tally;

	sum_sent(qp);
	/* Datagrams have no number of messages, but each takes a receive request. */
	if (qp->resp.transport == VB_UD) {
		tally->served = qp->ibv.qp.srq ? 0 : atomic_load(&qp->recv.own_rq.head);
		return;
	}
	tally->served += (qp->resp.msn - tally->msn) & VB_PSN_MASK;
	tally->msn = qp->resp.msn;
}

void vb_qp_tally_reset(struct vb_qp *qp)
{
	vb_qp_tally_sum(qp);
	qp->tally.head = qp->tally.msn = 0;
	vb_latency_reset(qp);
}
