/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/check/objects.h"

#include <stdlib.h>
#include <unistd.h>

#include "abi/check/events.h"
#include "abi/check/queues.h"
#include "abi/check/requests.h"
#include "base/check.h"
#include "run/process/callsite.h"

#define BUCKETS 4096u

struct vb_check_state vb_checker = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.requests = TAILQ_HEAD_INITIALIZER(vb_checker.requests),
};
static struct vb_check_object *bucket[BUCKETS];

void vb_check_lock(void)
{
	pthread_mutex_lock(&vb_checker.lock);
}

void vb_check_unlock(void)
{
	pthread_mutex_unlock(&vb_checker.lock);
}

const char *vb_check_kind(enum vb_known_kind kind)
{
	static const char *const names[VB_KNOWN_KINDS] = {
		[VB_KNOWN_CONTEXT] = "context (ibv_open_device)",
		[VB_KNOWN_PD] = "PD",
		[VB_KNOWN_TD] = "thread domain",
		[VB_KNOWN_MR] = "memory region",
		[VB_KNOWN_MW] = "memory window",
		[VB_KNOWN_DM] = "device memory",
		[VB_KNOWN_CHANNEL] = "completion channel",
		[VB_KNOWN_CQ] = "CQ",
		[VB_KNOWN_SRQ] = "SRQ",
		[VB_KNOWN_QP] = "QP",
		[VB_KNOWN_AH] = "address handle",
		[VB_KNOWN_XRCD] = "XRC domain",
		[VB_KNOWN_WQ] = "work queue",
		[VB_KNOWN_TABLE] = "indirection table",
		[VB_KNOWN_FLOW] = "flow rule",
		[VB_KNOWN_COUNTERS] = "counters",
		[VB_KNOWN_DMAH] = "DMA handle",
		[VB_KNOWN_BUF] = "buffer",
		[VB_KNOWN_COMP_CNTR] = "completion counter",
	};

	return names[kind];
}

static struct vb_check_object **place_of(const void *object)
{
	struct vb_check_object **at =
		&bucket[((uint64_t)(uintptr_t)object * 0x9e3779b97f4a7c15ull) >> 52];

	while (*at && (*at)->object != object)
		at = &(*at)->next;
	return at;
}

struct vb_check_object *vb_check_find(enum vb_known_kind kind, const void *object)
{
	struct vb_check_object *found = *place_of(object);

	return found && found->kind == kind ? found : NULL;
}

struct vb_check_object *vb_check_qp(uint32_t qpn)
{
	struct vb_check_object *o;

	LIST_FOREACH(o, &vb_checker.objects, all)
		if (o->kind == VB_KNOWN_QP && ((struct ibv_qp *)o->object)->qp_num == qpn)
			return o;
	return NULL;
}

const struct vb_check_region *vb_check_region(uint32_t lkey)
{
	struct vb_check_object *o;

	LIST_FOREACH(o, &vb_checker.objects, all)
		if (o->kind == VB_KNOWN_MR && o->region.lkey == lkey)
			return &o->region;
	return NULL;
}

void vb_check_region_read(struct vb_check_object *object)
{
	const struct vb_mr *mr = object->object;

	object->region = (struct vb_check_region){
		.lkey = mr->ibv.lkey,
		.access = mr->access,
		.iova = mr->iova,
		.bytes = mr->bytes,
		.base = mr->kind == VB_MR_MEMORY ? mr->base : NULL,
	};
}

const void *vb_check_here(void)
{
	return vb_caller();
}

/* --- calls under way --- */

void vb_check_enter(struct vb_check_object *object, const void *site)
{
	object->inside++;
	object->inside_last = gettid();
	object->inside_site = site;
	object->holders++;
}

static void drop(struct vb_check_object *object)
{
	if (--object->holders)
		return;
	pthread_mutex_destroy(&object->send.order);
	pthread_mutex_destroy(&object->recv.order);
	free(object);
}

void vb_check_leave(struct vb_check_object *object)
{
	object->inside--;
	drop(object);
}

