/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_QP_MODIFY_H
#define VB_NIC_QP_MODIFY_H

/* Changes attributes of a QP. */

#include "nic/data/qp.h"

/*
 * ibv_modify_qp(3). EINVAL: wrong transition, mask or value; EBUSY: if rights are taken from the
 * peer, as destroy. On failure nothing has changed.
 */
int vb_qp_modify(struct vb_qp *qp, const struct ibv_qp_attr *attr, int mask);

/*
 * ibv_modify_qp_rate_limit(3). EINVAL: not in RTS or SQD, an unsupported rate, or a bit in
 * comp_mask, of which none is known.
 */
int vb_qp_rate_limit(struct vb_qp *qp, const struct ibv_qp_rate_limit_attr *attr);

#endif
