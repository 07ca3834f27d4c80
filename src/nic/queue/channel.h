/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_CHANNEL_H
#define VB_NIC_CHANNEL_H

/*
 * Completion channels: a CQ is queued there once for each event that it has to deliver. Any thread.
 */

#include "nic/core/ctx.h"

struct vb_cq;

struct vb_channel {
	struct ibv_comp_channel ibv; /* refcnt: CQs that use it */
	vb_lock lock;
	struct vb_cq *head, **tail; /* CQs with an event to deliver */
};

/* fd: an event fd of the host. */
int vb_channel_create(struct vb_ctx *ctx, int fd, struct vb_channel **channel);
int vb_channel_destroy(struct vb_channel *channel); /* EBUSY while CQs use it */

/* Is there a CQ event? */
VB_LENT bool vb_channel_has_event(struct vb_channel *channel);

/* Takes the next CQ event. Call it once after each successful read of the channel's fd. */
struct vb_cq *vb_channel_pop(struct vb_channel *channel);

#endif
