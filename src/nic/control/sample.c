/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/control/sample.h"

#include <stdlib.h>
#include <string.h>

#include "base/psn.h"
#include "nic/data/qp.h"
#include "nic/data/tally.h"
#include "nic/queue/rq.h"
#include "nic/way/peer.h"

static enum vb_sample_way way_of(const struct vb_qp *qp)
{
	if (qp->to.peer)
		return VB_SAMPLE_RING;
	return vb_qp_state(qp) >= IBV_QPS_RTR ? VB_SAMPLE_WIRE : VB_SAMPLE_NOWHERE;
}

static void qp_fill(struct vb_sample_qp *row, struct vb_qp *qp)
{
	const struct vb_req *req = &qp->req;
	const struct vb_qp_tally *tally = &qp->tally;

	vb_qp_tally_sum(qp);
	*row = (struct vb_sample_qp){
		.qpn = qp->ibv.qp.qp_num,
		.dqpn = qp->to.dqpn,
		.state = (uint8_t)vb_qp_state(qp),
		.way = (uint8_t)way_of(qp),
		.rnr_waits = req->retry.rnr_waits,
		.credits_known = req->credits.known && !req->credits.of_packets,
		.done = tally->done,
		.octets = tally->octets,
		.served = tally->served,
		.outstanding = req->tail - req->head,
		.unsent = req->tail - req->pos.next,
		.resent = tally->resent,
		.timeouts = tally->timeouts,
		.rnr_seen = tally->rnr_seen,
		.rnr_sent = tally->rnr_sent,
		.naks_seen = tally->naks_seen,
		.naks_sent = tally->naks_sent,
		.rtt_ns = req->rtt.smooth_ns,
	};
	memcpy(row->service, qp->service->name,
	       vb_min_u64(strlen(qp->service->name), sizeof(row->service) - 1));
	memcpy(row->dst, qp->to.path.dst, sizeof(row->dst));
	if (qp->to.peer && qp->to.peer->export)
		row->peer_pid = qp->to.peer->export->pid;
	if (row->credits_known && vb_psn_diff(req->credits.limit, req->post_ssn) >= 0)
		row->credits = (uint32_t)vb_psn_diff(req->credits.limit, req->post_ssn) + 1;
	if (!qp->ibv.qp.srq && vb_qp_is(qp, VB_RECEIVES))
		row->receives = vb_rq_count(&qp->recv.own_rq);
}

static void nic_fill(struct vb_sample *sample, struct vb_nic *nic)
{
	sample->magic = VB_SAMPLE_MAGIC;
	sample->bytes = sizeof(struct vb_sample_qp);
	sample->stats = VB_STATS;
	sample->pds = atomic_load(&nic->counts.pds);
	sample->cqs = atomic_load(&nic->counts.cqs);
	sample->srqs = atomic_load(&nic->counts.srqs);
	vb_lock_take(&nic->keys.lock);
	sample->regions = nic->keys.mrs;
	vb_lock_drop(&nic->keys.lock);
	for (unsigned i = 0; i < VB_STATS; i++)
		sample->stat[i] = atomic_load_explicit(&nic->stats.count[i], memory_order_relaxed);
}

static unsigned slot_fill(struct vb_sample *sample, unsigned room, struct vb_slot *slot)
{
	unsigned n = 0;

	for (unsigned i = 0; i < VB_INDICES && n < room; i++) {
		struct vb_qp *qp = atomic_load(&slot->qp[i]);

		if (!qp)
			continue;
		vb_lock_take(&qp->lock);
		qp_fill(&sample->qp[sample->qps + n++], qp);
		vb_lock_drop(&qp->lock);
	}
	return n;
}

struct vb_sample *vb_nic_sample(struct vb_nic *nic, size_t *bytes)
{
	/* Those that are made meanwhile are left out. */
	unsigned room = atomic_load(&nic->counts.qps);
	size_t most = sizeof(struct vb_sample) + room * sizeof(struct vb_sample_qp);
	struct vb_sample *sample = calloc(1, most);

	if (!sample)
		return NULL;
	nic_fill(sample, nic);
	/* Destroying a QP takes the rx right before freeing it. */
	vb_lock_take(&nic->rx);
	sample->taken_ns = vb_nic_now_ns(nic);
	for (unsigned i = 0; i < VB_SLOTS_PER_NIC_MAX; i++) {
		struct vb_slot *slot = atomic_load(&nic->leased.slot[i]);

		if (slot)
			sample->qps += slot_fill(sample, room - sample->qps, slot);
	}
	vb_lock_drop(&nic->rx);
	*bytes = sizeof(*sample) + sample->qps * sizeof(struct vb_sample_qp);
	return sample;
}
