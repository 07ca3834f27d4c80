/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/check/queues.h"

#include "abi/check/objects.h"
#include "abi/check/requests.h"
#include "base/check.h"
#include "nic/core/names.h"
#include "nic/data/why.h"
#include "run/process/callsite.h"

static struct ibv_qp *qp_of(const struct vb_check_object *object)
{
	return object->object;
}

static struct vb_check_object *cq_of(const struct ibv_cq *cq)
{
	return vb_check_find(VB_KNOWN_CQ, cq);
}

void vb_check_queues_attach(struct vb_check_object *qp)
{
	struct vb_check_object *cq = cq_of(qp_of(qp)->recv_cq);
	struct vb_check_object *srq = vb_check_find(VB_KNOWN_SRQ, qp_of(qp)->srq);

	if (srq)
		srq->qps++;
	for (unsigned i = 0; cq && srq && i < cq->cq.srqs; i++)
		if (cq->cq.srq[i] == srq)
			return;
	if (cq && srq && cq->cq.srqs < VB_ARRAY_LEN(cq->cq.srq))
		cq->cq.srq[cq->cq.srqs++] = srq;
}

void vb_check_queues_detach(const struct vb_check_object *qp)
{
	struct vb_check_object *srq = vb_check_find(VB_KNOWN_SRQ, qp_of(qp)->srq);

	if (srq && srq->qps)
		srq->qps--;
}

struct vb_check_queue *vb_check_recv_queue(struct vb_check_object *object)
{
	struct vb_check_object *srq = NULL;

	if (object->kind == VB_KNOWN_QP && qp_of(object)->srq)
		srq = vb_check_find(VB_KNOWN_SRQ, qp_of(object)->srq);
	return srq ? &srq->recv : &object->recv;
}

/* --- posted --- */

static void room(struct vb_check_object *cq)
{
	struct ibv_cq *ibv = cq ? cq->object : NULL;
	uint32_t can;

	if (!cq || cq->ours || cq->cq.too_small)
		return;
	can = cq->cq.can_complete;
	for (unsigned i = 0; i < cq->cq.srqs; i++)
		can += cq->cq.srq[i]->recv.count;
	if (can <= (uint32_t)ibv->cqe || ((struct vb_cq *)ibv)->made.overwrites)
		return;
	cq->cq.too_small = true;
	vb_flaw_say(VB_FLAW_CQ_SMALL, cq->site,
		    "the CQ that was made here has room for %d completions; %u requests that "
		    "complete into it are in flight",
		    ibv->cqe, can);
}

void vb_check_room(struct vb_check_object *object, bool is_recv)
{
	struct vb_check_object *cq;

	if (object->kind == VB_KNOWN_QP) {
		cq = cq_of(is_recv ? qp_of(object)->recv_cq : qp_of(object)->send_cq);
		if (cq)
			cq->cq.can_complete++;
		room(cq);
		return;
	}
	LIST_FOREACH(cq, &vb_checker.objects, all) {
		if (cq->kind != VB_KNOWN_CQ)
			continue;
		for (unsigned i = 0; i < cq->cq.srqs; i++)
			if (cq->cq.srq[i] == object)
				room(cq);
	}
}

void vb_check_unsignaled(struct vb_check_object *qp, const struct vb_check_request *request)
{
	uint32_t places = ((struct vb_qp *)qp->object)->made.cap.max_send_wr;

	if (qp->ours || request->signaled || qp->send.unsignaled != places)
		return;
	vb_flaw_say(VB_FLAW_UNSIGNALED, request->site,
		    "QPN 0x%x: its send queue of %u requests is full of unsignaled ones, of which "
		    "this is the last: no completion will give a place back",
		    qp_of(qp)->qp_num, places);
}

void vb_check_late(struct vb_check_object *object, const void *site)
{
	struct vb_qp *qp = object->object;
	uint64_t noted = atomic_load_explicit(&qp->recv.late, memory_order_relaxed);
	uint32_t late = (uint32_t)(noted >> 32), wanted = (uint32_t)noted;

	if (late == object->recv.late_told || object->ours)
		return;
	/* It may have come meanwhile, for the next one. */
	if (site && (int32_t)(atomic_load(&qp->recv.rq->tail) - wanted) <= 0)
		return;
	vb_flaw_say(VB_FLAW_RECV_LATE, site ? site : object->site,
		    "QPN 0x%x: %u times a message came when no receive was posted%s",
		    qp_of(object)->qp_num, late - object->recv.late_told,
		    site ? "; this one is too late" : "; the QP was made here");
	object->recv.late_told = late;
}

