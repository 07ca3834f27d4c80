/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_COUNTERS_H
#define VB_NIC_COUNTERS_H

/*
 * Counters objects, which count what is attached to them. Only steering rules can be attached
 * (ibv_attach_counters_point_flow(3)), and there are none: nothing ever counts.
 */

#include "nic/ctx.h"

struct vb_counters {
	struct ibv_counters ibv;
};

/* EOPNOTSUPP: unknown attributes; ENOMEM. */
int vb_counters_create(struct vb_ctx *ctx, const struct ibv_counters_init_attr *attr,
		       struct vb_counters **counters);
int vb_counters_destroy(struct vb_counters *counters);

/*
 * ibv_read_counters(3): values that nothing is attached to are what they were upon creation, 0.
 * EOPNOTSUPP: unknown flags.
 */
int vb_counters_read(struct vb_counters *counters, uint64_t *values, uint32_t count,
		     uint32_t flags);

#endif
