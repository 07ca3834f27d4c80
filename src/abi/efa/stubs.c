/* SPDX-License-Identifier: BSD-2-Clause */
/* libefa.so.1, the EFA direct verbs: our NIC is not an EFA device, and every call says so. */

#include "abi/stub.h"

/* clang-format off */

VB_STUB_INT(efadv_query_ah)
VB_STUB_INT(efadv_query_device)
VB_STUB_INT(efadv_query_mr)
VB_STUB_POINTER(efadv_cq_from_ibv_cq_ex, EOPNOTSUPP)
VB_STUB_POINTER(efadv_create_cq, EOPNOTSUPP)
VB_STUB_POINTER(efadv_create_driver_qp, EOPNOTSUPP)
VB_STUB_POINTER(efadv_create_qp_ex, EOPNOTSUPP)
