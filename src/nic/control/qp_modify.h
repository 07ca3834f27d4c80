/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_QP_MODIFY_H
#define VB_NIC_QP_MODIFY_H

/* What an application changes of a QP. */

#include "nic/data/qp.h"

/*
 * ibv_modify_qp(3). EINVAL: transition, mask or value wrong; EBUSY: where rights are taken from the
 * peer, as destroy. Nothing has changed then.
 */
int vb_qp_modify(struct vb_qp *qp, const struct ibv_qp_attr *attr, int mask);

/*
 * ibv_modify_qp_rate_limit(3). EINVAL: not in RTS or SQD, a rate that the device does not do, or a
 * bit of comp_mask, of which none is known.
 */
int vb_qp_rate_limit(struct vb_qp *qp, const struct ibv_qp_rate_limit_attr *attr);

#endif
