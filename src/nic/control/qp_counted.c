/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/control/qp_counted.h"

#include <errno.h>

#include "base/refusal.h"
#include "nic/data/qp.h"

static int attach_check(const struct vb_qp *qp, const struct vb_comp_cntr *cntr,
			const struct vb_comp_cntr_attach_attr *attr)
{
	if (!vb_qp_is(qp, VB_IS_COUNTED))
		return vb_refuse(EOPNOTSUPP, "completions of a QP of type %s are not counted",
				 qp->service->name);
	if (attr->op_mask & ~VB_COMP_OPS)
		return vb_refuse(EOPNOTSUPP, "op_mask 0x%x: this device counts only 0x%x",
				 attr->op_mask, VB_COMP_OPS);
	if (attr->comp_mask || !attr->op_mask)
		return vb_refuse(EINVAL, "comp_mask 0x%x is to be 0, and op_mask 0x%x is not",
				 attr->comp_mask, attr->op_mask);
	if (cntr->context != qp->ibv.qp.context)
		return vb_refuse(EINVAL, "the counter is of another context");
	return 0;
}

static int attach_locked(struct vb_qp *qp, struct vb_comp_cntr *cntr, uint32_t ops)
{
	int err;

	if (vb_qp_state(qp) > IBV_QPS_INIT)
		return vb_refuse(EINVAL, "the QP is neither in RESET nor in INIT");
	err = vb_counted_add(&qp->user.counted, cntr, ops);
	if (err)
		return err;
	if (ops & ~(uint32_t)VB_COMP_RECV)
		qp->made.wqe_flags |= VB_WQE_ASIDE;
	if (ops & VB_COMP_RECV)
		qp->user.is_counted = true;
	return 0;
}

int vb_qp_comp_cntr_attach(struct vb_qp *qp, struct vb_comp_cntr *cntr,
			   const struct vb_comp_cntr_attach_attr *attr)
{
	int err = attach_check(qp, cntr, attr);

	if (err)
		return err;
	vb_lock_take(&qp->lock);
	err = attach_locked(qp, cntr, attr->op_mask);
	vb_lock_drop(&qp->lock);
	return err;
}
