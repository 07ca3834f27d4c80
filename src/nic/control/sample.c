/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/control/sample.h"

#include <stdlib.h>
#include <string.h>

#include "base/prf.h"
#include "base/psn.h"
#include "nic/data/latency.h"
#include "nic/data/qp.h"
#include "nic/data/tally.h"
#include "nic/queue/rq.h"
#include "nic/way/peer.h"

/* A look may come late by this. */
static const uint64_t grace_ns = 3000000000, s_ns = 1000000000;

/* How latencies are measured for this sample. */
struct measuring {
	bool begins; /* a look that another one follows */
	bool anew;   /* nobody has looked up to now */
	bool on;
};

static enum vb_sample_way way_of(const struct vb_qp *qp)
{
	if (qp->to.peer)
		return VB_SAMPLE_RING;
	return vb_qp_state(qp) >= IBV_QPS_RTR ? VB_SAMPLE_WIRE : VB_SAMPLE_NOWHERE;
}

static void latency_fill(struct vb_sample_qp *row, struct vb_qp *qp,
			 const struct measuring *measuring)
{
	struct vb_ctx *ctx = vb_ctx_of(qp->ibv.qp.context);
	const struct vb_latency *latency;

	if (measuring->begins && qp->ibv.qp.context && ctx->measure) {
		vb_latency_look(qp);
		vb_latency_begin(qp, measuring->anew);
		ctx->measure(ctx, qp);
	}
	latency = qp->tally.latency;
	if (!latency)
		return;
	row->latency.count = latency->count;
	row->latency.sum_ns = latency->sum_ns;
	if (!measuring->on)
		return;
	row->latency.p50_ns = latency->last.p50_ns;
	row->latency.p99_ns = latency->last.p99_ns;
	row->latency.max_ns = latency->last.max_ns;
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

void vb_nic_sample_sums(struct vb_nic *nic, struct vb_sample *sums)
{
	/* Lanes count for themselves, until somebody asks. */
	vb_peers_count(nic);
	*sums = (struct vb_sample){
		.magic = VB_SAMPLE_MAGIC,
		.bytes = sizeof(struct vb_sample_qp),
		.stats = VB_STATS,
		.origin = vb_prf(nic->keys.secret, VB_SAMPLE_MAGIC),
	};
	for (unsigned i = 0; i < VB_STATS; i++)
		sums->stat[i] = atomic_load_explicit(&nic->stats.count[i], memory_order_relaxed);
}

static void nic_fill(struct vb_sample *sample, struct vb_nic *nic)
{
	vb_nic_sample_sums(nic, sample);
	sample->pds = atomic_load(&nic->counts.pds);
	sample->cqs = atomic_load(&nic->counts.cqs);
	sample->srqs = atomic_load(&nic->counts.srqs);
	vb_lock_take(&nic->keys.lock);
	sample->regions = nic->keys.mrs;
	vb_lock_drop(&nic->keys.lock);
}

/* Contexts made later are measured from the next look on. */
static struct measuring measure(struct vb_nic *nic, uint32_t measure_s, uint64_t now_ns)
{
	uint64_t until_ns = atomic_load(&nic->measured_until_ns);
	struct measuring measuring = { .begins = measure_s, .on = until_ns > now_ns };

	if (!measure_s)
		return measuring;
	measuring.anew = !measuring.on;
	atomic_store(&nic->measured_until_ns,
		     vb_max_u64(until_ns, now_ns + measure_s * s_ns + grace_ns));
	vb_lock_take(&nic->lock);
	for (struct vb_ctx *ctx = nic->ctxs; ctx; ctx = ctx->next) {
		if (ctx->measure)
			ctx->measure(ctx, NULL);
	}
	vb_lock_drop(&nic->lock);
	return measuring;
}

static unsigned slot_fill(struct vb_sample *sample, unsigned room, struct vb_slot *slot,
			  const struct measuring *measuring)
{
	unsigned n = 0;

	for (unsigned i = 0; i < VB_INDICES && n < room; i++) {
		struct vb_qp *qp = atomic_load(&slot->qp[i]);

		if (!qp)
			continue;
		vb_lock_take(&qp->lock);
		qp_fill(&sample->qp[sample->qps + n], qp);
		latency_fill(&sample->qp[sample->qps + n++], qp, measuring);
		vb_lock_drop(&qp->lock);
	}
	return n;
}

struct vb_sample *vb_nic_sample(struct vb_nic *nic, uint32_t measure_s, size_t *bytes)
{
	/* Those that are made meanwhile are left out. */
	unsigned room = atomic_load(&nic->counts.qps);
	size_t most = sizeof(struct vb_sample) + room * sizeof(struct vb_sample_qp);
	struct vb_sample *sample = calloc(1, most);
	struct measuring measuring;

	if (!sample)
		return NULL;
	nic_fill(sample, nic);
	measuring = measure(nic, measure_s, vb_nic_now_ns(nic));
	/* Destroying a QP takes the rx right before freeing it. */
	vb_lock_take(&nic->rx);
	sample->taken_ns = vb_nic_now_ns(nic);
	for (unsigned i = 0; i < VB_SLOTS_PER_NIC_MAX; i++) {
		struct vb_slot *slot = atomic_load(&nic->leased.slot[i]);

		if (slot)
			sample->qps += slot_fill(sample, room - sample->qps, slot, &measuring);
	}
	vb_lock_drop(&nic->rx);
	*bytes = sizeof(*sample) + sample->qps * sizeof(struct vb_sample_qp);
	return sample;
}