static void dropped_say(const struct vb_check_object *object)
{
	struct vb_qp *qp = object->object;
	uint32_t qkeys = atomic_load_explicit(&qp->recv.wrong_qkeys, memory_order_relaxed);
	uint32_t longs = atomic_load_explicit(&qp->recv.too_long, memory_order_relaxed);

	if (qkeys)
		vb_flaw_say(VB_FLAW_DROPPED, object->site,
			    "QPN 0x%x, made here: %u datagrams had another Q_Key than the QP, "
			    "which has 0x%x", qp_of(object)->qp_num, qkeys, qp->attr.qkey);
	if (longs)
		vb_flaw_say(VB_FLAW_DROPPED, object->site,
			    "QPN 0x%x, made here: %u messages were longer than the receive that "
			    "was posted for them%s", qp_of(object)->qp_num, longs,
			    vb_qp_is(qp, VB_DATAGRAMS) ? ", with the 40 octets of the GRH" : "");
}

void vb_check_srq_late(const struct vb_check_object *srq, const void *site)
{
	struct vb_check_object *o;

	LIST_FOREACH(o, &vb_checker.objects, all)
		if (o->kind == VB_KNOWN_QP && qp_of(o)->srq == srq->object)
			vb_check_late(o, site);
}

/* --- completed --- */

static void failed_say(const struct vb_check_request *request, const struct ibv_wc *wc)
{
	const char *look = vb_why_look((enum vb_why)wc->vendor_err);

	if (wc->status == IBV_WC_SUCCESS || wc->status == IBV_WC_WR_FLUSH_ERR ||
	    request->queue->owner->ours)
		return;
	vb_flaw_say(VB_FLAW_FAILED, request->site,
		    "QPN 0x%x: this %s (wr_id 0x%llx) failed, %s: %s%s%s", wc->qp_num,
		    vb_check_opcode(request), (unsigned long long)wc->wr_id,
		    vb_status_name(wc->status), vb_why_words((enum vb_why)wc->vendor_err),
		    look && *look ? "; " : "", look ? look : "");
}

/* In order: those before it are completed as well. */
static void send_completed(struct vb_check_queue *queue, const struct ibv_wc *wc,
			   struct vb_check_object *cq)
{
	struct vb_check_request *request, *next;
	bool last;

	TAILQ_FOREACH(request, &queue->requests, link)
		if (request->wr_id == wc->wr_id && (request->signaled || wc->status))
			break;
	if (!request)
		return;
	failed_say(request, wc);
	for (struct vb_check_request *r = TAILQ_FIRST(&queue->requests);; r = next) {
		next = TAILQ_NEXT(r, link);
		last = r == request;
		if (cq && r->signaled && cq->cq.can_complete)
			cq->cq.can_complete--;
		vb_check_request_end(r, wc);
		if (last)
			return;
	}
}

static void recv_completed(struct vb_check_queue *queue, const struct ibv_wc *wc,
			   struct vb_check_object *cq)
{
	struct vb_check_request *request, *other;

	TAILQ_FOREACH(request, &queue->requests, link)
		if (request->wr_id == wc->wr_id)
			break;
	if (!request)
		return;
	/* Which of several with this wr_id it is is known in a QP's own queue alone. */
	other = queue->owner->kind == VB_KNOWN_SRQ ? TAILQ_NEXT(request, link) : NULL;
	for (; other; other = TAILQ_NEXT(other, link))
		if (other->wr_id == wc->wr_id)
			request->shared = other->shared = true;
	failed_say(request, wc);
	if (cq && queue->owner->kind == VB_KNOWN_QP && cq->cq.can_complete)
		cq->cq.can_complete--;
	vb_check_request_end(request, wc);
}

void vb_check_completed(const struct ibv_cq *ibv, const struct ibv_wc *wc)
{
	struct vb_check_object *qp = vb_check_qp(wc->qp_num), *cq = cq_of(ibv);

	if (!qp)
		return;
	if (wc->opcode & IBV_WC_RECV)
		vb_check_answered();
	if (wc->opcode & IBV_WC_RECV)
		recv_completed(vb_check_recv_queue(qp), wc, cq);
	else
		send_completed(&qp->send, wc, cq);
}

