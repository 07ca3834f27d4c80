/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_FOUND_H
#define VB_NIC_FOUND_H

/* Findings: what went wrong, in words, for whoever wants to know (struct vb_host_insight). */

#include "nic/core/ctx.h"
#include "nic/core/nic_host.h"

/* An empty finding; NULL: nobody wants to know, or there is no memory. Any lock but FOUND. */
struct vb_finding *vb_finding_begin(const struct vb_nic *nic);

/* Hands it over. */
void vb_finding_end(const struct vb_nic *nic, struct vb_finding *finding);

/* Explains an asynchronous event that the context is given. */
void vb_finding_event(const struct vb_ctx *ctx, const struct ibv_async_event *event)
	__attribute__((cold, noinline));

#endif
