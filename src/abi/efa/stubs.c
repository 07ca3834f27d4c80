/* SPDX-License-Identifier: BSD-2-Clause */
/* What of efadv is not supported at all: docs/efa.md says why. */

#include "abi/stub.h"

/* clang-format off */

VB_STUB_INT(efadv_query_cq)
VB_STUB_INT(efadv_query_qp_wqs)
VB_STUB_POINTER(efadv_create_comp_cntr, EOPNOTSUPP)
