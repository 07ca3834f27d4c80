/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_VERBS_CONTEXT_H
#define VB_ABI_VERBS_CONTEXT_H

/* Contexts, and what keeps one. */

#include "nic/core/ctx.h"
#include "run/device.h"

/* Makes a context of that device. It takes over cmd_fd; -1: it gets a new one. */
int vb_abi_context_make(struct vb_device *dev, int cmd_fd, struct vb_ctx **ctx);

/*
 * For objects that live in a context and depend on nothing else: PDs, CQs, channels, domains,
 * device memory, counters. ibv_close_device(3) leaves them, so the context stays until they are
 * gone: destroying the last one closes it. Call _ended with the result of the destruction, and do
 * not touch the context after it.
 */
static inline void vb_abi_made(struct ibv_context *context)
{
	atomic_fetch_add(&vb_ctx_of(context)->holders, 1);
}

int vb_abi_ended(struct ibv_context *context, int rc);

/*
 * With another order (nic/core/order.h), does this poll turn the NIC? Mostly it is left to the
 * NIC's own thread, so that whoever polls sees what comes while it comes, as with an adapter.
 */
bool vb_abi_poll_turns(void);

#endif
