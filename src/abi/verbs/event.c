/* SPDX-License-Identifier: BSD-2-Clause */
/* Asynchronous events: reading, acknowledging, and waiting for acknowledgements. */
#include "abi/verbs/event.h"

#include "abi/check/check.h"
#include "abi/check/events.h"
#include "abi/verbs/abi.h"
#include "nic/core/names.h"
#include "run/process/eventfd.h"
#include "tape/calls.h"

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	if (vb_abi_is_gone(context))
		return vb_abi_minus_one(EIO);
	/* If the event's object was destroyed between read and pop, wait for the next event. */
	do {
		if (!vb_eventfd_take(context->async_fd))
			return -1;
	} while (!vb_taped_ctx_event_pop(vb_ctx_of(context), event));
	if (vb_check_is_on())
		vb_check_async_taken(event);
	return 0;
}

/* In a forked child, the mutex may be held for ever, by a thread of the parent. */
static void ack(struct ibv_context *context, pthread_mutex_t *mutex, pthread_cond_t *cond,
		uint32_t *acked)
{
	if (vb_abi_is_gone(context))
		return;
	pthread_mutex_lock(mutex);
	++*acked;
	pthread_cond_signal(cond);
	pthread_mutex_unlock(mutex);
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_cq *cq = event->element.cq;
	struct ibv_qp *qp = event->element.qp;
	struct ibv_srq *srq = event->element.srq;
	struct ibv_wq *wq = event->element.wq;

	if (vb_event_is_of_qp(event->event_type)) {
		ack(qp->context, &qp->mutex, &qp->cond, &qp->events_completed);
		return;
	}
	switch ((int)event->event_type) {
	case IBV_EVENT_CQ_ERR:
		ack(cq->context, &cq->mutex, &cq->cond, &cq->async_events_completed);
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		ack(srq->context, &srq->mutex, &srq->cond, &srq->events_completed);
		break;
	case IBV_EVENT_WQ_FATAL:
		ack(wq->context, &wq->mutex, &wq->cond, &wq->events_completed);
		break;
	default: /* of a port or the device: no destruction waits for these */
		break;
	}
}

void vb_abi_wait_acks(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *acked,
		      const uint32_t *delivered)
{
	pthread_mutex_lock(mutex);
	while (*acked != *delivered)
		pthread_cond_wait(cond, mutex);
	pthread_mutex_unlock(mutex);
}
