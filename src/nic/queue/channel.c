/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/queue/channel.h"

#include <errno.h>
#include <stdlib.h>

#include "base/refusal.h"
#include "nic/queue/cq.h"

int vb_channel_create(struct vb_ctx *ctx, int fd, struct vb_channel **out)
{
	struct vb_channel *channel = calloc(1, sizeof(*channel));

	if (!channel)
		return ENOMEM;
	channel->ibv.context = &ctx->ibv.context;
	channel->ibv.fd = fd;
	channel->tail = &channel->head;
	vb_lock_init(&channel->lock, VB_RANK_CHANNEL);
	*out = channel;
	return 0;
}

int vb_channel_destroy(struct vb_channel *channel)
{
	int users;

	vb_lock_take(&channel->lock);
	users = channel->ibv.refcnt;
	vb_lock_drop(&channel->lock);
	if (users)
		return vb_refuse(EBUSY, "CQs still use the channel");
	vb_lock_fini(&channel->lock);
	free(channel);
	return 0;
}

bool vb_channel_has_event(struct vb_channel *channel)
{
	bool has;

	vb_lock_take(&channel->lock);
	has = channel->head != NULL;
	vb_lock_drop(&channel->lock);
	return has;
}

struct vb_cq *vb_channel_pop(struct vb_channel *channel)
{
	struct vb_cq *cq;

	vb_lock_take(&channel->lock);
	cq = channel->head;
	if (cq) {
		channel->head = cq->events.next;
		if (!channel->head)
			channel->tail = &channel->head;
		cq->events.next = NULL;
		cq->events.comp++;
		/* Further events of this CQ are delivered later, in turn with other CQs'. */
		if (--cq->events.pending) {
			*channel->tail = cq;
			channel->tail = &cq->events.next;
		}
	}
	vb_lock_drop(&channel->lock);
	return cq;
}
