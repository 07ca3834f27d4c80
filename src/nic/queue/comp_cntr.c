/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/queue/comp_cntr.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/refusal.h"
#include "nic/core/internal.h"
#include "nic/core/limits.h"

/* Where a QP has the counter of each operation. */
static const struct {
	uint32_t op;
	size_t at;
} places[] = {
	{ VB_COMP_SEND, offsetof(struct vb_counted, send) },
	{ VB_COMP_RECV, offsetof(struct vb_counted, recv) },
	{ VB_COMP_READ, offsetof(struct vb_counted, read) },
	{ VB_COMP_WRITE, offsetof(struct vb_counted, write) },
};

static struct vb_comp_cntr **place_of(struct vb_counted *counted, size_t i)
{
	return (struct vb_comp_cntr **)((char *)counted + places[i].at);
}

void vb_comp_cntr_query(struct vb_comp_cntr_caps *caps)
{
	*caps = (struct vb_comp_cntr_caps){
		.max_value = UINT64_MAX,
		.max_counters = VB_COMP_CNTRS_MAX,
		.ops = VB_COMP_OPS,
	};
}

int vb_comp_cntr_create(struct vb_ctx *ctx, const struct vb_comp_cntr_init_attr *attr,
			struct vb_comp_cntr **out)
{
	struct vb_comp_cntr *cntr;
	int err;

	if (attr->comp_mask || attr->flags || attr->type > VB_COMP_CNTR_BYTES)
		return vb_refuse(EINVAL, "comp_mask 0x%x and flags 0x%x are to be 0; type %u is "
					 "to be 0 or 1",
				 attr->comp_mask, attr->flags, attr->type);
	err = vb_nic_count_up(&ctx->nic->counts.comp_cntrs, VB_COMP_CNTRS_MAX);
	if (err)
		return err;
	cntr = calloc(1, sizeof(*cntr));
	if (!cntr) {
		atomic_fetch_sub(&ctx->nic->counts.comp_cntrs, 1);
		return ENOMEM;
	}
	cntr->context = &ctx->ibv.context;
	cntr->type = attr->type;
	*out = cntr;
	return 0;
}

int vb_comp_cntr_destroy(struct vb_comp_cntr *cntr)
{
	uint32_t qps = atomic_load(&cntr->qps);

	if (qps)
		return vb_refuse(EBUSY, "it is attached to %u queue pairs", qps);
	atomic_fetch_sub(&vb_nic_of(cntr->context)->counts.comp_cntrs, 1);
	free(cntr);
	return 0;
}

/* Checks all places before it takes one. */
int vb_counted_add(struct vb_counted **counted, struct vb_comp_cntr *cntr, uint32_t ops)
{
	for (size_t i = 0; *counted && i < VB_ARRAY_LEN(places); i++) {
		if ((ops & places[i].op) && *place_of(*counted, i))
			return vb_refuse(EBUSY, "op_mask 0x%x: 0x%x has a counter", ops,
					 places[i].op);
	}
	if (!*counted)
		*counted = calloc(1, sizeof(**counted));
	if (!*counted)
		return ENOMEM;
	for (size_t i = 0; i < VB_ARRAY_LEN(places); i++) {
		if (ops & places[i].op) {
			*place_of(*counted, i) = cntr;
			atomic_fetch_add(&cntr->qps, 1);
		}
	}
	return 0;
}

void vb_counted_free(struct vb_counted *counted)
{
	for (size_t i = 0; counted && i < VB_ARRAY_LEN(places); i++) {
		struct vb_comp_cntr *cntr = *place_of(counted, i);

		if (cntr)
			atomic_fetch_sub(&cntr->qps, 1);
	}
	free(counted);
}

/* Whoever reads the new value sees the data, too. */
static void count(struct vb_comp_cntr *cntr, uint32_t bytes, enum ibv_wc_status status)
{
	if (!cntr)
		return;
	if (status != IBV_WC_SUCCESS)
		atomic_fetch_add_explicit(&cntr->failed, 1, memory_order_release);
	else
		atomic_fetch_add_explicit(&cntr->done,
					  cntr->type == VB_COMP_CNTR_BYTES ? bytes : 1,
					  memory_order_release);
}

void vb_counted_sent(const struct vb_counted *counted, const struct vb_wqe *wqe,
		     enum ibv_wc_status status)
{
	switch (wqe->wc_opcode) {
	case IBV_WC_SEND:
		count(counted->send, wqe->bytes, status);
		break;
	case IBV_WC_RDMA_READ:
		count(counted->read, wqe->bytes, status);
		break;
	case IBV_WC_RDMA_WRITE:
		count(counted->write, wqe->bytes, status);
		break;
	default:
		break;
	}
}

void vb_counted_received(const struct vb_counted *counted, const struct ibv_wc *wc)
{
	count(counted->recv, wc->byte_len, wc->status);
}
