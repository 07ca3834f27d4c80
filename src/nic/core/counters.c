/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/core/counters.h"

#include <errno.h>
#include <stdlib.h>

#include "base/refusal.h"
#include "nic/core/internal.h"

int vb_counters_create(struct vb_ctx *ctx, const struct ibv_counters_init_attr *attr,
		       struct vb_counters **out)
{
	struct vb_counters *counters;
	int err;

	if (attr->comp_mask)
		return EOPNOTSUPP;
	err = vb_nic_count_up(&ctx->nic->counts.counters, VB_COUNTERS_MAX);
	if (err)
		return err;
	counters = calloc(1, sizeof(*counters));
	if (!counters) {
		atomic_fetch_sub(&ctx->nic->counts.counters, 1);
		return ENOMEM;
	}
	counters->ibv.context = &ctx->ibv.context;
	vb_lock_init(&counters->lock, VB_RANK_COUNTERS);
	*out = counters;
	return 0;
}

int vb_counters_destroy(struct vb_counters *counters)
{
	uint32_t flows = atomic_load(&counters->flows);

	if (flows)
		return vb_refuse(EBUSY, "%u flow rules count by them", flows);
	atomic_fetch_sub(&vb_nic_of(counters->ibv.context)->counts.counters, 1);
	vb_lock_fini(&counters->lock);
	free(counters);
	return 0;
}

static uint64_t counted(struct vb_counters *counters, enum ibv_counter_description what)
{
	return atomic_load_explicit(what == IBV_COUNTER_PACKETS ? &counters->packets
								: &counters->bytes,
				    memory_order_relaxed);
}

int vb_counters_attach(struct vb_counters *counters, const struct ibv_counter_attach_attr *attr,
		       const struct ibv_flow *flow)
{
	int err = 0;

	if (flow || attr->comp_mask || (unsigned)attr->counter_desc > IBV_COUNTER_BYTES)
		return EOPNOTSUPP;
	vb_lock_take(&counters->lock);
	if (atomic_load(&counters->flows))
		err = EBUSY;
	else if (counters->points == VB_COUNTER_POINTS_MAX)
		err = ENOMEM;
	else
		counters->point[counters->points++] = (struct vb_counter_point){
			.what = attr->counter_desc,
			.index = attr->index,
			.before = counted(counters, attr->counter_desc),
		};
	vb_lock_drop(&counters->lock);
	return err;
}

int vb_counters_read(struct vb_counters *counters, uint64_t *values, uint32_t count,
		     uint32_t flags)
{
	if (flags & ~(uint32_t)IBV_READ_COUNTERS_ATTR_PREFER_CACHED)
		return EOPNOTSUPP;
	for (uint32_t i = 0; i < count; i++)
		values[i] = 0;
	vb_lock_take(&counters->lock);
	for (uint32_t i = 0; i < counters->points; i++) {
		const struct vb_counter_point *point = &counters->point[i];

		if (point->index < count)
			values[point->index] += counted(counters, point->what) - point->before;
	}
	vb_lock_drop(&counters->lock);
	return 0;
}
