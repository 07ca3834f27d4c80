/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/data/window.h"

#include <inttypes.h>

#include "abi/verbs/abi.h"
#include "abi/verbs/ops.h"
#include "tape/calls.h"

struct ibv_mw *vb_abi_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct vb_mw *mw;
	int rc = vb_abi_check(PD, pd);

	if (rc == 0)
		rc = vb_taped_mw_alloc((struct vb_pd *)pd, type, &mw);
	if (rc != 0) {
		vb_abi_result(rc);
		return NULL;
	}
	vb_known_add(VB_KNOWN_MW, &mw->ibv);
	return &mw->ibv;
}

int vb_abi_dealloc_mw(struct ibv_mw *mw)
{
	int rc = vb_known_end(VB_KNOWN_MW, mw);

	if (rc == 0 && !vb_abi_is_gone(mw->context))
		rc = vb_known_ended(VB_KNOWN_MW, mw, vb_taped_mw_dealloc((struct vb_mw *)mw));
	return vb_abi_result(rc);
}

/* The inline wrapper in verbs.h has checked some of it already. */
int vb_abi_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	int rc = EIO;

	if (!vb_abi_is_dead(qp->context))
		rc = vb_taped_mw_bind((struct vb_qp *)qp, (struct vb_mw *)mw, bind);
	if (rc != 0)
		vb_refusal_about("QPN 0x%x, wr_id 0x%" PRIx64, qp->qp_num, bind->wr_id);
	return vb_report_refused(__func__, rc);
}
