/* SPDX-License-Identifier: BSD-2-Clause */

/* Event channels: events queued, fetched, acknowledged. */

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "abi/rdmacm/channel.h"
#include "abi/rdmacm/check.h"
#include "abi/rdmacm/device.h"
#include "abi/rdmacm/heard.h"
#include "abi/rdmacm/id.h"
#include "abi/rdmacm/newer.h"
#include "abi/rdmacm/why.h"
#include "base/probe.h"
#include "run/cm.h"
#include "run/process/eventfd.h"

enum { PATIENCE_S = 1 }; /* then the log says what it is that one waits for */
enum { LOOK_AHEAD = 8 }; /* of the events that wait, so many may be exchanged */

/* Of all ids: who destroys one waits until its events are acknowledged. */
static pthread_mutex_t acks_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t acks_cond = PTHREAD_COND_INITIALIZER;

struct rdma_event_channel *vb_cma_channel_make(void)
{
	struct vb_cma_channel *channel = calloc(1, sizeof(*channel));

	if (!channel)
		return NULL;
	TAILQ_INIT(&channel->events);
	channel->pid = getpid();
	channel->pub.fd = vb_eventfd_create();
	if (channel->pub.fd < 0) {
		free(channel);
		return NULL;
	}
	return &channel->pub;
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	int rc = vb_cma_device(NULL);

	if (!rc)
		return vb_cma_channel_make();
	errno = rc;
	return NULL;
}

void vb_cma_channel_free(struct rdma_event_channel *pub)
{
	struct vb_cma_channel *channel = (struct vb_cma_channel *)pub;

	while (!TAILQ_EMPTY(&channel->events)) {
		struct vb_cma_event *event = TAILQ_FIRST(&channel->events);

		TAILQ_REMOVE(&channel->events, event, link);
		free(event);
	}
	close(pub->fd);
	free(channel);
}

/* --- queueing --- */

struct vb_cma_event *vb_cma_event_make(struct vb_cma_id *id, enum rdma_cm_event_type type,
				       int status)
{
	struct vb_cma_event *event = calloc(1, sizeof(*event));

	if (!event)
		return NULL;
	event->id = id;
	event->pub.id = &id->pub;
	event->pub.event = type;
	event->pub.status = status;
	return event;
}

static struct vb_cma_channel *channel_of(const struct vb_cma_id *id)
{
	return (struct vb_cma_channel *)id->pub.channel;
}

void vb_cma_event_queue(struct vb_cma_event *event)
{
	struct vb_cma_channel *channel = channel_of(event->id);

	VB_PROBE(cm_event, event->pub.id, event->pub.event, event->pub.status,
		 rdma_event_str(event->pub.event));
	TAILQ_INSERT_TAIL(&channel->events, event, link);
	vb_cm_event_signal(vb_cma_run(), channel->pub.fd);
}

bool vb_cma_tell(struct vb_cma_id *id, enum rdma_cm_event_type type, int status)
{
	struct vb_cma_event *event = vb_cma_event_make(id, type, status);

	if (event)
		vb_cma_event_queue(event);
	return event;
}

static void unqueue(struct vb_cma_channel *channel, struct vb_cma_event *event)
{
	TAILQ_REMOVE(&channel->events, event, link);
	if (channel->pid == getpid())
		vb_eventfd_unsignal(channel->pub.fd);
}

/* A request that nobody fetched: its id goes with it, and the peer is told. */
static void request_drop(struct vb_cma_event *event)
{
	struct vb_cma_id *child = vb_cma_of(event->pub.id);

	vb_cma_id_unlist(child);
	if (child->cm) {
		child->cm->context = NULL;
		vb_cm_id_release(child->cm, vb_cm_now_ns());
		child->cm = NULL;
	}
	vb_cma_id_free(child);
}

static void event_drop(struct vb_cma_channel *channel, struct vb_cma_event *event)
{
	unqueue(channel, event);
	vb_cma_check_left(event->id, &event->pub);
	if (event->pub.event == RDMA_CM_EVENT_CONNECT_REQUEST)
		request_drop(event);
	free(event);
}

