/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/service/eth/steer.h"

#include "abi/verbs/abi.h"
#include "abi/verbs/ops.h"

struct ibv_flow *vb_abi_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr)
{
	struct vb_steer_flow *flow;
	int rc = vb_abi_check(QP, qp);

	if (rc == 0)
		rc = vb_flow_create((struct vb_qp *)qp, attr, &flow);
	if (rc != 0) {
		vb_abi_result(rc);
		return NULL;
	}
	vb_known_add(VB_KNOWN_FLOW, &flow->ibv);
	return &flow->ibv;
}

int vb_abi_destroy_flow(struct ibv_flow *flow)
{
	int rc = vb_known_end(VB_KNOWN_FLOW, flow);

	if (rc == 0 && !vb_abi_is_gone(flow->context))
		rc = vb_known_ended(VB_KNOWN_FLOW, flow,
				    vb_flow_destroy((struct vb_steer_flow *)flow));
	return vb_abi_result(rc);
}
