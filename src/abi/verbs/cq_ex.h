/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_VERBS_CQ_EX_H
#define VB_ABI_VERBS_CQ_EX_H

/* Extended CQs; ops.h declares what makes them. */

#include <infiniband/verbs.h>

/* Measures from now on what is polled, until that is over (abi/trace/measured.h). */
void vb_cq_ex_measure(struct ibv_cq_ex *cq);

#endif
