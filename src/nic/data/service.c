/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/data/service.h"

#include <errno.h>

int vb_service_transition_check(const struct vb_service *service, enum ibv_qp_state from,
				enum ibv_qp_state to, int mask)
{
	const struct vb_service_modify *modify = &service->modify;

	mask &= ~IBV_QP_STATE;
	/* These allow no other attribute. */
	if ((service->traits & VB_RETURNS) && (to == IBV_QPS_RESET || to == IBV_QPS_ERR))
		return mask & ~IBV_QP_CUR_STATE ? EINVAL : 0;
	for (size_t i = 0; i < modify->rows; i++) {
		const struct vb_transition *t = &modify->transitions[i];

		if (t->from != from || t->to != to)
			continue;
		return (mask & t->required) != t->required || (mask & ~(t->required | t->optional))
			       ? EINVAL
			       : 0;
	}
	return EINVAL;
}
