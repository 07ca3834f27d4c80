/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/check/calls.h"

#include <errno.h>
#include <unistd.h>

#include "abi/check/events.h"
#include "abi/check/objects.h"
#include "abi/check/queues.h"
#include "abi/check/requests.h"
#include "abi/verbs/ops.h"
#include "abi/verbs/wr.h"
#include "run/process/callsite.h"

enum { GRH_BYTES = 40 };

static const void *place(const void *returns_to)
{
	return vb_caller_by(returns_to);
}

/* An object without a record may be one of before a fork. */
static bool is_gone(enum vb_known_kind kind, const void *object)
{
	return vb_known(kind, object) != 0;
}

/* The record of what a call is about, entered; reports an object that is destroyed. Locked. */
static struct vb_check_object *object_of(enum vb_known_kind kind, const void *object,
					 const void *site)
{
	struct vb_check_object *o = vb_check_find(kind, object);

	if (o)
		vb_check_enter(o, site);
	else if (is_gone(kind, object))
		vb_flaw_say(VB_FLAW_STALE, site, "the %s at %p was destroyed before this call",
			    vb_check_kind(kind), object);
	return o;
}

/* --- posting --- */

/* Between these, all is locked but while the NIC is called. */
static void posts_begin(struct vb_check_queue *queue)
{
	pthread_mutex_lock(&queue->order);
	vb_check_lock();
	vb_check_look_around();
}

static void sends_begin(struct vb_check_object *o, const struct ibv_qp *qp)
{
	posts_begin(&o->send);
	vb_check_armed_for(qp->send_cq);
	vb_check_armed_for(qp->recv_cq);
}

static void posts_end(struct vb_check_object *o, struct vb_check_queue *queue)
{
	pthread_mutex_unlock(&queue->order);
	vb_check_leave(o);
	vb_check_unlock();
}

/* The last ones were refused. */
static void take_back(struct vb_check_object *o, struct vb_check_queue *queue, uint32_t count)
{
	while (count--) {
		struct vb_check_request *r = TAILQ_LAST(&queue->requests, vb_check_requests);

		if (!r)
			return;
		if (r->signaled)
			vb_check_room_back(o, queue->is_recv);
		vb_check_request_drop(r);
	}
}

static void send_note(struct vb_check_object *o, const struct ibv_send_wr *wr, const void *site)
{
	bool signaled = ((struct vb_qp *)o->object)->made.sq_sig_all ||
			(wr->send_flags & IBV_SEND_SIGNALED);
	struct vb_check_request *r = vb_check_send_add(&o->send, wr, signaled, site);

	if (signaled)
		vb_check_room(o, false);
	if (r)
		vb_check_unsignaled(o, r);
}

static int unrecorded_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
			   struct ibv_send_wr **bad_wr)
{
	if (!is_gone(VB_KNOWN_QP, qp))
		return vb_told_post_send(qp, wr, bad_wr);
	*bad_wr = wr;
	return EINVAL;
}

static int unrecorded_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
			   struct ibv_recv_wr **bad_wr)
{
	if (!is_gone(VB_KNOWN_QP, qp))
		return vb_told_post_recv(qp, wr, bad_wr);
	*bad_wr = wr;
	return EINVAL;
}

/* Reports an address handle that is destroyed: what it says is no more there. */
static bool is_ah_gone(const struct ibv_qp *qp, const struct ibv_send_wr *wr, const void *site)
{
	const void *ah = vb_qp_is((struct vb_qp *)qp, VB_DATAGRAMS) ? wr->wr.ud.ah : NULL;

	if (!ah || !is_gone(VB_KNOWN_AH, ah))
		return false;
	vb_flaw_say(VB_FLAW_STALE, site, "the address handle at %p was destroyed before this call",
		    ah);
	return true;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	const void *site = place(__builtin_return_address(0));
	struct vb_check_object *o;
	uint32_t refused = 0;
	bool gone = false;
	int rc;

	vb_check_lock();
	o = object_of(VB_KNOWN_QP, qp, site);
	vb_check_unlock();
	if (!o)
		return unrecorded_send(qp, wr, bad_wr);
	sends_begin(o, qp);
	for (struct ibv_send_wr *w = wr; w; w = w->next) {
		send_note(o, w, site);
		gone |= is_ah_gone(qp, w, site);
	}
	vb_check_unlock();
	if (gone)
		*bad_wr = wr;
	rc = gone ? EINVAL : vb_told_post_send(qp, wr, bad_wr);
	vb_check_lock();
	for (struct ibv_send_wr *w = rc ? *bad_wr : NULL; w; w = w->next)
		refused++;
	take_back(o, &o->send, refused);
	posts_end(o, &o->send);
	return rc;
}

