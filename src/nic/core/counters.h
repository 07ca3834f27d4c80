/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_COUNTERS_H
#define VB_NIC_COUNTERS_H

/*
 * Counters objects count the frames that flow rules match (ibv_create_counters(3)). A rule names
 * its counters when it is created; what each index of them counts is set before
 * (ibv_attach_counters_point_flow(3)).
 */

#include "nic/core/ctx.h"

struct vb_counter_point {
	enum ibv_counter_description what;
	uint32_t index;
	uint64_t before; /* the count when it was attached */
};

struct vb_counters {
	struct ibv_counters ibv;
	_Atomic uint64_t packets, bytes; /* of all rules that ever named it */
	_Atomic uint32_t flows;		 /* that name it now */
	vb_lock lock;			 /* of the points */
	uint32_t points;
	struct vb_counter_point point[VB_COUNTER_POINTS_MAX];
};

/* EOPNOTSUPP: unknown attributes; ENOMEM. */
int vb_counters_create(struct vb_ctx *ctx, const struct ibv_counters_init_attr *attr,
		       struct vb_counters **counters);

/* EBUSY: flow rules name it. */
int vb_counters_destroy(struct vb_counters *counters);

/*
 * ibv_attach_counters_point_flow(3). EOPNOTSUPP: something other than packets and bytes, unknown
 * attributes, or an existing rule: rules get their counters when they are created. EBUSY: rules
 * name it; ENOMEM: too many points.
 */
int vb_counters_attach(struct vb_counters *counters, const struct ibv_counter_attach_attr *attr,
		       const struct ibv_flow *flow);

/*
 * ibv_read_counters(3): for each index below count the sum of its points, 0 if it has none.
 * EOPNOTSUPP: unknown flags.
 */
int vb_counters_read(struct vb_counters *counters, uint64_t *values, uint32_t count,
		     uint32_t flags);

/* A frame of this size was matched. */
static inline void vb_counters_add(struct vb_counters *counters, uint32_t bytes)
{
	atomic_fetch_add_explicit(&counters->packets, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&counters->bytes, bytes, memory_order_relaxed);
}

#endif