/* --- made and destroyed --- */

static void queue_init(struct vb_check_queue *queue, struct vb_check_object *owner, bool is_recv)
{
	TAILQ_INIT(&queue->requests);
	pthread_mutex_init(&queue->order, NULL);
	queue->owner = owner;
	queue->is_recv = is_recv;
}

static void unlist(struct vb_check_object **at)
{
	struct vb_check_object *o = *at;

	*at = o->next;
	LIST_REMOVE(o, all);
	o->gone = true;
	drop(o);
}

static void made(enum vb_known_kind kind, const void *object)
{
	struct vb_check_object *o = calloc(1, sizeof(*o)), **at;
	const void *site = vb_check_here();

	if (!o)
		return;
	*o = (struct vb_check_object){ .kind = kind, .object = (void *)(uintptr_t)object,
				       .site = site, .holders = 1 };
	queue_init(&o->send, o, false);
	queue_init(&o->recv, o, true);
	vb_check_lock();
	at = place_of(object);
	if (*at)
		unlist(at);
	at = place_of(object);
	*at = o;
	LIST_INSERT_HEAD(&vb_checker.objects, o, all);
	if (kind == VB_KNOWN_QP)
		vb_check_queues_attach(o);
	if (kind == VB_KNOWN_MR)
		vb_check_region_read(o);
	vb_check_unlock();
}

static void ending(enum vb_known_kind kind, const void *object)
{
	const void *site = vb_check_here();
	struct vb_check_object *o;

	vb_check_lock();
	o = vb_check_find(kind, object);
	if (o && o->inside && o->inside_last != gettid())
		vb_flaw_say(VB_FLAW_IN_USE, site,
			    "this destroys a %s while thread %d is in a call that uses it",
			    vb_check_kind(kind), (int)o->inside_last);
	if (o && kind == VB_KNOWN_MR)
		vb_check_region_ends(object, site, "deregistered");
	if (o && (kind == VB_KNOWN_QP || kind == VB_KNOWN_SRQ))
		vb_check_queues_end(o, site, "it was destroyed");
	if (o)
		vb_check_events_end(o, site);
	vb_check_unlock();
}

static void ended(enum vb_known_kind kind, const void *object)
{
	struct vb_check_object **at;

	vb_check_lock();
	at = place_of(object);
	if (*at && (*at)->kind == kind) {
		if (kind == VB_KNOWN_QP)
			vb_check_queues_detach(*at);
		vb_check_queues_forget(*at);
		unlist(at);
	}
	vb_check_unlock();
}

static const struct vb_known_watch watch = { .made = made, .ending = ending, .ended = ended };

void vb_check_objects_watch(void)
{
	vb_known_watch(&watch);
}

void vb_check_objects_forget(void)
{
	vb_checker.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	LIST_INIT(&vb_checker.objects);
	TAILQ_INIT(&vb_checker.requests);
	vb_checker.unanswered = 0;
	for (unsigned i = 0; i < BUCKETS; i++)
		bucket[i] = NULL;
}

/* A context or a PD cannot go before what is in it, and is no leak of its own then. */
static unsigned height(enum vb_known_kind kind)
{
	return kind == VB_KNOWN_CONTEXT ? 2 : kind == VB_KNOWN_PD ? 1 : 0;
}

void vb_check_objects_leaked(void)
{
	unsigned lowest = 3;
	struct vb_check_object *o;

	LIST_FOREACH(o, &vb_checker.objects, all)
		if (!o->ours && height(o->kind) < lowest)
			lowest = height(o->kind);
	LIST_FOREACH(o, &vb_checker.objects, all)
		if (!o->ours && height(o->kind) == lowest)
			vb_flaw_say(VB_FLAW_LEAKED, o->site,
				    "the %s that was made here was not destroyed when the "
				    "program ended", vb_check_kind(o->kind));
}

void vb_check_own(const void *object)
{
	struct vb_check_object *o = *place_of(object);

	if (o)
		o->ours = true;
}