/* The first 40 octets of a datagram's receive are the GRH, or what stands for it. */
static void grh_look(const struct vb_check_object *o, const struct ibv_recv_wr *wr,
		     const void *site)
{
	uint64_t bytes = 0;

	if (o->kind != VB_KNOWN_QP || !vb_qp_is(o->object, VB_DATAGRAMS) || o->ours)
		return;
	for (int i = 0; i < wr->num_sge; i++)
		bytes += wr->sg_list[i].length;
	if (bytes <= GRH_BYTES)
		vb_flaw_say(VB_FLAW_UD_SHORT, site,
			    "QPN 0x%x: this receive (wr_id 0x%llx) has %llu octets; the first %d "
			    "are the GRH's",
			    ((struct ibv_qp *)o->object)->qp_num, (unsigned long long)wr->wr_id,
			    (unsigned long long)bytes, GRH_BYTES);
}

static void recv_note(struct vb_check_object *o, const struct ibv_recv_wr *wr, const void *site)
{
	grh_look(o, wr, site);
	vb_check_recv_add(&o->recv, wr, site);
	vb_check_room(o, true);
}

/* Both kinds of receive queues. rq: the NIC's; NULL: its places have another order (tags). */
static int post_to(struct vb_check_object *o, const struct vb_rq *rq, struct ibv_recv_wr *wr,
		   struct ibv_recv_wr **bad_wr, const void *site)
{
	uint32_t refused = 0;
	int rc;

	posts_begin(&o->recv);
	for (struct ibv_recv_wr *w = wr; w; w = w->next)
		recv_note(o, w, site);
	vb_check_unlock();
	rc = o->kind == VB_KNOWN_QP ? vb_told_post_recv(o->object, wr, bad_wr)
				    : vb_told_post_srq_recv(o->object, wr, bad_wr);
	vb_check_lock();
	for (struct ibv_recv_wr *w = rc ? *bad_wr : NULL; w; w = w->next)
		refused++;
	take_back(o, &o->recv, refused);
	if (o->kind == VB_KNOWN_QP)
		vb_check_late(o, site);
	else if (rq)
		vb_check_srq_late(o, site);
	if (rq)
		vb_check_recv_place(&o->recv, atomic_load_explicit(&rq->tail,
								   memory_order_acquire));
	posts_end(o, &o->recv);
	return rc;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	const void *site = place(__builtin_return_address(0));
	struct vb_check_object *o;

	vb_check_lock();
	o = object_of(VB_KNOWN_QP, qp, site);
	if (o)
		vb_check_armed_for(qp->recv_cq);
	vb_check_unlock();
	return o ? post_to(o, ((struct vb_qp *)qp)->recv.rq, wr, bad_wr, site)
		 : unrecorded_recv(qp, wr, bad_wr);
}

static int post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	const void *site = place(__builtin_return_address(0));
	struct vb_srq *srq = (struct vb_srq *)ibv;
	struct vb_check_object *o;

	vb_check_lock();
	o = object_of(VB_KNOWN_SRQ, ibv, site);
	vb_check_unlock();
	return o ? post_to(o, srq->tm ? NULL : &srq->rq, wr, bad_wr, site)
		 : vb_told_post_srq_recv(ibv, wr, bad_wr);
}

/* --- completions --- */

