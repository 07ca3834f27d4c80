/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_CHECK_CALLS_H
#define VB_ABI_CHECK_CALLS_H

/* Posting and polling, by functions that look before and after they call the usual ones. */

#include <infiniband/verbs.h>

/* Of a context that is checked. */
extern const struct ibv_context_ops vb_check_ops;

/*
 * Gives them to an extended CQ, and to a builder, that has the usual ones. current: the completion
 * that the CQ is at.
 */
void vb_check_cq_ex(struct ibv_cq_ex *cq, const struct ibv_wc *(*current)(struct ibv_cq_ex *cq));
void vb_check_builder(struct ibv_qp_ex *qp);

#endif
