/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion channels and their events. */
#include <unistd.h>

#include "abi/check/check.h"
#include "abi/check/events.h"
#include "abi/verbs/abi.h"
#include "abi/verbs/context.h"
#include "nic/queue/cq.h"
#include "run/await.h"
#include "run/process/eventfd.h"
#include "tape/calls.h"

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct vb_channel *channel;
	int fd, rc;

	if (vb_abi_is_dead(context)) {
		errno = EIO;
		return NULL;
	}
	fd = vb_eventfd_create();
	if (fd < 0)
		return NULL;
	rc = vb_taped_channel_create(vb_ctx_of(context), fd, &channel);
	if (rc != 0) {
		close(fd);
		vb_abi_result(rc);
		return NULL;
	}
	vb_abi_made(context);
	vb_known_add(VB_KNOWN_CHANNEL, &channel->ibv);
	return &channel->ibv;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	struct ibv_context *context;
	int fd, rc = vb_known_end(VB_KNOWN_CHANNEL, channel);

	if (rc != 0)
		return vb_abi_result(rc);
	context = channel->context;
	fd = channel->fd;
	if (vb_abi_is_gone(context))
		return 0;
	rc = vb_known_ended(VB_KNOWN_CHANNEL, channel,
			    vb_taped_channel_destroy((struct vb_channel *)channel));
	if (rc == 0)
		close(fd);
	return vb_abi_ended(context, vb_report_refused(__func__, rc));
}

static bool has_event(void *channel)
{
	return vb_channel_has_event(channel);
}

static int get_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	struct vb_cq *found;

	if (vb_abi_is_gone(channel->context))
		return vb_abi_minus_one(EIO);
	/* If the event's CQ was destroyed between read and pop, wait for the next event. */
	do {
		if (!vb_await(vb_device_of(channel->context), channel->fd, has_event, channel))
			return vb_abi_minus_one(EINTR);
		if (!vb_eventfd_take(channel->fd))
			return -1;
		found = vb_taped_channel_pop((struct vb_channel *)channel);
	} while (!found);
	*cq = &found->ibv.cq;
	*cq_context = found->ibv.cq.cq_context;
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	int rc;

	if (!vb_check_is_on())
		return get_event(channel, cq, cq_context);
	vb_check_channel_enter(channel);
	rc = get_event(channel, cq, cq_context);
	vb_check_channel_leave(channel, rc == 0 ? *cq : NULL);
	return rc;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	if (vb_abi_is_gone(cq->context))
		return;
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += nevents;
	pthread_cond_signal(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
	if (vb_check_is_on())
		vb_check_acked(cq);
}