void vb_cma_events_drop(struct vb_cma_id *id)
{
	struct vb_cma_channel *channel = channel_of(id);
	struct vb_cma_event *event = TAILQ_FIRST(&channel->events), *next;

	for (; event; event = next) {
		next = TAILQ_NEXT(event, link);
		if (event->id == id)
			event_drop(channel, event);
	}
}

/* Nobody fetches them any more. */
static void requests_drop(struct vb_cma_channel *channel)
{
	struct vb_cma_event *event = TAILQ_FIRST(&channel->events), *next;

	for (; event; event = next) {
		next = TAILQ_NEXT(event, link);
		if (event->pub.event == RDMA_CM_EVENT_CONNECT_REQUEST)
			event_drop(channel, event);
	}
}

void vb_cma_group_forget(struct vb_cma_id *id, const struct vb_cma_group *group)
{
	struct vb_cma_event *event;

	TAILQ_FOREACH(event, &channel_of(id)->events, link) {
		if (event->group == group)
			event->group = NULL;
	}
}

void vb_cma_events_move(struct vb_cma_id *id, struct vb_cma_channel *from,
			struct vb_cma_channel *to)
{
	struct vb_cma_event *event = TAILQ_FIRST(&from->events), *next;

	for (; event; event = next) {
		next = TAILQ_NEXT(event, link);
		if (event->id != id)
			continue;
		unqueue(from, event);
		TAILQ_INSERT_TAIL(&to->events, event, link);
		vb_eventfd_signal(to->pub.fd);
	}
}

/* --- the end of a channel --- */

/* Of ids that outlive their channel: what comes for them is kept until they are destroyed. */
static struct vb_cma_channel nowhere = {
	.pub.fd = -1,
	.events = TAILQ_HEAD_INITIALIZER(nowhere.events),
};

bool vb_cma_has_channel(const struct vb_cma_id *id)
{
	return id->pub.channel != &nowhere.pub;
}

void rdma_destroy_event_channel(struct rdma_event_channel *pub)
{
	if (!pub)
		return;
	vb_cma_lock();
	requests_drop((struct vb_cma_channel *)pub);
	vb_cma_ids_move((struct vb_cma_channel *)pub, &nowhere);
	vb_cma_unlock();
	vb_cma_channel_free(pub);
}

/* --- fetching --- */

/* Those of one id come in their order; requests are of ids of their own, and so need not. */
static bool follows(const struct vb_cma_event *event, const struct vb_cma_event *before)
{
	return event->id == before->id && (event->pub.event != RDMA_CM_EVENT_CONNECT_REQUEST ||
					   before->pub.event != RDMA_CM_EVENT_CONNECT_REQUEST);
}

/* Usually the first; with another order (docs/order.md) any that follows none. */
static struct vb_cma_event *next_event(const struct vb_cma_channel *channel)
{
	struct vb_cma_event *event, *seen[LOOK_AHEAD], *may[LOOK_AHEAD];
	unsigned looked = 0, count = 0, i;

	TAILQ_FOREACH(event, &channel->events, link) {
		if (looked == LOOK_AHEAD)
			break;
		for (i = 0; i < looked && !follows(event, seen[i]); i++)
			;
		if (i == looked)
			may[count++] = event;
		seen[looked++] = event;
	}
	return count ? may[vb_cm_event_choose(vb_cma_run(), count)] : NULL;
}

static struct vb_cma_event *fetch(struct vb_cma_channel *channel)
{
	struct vb_cma_event *event;

	vb_cma_lock();
	event = next_event(channel);
	if (event)
		TAILQ_REMOVE(&channel->events, event, link);
	if (event && event->pub.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		struct vb_cma_id *child = vb_cma_of(event->pub.id);

		vb_cma_id_list(child);
		if (child->cm)
			vb_cm_id_take(child->cm);
		/* Its listener may have been at another one when it came. */
		child->pub.channel = &channel->pub;
	}
	vb_cma_unlock();
	return event;
}