/* --- left --- */

/* How many completions of this QP that succeeded wait in the CQ. */
static uint32_t waiting(struct ibv_cq *ibv, uint32_t qpn, bool recv)
{
	struct vb_cq *cq = (struct vb_cq *)ibv;
	uint32_t count = 0;

	if (!cq_of(ibv))
		return 0;
	vb_lock_take(&cq->poll_lock);
	vb_lock_take(&cq->push_lock);
	for (uint64_t at = atomic_load(&cq->head); at != atomic_load(&cq->tail); at++) {
		const struct ibv_wc *wc = &cq->ring[at & cq->mask].wc;

		count += wc->qp_num == qpn && wc->status == IBV_WC_SUCCESS &&
			 !!(wc->opcode & IBV_WC_RECV) == recv;
	}
	vb_lock_drop(&cq->push_lock);
	vb_lock_drop(&cq->poll_lock);
	return count;
}

static void sends_left(struct vb_check_object *qp, const char *how)
{
	struct vb_check_request *request;

	/* A datagram's answer says as well that it has left (requests.c). */
	if (vb_qp_is(qp->object, VB_DATAGRAMS))
		return;
	TAILQ_FOREACH(request, &qp->send.requests, link) {
		if (!request->signaled)
			continue;
		vb_flaw_say(VB_FLAW_NOT_TAKEN, request->site,
			    "QPN 0x%x: the completion of this %s (wr_id 0x%llx) was not taken when "
			    "%s", qp_of(qp)->qp_num, vb_check_opcode(request),
			    (unsigned long long)request->wr_id, how);
		return;
	}
}

static void recvs_left(struct vb_check_object *qp, const char *how)
{
	struct vb_check_request *request = TAILQ_FIRST(&vb_check_recv_queue(qp)->requests);
	uint32_t count = waiting(qp_of(qp)->recv_cq, qp_of(qp)->qp_num, true);

	if (count && request)
		vb_flaw_say(VB_FLAW_NOT_TAKEN, request->site,
			    "QPN 0x%x: %u messages that came were not taken when %s; the receive "
			    "of the first was posted here", qp_of(qp)->qp_num, count, how);
}

void vb_check_queues_end(struct vb_check_object *object, const void *site, const char *how)
{
	enum ibv_qp_state state;

	vb_check_look_at(&object->recv);
	if (object->kind != VB_KNOWN_QP || object->ours)
		return;
	vb_check_late(object, NULL);
	dropped_say(object);
	state = vb_qp_state(object->object);
	if (state != IBV_QPS_RTS && state != IBV_QPS_SQD)
		return;
	sends_left(object, how);
	recvs_left(object, how);
}

static void queue_forget(struct vb_check_queue *queue)
{
	while (!TAILQ_EMPTY(&queue->requests))
		vb_check_request_drop(TAILQ_FIRST(&queue->requests));
	queue->unsignaled = 0;
}

static void give_back(const struct ibv_cq *ibv, uint32_t count)
{
	struct vb_check_object *cq = cq_of(ibv);

	if (cq)
		cq->cq.can_complete -= (uint32_t)vb_min_u64(count, cq->cq.can_complete);
}

void vb_check_room_back(struct vb_check_object *object, bool is_recv)
{
	if (object->kind == VB_KNOWN_QP)
		give_back(is_recv ? qp_of(object)->recv_cq : qp_of(object)->send_cq, 1);
}

void vb_check_queues_forget(struct vb_check_object *object)
{
	struct vb_check_object *cq;

	if (object->kind == VB_KNOWN_QP) {
		give_back(qp_of(object)->send_cq, object->send.signaled);
		give_back(qp_of(object)->recv_cq, object->recv.count);
	}
	queue_forget(&object->send);
	queue_forget(&object->recv);
	if (object->kind != VB_KNOWN_SRQ)
		return;
	LIST_FOREACH(cq, &vb_checker.objects, all)
		for (unsigned i = 0; cq->kind == VB_KNOWN_CQ && i < cq->cq.srqs; i++)
			if (cq->cq.srq[i] == object)
				cq->cq.srq[i--] = cq->cq.srq[--cq->cq.srqs];
}

void vb_check_queues_left(void)
{
	struct vb_check_object *o;

	LIST_FOREACH(o, &vb_checker.objects, all)
		if (o->kind == VB_KNOWN_QP)
			vb_check_queues_end(o, NULL, "the program ended");
}
