/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_QP_COUNTED_H
#define VB_NIC_QP_COUNTED_H

#include "nic/queue/comp_cntr.h"

struct vb_qp;

/*
 * ibv_qp_attach_comp_cntr(3), until the QP is destroyed. EOPNOTSUPP: operations or a type of QP
 * that are not counted; EINVAL: no operations, unknown attributes, another context's counter, or
 * the QP is neither in RESET nor in INIT; EBUSY: one of the operations has a counter; ENOMEM.
 */
int vb_qp_comp_cntr_attach(struct vb_qp *qp, struct vb_comp_cntr *cntr,
			   const struct vb_comp_cntr_attach_attr *attr);

#endif
