/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_CHANNEL_H
#define VB_NIC_CHANNEL_H

/* Completion channels: CQs queue there, each as often as it has an event to deliver. Any thread. */

#include "nic/core/ctx.h"

struct vb_cq;

struct vb_channel {
	struct ibv_comp_channel ibv; /* refcnt: CQs that use it */
	vb_lock lock;
	struct vb_cq *head, **tail; /* CQs with an event to deliver */
};

/* fd: an event fd of the host's. */
int vb_channel_create(struct vb_ctx *ctx, int fd, struct vb_channel **channel);
int vb_channel_destroy(struct vb_channel *channel); /* EBUSY while CQs use it */

/* Is there a CQ event? */
bool vb_channel_has_event(struct vb_channel *channel);

/* Take the next CQ event; call it once for each successful read of the channel's fd. */
struct vb_cq *vb_channel_pop(struct vb_channel *channel);

#endif
