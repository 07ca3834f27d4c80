/* SPDX-License-Identifier: BSD-2-Clause */
/* What EFA direct verbs say of the device and of memory. */
#include <errno.h>

#include "abi/efa/room.h"
#include "nic/control/efa.h"

int efadv_query_device(struct ibv_context *context, struct vb_efa_device_attr *attr,
		       uint32_t inlen);
int efadv_get_max_sq_depth(struct ibv_context *context, struct vb_efa_sq_depth_attr *attr,
			   uint32_t inlen);
int efadv_get_max_rq_depth(struct ibv_context *context, struct vb_efa_rq_depth_attr *attr,
			   uint32_t inlen);
int efadv_query_mr(struct ibv_mr *mr, struct vb_efa_mr_attr *attr, uint32_t inlen);

/* Fields beyond inline_buf_size came later, and device_caps counts with max_rdma_size alone. */
int efadv_query_device(struct ibv_context *context, struct vb_efa_device_attr *attr, uint32_t inlen)
{
	struct vb_efa_device_attr full = {
		.inline_buf_size = VB_EFA_INLINE_BYTES_MAX,
		.inline_buf_size_ex = VB_EFA_INLINE_BYTES_MAX,
		.device_caps = VB_EFA_CAP_RDMA_READ | VB_EFA_CAP_RNR_RETRY |
			       VB_EFA_CAP_CQ_WITH_SGID | VB_EFA_CAP_RDMA_WRITE |
			       VB_EFA_CAP_UNSOLICITED_WRITE_RECV,
		.max_rdma_size = VB_EFA_RDMA_BYTES_MAX,
	};
	struct ibv_device_attr device;

	if (!vb_efa_is(context))
		return EOPNOTSUPP;
	if (!vb_efa_has(struct vb_efa_device_attr, inline_buf_size, inlen))
		return EINVAL;
	ibv_query_device(context, &device);
	full.max_sq_wr = full.max_rq_wr = (uint32_t)device.max_qp_wr;
	full.max_sq_sge = full.max_rq_sge = (uint16_t)device.max_sge;
	if (!vb_efa_has(struct vb_efa_device_attr, max_rdma_size, inlen))
		full.device_caps = 0;
	vb_efa_give(attr, inlen, &full, sizeof(full));
	return 0;
}

/* A queue has as many places whatever its requests are like, as long as they may be like that. */
int efadv_get_max_sq_depth(struct ibv_context *context, struct vb_efa_sq_depth_attr *attr,
			   uint32_t inlen)
{
	struct ibv_device_attr device;

	if (!vb_efa_is(context))
		return -EOPNOTSUPP;
	if (!vb_efa_has(struct vb_efa_sq_depth_attr, max_inline_data, inlen) || attr->comp_mask ||
	    !vb_efa_rest_is_zero(attr, sizeof(*attr), inlen))
		return -EINVAL;
	/* Inline data is SEND's alone. */
	if (attr->flags)
		return attr->flags & ~(uint32_t)VB_EFA_SQ_INLINE_WRITE ? -EINVAL : -EOPNOTSUPP;
	ibv_query_device(context, &device);
	if (attr->max_send_sge > (uint32_t)device.max_sge ||
	    attr->max_rdma_sge > (uint32_t)device.max_sge_rd ||
	    attr->max_inline_data > VB_EFA_INLINE_BYTES_MAX)
		return -EINVAL;
	return device.max_qp_wr;
}

int efadv_get_max_rq_depth(struct ibv_context *context, struct vb_efa_rq_depth_attr *attr,
			   uint32_t inlen)
{
	struct ibv_device_attr device;

	if (!vb_efa_is(context))
		return -EOPNOTSUPP;
	ibv_query_device(context, &device);
	if (!vb_efa_has(struct vb_efa_rq_depth_attr, max_recv_sge, inlen) || attr->comp_mask ||
	    !vb_efa_rest_is_zero(attr, sizeof(*attr), inlen) ||
	    attr->max_recv_sge > (uint32_t)device.max_sge)
		return -EINVAL;
	return device.max_qp_wr;
}

/* There is no interconnect between the device and memory, so none of the numbers is valid. */
int efadv_query_mr(struct ibv_mr *mr, struct vb_efa_mr_attr *attr, uint32_t inlen)
{
	static const struct vb_efa_mr_attr none;

	if (!vb_efa_is(mr->context))
		return EOPNOTSUPP;
	if (!vb_efa_has(struct vb_efa_mr_attr, rdma_recv_ic_id, inlen))
		return EINVAL;
	vb_efa_give(attr, inlen, &none, sizeof(none));
	return 0;
}