/* The id of a request waits for its calls if its listener does. False: it cannot, and is gone. */
static bool request_place(struct vb_cma_event *event)
{
	struct vb_cma_id *child = vb_cma_of(event->pub.id);
	struct rdma_event_channel *own;

	if (event->pub.event != RDMA_CM_EVENT_CONNECT_REQUEST || !event->id->sync)
		return true;
	own = vb_cma_channel_make();
	if (own) {
		child->pub.channel = own;
		child->sync = true;
		return true;
	}
	vb_cma_lock();
	request_drop(event);
	vb_cma_unlock();
	free(event);
	return false;
}

int rdma_get_cm_event(struct rdma_event_channel *pub, struct rdma_cm_event **result)
{
	struct vb_cma_channel *channel = (struct vb_cma_channel *)pub;
	struct vb_cma_event *event;

	if (!result)
		return vb_cma_result(EINVAL);
	/* The descriptor counts events; who took one may find that it has been dropped. */
	do {
		if (!vb_eventfd_take(pub->fd))
			return -1;
		event = fetch(channel);
	} while (!event || !request_place(event));
	event->fetched_ns = vb_cm_now_ns();
	vb_cma_check_fetched(event);
	pthread_mutex_lock(&acks_mutex);
	TAILQ_INSERT_TAIL(&event->id->unacked, event, link);
	pthread_mutex_unlock(&acks_mutex);
	vb_cm_unacked_add(vb_cma_run(), 1);
	vb_cma_event_fetched(event);
	vb_cma_why(event);
	*result = &event->pub;
	return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *pub)
{
	struct vb_cma_event *event = (struct vb_cma_event *)pub;

	if (!pub)
		return vb_cma_result(EINVAL);
	pthread_mutex_lock(&acks_mutex);
	/* A request counts as the listener's: its own id may have been destroyed by now. */
	TAILQ_REMOVE(&event->id->unacked, event, link);
	pthread_cond_broadcast(&acks_cond);
	pthread_mutex_unlock(&acks_mutex);
	vb_cm_unacked_add(vb_cma_run(), -1);
	free(event);
	return 0;
}

void vb_cma_acks_wait(struct vb_cma_id *id, const char *call)
{
	struct timespec later;
	bool said = false;

	clock_gettime(CLOCK_MONOTONIC, &later);
	later.tv_sec += PATIENCE_S;
	pthread_mutex_lock(&acks_mutex);
	if (!TAILQ_EMPTY(&id->unacked))
		vb_cma_check_waits(TAILQ_FIRST(&id->unacked), call);
	while (!TAILQ_EMPTY(&id->unacked)) {
		if (said)
			pthread_cond_wait(&acks_cond, &acks_mutex);
		else if (pthread_cond_clockwait(&acks_cond, &acks_mutex, CLOCK_MONOTONIC,
						&later) == ETIMEDOUT) {
			vb_cma_why_waits(id, call);
			said = true;
		}
	}
	pthread_mutex_unlock(&acks_mutex);
}

/* --- synchronous mode --- */

/* What an event says of the call that waited for it: an errno, or 0. */
static int outcome(const struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_REJECTED)
		return ECONNREFUSED;
	/* Its status is of getaddrinfo(3)'s kind. */
	if ((int)event->event == VB_CMA_EVENT_ADDRINFO_ERROR)
		return ENOENT;
	if (event->status < 0)
		return -event->status;
	return event->status;
}

int vb_cma_complete(struct vb_cma_id *id)
{
	struct rdma_cm_id *pub = &id->pub;

	if (!id->sync)
		return 0;
	if (pub->event) {
		rdma_ack_cm_event(pub->event);
		pub->event = NULL;
	}
	if (rdma_get_cm_event(pub->channel, &pub->event))
		return -1;
	return vb_cma_result(outcome(pub->event));
}
