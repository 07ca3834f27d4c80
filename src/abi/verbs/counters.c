/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/core/counters.h"

#include "abi/verbs/abi.h"
#include "abi/verbs/context.h"
#include "abi/verbs/ops.h"

struct ibv_counters *vb_abi_create_counters(struct ibv_context *context,
					    struct ibv_counters_init_attr *attr)
{
	struct vb_counters *counters;
	int rc = EIO;

	if (!vb_abi_is_dead(context))
		rc = vb_counters_create(vb_ctx_of(context), attr, &counters);
	if (rc != 0) {
		vb_abi_result(rc);
		return NULL;
	}
	vb_abi_made(context);
	vb_known_add(VB_KNOWN_COUNTERS, &counters->ibv);
	return &counters->ibv;
}

int vb_abi_destroy_counters(struct ibv_counters *counters)
{
	struct ibv_context *context;
	int rc = vb_known_end(VB_KNOWN_COUNTERS, counters);

	if (rc != 0)
		return vb_abi_result(rc);
	context = counters->context;
	if (vb_abi_is_gone(context))
		return 0;
	rc = vb_known_ended(VB_KNOWN_COUNTERS, counters,
			    vb_counters_destroy((struct vb_counters *)counters));
	return vb_abi_ended(context, rc);
}

int vb_abi_attach_counters(struct ibv_counters *counters, struct ibv_counter_attach_attr *attr,
			   struct ibv_flow *flow)
{
	if (vb_abi_is_gone(counters->context))
		return EIO;
	return vb_counters_attach((struct vb_counters *)counters, attr, flow);
}

int vb_abi_read_counters(struct ibv_counters *counters, uint64_t *values, uint32_t count,
			 uint32_t flags)
{
	if (vb_abi_is_gone(counters->context))
		return EIO;
	return vb_counters_read((struct vb_counters *)counters, values, count, flags);
}
