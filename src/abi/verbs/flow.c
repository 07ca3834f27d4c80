/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/steer.h"

#include "abi/verbs/abi.h"

struct ibv_flow *vb_abi_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr)
{
	struct vb_steer_flow *flow;
	int rc = EIO;

	if (!vb_abi_is_dead(qp->context))
		rc = vb_flow_create((struct vb_qp *)qp, attr, &flow);
	if (rc != 0) {
		errno = rc;
		return NULL;
	}
	return &flow->ibv;
}

int vb_abi_destroy_flow(struct ibv_flow *flow)
{
	if (vb_abi_is_gone(flow->context))
		return 0;
	return vb_flow_destroy((struct vb_steer_flow *)flow);
}