static int poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	const void *site = place(__builtin_return_address(0));
	struct vb_check_object *o;
	int got;

	vb_check_lock();
	o = object_of(VB_KNOWN_CQ, cq, site);
	vb_check_look_around();
	vb_check_unlock();
	got = vb_told_poll_cq(cq, num_entries, wc);
	vb_check_lock();
	for (int i = 0; o && i < got; i++)
		vb_check_completed(cq, &wc[i]);
	if (o) {
		vb_check_polled(o);
		vb_check_leave(o);
	}
	vb_check_unlock();
	return got;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	const void *site = place(__builtin_return_address(0));
	struct vb_check_object *o;

	vb_check_lock();
	o = vb_check_find(VB_KNOWN_CQ, cq);
	if (o)
		vb_check_armed(o, site);
	vb_check_unlock();
	return vb_abi_req_notify_cq(cq, solicited_only);
}

const struct ibv_context_ops vb_check_ops = {
	.alloc_mw = vb_abi_alloc_mw,
	.bind_mw = vb_abi_bind_mw,
	.dealloc_mw = vb_abi_dealloc_mw,
	.poll_cq = poll_cq,
	.req_notify_cq = req_notify_cq,
	.post_srq_recv = post_srq_recv,
	.post_send = post_send,
	.post_recv = post_recv,
};

/* --- extended CQs: the usual functions, which are the same of each --- */

static int (*usual_start)(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr);
static int (*usual_next)(struct ibv_cq_ex *cq);
static void (*usual_end)(struct ibv_cq_ex *cq);
static const struct ibv_wc *(*current_of)(struct ibv_cq_ex *cq);

static void current_look(struct ibv_cq_ex *cq, int rc, bool starts, const void *site)
{
	struct vb_check_object *o;

	vb_check_lock();
	o = vb_check_find(VB_KNOWN_CQ, cq);
	if (o && rc == 0)
		vb_check_completed(ibv_cq_ex_to_cq(cq), current_of(cq));
	if (o)
		vb_check_polled(o);
	if (o && rc == 0 && starts)
		vb_check_enter(o, site);
	vb_check_unlock();
}

static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	const void *site = place(__builtin_return_address(0));
	int rc;

	vb_check_lock();
	vb_check_look_around();
	vb_check_unlock();
	rc = usual_start(cq, attr);
	current_look(cq, rc, true, site);
	return rc;
}

static int next_poll(struct ibv_cq_ex *cq)
{
	int rc = usual_next(cq);

	current_look(cq, rc, false, NULL);
	return rc;
}

static void end_poll(struct ibv_cq_ex *cq)
{
	struct vb_check_object *o;

	usual_end(cq);
	vb_check_lock();
	o = vb_check_find(VB_KNOWN_CQ, cq);
	if (o && o->inside)
		vb_check_leave(o);
	vb_check_unlock();
}

void vb_check_cq_ex(struct ibv_cq_ex *cq, const struct ibv_wc *(*current)(struct ibv_cq_ex *cq))
{
	current_of = current;
	usual_start = cq->start_poll;
	usual_next = cq->next_poll;
	usual_end = cq->end_poll;
	cq->start_poll = start_poll;
	cq->next_poll = next_poll;
	cq->end_poll = end_poll;
}

/* --- builders --- */

static int (*usual_complete)(struct ibv_qp_ex *qp);

static int wr_complete(struct ibv_qp_ex *qp)
{
	const void *site = place(__builtin_return_address(0));
	struct vb_builder *b = vb_wr_builder(qp);
	uint32_t count = b->error ? 0 : b->count;
	struct vb_check_object *o;
	int rc;

	vb_check_lock();
	o = object_of(VB_KNOWN_QP, &qp->qp_base, site);
	vb_check_unlock();
	if (!o)
		return usual_complete(qp);
	sends_begin(o, &qp->qp_base);
	for (uint32_t i = 0; i < count; i++)
		send_note(o, &b->posts[i].wr, site);
	vb_check_unlock();
	rc = usual_complete(qp);
	vb_check_lock();
	if (rc)
		take_back(o, &o->send, count);
	posts_end(o, &o->send);
	return rc;
}

void vb_check_builder(struct ibv_qp_ex *qp)
{
	usual_complete = qp->wr_complete;
	qp->wr_complete = wr_complete;
}
