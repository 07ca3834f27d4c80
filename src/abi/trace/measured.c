/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/trace/measured.h"

#include "abi/verbs/abi.h"
#include "abi/verbs/wr.h"
#include "base/probe.h"
#include "nic/control/nic.h"
#include "nic/data/latency.h"

/* Any thread may call such a function meanwhile: it gets the one or the other. */
#define PUT(place, function) __atomic_store_n(&(place), function, __ATOMIC_RELEASE)

/* Then whoever asks takes its function away. */
static bool is_over(const struct ibv_context *context, uint64_t *now_ns)
{
	struct vb_nic *nic = vb_nic_of(context);

	*now_ns = vb_nic_now_ns(nic);
	return *now_ns > atomic_load_explicit(&nic->measured_until_ns, memory_order_relaxed);
}

static void post_note(struct vb_qp *qp, uint32_t nth, const struct ibv_send_wr *wr, uint64_t now_ns)
{
	uint64_t bytes = 0;

	for (int i = 0; i < wr->num_sge; i++)
		bytes += wr->sg_list[i].length;
	vb_latency_post(qp, nth, wr->send_flags & IBV_SEND_SIGNALED, now_ns);
	VB_PROBE(post, qp->ibv.qp.qp_num, wr->wr_id, bytes);
}

static int measured_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct vb_ctx *ctx = vb_ctx_of(ibv->context);
	struct vb_qp *qp = (struct vb_qp *)ibv;
	uint64_t now_ns;
	uint32_t nth = 0;

	if (vb_abi_is_gone(ibv->context))
		return ctx->plain.post_send(ibv, wr, bad);
	if (is_over(ibv->context, &now_ns)) {
		PUT(ibv->context->ops.post_send, ctx->plain.post_send);
		return ctx->plain.post_send(ibv, wr, bad);
	}
	vb_lock_take(&qp->lock);
	for (const struct ibv_send_wr *one = wr; one; one = one->next)
		post_note(qp, nth++, one, now_ns);
	vb_lock_drop(&qp->lock);
	return ctx->plain.post_send(ibv, wr, bad);
}

static int measured_complete(struct ibv_qp_ex *ibv)
{
	struct vb_builder *b = vb_wr_builder(ibv);
	struct vb_qp *qp = (struct vb_qp *)ibv;
	uint64_t now_ns;

	if (vb_abi_is_gone(ibv->qp_base.context))
		return b->complete(ibv);
	if (is_over(ibv->qp_base.context, &now_ns)) {
		PUT(ibv->wr_complete, b->complete);
		return b->complete(ibv);
	}
	vb_lock_take(&qp->lock);
	for (uint32_t i = 0; i < b->count && !b->error; i++)
		post_note(qp, i, &b->posts[i].wr, now_ns);
	vb_lock_drop(&qp->lock);
	return b->complete(ibv);
}

/* A QP that is destroyed meanwhile is not freed while the rx right is held. */
static void taken(struct vb_nic *nic, uint32_t qpn, bool good, uint64_t now_ns)
{
	struct vb_qp *qp;

	vb_lock_take(&nic->rx);
	qp = vb_nic_qp_find(nic, qpn);
	if (qp) {
		vb_lock_take(&qp->lock);
		vb_latency_taken(qp, good, now_ns);
		vb_lock_drop(&qp->lock);
	}
	vb_lock_drop(&nic->rx);
}

static void all_taken(struct ibv_context *context, const struct ibv_wc *wc, int count,
		      uint64_t now_ns)
{
	struct vb_nic *nic = vb_nic_of(context);
	uint32_t last = 0; /* no QP has this number */

	for (int i = 0; i < count; i++) {
		VB_PROBE(completion, wc[i].qp_num, wc[i].wr_id, wc[i].opcode, wc[i].status,
			 wc[i].byte_len);
		/* All that a QP has got back is counted at once. */
		if ((wc[i].opcode & IBV_WC_RECV) || wc[i].qp_num == last)
			continue;
		last = wc[i].qp_num;
		taken(nic, last, wc[i].status == IBV_WC_SUCCESS, now_ns);
	}
}

static int measured_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	struct vb_ctx *ctx = vb_ctx_of(cq->context);
	int got = ctx->plain.poll_cq(cq, num_entries, wc);
	uint64_t now_ns;

	if (got <= 0)
		return got;
	if (is_over(cq->context, &now_ns))
		PUT(cq->context->ops.poll_cq, ctx->plain.poll_cq);
	else
		all_taken(cq->context, wc, got, now_ns);
	return got;
}

/* The same of an extended CQ. */
static const struct vb_measured_cq *plain_of(const struct ibv_cq_ex *cq)
{
	return ((const struct vb_cq *)cq)->abi;
}

static int one_taken(struct ibv_cq_ex *cq, int rc)
{
	const struct vb_measured_cq *plain = plain_of(cq);
	uint64_t now_ns;

	if (rc != 0)
		return rc;
	if (is_over(cq->context, &now_ns)) {
		PUT(cq->start_poll, plain->start);
		PUT(cq->next_poll, plain->next);
	} else {
		all_taken(cq->context, plain->current(cq), 1, now_ns);
	}
	return rc;
}

static int measured_start(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	return one_taken(cq, plain_of(cq)->start(cq, attr));
}

static int measured_next(struct ibv_cq_ex *cq)
{
	return one_taken(cq, plain_of(cq)->next(cq));
}

void vb_measure(struct vb_ctx *ctx, struct vb_qp *qp)
{
	struct ibv_context_ops *ops = &ctx->ibv.context.ops;
	struct vb_cq *cq;

	if (!qp) {
		PUT(ops->post_send, measured_post_send);
		PUT(ops->poll_cq, measured_poll_cq);
		return;
	}
	cq = (struct vb_cq *)qp->ibv.qp.send_cq;
	if (qp->abi)
		PUT(qp->ibv.qp_ex.wr_complete, measured_complete);
	if (!cq || !cq->abi)
		return;
	PUT(cq->ibv.cq_ex.start_poll, measured_start);
	PUT(cq->ibv.cq_ex.next_poll, measured_next);
}
