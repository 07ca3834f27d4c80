/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_MEASURED_H
#define VB_ABI_MEASURED_H

/*
 * Posting and polling that also measure (nic/data/latency.h). The NIC has them put in place while
 * somebody watches (control/sample.h); each takes itself away again when nobody has looked for
 * longer than was announced. So they cost nothing where nobody looks.
 */

#include <infiniband/verbs.h>
#include <stdbool.h>

struct vb_ctx;
struct vb_qp;

/* Puts them in place for a context; or for a QP and its CQ, if these have functions of their own. */
void vb_measure(struct vb_ctx *ctx, struct vb_qp *qp);

/* Is it over? Then whoever asks takes its function away. */
bool vb_measure_is_over(const struct ibv_context *context);

/* The application has taken these completions. */
void vb_measure_taken(struct ibv_context *context, const struct ibv_wc *wc, int count);

#endif
