/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/check/events.h"

#include <unistd.h>

#include "abi/check/check.h"
#include "abi/check/objects.h"
#include "nic/core/names.h"
#include "run/process/callsite.h"

/* Events that say that something is wrong, or that a program has asked for. */
static bool matters(enum ibv_event_type type)
{
	switch ((int)type) {
	case IBV_EVENT_CQ_ERR:
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_DEVICE_FATAL:
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
	case IBV_EVENT_WQ_FATAL:
		return true;
	default:
		return false;
	}
}

/* Reports the events of a context, or of an object in it (else NULL), that nobody took. */
static void left(struct ibv_context *context, const void *object, const void *site,
		 const char *when)
{
	struct vb_ctx *ctx = vb_ctx_of(context);

	vb_lock_take(&ctx->lock);
	for (const struct vb_event *e = ctx->events; e; e = e->next)
		if (matters(e->event.event_type) && (!object || e->event.element.qp == object))
			vb_flaw_say(VB_FLAW_EVENT_LEFT, site, "%s was not taken when %s",
				    vb_event_name(e->event.event_type), when);
	vb_lock_drop(&ctx->lock);
}

static struct ibv_context *context_of(const struct vb_check_object *o)
{
	switch ((int)o->kind) {
	case VB_KNOWN_CONTEXT:
		return o->object;
	case VB_KNOWN_CQ:
		return ((struct ibv_cq *)o->object)->context;
	case VB_KNOWN_QP:
		return ((struct ibv_qp *)o->object)->context;
	case VB_KNOWN_SRQ:
		return ((struct ibv_srq *)o->object)->context;
	default:
		return NULL;
	}
}

static void unacked(const struct vb_check_object *o, const void *site)
{
	const struct vb_cq *cq = o->object;
	const struct vb_qp *qp = o->object;
	const struct vb_srq *srq = o->object;
	uint32_t comp = 0, async = 0;

	if (o->kind == VB_KNOWN_CQ) {
		comp = cq->events.comp - cq->ibv.cq.comp_events_completed;
		async = cq->events.async - cq->ibv.cq.async_events_completed;
	} else if (o->kind == VB_KNOWN_QP) {
		async = qp->events.delivered - qp->ibv.qp.events_completed;
	} else if (o->kind == VB_KNOWN_SRQ) {
		async = srq->events_delivered - srq->ibv.events_completed;
	}
	/* Another thread that has the event may be about to acknowledge it. */
	if ((comp && o->cq.taken_by == gettid()) || (async && o->event_by == gettid()))
		vb_flaw_say(VB_FLAW_UNACKED, site,
			    "this waits until %u events of the %s are acknowledged, which this "
			    "thread has taken", comp + async, vb_check_kind(o->kind));
}

void vb_check_events_end(struct vb_check_object *o, const void *site)
{
	struct ibv_context *context = context_of(o);

	if (!context || o->ours)
		return;
	left(context, o->kind == VB_KNOWN_CONTEXT ? NULL : o->object, site,
	     "its object was destroyed");
	unacked(o, site);
}

void vb_check_events_left(void)
{
	struct vb_check_object *o;

	LIST_FOREACH(o, &vb_checker.objects, all)
		if (o->kind == VB_KNOWN_CONTEXT && !o->ours)
			left(o->object, NULL, o->site, "the program ended; the context was opened "
						       "here");
}

/* --- completion events --- */

void vb_check_armed(struct vb_check_object *o, const void *site)
{
	const struct vb_cq *cq = o->object;

	o->cq.armed_at = site;
	/*
	 * A CQ that was empty may have got something since it was polled. That can be told only if
	 * the program waits for what is in flight already, as after an event; before the first one,
	 * most have nothing connected yet.
	 */
	o->cq.armed_late = !vb_cq_is_empty(cq) || (o->cq.events_taken && o->cq.can_complete);
}

void vb_check_polled(struct vb_check_object *o)
{
	o->cq.armed_at = NULL;
}

void vb_check_armed_for(const struct ibv_cq *cq)
{
	struct vb_check_object *o = vb_check_find(VB_KNOWN_CQ, cq);

	if (o)
		o->cq.armed_at = NULL;
}

void vb_check_channel_enter(struct ibv_comp_channel *channel)
{
	const void *site = vb_check_here();
	struct vb_check_object *o;

	vb_check_lock();
	LIST_FOREACH(o, &vb_checker.objects, all) {
		const struct ibv_cq *cq = o->object;

		if (o->kind != VB_KNOWN_CQ || cq->channel != channel || o->ours ||
		    !o->cq.armed_at || !o->cq.armed_late)
			continue;
		vb_flaw_say(VB_FLAW_NOTIFY, o->cq.armed_at,
			    "between this ibv_req_notify_cq and the wait for its event the CQ is "
			    "not polled: what came before it gives no event on other devices");
		o->cq.armed_at = NULL;
	}
	o = vb_check_find(VB_KNOWN_CHANNEL, channel);
	if (o)
		vb_check_enter(o, site);
	vb_check_unlock();
}

void vb_check_channel_leave(struct ibv_comp_channel *channel, struct ibv_cq *cq)
{
	struct vb_check_object *o;

	vb_check_lock();
	o = vb_check_find(VB_KNOWN_CHANNEL, channel);
	if (o && o->inside)
		vb_check_leave(o);
	o = cq ? vb_check_find(VB_KNOWN_CQ, cq) : NULL;
	if (o) {
		o->cq.events_taken++;
		o->cq.taken_by = gettid();
	}
	vb_check_unlock();
}

void vb_check_async_taken(const struct ibv_async_event *event)
{
	static const enum vb_known_kind kinds[] = {VB_KNOWN_CQ, VB_KNOWN_QP, VB_KNOWN_SRQ};
	struct vb_check_object *o;

	vb_check_lock();
	for (unsigned i = 0; i < VB_ARRAY_LEN(kinds); i++) {
		o = vb_check_find(kinds[i], event->element.cq);
		if (o)
			o->event_by = gettid();
	}
	vb_check_unlock();
}

void vb_check_acked(struct ibv_cq *ibv)
{
	const struct vb_cq *cq = (struct vb_cq *)ibv;
	const void *site = vb_check_here();
	struct vb_check_object *o;

	vb_check_lock();
	o = vb_check_find(VB_KNOWN_CQ, ibv);
	if (o && !o->ours && (int32_t)(ibv->comp_events_completed - cq->events.comp) > 0)
		vb_flaw_say(VB_FLAW_ACKED_TWICE, site,
			    "%u events of the CQ are acknowledged, and %u were taken",
			    ibv->comp_events_completed, cq->events.comp);
	vb_check_unlock();
}
