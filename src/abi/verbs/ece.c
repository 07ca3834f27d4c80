/* SPDX-License-Identifier: BSD-2-Clause */
/* Enhanced connection establishment: vendors' options, of which this device has none. */
#include "abi/verbs/abi.h"

int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	return EOPNOTSUPP;
}

int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	*ece = (struct ibv_ece){ .vendor_id = 0 };
	return EOPNOTSUPP;
}
